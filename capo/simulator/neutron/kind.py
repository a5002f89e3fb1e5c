"""What the eight kinds of resources share: attributes, bodies, policy, quotas, visibility, times.

A kind's module declares its `Kind` and its own rules; `crud` turns that into routes.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from capo.simulator.cloud import Cloud, Json, Table
from capo.simulator.neutron import checks
from capo.simulator.neutron.checks import Check, Invalid
from capo.simulator.neutron.service import bad_request, broken, disallowed
from capo.simulator.routing import Fault, Request

UNSET: Final = object()
CORE: Final = frozenset({"network", "subnet", "port"})
SINGLE: Final = frozenset({"router", "floatingip", "trunk"})
"""Kinds of which a POST creates only one."""
REQUIRED: Final = object()


@dataclass(frozen=True, slots=True)
class Attribute:
    """One attribute of a kind.

    Args:
        flags: P is allowed in POST, U in PUT, F filters lists, S sorts them; E has policy rules of its own.
        default: REQUIRED in a POST; UNSET leaves it to the kind's own rules.
        admin: The verbs, of P and U, that a plain member is refused.
        parts: Keys within the value that have policy rules of their own.
        admin_parts: Those of them that only an admin may set.
    """

    name: str
    flags: str
    check: Check = checks.anything
    default: Any = UNSET
    admin: str = ""
    parts: tuple[str, ...] = ()
    admin_parts: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Caller:
    """The sender of a request; Nova and Octavia act as admin in the user's project."""

    project_id: str
    is_admin: bool = False

    @classmethod
    def from_request(cls, request: Request) -> Caller:
        """Return the sender of the request."""
        return cls(request.project_id, request.is_admin)


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of resource.

    Args:
        name: Singular, as in bodies: `security_group`.
        path: Collection in the URL: `security-groups`.
        missing: The refusal of an unknown id.
        hidden: Attributes that only an admin sees.
        unfiltered: Attributes that are accepted as filters without effect.
        whole: Attributes whose filters have to be whole numbers.
        filter_values: Converts a filter's value before it is compared, or refuses it.
        lost_marker: The page after an unknown marker: refused, the first one, or an empty one.
        matchers: Filters that do not compare the value; called with the resource and all values of the query.
        has_tags: Whether resources carry tags.
    """

    name: str
    plural: str
    path: str
    attributes: tuple[Attribute, ...]
    missing: Callable[[str], Fault]
    create: Callable[[Cloud, Json, Caller], Json]
    update: Callable[[Cloud, Json, Json, Caller], None]
    delete: Callable[[Cloud, Json, Caller], None]
    view: Callable[[Cloud, Json], Json]
    is_visible: Callable[[Cloud, Json, Caller], bool]
    is_owner: Callable[[Cloud, Json, Caller], bool]
    hidden: frozenset[str] = frozenset()
    unfiltered: frozenset[str] = frozenset()
    whole: frozenset[str] = frozenset()
    filter_values: dict[str, Callable[[str], Any]] = field(default_factory=dict)
    lost_marker: Literal["refused", "first", "empty"] = "first"
    matchers: dict[str, Callable[[Json, list[str]], bool]] = field(default_factory=dict)
    has_tags: bool = True
    prepare_list: Callable[[Cloud, Caller], None] = lambda _cloud, _caller: None
    view_in_list: Callable[[Cloud, Json], Json] | None = None
    view_when_made: Callable[[Cloud, Json], Json] | None = None
    create_bulk: Callable[[Cloud, list[Json], Caller], list[Json]] | None = None

    def table(self, cloud: Cloud) -> Table:
        """Return all resources of this kind."""
        return cloud.table("network", self.plural)

    def attribute(self, name: str) -> Attribute | None:
        """Return an attribute by name."""
        return next((item for item in self.all_attributes if item.name == name), None)

    @property
    def all_attributes(self) -> tuple[Attribute, ...]:
        """The kind's attributes with those that every kind has."""
        is_declared = any(item.name == "tags" for item in self.attributes)
        tags = TAGS if self.has_tags and not is_declared else ()
        return (*STANDARD, *self.attributes, *tags)

    def flagged(self, flag: str) -> set[str]:
        """Return the names of the attributes with a flag."""
        return {item.name for item in self.all_attributes if flag in item.flags}

    def find(self, cloud: Cloud, resource_id: str, caller: Caller) -> Json:
        """Return a resource that the caller may see.

        Raises:
            Fault: 404 in the kind's words.
        """
        resource = self.table(cloud).get(resource_id)
        if resource is None or not self.is_visible(cloud, resource, caller):
            raise self.missing(resource_id)
        return resource

    def shown(self, cloud: Cloud, resource: Json, caller: Caller, *, is_made: bool = False) -> Json:
        """Return a resource as the caller may see it.

        Args:
            is_made: It is the answer to the POST that created it.
        """
        view = ((self.view_when_made if is_made else None) or self.view)(cloud, resource)
        hidden = frozenset() if caller.is_admin else self.hidden
        return {key: value for key, value in view.items() if key not in hidden and not key.startswith("_")}


