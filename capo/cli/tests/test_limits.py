"""What operators' commands connect to: the addresses are in Secrets, which tenants write."""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import pytest
import yaml

import capo
from capo import settings
from capo.cli import build_parser, common
from capo.json_types import Json
from capo.kube.kinds import CLUSTER, NAMESPACE, OPENSTACK_CLUSTER, SECRET
from capo.kube.tests.fake_apiserver import BUILT_IN, KINDS, FakeApiServer
from capo.openstack.connections import Limits
from capo.operations import owners
from capo.operations.tests import environment
from capo.simulator.simulator import Simulator
from environments import objects

TEAM: Final = "team-a"
METADATA_SERVICE: Final = "http://169.254.169.254/v3"
DENIED: Final = "network to which connections are denied (--openstack-denied-networks)"
COMMANDS: Final = ("inventory", "orphans", "orphans delete", "explain", "plan", "adopt bastion", "adopt apply")
"""Those that use the credentials of objects."""


class Tenant:
    """A management cluster whose tenant chose where its cloud is."""

    def __init__(self, api: FakeApiServer, simulator: Simulator, folder: Path) -> None:
        self.api, self.simulator, self.folder = api, simulator, folder
        self._entry = yaml.safe_load(simulator.clouds_yaml.read_bytes())["clouds"]["sim"]
        self.auth_url = str(self._entry["auth"]["auth_url"])
        self.kubeconfig = environment.kubeconfig(folder / "kubeconfig", api)

    def choose(self, auth_url: str) -> None:
        """Write the Secret of the tenant's cluster, and a clouds.yaml with the same entry."""
        entry = {**self._entry, "auth": {**self._entry["auth"], "auth_url": auth_url}}
        content = yaml.safe_dump({"clouds": {"sim": entry}})
        (self.folder / "clouds.yaml").write_text(content)
        self.api.put(SECRET, objects.in_namespace(objects.secret("cloud", {"clouds.yaml": content.encode()}), TEAM))

    def run(self, command: str, *more: str) -> int:
        """Run a command as an administrator; return its exit status."""
        return environment.capo(*self._arguments(command), "--kubeconfig", self.kubeconfig, *more)

    def _arguments(self, command: str) -> list[str]:
        if command == "orphans delete":
            return ["orphans", "--dry-run", "--delete", self._file(_orphans(self.api.port))]
        if command == "adopt apply":
            return ["adopt", "apply", self._file(_adoption())]
        plan = str(self.folder / "plan.yaml")
        return {
            "inventory": ["inventory", "-A"],
            "orphans": ["orphans"],
            "explain": ["explain", "openstackcluster/shop", "-n", TEAM],
            "plan": ["plan", "shop", "-n", TEAM],
            "adopt bastion": ["adopt", "bastion", "jump", "--cluster", "shop", "-n", TEAM, "-o", plan],
        }[command]

    def _file(self, document: Json) -> str:
        path = self.folder / "given.yaml"
        path.write_text(yaml.safe_dump(document))
        return str(path)

    def requests(self) -> list[Json]:
        """Return the requests that the simulated cloud got."""
        return list(self.simulator.cloud.counter.log())


def _orphans(port: int) -> Json:
    owner = "a" * 13
    orphan = {"kind": "network", "id": "net", "owner": owner, "project": "anywhere", "mark": "m"}
    return {
        "version": 1,
        "created": datetime.datetime.now(datetime.UTC).isoformat(),
        "managementClusters": [{"name": "it", "uid": f"uid-{port}"}],
        "delete": {"owners": [owner], "singly": []},
        "orphans": [orphan],
    }


def _adoption() -> Json:
    found = objects.in_namespace(objects.openstack_cluster("new"), TEAM)
    return {
        "apiVersion": "adoption.capo/v1alpha1",
        "kind": "AdoptionPlan",
        "location": {"authHost": "keystone", "projectId": "p", "region": "r"},
        "findings": [],
        "toComplete": [],
        "resources": [],
        "objects": [found],
    }


