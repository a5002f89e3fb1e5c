"""The table of the webhooks: what may change in an existing object, field by field.

Every direct field of every place is added, changed and removed. What ``MAY`` does not list must be refused.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from capo.json_types import Json
from capo.webhooks.tests.table import places, rules, samples
from capo.webhooks.tests.table.places import Version

ADD, CHANGE, REMOVE = "add", "change", "remove"
ALWAYS: Final = (ADD, CHANGE, REMOVE)
MAY: Final[dict[str, dict[str, dict[str, tuple[str, ...]]]]] = {
    "OpenStackCluster": {
        "spec": {
            "apiServer": ALWAYS,  # of which the table sets enableFloatingIP alone
            "bastion": ALWAYS,
            "controlPlaneAvailabilityZones": ALWAYS,
            "controlPlaneEndpoint": (ADD,),
            "controlPlaneOmitAvailabilityZone": ALWAYS,
            "driftPolicy": ALWAYS,
            "failureDomains": ALWAYS,
            "identityRef": (CHANGE,),
            "managedSecurityGroups": (ADD, CHANGE),
            "primarySubnet": ALWAYS,
            "workloadLeftovers": ALWAYS,
        },
        "spec.additionalManagedSubnet": {"dnsNameservers": ALWAYS},
        "spec.apiServer": {"enableFloatingIP": ALWAYS},
        "spec.apiServer.managedLoadBalancer": {"allowedCIDRs": ALWAYS, "monitor": ALWAYS},
        "spec.driftPolicy": dict.fromkeys(
            (
                "allowedAddressPairs",
                "healthMonitors",
                "listenerTimeouts",
                "listeners",
                "memberWeights",
                "mtu",
                "poolAlgorithms",
                "poolMembers",
                "portSecurityGroups",
                "router",
                "securityGroupRules",
                "serverMetadata",
                "tags",
            ),
            ALWAYS,
        ),
        "spec.failureDomains[]": {"name": (CHANGE,), "network": ALWAYS, "subnets": ALWAYS},
        "spec.managedSecurityGroups": {
            "allowAllInClusterTraffic": ALWAYS,
            "allowAllOutboundTraffic": ALWAYS,
            "clusterNodesSecurityGroupRules": ALWAYS,
            "controlPlaneNodesSecurityGroupRules": ALWAYS,
            "nodePortAllowedCIDRs": ALWAYS,
            "workerNodesSecurityGroupRules": ALWAYS,
        },
        "spec.managedSubnets[]": {"dnsNameservers": ALWAYS},
        "spec.workloadLeftovers": {"clusterName": ALWAYS, "policy": ALWAYS},
    },
    "OpenStackClusterTemplate": {"spec.template": {"metadata": ALWAYS}, "spec.template.spec": {}},
    "OpenStackMachine": {
        "spec": {"identityRef": ALWAYS, "providerID": ALWAYS},
        "spec.ports[]": {"allowedAddressPairs": ALWAYS},
    },
    "OpenStackMachineTemplate": {
        "spec.template.spec": {},
        "spec.template.spec.ports[]": {"allowedAddressPairs": ALWAYS},
    },
    "OpenStackServer": {"spec": {"identityRef": (CHANGE,)}, "spec.ports[]": {}},
}
"""By kind and place: which fields may be added, changed and removed unless another table restricts it."""

TEMPLATE: Final = (
    "templates are immutable: create a new one and refer to it "
    "(https://cluster-api.sigs.k8s.io/tasks/updating-machine-templates)"
)
OTHERWISE: Final = {
    "OpenStackCluster": "it is immutable once the cluster is created",
    "OpenStackClusterTemplate": TEMPLATE,
    "OpenStackMachine": "a machine is never changed: change the template, and Cluster API replaces it",
    "OpenStackMachineTemplate": TEMPLATE,
    "OpenStackServer": "OpenStackServers are immutable: create a new one",
}
ONCE: Final = "it can be set once, while it is not set and enableFloatingIP is false"
UNTIL_HOST: Final = "it may change until controlPlaneEndpoint has a host"
"""For ``enableFloatingIP``, which the table changes only in a cluster without endpoint."""
ADVICE: Final = {
    "spec.additionalManagedSubnet": "it exists from the creation of the cluster on; dnsNameservers alone may change",
    "spec.apiServerIPFamilies": "it may be set only to the families that the load balancer has in status",
    "spec.apiServer.fixedIP": ONCE,
    "spec.apiServer.floatingIP": "it may change only to the address that the load balancer has in status",
    "spec.apiServer.managedLoadBalancer": "of the load balancer, allowedCIDRs and monitor alone may change",
    "spec.apiServer.port": ONCE,
    "spec.controlPlaneEndpoint": "an endpoint that is set is immutable",
    "spec.managedSecurityGroups": "the groups cannot be given up, but their rules may change",
    "spec.managedSubnets": "of a managed subnet, dnsNameservers alone may change",
    "spec.network": "it may change only to the id that it has in status",
    "spec.subnets": "a filter may change only to the id that it has in status",
}
"""The permitted change that a refusal names, by the beginning of a field of a cluster."""
NEUTRAL: Final[dict[tuple[str, str], tuple[Json, ...]]] = {
    ("OpenStackCluster", "spec"): ({"apiServer": {"enableFloatingIP": False}}, {}),
    ("OpenStackCluster", "spec.apiServer"): ({"enableFloatingIP": True}, {"port": 6443}),
    ("OpenStackCluster", "spec.failureDomains[]"): ({"subnets": [rules.ID]}, {}),
    ("OpenStackClusterTemplate", "spec.template.spec"): ({"apiServer": {"enableFloatingIP": False}}, {}),
    ("OpenStackServer", "spec"): ({"flavorID": "1"}, {"flavor": "small"}),
}
"""What a place has besides the field, so that it keeps its rules and is not empty: the first that lacks the field."""
BESIDE: Final[dict[str, Json]] = {
    "spec.additionalManagedSubnet": {"managedSubnets": [{"cidr": samples.FIRST_CIDR}]},
    "spec.additionalManagedSubnet.prefixLength": rules.POOL,
    "spec.template.spec.additionalManagedSubnet": {"managedSubnets": [{"cidr": samples.FIRST_CIDR}]},
}
"""What a place has besides one field, with and without it."""
ONE_OF: Final = frozenset({"spec.additionalManagedSubnet.cidr", "spec.additionalManagedSubnet.subnetPoolID"})
"""Fields of which a rule demands exactly one, so that none of them alone is added or removed."""


@dataclass(frozen=True)
class Update:
    """One change of one field.

    Args:
        before, after: specs.
        advice: the permitted change; None if this one is permitted.
    """

    path: str
    change: str
    before: Json
    after: Json
    advice: str | None

    @property
    def opening(self) -> str:
        """Return the beginning of a refusal."""
        return {ADD: "Forbidden: cannot be added", REMOVE: "Forbidden: cannot be removed"}.get(
            self.change, "Invalid value: "
        )


def updates(version: Version) -> list[Update]:
    """Return every change of every direct field of the places of a kind."""
    return [
        update
        for place, free in MAY[version.kind].items()
        for field in places.at(version, place)["properties"]
        if f"{place}.{field}" not in rules.FORBIDDEN
        for update in _of_field(version, place, field, free.get(field, ()))
    ]


def _of_field(version: Version, place: str, field: str, free: tuple[str, ...]) -> Iterator[Update]:
    schema = places.at(version, place)
    part = schema["properties"][field]
    one = samples.given(part)
    without, first, second = (_spec(version, place, field, value) for value in (None, one, samples.changed(part, one)))
    path = f"{places.concrete(place)}.{field}"
    tried = [(CHANGE, first, second)]
    if field not in schema.get("required", ()) and f"{place}.{field}" not in ONE_OF:
        # A field that the API server fills in is changed by being added or removed.
        added, removed = (CHANGE, CHANGE) if "default" in part else (ADD, REMOVE)
        tried += [(added, without, first), (removed, first, without)]
    for change, before, after in tried:
        yield Update(path, change, before, after, None if change in free else advice(version.kind, path))


def _spec(version: Version, place: str, field: str, value: Any) -> Json:
    """Return a spec in which the field has a value; None: it is absent."""

    def leaf(schema: Json) -> Json:
        rest: Json = {name: part for name, part in samples.least(schema).items() if name != field}
        rest |= next(other for other in NEUTRAL.get((version.kind, place), ({},)) if field not in other)
        rest |= BESIDE.get(f"{place}.{field}", {})
        return samples.fixed(schema, rest if value is None else rest | {field: value})

    spec: Json = samples.having(version.root, places.steps(place), leaf)["spec"]
    return spec


def advice(kind: str, path: str) -> str:
    """Return the permitted change that a refusal names."""
    texts = [text for start, text in ADVICE.items() if path == start or path.startswith((f"{start}.", f"{start}["))]
    return texts[0] if texts and kind == "OpenStackCluster" else OTHERWISE[kind]
