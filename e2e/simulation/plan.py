"""The plan of a seed, as data: the users' objects, the machine's behaviour, and the adversary's timed operations.

A plan is drawn from a seed, can be stored as JSON, and some of its operations can be omitted.
"""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from capo.json_types import Json

ADVERSARY_S: Final = 420.0
"""Seconds in which operations begin."""
DRIFTING: Final = (
    "securityGroupRules",
    "listenerTimeouts",
    "poolAlgorithms",
    "healthMonitors",
    "memberWeights",
    "portSecurityGroups",
    "networkTags",
    "serverTags",
    "mtu",
    "router",
    "serverMetadata",
    "allowedAddressPairs",
)
"""What is changed externally, mostly as the policy names it."""
FIELDS: Final = {"networkTags": "tags", "serverTags": "tags"}
"""The fields of the policy for what has another name."""
TAG: Final = "simulated"
"""Of the spec of a cluster whose tags are changed."""
COMPARED: Final[Json] = {
    "serverMetadata": [{"key": "simulated", "value": "yes"}],
    "ports": [{"allowedAddressPairs": [{"ipAddress": "10.66.2.1"}, {"ipAddress": "10.66.2.2"}]}],
}
"""Of the spec of machines in whose servers and ports something is changed."""
MTU: Final = 1400
"""Of the spec of a cluster in whose network the MTU is changed."""
REST_S: Final = 90.0
"""Seconds for which the simulation continues after the last operation."""


@dataclass(frozen=True)
class Shape:
    """The objects that users apply.

    Args:
        server: a standalone OpenStackServer.
        cluster: spec fields of the Cluster beside the common ones; None: no Cluster.
        machines: number of its control plane machines.
        workers: number of others; no seed draws any.
        is_network_given: the cluster is in a network of the user, without an external one.
        octavia: the cloud's default provider of load balancers, which no spec names.
        pool: a pool of floating IPs: ``reclaimPolicy``, ``maxIPs``, whether the user prepared one, and for how many
            seconds claims are used after its deletion; None: no pool.
        claims: number of claims from it.
        anti_affinity: of the machines, ``soft`` or ``hard``; empty: none.
        leftovers: what workloads leave: ``policy`` of the cluster, the ``name`` by which they know it (empty: its own),
            and whether a user lists a volume for deletion; None: nothing.
        pair_edits: when the address pairs in the template of the machines are edited, in seconds; empty: no template.
        drift: external changes: ``policy``, as the cluster's spec has it; ``changes``, the kinds that are changed at
            rest; ``early``, when kinds are changed before, in seconds; None: no policy and no changes.
        neighbour: another cluster with the same spec in the management cluster ``b``, which has a manager of its own.
    """

    server: Json | None = None
    cluster: Json | None = None
    machines: int = 0
    workers: int = 0
    neighbour: bool = False
    is_network_given: bool = False
    octavia: str = "amphora"
    pool: Json | None = None
    claims: int = 0
    anti_affinity: str = ""
    leftovers: Json | None = None
    pair_edits: list[float] = field(default_factory=list)
    drift: Json | None = None


@dataclass(frozen=True)
class Tuning:
    """Speeds, and settings of the manager.

    Args:
        stall_rate: rate at which a thread is stalled, for ``stall_s`` at most.
    """

    switch_rate: float = 0.3
    stall_rate: float = 0.0
    stall_s: float = 10.0
    latency_s: float = 0.02
    watch_s: float = 0.05
    sync_period_s: float = 3600.0
    leader_elect: bool = False


@dataclass(frozen=True)
class Operation:
    """One operation of the adversary.

    Args:
        feature: key of ``adversary.FEATURES``.
        at_s: seconds after users applied their objects; with ``on`` the earliest time.
        on: a regular expression: begin when the next request or write that it matches takes effect.
        nth: number of the match to wait for.
        values: its parameters.
    """

    feature: str
    at_s: float = 0.0
    on: str = ""
    nth: int = 1
    values: Json = field(default_factory=dict)

    def ends_s(self) -> float:
        """Return its latest end, with its late effects."""
        lasting = (self.values.get(name) or 0.0 for name in ("for_s", "after_s", "back_s", "down_s"))
        return self.at_s + max(lasting) + REST_S

    def __str__(self) -> str:
        """Return it in one line."""
        when = f"at {self.at_s:.0f} s" + (f", on request {self.nth} of {self.on}" if self.on else "")
        return f"{self.feature} {when} {self.values or ''}".rstrip()


@dataclass(frozen=True)
class Plan:
    """Everything that a seed determines beside the schedule."""

    seed: str
    shape: Shape = field(default_factory=Shape)
    tuning: Tuning = field(default_factory=Tuning)
    operations: tuple[Operation, ...] = ()

    def to_json(self) -> Json:
        """Return the plan as JSON."""
        return dataclasses.asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Plan:
        """Parse a stored plan."""
        return cls(
            str(data["seed"]),
            Shape(**data.get("shape", {})),
            Tuning(**data.get("tuning", {})),
            tuple(Operation(**each) for each in data.get("operations", ())),
        )

    def with_only(self, operations: Collection[Operation]) -> Plan:
        """Return the plan with only these operations."""
        return dataclasses.replace(self, operations=tuple(operations))


