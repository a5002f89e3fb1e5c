"""Manifests of other projects as clusters on a simulated cloud, under the real Cluster API managers.

A user's values replace what a manifest names: credentials, flavor, image, key, zone. Networks, groups and addresses
that it expects are created first.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from capo.json_types import Json
from capo.simulator.octavia import service as octavia
from capo.simulator.testing import Client, inventory
from e2e.machines import objects as labels
from e2e.machines.environment import MachinesEnvironment
from environments import objects

CIDR: Final = "10.6.0.0/24"
"""Of every network that a manifest expects; one of them wants 10.6.0.10 for the API server."""
ZONE: Final = "az1"
VALUES: Final[Json] = {
    "identityRef": objects.IDENTITY,
    "flavor": {"filter": {"name": "m1.tiny"}},
    "image": objects.IMAGE,
    "sshKeyName": "lab",
    "controlPlaneAvailabilityZones": [ZONE],
}
"""What this user puts into a field wherever it is."""
WITHIN: Final[dict[str, Json]] = {
    "rootVolume": {"type": "ssd"},
    "volume": {"type": "ssd"},
    "availabilityZone": {"name": ZONE},
}
"""The same for fields of these fields."""
REFERENCES: Final = ("network", "subnet", "router", "serverGroup")
GIVEN: Final = "given"
"""Name of what replaces an id."""


class Preparations:
    """Creates what manifests expect in the cloud, and returns them with the values of its user."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._made: dict[tuple[str, str], str] = {}
        public = client.ask("GET", "/network/v2.0/networks?router:external=true")["networks"]
        self._external: str = public[0]["id"]
        flavors = client.ask("GET", "/load-balancer/v2.0/lbaas/flavors")["flavors"]
        self._load_balancer_flavor: str = flavors[0]["id"]
        self._own: dict[str, Callable[[Any], Any]] = {
            **{kind: functools.partial(self._reference, kind) for kind in REFERENCES},
            "subnets": functools.partial(self._references, "subnet"),
            "securityGroups": functools.partial(self._references, "securityGroup"),
            "externalNetwork": lambda _: {"id": self._external},
            "floatingIP": lambda _: self._floating_ip(),
            "managedLoadBalancer": self._load_balancer,
        }

    def filled(self, key: str, value: Any) -> Any:
        """Return the value of a field with what this user puts there."""
        if key in VALUES:
            return VALUES[key]
        if key in self._own:
            return self._own[key](value)
        if isinstance(value, list):
            return [self.filled(key, each) for each in value]
        if not isinstance(value, dict):
            return value
        found = {name: self.filled(name, each) for name, each in value.items()}
        return found | {name: given for name, given in WITHIN.get(key, {}).items() if name in found}

    def _load_balancer(self, value: Json) -> Json:
        """Return the value without a zone: the cloud's load balancers have none."""
        given = {name: each for name, each in value.items() if name != "availabilityZone"}
        return given | ({"flavor": self._load_balancer_flavor} if "flavor" in value else {})

    def _references(self, kind: str, values: list[Json]) -> list[Json]:
        return [self._reference(kind, each) for each in values]

    def _reference(self, kind: str, value: Json) -> Json:
        """Create what a filter by name finds, and keep the filter; replace an id by one that exists."""
        name = value.get("filter", {}).get("name")
        if name == "default":
            return value
        self._ensure("network" if kind in ("subnet", "router") else kind, name or GIVEN)
        return value if name else {"id": self._made[kind, GIVEN]}

    def _ensure(self, kind: str, name: str) -> None:
        if (kind, name) in self._made:
            return
        client, made = self._client, self._made
        if kind == "network":
            network, subnet = client.make_network(name, CIDR)
            client.ask("PUT", f"/network/v2.0/subnets/{subnet['id']}", {"subnet": {"name": name}})
            gateway = {"network_id": self._external}
            router = client.make("/network/v2.0/routers", "router", name=name, external_gateway_info=gateway)
            client.ask("PUT", f"/network/v2.0/routers/{router['id']}/add_router_interface", {"subnet_id": subnet["id"]})
            made |= {("network", name): network["id"], ("subnet", name): subnet["id"], ("router", name): router["id"]}
        elif kind == "serverGroup":
            group = client.make(
                "/compute/v2.1/os-server-groups", "server_group", name=name, policies=["soft-anti-affinity"]
            )
            made[kind, name] = group["id"]
        else:
            made[kind, name] = client.make("/network/v2.0/security-groups", "security_group", name=name)["id"]

    def _floating_ip(self) -> str:
        made = self._client.make("/network/v2.0/floatingips", "floatingip", floating_network_id=self._external)
        return str(made["floating_ip_address"])