@pytest.fixture
def tenant(tmp_path: Path) -> Iterator[Tenant]:
    kinds = tuple(dict.fromkeys((*owners.KINDS, CLUSTER, SECRET, *KINDS, *BUILT_IN)))
    with FakeApiServer(kinds).running() as api, Simulator.start() as simulator:
        api.put(NAMESPACE, {"metadata": {"name": "kube-system", "uid": f"uid-{api.port}"}})
        cluster = objects.in_namespace(objects.cluster("shop"), TEAM)
        cluster["metadata"]["uid"] = "uid-of-shop"
        api.put(CLUSTER, cluster)
        infrastructure = objects.in_namespace(objects.openstack_cluster("shop", owner=cluster), TEAM)
        api.put(OPENSTACK_CLUSTER, {**infrastructure, "status": {"network": {"id": "net"}}})
        yield Tenant(api, simulator, tmp_path)


def own_address(tenant: Tenant) -> str:
    return tenant.auth_url


def by_name(tenant: Tenant) -> str:
    return tenant.auth_url.replace("127.0.0.1", "localhost")


@pytest.mark.parametrize("place", [own_address, by_name, lambda _tenant: METADATA_SERVICE], ids=["own", "name", "far"])
@pytest.mark.parametrize("command", COMMANDS)
def test_a_tenant_sends_no_command_of_an_administrator_to_loopback_or_a_metadata_service(
    tenant: Tenant, capsys: pytest.CaptureFixture[str], command: str, place: Callable[[Tenant], str]
) -> None:
    tenant.choose(place(tenant))

    status = tenant.run(command)

    printed = capsys.readouterr()
    assert status not in (0, 3)
    assert DENIED in printed.out + printed.err
    assert tenant.requests() == []


@pytest.mark.parametrize(
    "command",
    [("inventory",), ("orphans",), ("adopt", "cluster", "shop"), ("adopt", "network", "lan", "--cluster", "shop")],
    ids=" ".join,
)
def test_an_entry_of_clouds_yaml_is_under_the_same_limits(
    tenant: Tenant, capsys: pytest.CaptureFixture[str], command: tuple[str, ...]
) -> None:
    tenant.choose(tenant.auth_url)
    given = ["--cloud", "sim", "--clouds", str(tenant.folder / "clouds.yaml")]
    written = ["-o", str(tenant.folder / "plan.yaml")] if command[0] == "adopt" else ["--kubeconfig", tenant.kubeconfig]

    assert environment.capo(*command, *given, *written) not in (0, 3)

    assert DENIED in capsys.readouterr().err
    assert tenant.requests() == []


@pytest.mark.parametrize("command", COMMANDS)
def test_an_administrator_permits_networks_by_the_flag_of_the_manager(tenant: Tenant, command: str) -> None:
    tenant.choose(tenant.auth_url)

    tenant.run(command, "--openstack-denied-networks=")

    assert tenant.requests() != []


def test_a_flag_has_the_same_effect_on_a_command_as_on_the_manager() -> None:
    given = ["--openstack-denied-networks=10.0.0.0/8,fd00::/8", "--openstack-max-response-size=64Mi"]
    parsed = build_parser(["inventory"]).parse_args(["inventory", *given])

    assert Limits.of(common.settings_of(parsed)) == Limits.of(settings.read(given, {}))


def test_without_a_flag_a_command_has_the_limits_of_the_manager_and_denies_loopback() -> None:
    command = Limits.of(common.settings_of(build_parser(["inventory"]).parse_args(["inventory"])))
    manager = Limits.of(settings.Settings())

    assert set(command.denied) - set(manager.denied) == {each for each in command.denied if each.is_loopback}
    assert {**vars(command), "denied": ()} == {**vars(manager), "denied": ()}


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ("--openstack-denied-networks=10.0.0.1/8", "CIDRs, separated by commas"),
        ("--openstack-max-response-size=1", "a size of at least 1Mi"),
    ],
)
def test_a_value_that_is_none_is_wrong_usage(given: str, text: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert environment.capo("inventory", given) == 2

    assert text in capsys.readouterr().err


@pytest.mark.lint
def test_no_limits_of_requests_to_clouds_are_constructed_elsewhere() -> None:
    root = Path(capo.__file__).parents[1]
    sources = [path for folder in ("capo", "controllers") for path in (root / folder).rglob("*.py")]
    texts = {path: path.read_text(encoding="utf-8") for path in sources if "tests" not in path.parts}

    importing = [path for path, text in texts.items() if re.search(r"openstack\.connections import .*\bLimits\b", text)]
    assert len(importing) > 3
    assert [path for path in importing if re.search(r"\bLimits\(", texts[path])] == []
