"""Guides of operators, typed from their pages into a shell, on clusters of the real Cluster API managers."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
import yaml

from capo.json_types import Json
from capo.local.errors import ApiError
from capo.local.rig import Rig
from capo.simulator.testing import inventory
from e2e.install import page
from e2e.install.page import SHELL, Section
from e2e.install.terminal import Terminal
from e2e.machines.environment import MachinesEnvironment
from e2e.machines.objects import CLUSTER, LABELS
from environments import objects

pytestmark = pytest.mark.integration

PAGES: Final = Path(__file__).parents[2] / "docs/how-to"
BLOCKED: Final = 3
"""Exit status of `capo explain` for a blocked deletion."""
SECRET: Final = ("capo-credentials", "shared-cloud")
"""Namespace and name of the Secret of the OpenStackClusterIdentity, as the page has them."""
GIVEN: Final = ("network/networks", "network/subnets", "network/routers")
VOLATILE: Final = {"updated_at", "revision_number"}
"""What a port changes in the answer about its network."""
IDENTITY: Final = "/apis/infrastructure.cluster.x-k8s.io/v1alpha1/openstackclusteridentities/shared"


@pytest.fixture
def terminal(rig: Rig, world: MachinesEnvironment, tmp_path: Path) -> Terminal:
    """Return a shell of a user of the test's namespace and cloud."""
    kubeconfig = yaml.safe_load(rig.kubeconfig.read_text(encoding="utf-8"))
    for context in kubeconfig["contexts"]:
        context["context"]["namespace"] = world.namespace
    (tmp_path / "kubeconfig").write_text(yaml.safe_dump(kubeconfig), encoding="utf-8")
    variables = {
        "KUBECONFIG": str(tmp_path / "kubeconfig"),
        "OS_CLIENT_CONFIG_FILE": str(world.simulator.clouds_yaml),
        "OS_CLOUD": "sim",
    }
    made = Terminal(rig, tmp_path, variables, programs=["kubectl"])
    (made.checkout / ".venv" / "bin").mkdir(parents=True)
    made.link("capo")
    made.link("openstack")
    return made


def sections(name: str) -> dict[str, Section]:
    return page.sections(PAGES / name)


def commands(section: Section) -> list[str]:
    return [block.text for block in section.blocks if block.language == SHELL]


def labelled(obj: Json) -> Json:
    """Return an object with the label that lets the manager of this folder see it."""
    metadata = obj["metadata"]
    return {**obj, "metadata": {**metadata, "labels": {**metadata.get("labels", {}), **LABELS}}}


def is_ready(world: MachinesEnvironment, plural: str, name: str) -> bool:
    return bool(world.condition(plural, name, "Ready").get("status") == "True")


@pytest.fixture
def foreign_port(world: MachinesEnvironment) -> str:
    """Create the cluster ``demo`` and a port of a user in its network, and delete the cluster; return the port's id."""
    clouds = objects.secret("cloud", {"clouds.yaml": world.simulator.clouds_yaml.read_bytes()})
    endpoint = {"host": "kube.example.org", "port": 6443}
    cluster, infrastructure = objects.cluster_objects("demo", controlPlaneEndpoint=endpoint)
    world.apply(clouds, labelled(cluster), labelled(infrastructure))
    world.wait_until("the cluster is ready", lambda: is_ready(world, "openstackclusters", "demo"))
    network = world.status("openstackclusters", "demo")["network"]["id"]
    with world.client() as client:
        port_id = str(client.make("/network/v2.0/ports", "port", network_id=network, name="foreign")["id"])
    world.delete("clusters", "demo")
    world.wait_until("the deletion is blocked", lambda: port_id in message(world))
    return port_id


def message(world: MachinesEnvironment) -> str:
    return str(world.condition("openstackclusters", "demo", "Ready").get("message", ""))


