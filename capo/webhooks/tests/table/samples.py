"""Good values, built from a schema alone: the least valid value, and one with a given value at a given place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from capo.json_types import Json
from capo.webhooks.tests.table import places

Fix = Callable[[Json, Json], Json]
"""Takes a value that may break a CEL rule, and its schema; returns a value that keeps the rule."""


class Texts(NamedTuple):
    """Two texts that match a pattern or a format, and one that does not."""

    good: str
    other: str
    bad: str


QUANTITY: Final = (
    r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$"
)
CONDITION: Final = (
    r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$"
)
PATTERNS: Final = {
    "^[^,]+$": Texts("tag", "other", "a,b"),
    "^[^ ]+$": Texts("az-1", "az-2", "az 1"),
    "^[A-Za-z0-9]([-A-Za-z0-9.]*[A-Za-z0-9])?$": Texts("team-a-web", "team-b-web", "team_a"),
    "^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$": Texts("Ready", "Other", "not ready"),
    CONDITION: Texts("Ready", "example.org/Other", "-Ready"),
    QUANTITY: Texts("4", "8192Mi", "4 GiB"),
}
"""By pattern; one that is missing here fails the test, so that every bound is tested."""
FORMATS: Final = {
    "uuid": Texts(
        "5d2d0b1e-6d6c-4a0e-9a4c-1f6b1a4c2f10", "0F3D7E645D5C4A8E8D3F6F8D3C6D9A11", "5d2d0b1e-6d6c-4a0e-9a4c"
    ),
    "ipv4": Texts("192.0.2.7", "192.0.2.8", "2001:db8::7"),
    "date-time": Texts("2026-01-02T03:04:05Z", "2026-01-02T03:04:05.5+01:00", "yesterday"),
}


ALTERNATIVES: Final = frozenset(
    {
        *("number", "string"),  # beside bool
        *("remoteGroupID", "remoteIPPrefix"),  # beside remoteManagedGroups
        *("disableExternalNetwork", "disablePortSecurity"),  # true excludes other fields
        "providerID",
        *("subnetPoolID", "prefixLength"),  # beside cidr and allocationPools
    }
)
"""Fields that exclude other fields."""
FIRST_CIDR: Final = "fd00::/64"
"""What the entry of ``managedSubnets`` has beside an ``additionalManagedSubnet``, whose texts here are not IPv6."""


def least(schema: Json) -> Any:
    """Return the least value that a schema and its rules accept; of an object the required fields alone."""
    match schema.get("type"):
        case "object":
            return _least_object(schema)
        case "array":
            return several(schema["items"], schema.get("minItems", 0))
        case "integer":
            return int(schema.get("minimum", 1))
        case "boolean":
            return True
    return text(schema).good


def _least_object(schema: Json) -> Json:
    value = {name: least(schema["properties"][name]) for name in schema.get("required", ())}
    if len(value) < schema.get("minProperties", 0):
        name, part = next(iter(schema["properties"].items()))
        value[name] = given(part)
    return fixed(schema, value)


def text(schema: Json) -> Texts:
    """Return texts for a schema, of no particular length."""
    if "enum" in schema:
        return Texts(schema["enum"][0], schema["enum"][-1], "Nonsense")
    for keyword, known in (("pattern", PATTERNS), ("format", FORMATS)):
        if keyword in schema:
            return known[schema[keyword]]
    return Texts("x" * max(1, schema.get("minLength", 0)), "other", "")


def other(schema: Json) -> Any:
    """Return the least value with one part changed."""
    return changed(schema, least(schema))


def changed(schema: Json, value: Any) -> Any:
    """Return the value with its first changeable scalar changed, or with something added if there is none."""
    match value:
        case dict():
            return _changed_object(schema, value)
        case list():
            return [changed(schema["items"], value[0]), *value[1:]] if value else [least(schema["items"])]
        case bool():
            return not value
        case int():
            return value + 1
    texts = text(schema)
    return texts.other if texts.other != value else texts.good


def _changed_object(schema: Json, value: Json) -> Json:
    if "additionalProperties" in schema:
        return {name: changed(schema["additionalProperties"], part) for name, part in value.items()}
    for name, part in value.items():
        different = changed(schema["properties"][name], part)
        if different != part:
            return fixed(schema, value | {name: different})
    replaced: Json = given(schema)
    return replaced


def given(schema: Json) -> Any:
    """Return a value with content: a list has an entry, an object a field, and a default is replaced."""
    value = least(schema)
    match value:
        case list() if not value:
            value = [given(schema["items"])]
        case dict() if "additionalProperties" in schema:
            value = {places.KEY: least(schema["additionalProperties"])}
        case dict() if not value:
            name, part = next(iter(schema["properties"].items()))
            value = fixed(schema, {name: given(part)})
    return changed(schema, value) if value == schema.get("default") else value


def full(schema: Json) -> Any:
    """Return a value with every field that other fields do not exclude."""
    match schema.get("type"):
        case "array":
            return [full(schema["items"])]
        case "object" if "additionalProperties" in schema:
            return {places.KEY: full(schema["additionalProperties"])}
        case "object":
            names = [name for name in schema["properties"] if name not in ALTERNATIVES]
            most = schema.get("maxProperties", len(names))
            return fixed(schema, {name: full(schema["properties"][name]) for name in names[:most]})
    return least(schema)


def several(schema: Json, amount: int) -> list[Any]:
    """Return up to so many different values of a schema."""
    return [least(schema), other(schema)][:amount]


def having(schema: Json, steps: list[str], leaf: Callable[[Json], Any]) -> Any:
    """Return the least value that has the result of ``leaf`` at the end of the steps.

    That result is not validated: the schema may refuse it.
    """
    if not steps:
        return leaf(schema)
    first, *rest = steps
    inner = having(places.child(schema, first), rest, leaf)
    match first:
        case "[]":
            return [inner]
        case "{}":
            return {places.KEY: inner}
    required = {name: least(schema["properties"][name]) for name in schema.get("required", ()) if name != first}
    return fixed(schema, required | {first: inner})


def fixed(schema: Json, value: Json) -> Json:
    """Return an object with the fields that its schema's rules demand."""
    messages = {rule["message"] for rule in schema.get("x-kubernetes-validations", ())}
    for message, fix in FIXES.items():
        value = fix(value, schema) if message in messages else value
    return value


