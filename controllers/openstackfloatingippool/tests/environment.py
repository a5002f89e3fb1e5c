"""A pool in the test environment, users who claim from it, and the floating IPs of the project."""

from __future__ import annotations

from typing import Any, Final

from capo import names
from capo.engine.reconciler import Reconciler
from capo.json_types import Json
from capo.kube.kinds import IP_ADDRESS, IP_ADDRESS_CLAIM, Key
from capo.kube.kinds import OPENSTACK_FLOATING_IP_POOL as KIND
from capo.settings import Settings
from controllers.openstackfloatingippool.controller import FloatingIPPoolController
from controllers.openstackfloatingippool.orphans import OrphanedAddressController, OrphanedClaimController
from controllers.openstackserver.controller import ServerController
from environments.in_memory import NAMESPACE, InMemoryEnvironment

READY: Final = "OpenstackFloatingIPPoolReadyCondition"
FINALIZER: Final = "openstackfloatingippool.infrastructure.cluster.x-k8s.io"
DESCRIPTION: Final = "Created by cluster-api-provider-openstack OpenStackFloatingIPPool pool"
TAG: Final = "cluster-api-provider-openstack-fip-pool-pool"


def ref(name: str = "pool", **fields: str) -> Json:
    """Return a reference to a pool."""
    return {"apiGroup": names.GROUP, "kind": KIND.kind, "name": name, **fields}


class PoolEnvironment(InMemoryEnvironment):
    """A stage with the controllers of pools and servers."""

    def __init__(self, *, settings: Settings | None = None) -> None:
        super().__init__(FloatingIPPoolController, ServerController, settings=settings)
        self.apply_secret()
        found = self.member.ask("GET", "/network/v2.0/networks?router:external=true")["networks"]
        self.external_id: str = found[0]["id"]
        self.cloud.counter.reset()

    def __enter__(self) -> PoolEnvironment:
        return self

    def start(self) -> None:
        """Start or restart the manager, with the controllers of claims and addresses without a pool."""
        super().start()
        self.controllers += [OrphanedAddressController(self.deps), OrphanedClaimController(self.deps)]

    @property
    def pools(self) -> Reconciler[Any]:
        """The controller of pools."""
        return self.controllers[0]

    # -- Kubernetes -------------------------------------------------------------------------------------------------

    def pool(
        self, name: str = "pool", *, metadata: Json | None = None, status: Json | None = None, **spec: Any
    ) -> Json:
        """Create a pool."""
        wanted = {"identityRef": {"name": "cloud", "cloudName": "sim"}, "reclaimPolicy": "Delete", **spec}
        obj = {"metadata": {"name": name, **(metadata or {})}, "spec": wanted, **({"status": status} if status else {})}
        return self.apply(KIND, obj)

    def claim(self, name: str, pool: str = "pool", *, namespace: str = NAMESPACE, **metadata: Any) -> Json:
        """Create a claim, as somebody else's controller does."""
        whole = {"name": name, "namespace": namespace, **metadata}
        return self.apply(IP_ADDRESS_CLAIM, {"metadata": whole, "spec": {"poolRef": ref(pool)}})

    def claims(self, count: int) -> list[str]:
        """Create several claims; return their names."""
        found = [f"claim-{number:03}" for number in range(count)]
        for name in found:
            self.claim(name)
        return found

    def answer(self, name: str, *, namespace: str = NAMESPACE) -> str | None:
        """Return the address that the status of a claim leads to, None without one."""
        claim = self.kube.get(IP_ADDRESS_CLAIM, namespace, name)
        assert claim is not None
        address = (claim.get("status") or {}).get("addressRef", {}).get("name")
        found = self.kube.get(IP_ADDRESS, namespace, address) if address else None
        return str(found["spec"]["address"]) if found else None

    def answers(self) -> dict[str, str]:
        """Return the addresses of all claims that have one, by name."""
        known = [key for key in self.kube.objects if key.kind == IP_ADDRESS_CLAIM]
        found = {key.name: self.answer(key.name, namespace=key.namespace) for key in known}
        return {name: ip for name, ip in found.items() if ip}

    def shown(self, type_: str = READY, name: str = "pool") -> tuple[str, str]:
        """Return status and reason of a condition of a pool."""
        found = self.condition(KIND, name, type_)
        return found.get("status", ""), found.get("reason", "")

    def message(self, type_: str = READY, name: str = "pool") -> str:
        """Return the message of a condition of a pool."""
        return str(self.condition(KIND, name, type_).get("message", ""))

    def status(self, name: str = "pool") -> Json:
        """Return the status of a pool."""
        found: Json = self.get(KIND, name).get("status") or {}
        return found

    def address(self, name: str, ip: str, *, pool: str = "pool", namespace: str = NAMESPACE, **metadata: Any) -> Json:
        """Create an IPAddress as the Go provider has it."""
        whole = {"name": name, "namespace": namespace, "finalizers": [f"{FINALIZER}/delete-floating-ip"], **metadata}
        spec = {"claimRef": {"name": name}, "poolRef": ref(pool), "address": ip, "prefix": 32}
        return self.apply(IP_ADDRESS, {"metadata": whole, "spec": spec})

    def is_there(self, kind: Any, name: str, namespace: str = NAMESPACE) -> bool:
        """Return whether an object exists."""
        return Key(kind, namespace, name) in self.kube.objects

    # -- OpenStack --------------------------------------------------------------------------------------------------

    def floating_ip(self, *, description: str = "", tag: str = "", **fields: Any) -> Json:
        """Create a floating IP as a user or as the Go provider; its requests are not counted."""
        wanted = {"floating_network_id": self.external_id, "description": description, **fields}
        made: Json = self.member.make("/network/v2.0/floatingips", "floatingip", **wanted)
        if tag:
            self.member.ask("PUT", f"/network/v2.0/floatingips/{made['id']}/tags", {"tags": [tag]})
        self.cloud.counter.reset()
        return self.floating_ips()[made["floating_ip_address"]]

    def floating_ips(self) -> dict[str, Json]:
        """Return the floating IPs of the cloud by address."""
        found = self.inventory().get("floatingips", {}).values()
        return {body["floating_ip_address"]: body for body in found}

    def use(self, ip: str, network: Json | None = None) -> Json:
        """Associate a floating IP with a port of somebody else; return the port."""
        network = network or self.connected()
        port: Json = self.member.make("/network/v2.0/ports", "port", network_id=network["id"])
        path = f"/network/v2.0/floatingips/{self.floating_ips()[ip]['id']}"
        self.member.ask("PUT", path, {"floatingip": {"port_id": port["id"]}})
        self.cloud.counter.reset()
        return port

    def free(self, ip: str) -> None:
        """Dissociate a floating IP."""
        path = f"/network/v2.0/floatingips/{self.floating_ips()[ip]['id']}"
        self.member.ask("PUT", path, {"floatingip": {"port_id": None}})
        self.cloud.counter.reset()

    def connected(self, cidr: str = "10.9.0.0/24") -> Json:
        """Create a network that floating IPs reach."""
        network = self.network(cidr)
        gateway = {"network_id": self.external_id}
        router = self.member.make("/network/v2.0/routers", "router", external_gateway_info=gateway)
        subnet = self.member.ask("GET", f"/network/v2.0/subnets?network_id={network['id']}")["subnets"][0]
        path = f"/network/v2.0/routers/{router['id']}/add_router_interface"
        self.member.ask("PUT", path, {"subnet_id": subnet["id"]})
        return network