def test_a_deletion_completes_when_the_port_that_blocks_it_is_deleted(
    world: MachinesEnvironment, terminal: Terminal, foreign_port: str
) -> None:
    (remove,) = commands(sections("stuck-deletion.md")["Example: a port of somebody else"])

    terminal.type(remove)
    # An edit ends the backoff, so that the test does not wait for the next retry.
    with contextlib.suppress(ApiError):  # it is deleted already
        world.patch("openstackclusters", "demo", {"spec": {"controlPlaneOmitAvailabilityZone": True}})

    world.wait_until("the cluster is gone", lambda: world.find("clusters", "demo") is None)
    assert not any(world.remaining().values())


def test_a_deletion_that_cannot_complete_is_explained_and_ended(
    world: MachinesEnvironment, terminal: Terminal, foreign_port: str
) -> None:
    guide = sections("stuck-deletion.md")
    (overview,) = commands(guide["Find the object that waits"])
    explain, read = commands(guide["Read what it waits for"])
    end, left = commands(guide["End a deletion that cannot complete"])
    (network,) = world.cloud("network/networks")
    since = world.get("openstackclusters", "demo")["metadata"]["deletionTimestamp"]

    header, row = terminal.type(overview).splitlines()
    on_loopback = "--openstack-denied-networks="
    explained = terminal.type(f"{explain.rstrip()} {on_loopback} || test $? = {BLOCKED}")
    shown = terminal.type(read)
    terminal.type(end)

    assert header.split() == ["KIND", "NAME", "DELETED", "PAUSED", "READY"]
    assert row.split()[:4] == ["OpenStackCluster", "demo", since, "False"]
    for text in (row, explained, shown):
        assert f"still in use by port {foreign_port} 'foreign'" in text
    assert f"\nnetwork network {network}\n" in shown
    world.wait_until("the cluster is gone", lambda: world.find("clusters", "demo") is None)
    world.wait_until("the Event is written", lambda: f"network {network}" in terminal.type(left))
    assert network in world.cloud("network/networks")
    leave(world)


def leave(world: MachinesEnvironment) -> None:
    """Count what is left in the cloud as the user's own."""
    world.users |= {id_ for items in world.created().values() for id_ in items}


class ApplicationCredentials:
    """Application credentials of the test's user, created in a shell, and the Secret of the page for all of them."""

    def __init__(self, world: MachinesEnvironment, terminal: Terminal) -> None:
        self.world = world
        self.terminal = terminal

    def create(self, command: str, name: str) -> dict[str, str]:
        """Create one by the command of the page, and return its id and secret."""
        printed = self.terminal.type(command.replace("demo-2", name))
        found = re.findall(r"\| (id|secret) +\| (\S+) +\|", printed, re.IGNORECASE)
        return {field.lower(): value for field, value in found}

    def clouds_yaml(self, credential: dict[str, str]) -> bytes:
        entry = yaml.safe_load(self.world.simulator.clouds_yaml.read_bytes())["clouds"]["sim-appcred"]
        entry["auth"] |= {f"application_credential_{field}": credential[field] for field in ("id", "secret")}
        return yaml.safe_dump({"clouds": {"sim": entry}}).encode()

    def write(self, credential: dict[str, str]) -> None:
        """Write the file that the commands of the page read."""
        (self.terminal.checkout / "clouds.yaml").write_bytes(self.clouds_yaml(credential))


@pytest.fixture
def credentials(world: MachinesEnvironment, terminal: Terminal) -> Iterator[ApplicationCredentials]:
    """Yield credentials; at the end delete the identity of the page and its Secret, which are not in the namespace."""
    yield ApplicationCredentials(world, terminal)
    world.api.delete(IDENTITY)
    world.api.delete("/api/v1/namespaces/{}/secrets/{}".format(*SECRET))


