"""A management cluster whose Cluster API serves only v1beta1, as up to 1.10: the provider reads the same facts."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from capo.crdgen import files
from capo.json_types import Json
from capo.local.rig import Rig
from capo.local.testing import core_definitions, running_rig
from capo.simulator.simulator import Simulator
from capo.simulator.testing import Client
from environments.manager_process import ON_LOOPBACK, ManagerProcess, NotReachedError, running, wait_until

pytestmark = pytest.mark.integration

CORE: Final = "cluster.x-k8s.io"
GROUP: Final = "infrastructure.cluster.x-k8s.io"
IPAM: Final = f"ipam.{CORE}"
OLD: Final = "v1beta1"
LABELS: Final = {f"{CORE}/cluster-name": "kube"}


@pytest.fixture(scope="module")
def old_core(rigs_folder: Path) -> Iterator[Rig]:
    """Yield an API server that has Cluster API's kinds only in their old version."""
    with running_rig(rigs_folder, "old-core", "api") as rig:
        rig.install_crds([*files.load(), *_old_kinds()], strip_conversion=True)
        yield rig


def _old_kinds() -> list[dict[str, Any]]:
    core = core_definitions()
    wanted = [core[f"{plural}.{CORE}"] for plural in ("clusters", "machines")]
    wanted += [core[f"{plural}.{IPAM}"] for plural in ("ipaddressclaims", "ipaddresses")]
    for each in wanted:
        (version,) = (version for version in each["spec"]["versions"] if version["name"] == OLD)
        each["spec"]["versions"] = [{**version, "served": True, "storage": True}]
    return wanted


def ref(kind: str, name: str) -> dict[str, str]:
    """Return a reference as the old version has it: with a version, and with a namespace."""
    return {"apiVersion": f"{GROUP}/v1beta2", "kind": kind, "name": name, "namespace": "default"}


def owner(obj: dict[str, Any]) -> dict[str, Any]:
    metadata = obj["metadata"]
    named = {"apiVersion": obj["apiVersion"], "kind": obj["kind"], "name": metadata["name"], "uid": metadata["uid"]}
    return {**named, "controller": True}


class Player:
    """Simulates the writes of Cluster API's managers."""

    def __init__(self, rig: Rig, simulator: Simulator) -> None:
        self.api, self.simulator = rig.api, simulator

    def put(self, group_version: str, kind: str, name: str, **fields: Any) -> dict[str, Any]:
        metadata = {"name": name, "namespace": "default", "labels": LABELS, **fields.pop("metadata", {})}
        obj = {"apiVersion": group_version, "kind": kind, "metadata": metadata, **fields}
        self.api.apply([obj])
        return self.get(group_version, f"{kind.lower()}s", name)

    def get(self, group_version: str, plural: str, name: str) -> dict[str, Any]:
        base = f"/apis/{group_version}" if "/" in group_version else f"/api/{group_version}"
        return self.api.get(f"{base}/namespaces/default/{plural}/{name}")

    def set_status(self, plural: str, name: str, status: dict[str, Any]) -> None:
        self.api.patch(f"/apis/{CORE}/{OLD}/namespaces/default/{plural}/{name}/status", {"status": status})

    def pause(self) -> None:
        self.api.patch(f"/apis/{CORE}/{OLD}/namespaces/default/clusters/kube", {"spec": {"paused": True}})

    def is_true(self, plural: str, name: str, type_: str) -> bool:
        shown = self.get(f"{GROUP}/v1beta2", plural, name).get("status", {}).get("conditions") or ()
        return any(c["type"] == type_ and c["status"] == "True" for c in shown)

    def network(self) -> str:
        client = Client(self.simulator)
        with client.session:
            made, _ = client.make_network()
        return str(made["id"])