Draw = Callable[[random.Random, Shape], Operation | None]
"""Draws one operation of a feature; None: it does not apply to the users' objects."""


def draw(seed: str, features: Mapping[str, Draw]) -> Plan:
    """Return the plan of a seed, with operations of some of these features."""
    source = random.Random(f"plan {seed}")
    shape = _with_endpoint(_shape(source), random.Random(f"endpoint {seed}"))
    shape = _with_pool(dataclasses.replace(shape, octavia=_octavia(seed)), random.Random(f"pool {seed}"))
    shape = _with_second_subnet(shape, random.Random(f"second subnet {seed}"))
    shape = _with_template(shape, random.Random(f"pairs {seed}"))
    shape = _with_server_group(shape, random.Random(f"server group {seed}"))
    shape = _with_zone(_with_egress(shape, random.Random(f"egress {seed}")), random.Random(f"zone {seed}"))
    shape = _with_leftovers(shape, random.Random(f"leftovers {seed}"))
    shape = _with_drift(shape, random.Random(f"drift {seed}"))
    chosen = source.sample(sorted(features), k=min(len(features), source.choice((1, 1, 2, 2, 3, 4))))
    operations: list[Operation] = []
    for _ in range(source.choice((1, 2, 2, 3, 4, 6)) if chosen else 0):
        operation = features[source.choice(chosen)](source, shape)
        if operation is not None:
            operations.append(operation)
    tuning = _tuning(source)
    if "standby" in chosen:
        tuning = dataclasses.replace(tuning, leader_elect=True)
    if any(name.startswith("secret-") for name in chosen):
        # A Secret is read again once in a sync period.
        tuning = dataclasses.replace(tuning, sync_period_s=600.0)
    return Plan(seed, shape, tuning, (*operations, *_strangers(shape, random.Random(f"strangers {seed}"))))


def _shape(source: random.Random) -> Shape:
    if source.random() < 0.4:
        return Shape(server=_server(source), neighbour=source.random() < 0.15)
    spec: Json = {"managedSubnets": [{"cidr": "10.6.0.0/24"}]}
    if source.random() < 0.6:
        spec["apiServer"] = {"managedLoadBalancer": {"enabled": True}}
    if source.random() < 0.5:
        spec["managedSecurityGroups"] = {"allowAllInClusterTraffic": True}
    if source.random() < 0.5:
        spec["bastion"] = {"enabled": True}
    machines, neighbour = source.choice((0, 1, 1, 2)), source.random() < 0.3
    is_given = "apiServer" in spec and source.random() < 0.3
    if is_given:
        spec["apiServer"]["enableFloatingIP"] = False
        spec.pop("bastion", None)
    return Shape(cluster=spec, machines=machines, neighbour=neighbour, is_network_given=is_given)


def _octavia(seed: str) -> str:
    # From a separate stream, so that the rest of a seed is unchanged since before OVN was simulated.
    return "ovn" if random.Random(f"octavia {seed}").random() < 0.25 else "amphora"


def _with_endpoint(shape: Shape, source: random.Random) -> Shape:
    """Return a shape in which clusters have an endpoint, or a part of one; the separate source keeps other draws."""
    if shape.cluster is None or source.random() < 0.7:
        return shape
    name = {"host": "api.example.org"}
    given = source.choice((name, {**name, "port": 443}, {"port": 8443}))
    return dataclasses.replace(shape, cluster={**shape.cluster, "controlPlaneEndpoint": given})


def _with_second_subnet(shape: Shape, source: random.Random) -> Shape:
    """Return a shape whose network is dual stack in some seeds; the separate source keeps other draws."""
    if shape.cluster is None or shape.is_network_given or source.random() < 0.75:
        return shape
    return dataclasses.replace(shape, cluster={**shape.cluster, "additionalManagedSubnet": {"cidr": "fd00:6::/64"}})


def _with_leftovers(shape: Shape, source: random.Random) -> Shape:
    """Return a shape whose workloads leave something in some seeds; the separate source keeps other draws."""
    if shape.cluster is None or shape.is_network_given or source.random() < 0.6:
        return shape
    policy, name = source.choice(("", "Delete", "Delete")), source.choice(("", "", "", "kubernetes"))
    left = {"policy": policy, "name": name, "is_listed": not name and source.random() < 0.5}
    spec = {**shape.cluster, "workloadLeftovers": {"policy": policy}} if policy else shape.cluster
    return dataclasses.replace(shape, cluster=spec, leftovers=left)


def _with_pool(shape: Shape, source: random.Random) -> Shape:
    """Return a shape that has a pool of floating IPs in some seeds; the separate source keeps other draws."""
    if source.random() < 0.7:
        return shape
    claims, policy = source.choice((1, 2, 3, 5)), source.choice(("Delete", "Delete", "Retain"))
    pool: Json = {
        "reclaimPolicy": policy,
        "maxIPs": source.choice((None, None, 2)),
        "is_prepared": source.random() < 0.5,
        "used_s": source.choice((0.0, 0.0, 90.0)),
    }
    return dataclasses.replace(shape, pool=pool, claims=claims)