def _adding(name: str, is_needed: Callable[[Json], object]) -> Fix:
    def fix(value: Json, schema: Json) -> Json:
        if name in value or not is_needed(value):
            return value
        return value | {name: least(schema["properties"][name])}

    return fix


def _without_external_network(value: Json, _schema: Json) -> Json:
    if value.get("enableExternalNetwork") is not False:
        return value
    return value | {"apiServer": value.get("apiServer", {}) | {"enableFloatingIP": False}}


def _first_subnet(value: Json, schema: Json) -> Json:
    """Give an additional subnet a first one, of the other IP version."""
    if "additionalManagedSubnet" not in value:
        return value
    first, *_ = value.get("managedSubnets") or [least(schema["properties"]["managedSubnets"]["items"])]
    return value | {"managedSubnets": [first | {"cidr": FIRST_CIDR}]}


def _one_range(value: Json, schema: Json) -> Json:
    if "subnetPoolID" in value:
        return {name: part for name, part in value.items() if name != "cidr"}
    return {"cidr": least(schema["properties"]["cidr"])} | value


def _one_group(value: Json, _schema: Json) -> Json:
    return value | {"antiAffinity": "none"} if value.keys() >= {"antiAffinity", "serverGroup"} else value


def _hint(value: Json, _schema: Json) -> Json:
    """Add the type that matches the value, or the value that matches the type."""
    given: Json = {"Bool": True, "Number": 1, "String": "x"}
    for kind in given:
        if kind.lower() in value:
            return {"type": kind, kind.lower(): value[kind.lower()]}
    asked: Any = value.get("type")
    return value | {asked.lower(): given[asked]} if asked in given else value


FIXES: Final[dict[str, Fix]] = {
    "apiServer.enableFloatingIP cannot be true when enableExternalNetwork is false": _without_external_network,
    "disableAPIServerFloatingIP cannot be false when disableExternalNetwork is true": _adding(
        "disableAPIServerFloatingIP", lambda value: value.get("disableExternalNetwork")
    ),
    "managedRouter must not be empty if set": _adding("externalIPs", lambda _: True),
    "managedNetwork must not be empty if set": _adding("mtu", lambda value: not value),
    "spec is required if bastion is enabled": _adding("spec", lambda value: value.get("enabled") is not False),
    "name is required when from is 'Name' or default": _adding("name", lambda value: value.get("from") != "Machine"),
    "bool is required when type is Bool, and forbidden otherwise": _hint,
    "at least one of flavor or flavorID must be set": _adding("flavor", lambda value: "flavorID" not in value),
    "additionalManagedSubnet requires an entry of managedSubnets": _first_subnet,
    "prefixLength requires subnetPoolID, and allocationPools require cidr": _adding(
        "subnetPoolID", lambda value: "prefixLength" in value
    ),
    "exactly one of cidr and subnetPoolID must be set": _one_range,
    "antiAffinity and serverGroup exclude each other": _one_group,
    "a failure domain must name a network or subnets": _adding("network", lambda value: "subnets" not in value),
}
"""By the message of the rule, in the order in which they are applied; rules that the least value keeps have none."""
