"""The how-to: its commands, as a user with the rights that it names, on a real API server and a simulated cloud."""

from __future__ import annotations

import functools
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

import capo
from capo.__main__ import main
from capo.crdgen import files
from capo.json_types import Json
from capo.local.rig import Rig
from capo.local.testing import core_definitions
from capo.operations.adoption import applying
from capo.operations.adoption.tests.environment import NetworkEnvironment
from capo.operations.errors import ExitStatus
from environments import objects

pytestmark = pytest.mark.integration

PAGE: Final = (Path(capo.__file__).parents[1] / "docs/how-to/adopt.md").read_text()
CORE: Final = ("clusters.cluster.x-k8s.io", "machines.cluster.x-k8s.io")
NAMESPACE: Final = "default"
USER: Final = "adopter"
INFRASTRUCTURE: Final = "infrastructure.cluster.x-k8s.io"
CLUSTERS: Final = f"/apis/{INFRASTRUCTURE}/v1beta2/namespaces/{NAMESPACE}/openstackclusters"


def commands() -> list[list[str]]:
    """Return the arguments of each command of ours on the page."""
    return [shlex.split(line) for line in re.findall(r"^ {4}capo (.+)$", PAGE, re.MULTILINE)]


def roles() -> list[Json]:
    """Return the roles of the page."""
    (block,) = re.findall(r"^```yaml\n(.+?)^```", PAGE, re.MULTILINE | re.DOTALL)
    return list(yaml.safe_load_all(block))


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[NetworkEnvironment]:
    """A project with a lost cluster and a server by hand; the user types in a folder with clouds.yaml."""
    with NetworkEnvironment(tmp_path) as environment:
        environment.prepare(server="jump-host", managedSecurityGroups={})
        environment.make_lan()
        entries = yaml.safe_load(environment.simulator.clouds_yaml.read_bytes())["clouds"]
        (tmp_path / "clouds.yaml").write_text(yaml.safe_dump({"clouds": {"openstack": entries["sim"]}}))
        monkeypatch.chdir(tmp_path)
        monkeypatch.delenv("OS_CLIENT_CONFIG_FILE", raising=False)
        yield environment


def kubeconfig(rig: Rig) -> Path:
    """Return the kubeconfig of a user with the rights of the page."""
    subject = {"kind": "ServiceAccount", "name": USER, "namespace": NAMESPACE}
    bindings: list[dict[str, Any]] = []
    for role in roles():
        reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": role["kind"], "name": role["metadata"]["name"]}
        bound = {**role, "kind": f"{role['kind']}Binding", "roleRef": reference, "subjects": [subject]}
        bindings.append({name: value for name, value in bound.items() if name != "rules"})
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": USER, "namespace": NAMESPACE}}
    rig.apply([account, *roles(), *bindings])
    user = f"system:serviceaccount:{NAMESPACE}:{USER}"
    rig.api.wait_allowed(user, "list", INFRASTRUCTURE, "openstackclusters", namespace="kube-system")
    rig.api.wait_allowed(user, "create", "cluster.x-k8s.io", "machines", namespace=NAMESPACE)
    return rig.service_account_kubeconfig(NAMESPACE, USER)


def created(rig: Rig) -> dict[str, list[str]]:
    """Return the names of the objects in the namespace, by plural."""
    groups: dict[str, tuple[str, ...]] = {
        f"{INFRASTRUCTURE}/v1beta2": ("openstackclusters", "openstackmachines"),
        f"{INFRASTRUCTURE}/v1alpha1": ("openstackservers",),
        "cluster.x-k8s.io/v1beta2": ("clusters", "machines"),
    }
    paths = {each: f"/apis/{group}/namespaces/{NAMESPACE}/{each}" for group, all_ in groups.items() for each in all_}
    found = {each: rig.api.get(path)["items"] for each, path in paths.items()}
    return {each: sorted(item["metadata"]["name"] for item in items) for each, items in found.items()}


def test_the_commands_of_the_page_create_the_objects_with_the_rights_of_the_page(
    api_server: Rig,
    project: NetworkEnvironment,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    api_server.install_crds([*files.load(), *(core_definitions()[name] for name in CORE)])
    secret = objects.secret("prod-cloud", {"clouds.yaml": (project.folder / "clouds.yaml").read_bytes()})
    other = {**secret, "metadata": {"name": "shop-cloud-config"}}
    api_server.apply([objects.in_namespace(each, NAMESPACE) for each in (secret, other)])
    monkeypatch.setenv("KUBECONFIG", str(kubeconfig(api_server)))
    monkeypatch.setattr(applying, "apply", functools.partial(applying.apply, pause=project.clock.advance))
    of_cluster, to_apply, by_names, of_bastion, to_apply_bastion, of_network, to_apply_network = commands()

    before = created(api_server)  # of other tests
    assert main(by_names) == ExitStatus.FAILED
    assert "carries the stamp" in capsys.readouterr().err
    assert [main(of_cluster), main(to_apply), main(to_apply)] == [ExitStatus.FOUND, ExitStatus.DONE, ExitStatus.DONE]
    status = {"network": project.status["network"]}
    api_server.api.patch(f"{CLUSTERS}/prod/status", {"status": status})
    assert [main(of_bastion), main(to_apply_bastion)] == [ExitStatus.FOUND, ExitStatus.DONE]
    assert [main(of_network), main(to_apply_network)] == [ExitStatus.DONE, ExitStatus.DONE]

    machines = ["prod-cp-0", "prod-cp-1", "prod-w-0"]
    assert {plural: sorted({*names} - {*before[plural]}) for plural, names in created(api_server).items()} == {
        "clusters": ["prod", "shop"],
        "openstackclusters": ["prod", "shop"],
        "machines": machines,
        "openstackmachines": machines,
        "openstackservers": ["prod-bastion", *machines],
    }
    assert api_server.api.get(f"{CLUSTERS}/prod")["spec"]["bastion"]["floatingIP"] == project.address
    assert str(project.inventory()["servers"][project.server["id"]]["tags"]).count("capo:") == 1