@dataclass(frozen=True)
class Manifest:
    """An OpenStackCluster and templates of its machines, in the version that this provider stores.

    Args:
        is_hosted: the control plane runs elsewhere; its provider writes the endpoint on the Cluster.
    """

    objects: Sequence[Json]
    is_hosted: bool = False

    @property
    def spec(self) -> Json:
        """Return the spec of the OpenStackCluster."""
        return next(dict(obj["spec"]) for obj in self.objects if obj["kind"] == "OpenStackCluster")

    @property
    def machine_specs(self) -> list[Json]:
        """Return the specs of the machines of each template."""
        templates = [obj for obj in self.objects if obj["kind"] == "OpenStackMachineTemplate"]
        return [template["spec"]["template"]["spec"] for template in templates]


def run(world: MachinesEnvironment, manifests: Mapping[str, Manifest], *, limit_s: float) -> None:
    """Create a cluster of each manifest, by name, with a machine of each template, and delete them; nothing is left."""
    world.simulator.call(lambda: octavia.offer(world.simulator.cloud, default="amphora"))
    world.apply(objects.secret("cloud", {"clouds.yaml": world.simulator.clouds_yaml.read_bytes()}))
    with world.client() as client:
        given = Preparations(client)
        machines = {name: _applied(world, given, name, manifest) for name, manifest in manifests.items()}
    world.before = inventory(world.simulator)

    def waiting() -> list[str]:
        pairs = [("clusters", name) for name in manifests] + [
            ("machines", m) for each in machines.values() for m in each
        ]
        return [text for pair in pairs if (text := _waits(world, *pair))]

    try:
        world.wait_until("all have their infrastructure", lambda: not waiting(), limit_s=limit_s)
    except AssertionError as error:
        raise AssertionError(f"{error}\n" + "\n".join(waiting())) from error

    for name in manifests:
        world.delete("clusters", name)
    world.wait_until("all are gone", lambda: not world.list("clusters"), limit_s=limit_s)
    assert world.remaining() == {kind: [] for kind in world.remaining()}


def _applied(world: MachinesEnvironment, given: Preparations, name: str, manifest: Manifest) -> list[str]:
    """Apply a cluster and a machine of each template, the first for the control plane; return the machines' names."""
    wanted, machines = _cluster(name, given.filled("spec", manifest.spec), manifest), []
    for number, spec in enumerate(manifest.machine_specs):
        machine = f"{name}-{number}"
        is_control_plane = number == 0 and not manifest.is_hosted
        parts = objects.machine_objects(machine, name, is_control_plane=is_control_plane)
        parts[1]["spec"] = given.filled("spec", spec)
        wanted += parts
        machines.append(machine)
    world.apply(*map(_labelled, wanted))
    return machines


def _cluster(name: str, spec: Json, manifest: Manifest) -> list[Json]:
    """Return Cluster and OpenStackCluster, without defaults of the test's own."""
    infrastructure = objects.openstack_cluster(name)
    infrastructure["spec"] = spec
    endpoint = {"controlPlaneEndpoint": {"host": "192.0.2.1", "port": 6443}} if manifest.is_hosted else {}
    return [objects.cluster(name, **endpoint), infrastructure]


def _labelled(obj: Json) -> Json:
    metadata = obj["metadata"]
    return {**obj, "metadata": {**metadata, "labels": {**metadata.get("labels", {}), **labels.LABELS}}}


def _waits(world: MachinesEnvironment, plural: str, name: str) -> str:
    """Return why an object has no infrastructure yet, empty if it has."""
    shown = world.condition(plural, name, "InfrastructureReady")
    if shown.get("status") == "True":
        return ""
    own = world.condition(f"openstack{plural}", name, "Ready")
    return f"{plural} {name}: {shown.get('message')}; {own.get('message')}"