STANDARD: Final = (
    Attribute("id", "FS"),
    Attribute("tenant_id", "PFS", checks.string(255)),
    Attribute("project_id", "PFS", checks.string(255)),
    Attribute("description", "PUF", checks.string(255), ""),
    Attribute("revision_number", "FS"),
    Attribute("created_at", ""),
    Attribute("updated_at", ""),
)
TAGS: Final = (Attribute("tags", ""),)


def own(_: Cloud, resource: Json, caller: Caller) -> bool:
    """Return whether the resource belongs to the caller's project."""
    return caller.is_admin or resource["project_id"] == caller.project_id


def time_of(cloud: Cloud) -> str:
    """Return the cloud's time in Neutron's format."""
    return f"{cloud.now():%Y-%m-%dT%H:%M:%SZ}"


def new(cloud: Cloud, values: Json, *, revision: int = 1) -> Json:
    """Return a new resource with id, project, times and no tags."""
    now = time_of(cloud)
    return {
        "id": cloud.new_id(),
        **{key: value for key, value in values.items() if value is not UNSET},
        "tags": [],
        "created_at": now,
        "updated_at": now,
        "revision_number": revision,
    }


def touch(cloud: Cloud, resource: Json) -> None:
    """Record that a resource changed."""
    resource["revision_number"] += 1
    resource["updated_at"] = time_of(cloud)


def read_bodies(kind: Kind, request: Request) -> tuple[list[Json], bool]:
    """Return the objects in the body of a POST, and whether they were a list.

    Raises:
        Fault: 400 in the words of Neutron's web layer.
    """
    body = _body(kind, request)
    if kind.plural in body:
        if kind.name in SINGLE:
            raise bad_request("Bulk operation not supported")
        if not isinstance(body[kind.plural], list) or not body[kind.plural]:
            raise bad_request("Resources required")
        if not all(isinstance(item, dict) for item in body[kind.plural]):
            raise bad_request("Body contains invalid data")
        found = [_object(kind, item.get(kind.name, item), item) for item in body[kind.plural]]
        return found, True
    return [read_body(kind, request)], False


def read_body(kind: Kind, request: Request) -> Json:
    """Return the one object in the body."""
    body = _body(kind, request)
    if body.get(kind.name) is None:
        raise bad_request(f"Unable to find '{kind.name}' in request body")
    return _object(kind, body[kind.name], body)


def _body(kind: Kind, request: Request) -> Json:
    """Return the whole body; core kinds and plugins' kinds word the refusal of an empty one differently."""
    try:
        body = json.loads(request.raw or b"{}")
    except ValueError as error:
        raise request.service.malformed_body() from error
    if not body and kind.name not in CORE:
        raise bad_request("Resource body required")
    if not isinstance(body, dict):
        raise bad_request("Body contains invalid data") if kind.name in CORE or request.method == "POST" else broken()
    return body


def _object(kind: Kind, found: Any, body: Any) -> Json:
    if not isinstance(body, dict) or not isinstance(found, dict):
        raise bad_request(f"Object '{kind.name}' contains invalid data")
    return found


