"""Creation and queries of a server in the test environment, and stand-ins for the controllers that it waits for."""

from __future__ import annotations

import copy
from typing import Any

from capo.json_types import Json
from capo.kube.kinds import IP_ADDRESS, IP_ADDRESS_CLAIM, OPENSTACK_SERVER, ORC_IMAGE, Key
from environments.in_memory import NAMESPACE, InMemoryEnvironment

KIND = OPENSTACK_SERVER
CLAIM = "s-floating-ip-address"
POOL = {"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "OpenStackFloatingIPPool", "name": "pool"}


def place(stage: InMemoryEnvironment, *, metadata: Json | None = None, **spec: Any) -> Json:
    """Create a server on a network of its own; return the network."""
    network = stage.network()
    stage.before = stage.inventory()  # type: ignore[attr-defined]
    wanted = {
        "identityRef": {"name": "cloud", "cloudName": "sim"},
        "flavor": "m1.small",
        "image": {"filter": {"name": "tiny-image"}},
        "sshKeyName": "lab",
        "ports": [{"network": {"id": network["id"]}}],
        **spec,
    }
    stage.apply(KIND, {"metadata": {"name": "s", **(metadata or {})}, "spec": wanted})
    return network


def place_more(stage: InMemoryEnvironment, count: int) -> None:
    """Create more servers like the first one."""
    spec = stage.get(KIND, "s")["spec"]
    for number in range(count):
        stage.apply(KIND, {"metadata": {"name": f"s{number}"}, "spec": spec})


def made(stage: InMemoryEnvironment) -> dict[str, int]:
    """Count the resources created since the start."""
    before = stage.before  # type: ignore[attr-defined]
    after = stage.inventory()
    found = {kind: len(items.keys() - before.get(kind, {}).keys()) for kind, items in after.items()}
    return {kind: count for kind, count in found.items() if count}


def connect_to_our_trunk(stage: InMemoryEnvironment, network: Json) -> Json:
    """Create a port of another owner as a subport of the trunk; return the port."""
    theirs: Json = stage.member.make("/network/v2.0/ports", "port", network_id=network["id"], name="theirs")
    (trunk,) = stage.inventory()["trunks"].values()
    subport = {"port_id": theirs["id"], "segmentation_type": "vlan", "segmentation_id": 7}
    stage.member.ask("PUT", f"/network/v2.0/trunks/{trunk['id']}/add_subports", {"sub_ports": [subport]})
    return theirs


def server(stage: InMemoryEnvironment) -> Json:
    (found,) = stage.inventory()["servers"].values()
    return found


def port(stage: InMemoryEnvironment, name: str = "s-0") -> Json:
    (found,) = (each for each in stage.inventory()["ports"].values() if each["name"] == name)
    return found


def status(stage: InMemoryEnvironment) -> Json:
    found: Json = stage.get(KIND, "s")["status"]
    return found


def shown(stage: InMemoryEnvironment, type_: str) -> tuple[str, str]:
    """Return status and reason of a condition."""
    found = stage.condition(KIND, "s", type_)
    return found.get("status", ""), found.get("reason", "")


class Pool:
    """Plays the controller of a pool: it creates floating IPs and allocates them to claims."""

    def __init__(self, stage: InMemoryEnvironment) -> None:
        self.stage = stage
        self.network_id = self._first("networks", "router:external=true")["id"]

    def _first(self, kind: str, query: str) -> Json:
        found: Json = self.stage.member.ask("GET", f"/network/v2.0/{kind}?{query}")[kind][0]
        return found

    def connect(self, network_id: str) -> None:
        """Connect a network to the external one."""
        gateway = {"network_id": self.network_id}
        router = self.stage.member.make("/network/v2.0/routers", "router", external_gateway_info=gateway)
        subnet = self._first("subnets", f"network_id={network_id}")
        path = f"/network/v2.0/routers/{router['id']}/add_router_interface"
        self.stage.member.ask("PUT", path, {"subnet_id": subnet["id"]})

    def floating_ip(self) -> Json:
        """Create a floating IP."""
        made: Json = self.stage.member.make(
            "/network/v2.0/floatingips", "floatingip", floating_network_id=self.network_id
        )
        return made

    def answer(self, address: str) -> None:
        """Allocate an address to the claim of the server."""
        claim = self.stage.get(IP_ADDRESS_CLAIM, CLAIM)
        spec = {"claimRef": {"name": CLAIM}, "poolRef": claim["spec"]["poolRef"], "address": address, "prefix": 32}
        self.stage.apply(IP_ADDRESS, {"metadata": {"name": CLAIM}, "spec": spec})
        self.stage.patch(IP_ADDRESS_CLAIM, CLAIM, {"status": {"addressRef": {"name": CLAIM}}})

    def serve(self) -> Json:
        """Create a floating IP and allocate it; return it."""
        made = self.floating_ip()
        self.answer(made["floating_ip_address"])
        return made

    def show(self, floating_ip: Json) -> Json:
        """Return the current state of a floating IP."""
        return self.stage.inventory()["floatingips"][floating_ip["id"]]


def orc_image(stage: InMemoryEnvironment, name: str = "orc", **status_: Any) -> None:
    """Create an ORC Image of generation 2 with this status, or replace its status."""
    key = Key(ORC_IMAGE, NAMESPACE, name)
    if key in stage.kube.objects:
        stage.patch(ORC_IMAGE, name, {"status": copy.deepcopy(status_)})
    else:
        stage.apply(ORC_IMAGE, {"metadata": {"name": name, "generation": 2}, "spec": {}, "status": status_})
