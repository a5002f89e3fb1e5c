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
BASTIONS: Final = ("spec.bastion", "spec.template.spec.bastion")
NARROWED: Final[dict[str, list[Any]]] = {f"{path}.spec.antiAffinity": ["none"] for path in BASTIONS}
"""The values that a rule leaves of a field whose own schema takes more."""
ONE_SERVER: Final = "antiAffinity cannot be set for a bastion, which is one server"
ONE_GROUP: Final = "antiAffinity and serverGroup exclude each other"
FURTHER: Final = {(f"{path}.spec", ONE_GROUP): ((path, ONE_SERVER),) for path in BASTIONS}
"""By place and rule: what else is refused, field and message, as no value breaks this rule alone there."""
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


def _cluster_name(_least: Json, _schema: Json) -> Values:
    return {"clusterName": "kubernetes"}, [{}, {"clusterName": "kubernetes-web"}]


def _additional(bad: tuple[str, Json], *goods: tuple[str, Json]) -> Callable[[Json, Json], Values]:
    """Take pairs: the range of the entry of managedSubnets, empty for no entry, and the additional subnet."""

    def values(least: Json, _schema: Json) -> Values:
        def spec(cidr: str, additional: Json) -> Json:
            first = {"managedSubnets": [{"cidr": cidr}]} if cidr else {}
            return least | first | {"additionalManagedSubnet": additional}

        return spec(*bad), [least, least | {"managedSubnets": [{"cidr": IPV4}]}, *(spec(*good) for good in goods)]

    return values


def _modes(least: Json, _schema: Json) -> Values:
    address, announced = {"ipv6AddressMode": "slaac"}, {"ipv6RAMode": "slaac"}
    return least | address | {"ipv6RAMode": "dhcpv6-stateless"}, [
        least | modes for modes in (address, announced, address | announced)
    ]


def _one_server(least: Json, schema: Json) -> Values:
    spec = samples.least(schema["properties"]["spec"])
    return least | {"spec": spec | {"antiAffinity": "soft"}}, [
        least | {"spec": spec},
        least | {"spec": spec | {"antiAffinity": "none"}},
    ]


def _one_group(least: Json, schema: Json) -> Values:
    group = {"serverGroup": samples.least(schema["properties"]["serverGroup"])}
    return least | group | {"antiAffinity": "hard"}, [
        least | group,
        least | group | {"antiAffinity": "none"},
        least | {"antiAffinity": "none"},
    ]


def _failure_domain(least: Json, schema: Json) -> Values:
    name = {"name": least["name"]}
    parts: Json = {part: samples.given(schema["properties"][part]) for part in ("network", "subnets")}
    return name, [name | {"network": parts["network"]}, name | {"subnets": parts["subnets"]}, name | parts]


IPV4: Final = "192.0.2.0/24"
IPV6: Final = "2001:db8::/64"
ID: Final[Json] = {"id": samples.FORMATS["uuid"].good}
POOL: Final[Json] = {"subnetPoolID": ID["id"]}
POOLS: Final[Json] = {"allocationPools": [{"start": "192.0.2.10", "end": "192.0.2.20"}]}

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
    "clusterName must not be kubernetes: the cloud controller of each cluster has that name by default": _cluster_name,
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
    "additionalManagedSubnet requires an entry of managedSubnets": _additional(
        ("", {"cidr": IPV6}), (IPV4, {"cidr": IPV6}), (IPV4, POOL)
    ),
    "additionalManagedSubnet must be of the other IP version than managedSubnets": _additional(
        (IPV6, {"cidr": "fd00::/64"}), (IPV4, {"cidr": IPV6}), (IPV6, {"cidr": IPV4}), (IPV4, POOL), (IPV6, POOL)
    ),
    "ipv6AddressMode and ipv6RAMode must be equal when both are set": _modes,
    "exactly one of cidr and subnetPoolID must be set": lambda _least, _schema: (
        {"cidr": IPV4} | POOL,
        [{"cidr": IPV4}, POOL],
    ),
    "prefixLength requires subnetPoolID, and allocationPools require cidr": lambda _least, _schema: (
        {"cidr": IPV4, "prefixLength": 24},
        [POOL | {"prefixLength": 24}, {"cidr": IPV4} | POOLS],
    ),
    ONE_SERVER: _one_server,
    ONE_GROUP: _one_group,
    "a failure domain must name a network or subnets": _failure_domain,
    "root is the name of the disk to boot from": lambda least, _: (least | {"name": "root"}, [least]),
    "providerID cannot be set in templates": lambda least, _: (
        least | {"spec": least["spec"] | {"providerID": "openstack:///a"}},
        [least],
    ),
}