def create_shared(world: MachinesEnvironment, clouds_yaml: bytes) -> None:
    """Create the Secret of the page, its identity, and the cluster ``demo`` that uses it."""
    namespace, name = SECRET
    identity = yaml.safe_load(sections("credentials.md")["Share one Secret with several namespaces"].blocks[0].text)
    (labels,) = identity["spec"]["namespaceSelector"].values()
    world.api.patch(f"/api/v1/namespaces/{world.namespace}", {"metadata": {"labels": labels}})
    world.api.apply(
        [
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}},
            objects.in_namespace(objects.secret(name, {"clouds.yaml": clouds_yaml, "cacert": b"\n"}), namespace),
            labelled(identity),
        ]
    )
    reference = {"type": "ClusterIdentity", "name": "shared", "cloudName": "sim"}
    endpoint = {"host": "kube.example.org", "port": 6443}
    cluster = objects.cluster_objects("demo", identityRef=reference, controlPlaneEndpoint=endpoint)
    world.apply(*map(labelled, cluster))
    world.wait_until("the cluster is ready", lambda: is_ready(world, "openstackclusters", "demo"))


def test_credentials_are_rotated_without_a_gap(
    world: MachinesEnvironment, terminal: Terminal, credentials: ApplicationCredentials
) -> None:
    create, replace, annotate, show, delete = commands(sections("credentials.md")["Rotate without a gap"])
    create_shared(world, credentials.clouds_yaml(credentials.create(create, "demo-1")))
    new = credentials.create(create, "demo-2")

    credentials.write({**new, "secret": "mistyped"})
    terminal.type(replace)
    terminal.type(annotate)
    world.wait_until("the slip is shown", lambda: "no login succeeds" in terminal.type(show))
    credentials.write(new)
    terminal.type(replace)
    # A test is faster than the seconds of `date`.
    terminal.type(annotate.replace("$(date)", "again"))
    world.wait_until("nothing is shown", lambda: terminal.type(show) == "")
    terminal.type(delete)

    # Keystone revokes the tokens of a credential that is deleted.
    before = len(world.requests())
    world.simulator.call(world.simulator.cloud.tokens.clear)
    world.delete("clusters", "demo")
    world.wait_until("the cluster is gone", lambda: world.find("clusters", "demo") is None)
    logins = [call for call in world.requests()[before:] if call["path"].endswith("/auth/tokens")]
    assert {call["status"] for call in logins} == {201}
    assert world.api.get("/api/v1/namespaces/{}/secrets/{}".format(*SECRET))["data"].keys() == {"clouds.yaml", "cacert"}


def networks(world: MachinesEnvironment) -> dict[str, Json]:
    """Return networks, subnets and routers by id, without what a port in them changes."""
    found = inventory(world.simulator)
    items = {id_: item for kind in GIVEN for id_, item in found[kind].items()}
    return {id_: {key: item[key] for key in item.keys() - VOLATILE} for id_, item in items.items()}


def test_a_cluster_on_an_existing_network_leaves_it_as_it_was(world: MachinesEnvironment, terminal: Terminal) -> None:
    guide = sections("existing-network.md")
    terminal.type("".join(commands(guide["What the network needs"])))
    leave(world)
    before = networks(world)
    manifest, apply, show, shown = guide["Create the cluster"].blocks
    clouds = objects.secret("cloud", {"clouds.yaml": world.simulator.clouds_yaml.read_bytes()})
    world.apply(clouds, labelled(objects.cluster(CLUSTER)))
    (terminal.checkout / "cluster.yaml").write_text(yaml.safe_dump(labelled(yaml.safe_load(manifest.text))))

    terminal.type(apply.text)
    world.apply(*map(labelled, objects.machine_objects("first", CLUSTER, is_control_plane=True)))
    world.wait_until("the machine is ready", lambda: is_ready(world, "openstackmachines", "first"))

    assert page.pattern(shown.text).fullmatch(terminal.type(show.text).strip())
    (server,) = (each for each in world.cloud("network/ports").values() if each["device_owner"].startswith("compute"))
    (balancer,) = world.cloud("load-balancer/loadbalancers").values()
    assert server["network_id"] == balancer["vip_network_id"] in before
    terminal.type("".join(commands(guide["When it is deleted"])))
    world.wait_until("the cluster is gone", lambda: world.find("clusters", CLUSTER) is None)
    assert networks(world) == before
