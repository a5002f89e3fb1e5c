"""What may change of an object that exists, field by field: the table of the webhooks.

Every direct field of every place is added, changed and removed. What ``MAY`` does not list must be refused.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from capo.webhooks.tests.table import places, rules, samples
from capo.webhooks.tests.table.places import Json, Version

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
            "identityRef": (CHANGE,),
            "managedSecurityGroups": (ADD, CHANGE),
            "primarySubnet": ALWAYS,
        },
        "spec.apiServer": {"enableFloatingIP": ALWAYS},
        "spec.apiServer.managedLoadBalancer": {"allowedCIDRs": ALWAYS, "monitor": ALWAYS},
        "spec.managedSecurityGroups": {
            "allowAllInClusterTraffic": ALWAYS,
            "clusterNodesSecurityGroupRules": ALWAYS,
            "controlPlaneNodesSecurityGroupRules": ALWAYS,
            "workerNodesSecurityGroupRules": ALWAYS,
        },
        "spec.managedSubnets[]": {"dnsNameservers": ALWAYS},
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
"""By kind and place: which fields may be added, changed and removed when nothing else is said."""

TEMPLATE: Final = (
    "a template is never changed: make a new one and refer to that "
    "(https://cluster-api.sigs.k8s.io/tasks/updating-machine-templates)"
)
OTHERWISE: Final = {
    "OpenStackCluster": "it is fixed when the cluster is made",
    "OpenStackClusterTemplate": TEMPLATE,
    "OpenStackMachine": "a machine is never changed: change the template, and Cluster API replaces it",
    "OpenStackMachineTemplate": TEMPLATE,
    "OpenStackServer": "a server is never changed: make a new OpenStackServer",
}
ONCE: Final = "it can be set once, while it is not set and enableFloatingIP is false"
UNTIL_HOST: Final = "it may change until controlPlaneEndpoint has a host"
"""Of ``enableFloatingIP``, which the table changes in a cluster without endpoint alone."""
ADVICE: Final = {
    "spec.apiServer.fixedIP": ONCE,
    "spec.apiServer.floatingIP": "it may change only to the address that the load balancer has in status",
    "spec.apiServer.managedLoadBalancer": "of the load balancer, allowedCIDRs and monitor alone may change",
    "spec.apiServer.port": ONCE,
    "spec.controlPlaneEndpoint": "an endpoint that is set stays",
    "spec.managedSecurityGroups": "the groups cannot be given up, but their rules may change",
    "spec.managedSubnets": "of a managed subnet, dnsNameservers alone may change",
    "spec.network": "it may change only to the id that it has in status",
    "spec.subnets": "a filter may change only to the id that it has in status",
}
"""What a refusal says would be right, by the beginning of a field of a cluster."""
NEUTRAL: Final[dict[tuple[str, str], tuple[Json, ...]]] = {
    ("OpenStackCluster", "spec"): ({"apiServer": {"enableFloatingIP": False}}, {}),
    ("OpenStackCluster", "spec.apiServer"): ({"enableFloatingIP": True}, {"port": 6443}),
    ("OpenStackClusterTemplate", "spec.template.spec"): ({"apiServer": {"enableFloatingIP": False}}, {}),
    ("OpenStackServer", "spec"): ({"flavorID": "1"}, {"flavor": "small"}),
}
"""What a place has besides the field, so that it keeps its rules and is not empty: the first that has not the field."""


@dataclass(frozen=True)
class Update:
    """One change of one field.

    Args:
        before, after: specs.
        advice: what would be right; None when the change is permitted.
    """

    path: str
    change: str
    before: Json
    after: Json
    advice: str | None

    @property
    def opening(self) -> str:
        """Return how a refusal begins."""
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
    if field not in schema.get("required", ()):
        # What the API server fills in is changed by being added or removed.
        added, removed = (CHANGE, CHANGE) if "default" in part else (ADD, REMOVE)
        tried += [(added, without, first), (removed, first, without)]
    for change, before, after in tried:
        yield Update(path, change, before, after, None if change in free else advice(version.kind, path))


def _spec(version: Version, place: str, field: str, value: Any) -> Json:
    """Return a spec in which the field has a value, or is absent for None."""

    def leaf(schema: Json) -> Json:
        rest: Json = {name: part for name, part in samples.least(schema).items() if name != field}
        rest |= next(other for other in NEUTRAL.get((version.kind, place), ({},)) if field not in other)
        return samples.fixed(schema, rest if value is None else rest | {field: value})

    spec: Json = samples.having(version.root, places.steps(place), leaf)["spec"]
    return spec


def advice(kind: str, path: str) -> str:
    """Return what a refusal says would be right."""
    texts = [text for start, text in ADVICE.items() if path == start or path.startswith((f"{start}.", f"{start}["))]
    return texts[0] if texts and kind == "OpenStackCluster" else OTHERWISE[kind]