def values_of_post(kind: Kind, given: Json, caller: Caller) -> Json:
    """Return the checked values of a POST, with defaults.

    Raises:
        Fault: 400 for what is unknown, read-only, missing or malformed; 403 for what only an admin may set.
    """
    _refuse_unknown(kind, given)
    project_id = _project(given, caller)
    values: Json = {}
    for attribute in kind.all_attributes:
        name = attribute.name
        if name in {"project_id", "tenant_id"}:
            continue
        if "P" not in attribute.flags:
            if name in given:
                raise bad_request(f"Attribute '{name}' not allowed in POST")
        elif name in given:
            values[name] = given[name]
        elif attribute.default is REQUIRED:
            raise bad_request(f"Failed to parse request. Required attribute '{name}' not specified")
        else:
            values[name] = attribute.default
    _check(kind, values)
    values |= {"project_id": project_id, "tenant_id": project_id}
    return values


def enforce_post(kind: Kind, given: Json, caller: Caller) -> None:
    """Refuse a plain member the attributes that only an admin may set at creation."""
    explicit = [
        item
        for item in kind.attributes
        if "E" in item.flags and item.name in given and given[item.name] != item.default
    ]
    _enforce(f"rule:create_{kind.name}", "P", explicit, given, caller)


def _enforce(rule: str, verb: str, attributes: list[Attribute], given: Json, caller: Caller) -> None:
    """Refuse by policy; the refusal names every checked rule, as oslo.policy does."""
    if caller.is_admin:
        return
    denied = [
        item for item in attributes if verb in item.admin or item.admin_parts.intersection(_keys(given[item.name]))
    ]
    if denied:
        rules = [rule, *(_rule_of(rule, item, given[item.name]) for item in attributes)]
        raise disallowed(functools.reduce(lambda left, right: f"({left} and {right})", rules))


def _rule_of(rule: str, attribute: Attribute, value: Any) -> str:
    name = f"{rule}:{attribute.name}"
    keys = _keys(value)
    parts = [f"{name}:{part}" for part in attribute.parts if part in keys]
    if not parts:
        return name
    joined = functools.reduce(lambda left, right: f"({left} and {right})", parts)
    return f"({name} and {joined if len(parts) > 1 else f'({joined})'})"


def _keys(value: Any) -> set[str]:
    items = value if isinstance(value, list) else [value]
    return {key for item in items if isinstance(item, dict) for key in item}


def values_of_put(kind: Kind, given: Json, caller: Caller) -> Json:
    """Return the checked changes of a PUT."""
    _refuse_unknown(kind, given)
    _project(given, caller)
    for name in given:
        if name not in kind.flagged("U"):
            known_as = "tenant_id" if name == "project_id" else name
            raise bad_request(f"Cannot update read-only attribute {known_as}")
    changes = dict(given)
    _check(kind, changes)
    return changes


def enforce_put(kind: Kind, resource: Json, given: Json, caller: Caller, cloud: Cloud) -> None:
    """Refuse a change by a caller that does not own the resource, and of what only an admin may change."""
    rule = f"rule:update_{kind.name}"
    if not kind.is_owner(cloud, resource, caller):
        raise disallowed(rule)
    explicit = [item for item in kind.attributes if "E" in item.flags and item.name in given]
    _enforce(rule, "U", explicit, given, caller)


def _refuse_unknown(kind: Kind, given: Json) -> None:
    known = {attribute.name for attribute in kind.all_attributes}
    extra = [name for name in given if name not in known]
    if extra:
        raise bad_request(f"Unrecognized attribute(s) '{', '.join(extra)}'")


def _project(given: Json, caller: Caller) -> str:
    for name in ("project_id", "tenant_id"):
        if name in given and given[name] != caller.project_id and not caller.is_admin:
            raise bad_request(
                "Specifying 'project_id' other than the authenticated project in request is not allowed "
                "for the current user."
            )
    return str(given.get("project_id", given.get("tenant_id", caller.project_id)))


def _check(kind: Kind, values: Json) -> None:
    for name, value in values.items():
        attribute = kind.attribute(name)
        if attribute is None or value is UNSET:
            continue
        try:
            values[name] = attribute.check(value)
        except Invalid as error:
            raise bad_request(f"Invalid input for {name}. Reason: {error}.") from error


def enforce_quota(cloud: Cloud, kind: Kind, project_id: str, more: int = 1) -> None:
    """Refuse what would exceed the project's quota."""
    limit = cloud.quota("network", project_id, kind.name)
    used = sum(1 for item in kind.table(cloud).values() if item["project_id"] == project_id)
    if 0 <= limit < used + more:
        raise Fault(409, f"Quota exceeded for resources: ['{kind.name}'].", "OverQuota")