def test_clusters_and_machines_of_the_core_api_v1beta1_are_read_c_55(old_core: Rig, tmp_path: Path) -> None:
    with Simulator.start() as simulator:
        player = Player(old_core, simulator)
        clouds = base64.b64encode(simulator.clouds_yaml.read_bytes()).decode()
        player.put("v1", "Secret", "cloud", data={"clouds.yaml": clouds})
        player.put("v1", "Secret", "boot", stringData={"value": "#cloud-config\n"})
        cluster = player.put(
            f"{CORE}/{OLD}", "Cluster", "kube", spec={"infrastructureRef": ref("OpenStackCluster", "kube")}
        )
        player.put(
            f"{GROUP}/v1beta2",
            "OpenStackCluster",
            "kube",
            metadata={"ownerReferences": [owner(cluster)]},
            spec={
                "identityRef": {"name": "cloud", "cloudName": "sim"},
                "network": {"id": player.network()},
                "enableExternalNetwork": False,
                "apiServer": {"enableFloatingIP": False},
                "controlPlaneEndpoint": {"host": "kube.example.org", "port": 6443},
            },
        )
        with running(
            ManagerProcess(old_core.install_provider_account(), tmp_path / "manager.log", ON_LOOPBACK)
        ) as manager:
            try:
                _come_up(player)
                player.pause()
                wait_until("paused", lambda: player.is_true("openstackmachines", "one", "Paused"))
            except NotReachedError as error:
                raise NotReachedError(f"{error}\n{manager.tail()}") from error


def _come_up(player: Player) -> None:
    wait_until("the cluster is ready", lambda: player.is_true("openstackclusters", "kube", "Ready"))
    spec = {
        "clusterName": "kube",
        "bootstrap": {"dataSecretName": "boot"},
        "infrastructureRef": ref("OpenStackMachine", "one"),
    }
    machine = player.put(f"{CORE}/{OLD}", "Machine", "one", spec=spec)
    wanted = {"flavor": {"filter": {"name": "m1.tiny"}}, "image": {"filter": {"name": "tiny-image"}}}
    metadata = {"ownerReferences": [owner(machine)]}
    player.put(f"{GROUP}/v1beta2", "OpenStackMachine", "one", metadata=metadata, spec=wanted)
    player.set_status("clusters", "kube", {"infrastructureReady": True})
    wait_until("the machine is ready", lambda: player.is_true("openstackmachines", "one", "Ready"))
    made = player.get(f"{GROUP}/v1beta2", "openstackmachines", "one")
    assert made["spec"]["providerID"].startswith("openstack:///")


def test_claims_of_the_old_version_are_created_and_answered(old_core: Rig, tmp_path: Path) -> None:
    with Simulator.start() as simulator:
        player = Player(old_core, simulator)
        clouds = base64.b64encode(simulator.clouds_yaml.read_bytes()).decode()
        player.put("v1", "Secret", "of-pool", metadata={"labels": {}}, data={"clouds.yaml": clouds})
        identity = {"name": "of-pool", "cloudName": "sim"}
        spec: Json
        pool = {"apiGroup": GROUP, "kind": "OpenStackFloatingIPPool", "name": "pool"}
        spec = {"identityRef": identity, "reclaimPolicy": "Delete"}
        player.put(f"{GROUP}/v1alpha1", "OpenStackFloatingIPPool", "pool", metadata={"labels": {}}, spec=spec)
        spec = {
            "identityRef": identity,
            "flavor": "m1.tiny",
            "image": {"filter": {"name": "tiny-image"}},
            "sshKeyName": "lab",
            "ports": [{"network": {"id": player.network()}}],
            "floatingIPPoolRef": pool,
        }
        player.put(f"{GROUP}/v1alpha1", "OpenStackServer", "s", metadata={"labels": {}}, spec=spec)
        log = tmp_path / "manager.log"
        with running(ManagerProcess(old_core.install_provider_account(), log, ON_LOOPBACK)) as manager:
            try:
                wait_until("the server has an address", lambda: _is_claimed(player))
            except NotReachedError as error:
                raise NotReachedError(f"{error}\n{manager.tail()}") from error
        address = player.get(f"{IPAM}/{OLD}", "ipaddresses", "s-floating-ip-address")
        assert address["spec"]["poolRef"] == pool
        assert address["spec"]["prefix"] == 32
        claim = player.get(f"{IPAM}/{OLD}", "ipaddressclaims", "s-floating-ip-address")
        shown = [(each["type"], each["status"], each["reason"]) for each in claim["status"]["conditions"]]
        assert shown == [("Ready", "True", "Ready")]


def _is_claimed(player: Player) -> bool:
    shown = player.get(f"{GROUP}/v1alpha1", "openstackservers", "s").get("status", {}).get("conditions") or ()
    return any(c["type"] == "AddressClaimed" and c["status"] == "True" for c in shown)