def _strangers(shape: Shape, source: random.Random) -> list[Operation]:
    """Return operations of somebody else who uses floating IPs of the pool, in some seeds that have one.

    In some of them the manager is killed at that moment.
    """
    if shape.pool is None or source.random() < 0.4:
        return []
    moments = (r"^POST .*/floatingips", r"^POST .*/ipaddresses")
    return [
        Operation(
            "stranger",
            on=source.choice(moments),
            nth=source.choice((1, 1, 2)),
            values={"for_s": source.choice((150.0, 400.0)), "down_s": source.choice((0.0, 100.0, 100.0))},
        )
        for _ in range(source.choice((1, 1, 2)))
    ]


def _with_template(shape: Shape, source: random.Random) -> Shape:
    """Return a shape that in some seeds has a template of its machines, which is edited."""
    if shape.cluster is None or not shape.machines or source.random() < 0.6:
        return shape
    begins_s, pause_s = source.uniform(0.0, 100.0), source.choice((0.3, 3.0, 30.0))
    edits = range(source.choice((1, 2, 4)))
    return dataclasses.replace(shape, pair_edits=[begins_s + number * source.uniform(0.0, pause_s) for number in edits])


def _with_server_group(shape: Shape, source: random.Random) -> Shape:
    """Return a shape whose machines share a server group in some seeds; the separate source keeps other draws."""
    if not shape.machines or source.random() < 0.6:
        return shape
    return dataclasses.replace(shape, anti_affinity=source.choice(("soft", "hard")))


def _with_egress(shape: Shape, source: random.Random) -> Shape:
    """Return a shape whose security groups restrict egress in some seeds; the separate source keeps other draws."""
    groups = (shape.cluster or {}).get("managedSecurityGroups")
    if shape.cluster is None or groups is None or source.random() < 0.5:
        return shape
    restricted = {**groups, "allowAllOutboundTraffic": False, "nodePortAllowedCIDRs": ["198.51.100.0/24"]}
    return dataclasses.replace(shape, cluster={**shape.cluster, "managedSecurityGroups": restricted})


def _with_zone(shape: Shape, source: random.Random) -> Shape:
    """Return a shape whose machines are in a failure domain with a subnet in some seeds.

    A zone has fewer hosts than the cloud: none where each machine needs a host of its own.
    """
    if shape.cluster is None or shape.is_network_given or shape.anti_affinity == "hard" or source.random() < 0.7:
        return shape
    zone = {"name": "az1", "subnets": [{"filter": {"ipVersion": 4}}]}
    return dataclasses.replace(shape, cluster={**shape.cluster, "failureDomains": [zone]})


def _with_drift(shape: Shape, source: random.Random) -> Shape:
    """Return a shape whose resources are changed externally in some seeds; the separate source keeps other draws."""
    if shape.cluster is None or source.random() < 0.6:
        return shape
    fields = dict.fromkeys(FIELDS.get(name, name) for name in DRIFTING)
    policy = {field: chosen for field in fields if (chosen := source.choice(("", "Off", "Report", "Repair")))}
    changes = source.sample(DRIFTING, k=source.randint(1, len(DRIFTING)))
    early = {name: source.uniform(20.0, ADVERSARY_S) for name in DRIFTING if source.random() < 0.3}
    cluster = with_compared(shape.cluster, is_network_given=shape.is_network_given)
    if "router" in changes and "bastion" not in cluster and "apiServer" in cluster:
        # Neutron keeps the gateway of a router that a floating IP needs.
        cluster["apiServer"] = {**cluster["apiServer"], "enableFloatingIP": False}
    cluster |= {"driftPolicy": policy} if policy else {}
    return dataclasses.replace(shape, cluster=cluster, drift={"policy": policy, "changes": changes, "early": early})


def with_compared(cluster: Json, *, is_network_given: bool = False) -> Json:
    """Return the spec of a cluster with what is compared only if the spec names it."""
    return {**cluster, "tags": [TAG], **({} if is_network_given else {"managedNetwork": {"mtu": MTU}})}


def _server(source: random.Random) -> Json:
    spec: Json = {}
    if source.random() < 0.6:
        spec["rootVolume"] = {"sizeGiB": 1}
    if source.random() < 0.5:
        spec["additionalBlockDevices"] = [{"name": "data", "sizeGiB": 1, "storage": {"type": "Volume"}}]
    return spec


def _tuning(source: random.Random) -> Tuning:
    return Tuning(
        switch_rate=source.choice((0.0, 0.05, 0.3, 0.7)),
        stall_rate=source.choice((0.0, 0.0, 0.001, 0.005)),
        stall_s=source.choice((1.0, 10.0)),
        latency_s=source.choice((0.005, 0.02, 0.2, 1.0)),
        watch_s=source.choice((0.01, 0.05, 1.0, 5.0)),
        sync_period_s=source.choice((600.0, 3600.0, 3600.0)),
        leader_elect=source.random() < 0.1,
    )
