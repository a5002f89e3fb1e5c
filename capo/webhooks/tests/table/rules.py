"""A bad and a good value for every CEL rule, by its message; the rule is tested at every place that has it.

``CASES`` takes the least value at the place of the rule and its schema, and returns a bad and the good values.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from capo.json_types import Json
from capo.webhooks.tests.table import samples

Values = tuple[Any, list[Any]]

KEYWORD: Final = "x-kubernetes-validations"
FORBIDDEN: Final = frozenset({"spec.template.spec.providerID"})
"""Fields that a rule forbids with any value."""
REGION: Final = "region is immutable"
"""The one rule that compares old with new; it needs an existing object, so it has a test of its own."""


def _bastion_address(off: Json, on: Json) -> Callable[[Json, Json], Values]:
    def values(least: Json, schema: Json) -> Values:
        bastion = samples.least(schema["properties"]["bastion"])
        address = {"bastion": bastion | {"floatingIP": "192.0.2.7"}}
        return least | off | address, [least | off | {"bastion": bastion}, least | on | address, least | address]

    return values


def _endpoint_address(off: Json, private: Json, public: Json) -> Callable[[Json, Json], Values]:
    """Without an external network the spec must disable the API server's floating IP."""
    return lambda least, _: (least | off | public, [least | off | private, least | public])


def _not_empty(least: Json, _schema: Json) -> Values:
    return {}, [least]


def _network(least: Json, _schema: Json) -> Values:
    return {}, [least, {"mtu": 0}, {"enablePortSecurity": False}]


def _bastion(least: Json, _schema: Json) -> Values:
    return {"enabled": True}, [least, {"enabled": False}, {"enabled": False, "floatingIP": "192.0.2.7"}]


def _zone(_least: Json, _schema: Json) -> Values:
    return {"from": "Machine", "name": "az-1"}, [
        {"name": "az-1"},
        {"from": "Name", "name": "az-1"},
        {"from": "Machine"},
    ]


def _hint(bad: Json, *goods: Json) -> Callable[[Json, Json], Values]:
    return lambda _least, _schema: (bad, list(goods))


def _flavor(least: Json, _schema: Json) -> Values:
    rest = {name: part for name, part in least.items() if name != "flavor"}
    return rest, [rest | {"flavor": "a"}, rest | {"flavorID": "1"}, rest | {"flavor": "a", "flavorID": "1"}]


def _remote_ends(least: Json, _schema: Json) -> Values:
    ends = ({"remoteGroupID": "a"}, {"remoteIPPrefix": ""}, {"remoteManagedGroups": ["worker"]})
    return least | ends[1] | {"remoteManagedGroups": []}, [least, *(least | end for end in ends)]


def _port_security(name: str, *, is_off: bool) -> Callable[[Json, Json], Values]:
    groups = {"securityGroups": [{"filter": {"name": "a"}}]}

    def values(least: Json, _schema: Json) -> Values:
        off, on = {name: is_off}, {name: not is_off}
        return least | off | groups, [least | off | {"securityGroups": []}, least | on | groups, least | groups]

    return values


CASES: Final[dict[str, Callable[[Json, Json], Values]]] = {
    "bastion floating IP cannot be set when enableExternalNetwork is false": _bastion_address(
        {"enableExternalNetwork": False, "apiServer": {"enableFloatingIP": False}}, {"enableExternalNetwork": True}
    ),
    "bastion floating IP cannot be set when disableExternalNetwork is true": _bastion_address(
        {"disableExternalNetwork": True, "disableAPIServerFloatingIP": True}, {"disableExternalNetwork": False}
    ),
    "apiServer.enableFloatingIP cannot be true when enableExternalNetwork is false": _endpoint_address(
        {"enableExternalNetwork": False}, {"apiServer": {"enableFloatingIP": False}}, {"apiServer": {"port": 6443}}
    ),
    "disableAPIServerFloatingIP cannot be false when disableExternalNetwork is true": _endpoint_address(
        {"disableExternalNetwork": True}, {"disableAPIServerFloatingIP": True}, {"disableAPIServerFloatingIP": False}
    ),
    "managedRouter must not be empty if set": _not_empty,
    "managedNetwork must not be empty if set": _network,
    "spec is required if bastion is enabled": _bastion,
    "name is required when from is 'Name' or default": _zone,
    "bool is required when type is Bool, and forbidden otherwise": _hint(
        {"type": "Bool"}, {"type": "Bool", "bool": False}
    ),
    "number is required when type is Number, and forbidden otherwise": _hint(
        {"type": "Bool", "bool": True, "number": 0}, {"type": "Number", "number": 0}
    ),
    "string is required when type is String, and forbidden otherwise": _hint(
        {"type": "String"}, {"type": "String", "string": "x"}
    ),
    "at least one of flavor or flavorID must be set": _flavor,
    "at most one of remoteManagedGroups, remoteGroupID and remoteIPPrefix can be set": _remote_ends,
    "securityGroups cannot be set when enablePortSecurity is false": _port_security("enablePortSecurity", is_off=False),
    "securityGroups cannot be set when disablePortSecurity is true": _port_security("disablePortSecurity", is_off=True),
    "root is the name of the disk to boot from": lambda least, _: (least | {"name": "root"}, [least]),
    "providerID cannot be set in templates": lambda least, _: (
        least | {"spec": least["spec"] | {"providerID": "openstack:///a"}},
        [least],
    ),
}
