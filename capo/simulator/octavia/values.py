"""Octavia's bodies: the attributes of each kind, checked, with the wording of its web layer."""

from __future__ import annotations

import ipaddress
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from capo.simulator.cloud import Json
from capo.simulator.octavia.service import bad
from capo.simulator.routing import Fault, Request
from capo.simulator.validation import is_uuid

Check: TypeAlias = Callable[[Any], Any]
PROTOCOLS: Final = ("HTTP", "PROMETHEUS", "TCP", "UDP", "TERMINATED_HTTPS", "HTTPS", "SCTP")
POOL_PROTOCOLS: Final = ("HTTP", "TCP", "UDP", "HTTPS", "PROXY", "PROXYV2", "SCTP")
ALGORITHMS: Final = ("SOURCE_IP", "ROUND_ROBIN", "SOURCE_IP_PORT", "LEAST_CONNECTIONS")
MONITORS: Final = ("HTTP", "HTTPS", "PING", "SCTP", "TCP", "TLS-HELLO", "UDP-CONNECT")
METHODS: Final = ("CONNECT", "DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT", "TRACE")
MAX_TIMEOUT_MS: Final = 365 * 24 * 3600 * 1000


class NotThis(Exception):  # noqa: N818 - becomes a Fault once the attribute is known
    """A value is not valid for its attribute.

    Args:
        of_body: The refusal names the whole body, because the value could not even be read.
    """

    def __init__(self, reason: str, *, of_body: bool = False) -> None:
        super().__init__(reason)
        self.of_body = of_body


@dataclass(frozen=True, slots=True)
class Attribute:
    """One attribute of a kind.

    Args:
        default: What a POST without it means, and what a PUT of null resets it to.
        in_put: Whether a PUT may change it.
    """

    name: str
    check: Check
    default: Any = None
    is_mandatory: bool = False
    in_put: bool = False


def text(limit: int = 255) -> Check:
    def check(value: Any) -> str:
        if not isinstance(value, str):
            raise NotThis("Value should be string")
        if len(value) > limit:
            raise NotThis(f"Value should have a maximum character requirement of {limit}")
        return value

    return check


def boolean(value: Any) -> bool:
    word = str(value).lower()
    if isinstance(value, str) and word not in {"true", "t", "yes", "y", "on", "1", "false", "f", "no", "n", "off", "0"}:
        raise NotThis(f"Value not an unambiguous boolean: {value}", of_body=True)
    return word in {"true", "t", "yes", "y", "on", "1"} if isinstance(value, str) else bool(value)


def number(low: int, high: int) -> Check:
    def check(value: Any) -> int:
        try:
            found = int(value)
        except (TypeError, ValueError) as error:
            raise NotThis(f"invalid literal for int() with base 10: '{value}'", of_body=True) from error
        if found < low:
            raise NotThis(f"Value should be greater or equal to {low}")
        if found > high:
            raise NotThis(f"Value should be lower or equal to {high}")
        return found

    return check


def one_of(values: tuple[str, ...]) -> Check:
    def check(value: Any) -> str:
        if value not in values:
            raise NotThis(f"Value should be one of: {', '.join(values)}")
        return str(value)

    return check


def uuid(value: Any) -> str:
    if not isinstance(value, str) or not is_uuid(value):
        raise NotThis("Value should be UUID format")
    return value


def address(value: Any) -> str:
    try:
        return str(ipaddress.ip_address(value))
    except ValueError as error:
        raise NotThis("Value should be IPv4 or IPv6 format") from error


def cidr(value: Any) -> str:
    try:
        ipaddress.ip_network(value, strict=False)
    except ValueError as error:
        raise NotThis("Value should be IPv4 or IPv6 CIDR format") from error
    return str(value)


def list_of(check: Check) -> Check:
    def check_list(value: Any) -> list[Any]:
        if not isinstance(value, list):
            raise NotThis(f"Value not a valid list: {value}", of_body=True)
        return [check(item) for item in value]

    return check_list


def tag_list(value: Any) -> list[str]:
    return sorted(set(list_of(text())(value)))


def cidr_list(value: Any) -> list[str] | None:
    return list_of(cidr)(value) or None


def anything(value: Any) -> Any:
    return value


NAME: Final = Attribute("name", text(), "", in_put=True)
DESCRIPTION: Final = Attribute("description", text(), "", in_put=True)
ADMIN_STATE: Final = Attribute("admin_state_up", boolean, default=True, in_put=True)
TAGS: Final = Attribute("tags", tag_list, (), in_put=True)
PORT: Final = number(1, 65535)
TIMEOUT: Final = number(0, MAX_TIMEOUT_MS)
PROJECT: Final = (Attribute("project_id", text()), Attribute("tenant_id", text()))
TLS: Final = tuple(Attribute(name, anything, in_put=True) for name in ("tls_ciphers", "tls_versions", "alpn_protocols"))

MEMBER: Final = (
    NAME,
    ADMIN_STATE,
    Attribute("address", address, is_mandatory=True),
    Attribute("protocol_port", PORT, is_mandatory=True),
    Attribute("weight", number(0, 256), 1, in_put=True),
    Attribute("backup", boolean, default=False, in_put=True),
    Attribute("subnet_id", uuid),
    Attribute("monitor_address", address, in_put=True),
    Attribute("monitor_port", PORT, in_put=True),
    Attribute("vnic_type", one_of(("normal", "direct")), "normal"),
    TAGS,
)
MONITOR: Final = (
    NAME,
    Attribute("type", one_of(MONITORS), is_mandatory=True),
    Attribute("delay", number(0, 2**31), is_mandatory=True, in_put=True),
    Attribute("timeout", number(0, 2**31), is_mandatory=True, in_put=True),
    Attribute("max_retries", number(1, 10), is_mandatory=True, in_put=True),
    Attribute("max_retries_down", number(1, 10), 3, in_put=True),
    Attribute("http_method", one_of(METHODS), in_put=True),
    Attribute("url_path", text(), in_put=True),
    Attribute("expected_codes", text(64), in_put=True),
    Attribute("http_version", anything, in_put=True),
    Attribute("domain_name", text(), in_put=True),
    ADMIN_STATE,
    TAGS,
)
POOL: Final = (
    NAME,
    DESCRIPTION,
    ADMIN_STATE,
    Attribute("protocol", one_of(POOL_PROTOCOLS), is_mandatory=True),
    Attribute("lb_algorithm", one_of(ALGORITHMS), is_mandatory=True, in_put=True),
    Attribute("session_persistence", anything, in_put=True),
    Attribute("tls_container_ref", text(), in_put=True),
    Attribute("ca_tls_container_ref", text(), in_put=True),
    Attribute("crl_container_ref", text(), in_put=True),
    Attribute("tls_enabled", boolean, default=False, in_put=True),
    *TLS,
    TAGS,
)
LISTENER: Final = (
    NAME,
    DESCRIPTION,
    ADMIN_STATE,
    Attribute("protocol", one_of(PROTOCOLS), is_mandatory=True),
    Attribute("protocol_port", PORT, is_mandatory=True),
    Attribute("connection_limit", number(-1, 2**31), -1, in_put=True),
    Attribute("default_tls_container_ref", text(), in_put=True),
    Attribute("sni_container_refs", list_of(text()), (), in_put=True),
    Attribute("default_pool_id", uuid, in_put=True),
    Attribute("insert_headers", anything, None, in_put=True),
    Attribute("timeout_client_data", TIMEOUT, 50000, in_put=True),
    Attribute("timeout_member_connect", TIMEOUT, 5000, in_put=True),
    Attribute("timeout_member_data", TIMEOUT, 50000, in_put=True),
    Attribute("timeout_tcp_inspect", TIMEOUT, 0, in_put=True),
    Attribute("client_ca_tls_container_ref", text(), in_put=True),
    Attribute("client_authentication", one_of(("NONE", "OPTIONAL", "MANDATORY")), "NONE", in_put=True),
    Attribute("client_crl_container_ref", text(), in_put=True),
    Attribute("allowed_cidrs", cidr_list, in_put=True),
    Attribute("hsts_max_age", anything, in_put=True),
    Attribute("hsts_include_subdomains", boolean, default=False, in_put=True),
    Attribute("hsts_preload", boolean, default=False, in_put=True),
    *TLS,
    TAGS,
)
BALANCER: Final = (
    NAME,
    DESCRIPTION,
    ADMIN_STATE,
    Attribute("vip_address", address),
    Attribute("vip_port_id", uuid),
    Attribute("vip_subnet_id", uuid),
    Attribute("vip_network_id", uuid),
    Attribute("vip_sg_ids", list_of(uuid), (), in_put=True),
    Attribute("additional_vips", anything, ()),
    Attribute("provider", text()),
    Attribute("flavor_id", uuid),
    Attribute("vip_qos_policy_id", uuid, in_put=True),
    Attribute("availability_zone", text()),
    TAGS,
)


def body_of(request: Request, argument: str, key: str) -> Json:
    """Return the object under a key of the body.

    Args:
        argument: Octavia's name of the body in its refusals.

    Raises:
        Fault: In the words, and with the status, of Octavia's web layer.
    """
    if not request.raw:
        raise bad(f'Missing argument: "{argument}"')
    body = request.json
    for name in body:
        if name != key:
            raise bad(f"Unknown attribute for argument {argument}: {name}")
    found = body.get(key)
    if key not in body:
        raise Fault(500, "'UnsetType' object has no attribute 'project_id'")
    if not isinstance(found, dict):
        raise Fault(500, f"'{type(found).__name__}' object has no attribute 'keys'")
    return found


@dataclass(frozen=True, slots=True)
class Reader:
    """Reads the values of one body.

    Args:
        argument: Octavia's name of the body.
        body: All of it, for refusals that name the whole.
    """

    argument: str
    body: Json

    def post(self, kind: tuple[Attribute, ...], given: Json, path: str, *, more: tuple[str, ...] = ()) -> Json:
        """Return the values of a POST, with defaults.

        Args:
            path: Where in the body the object is.
            more: Attributes that the caller reads itself.
        """
        known = {attribute.name for attribute in kind} | {"project_id", "tenant_id"} | set(more)
        self._refuse_unknown(given, known, path)
        values: Json = {}
        for attribute in kind:
            value = given.get(attribute.name)
            if value is None and attribute.is_mandatory:
                raise _blame(attribute.name, None, "Mandatory field missing.")
            values[attribute.name] = _fresh(attribute.default) if value is None else self.read(attribute, value)
        return values

    def put(self, kind: tuple[Attribute, ...], given: Json, path: str) -> Json:
        """Return the changes of a PUT; null means the default."""
        by_name = {attribute.name: attribute for attribute in kind if attribute.in_put}
        self._refuse_unknown(given, set(by_name), path)
        return {
            name: _fresh(by_name[name].default) if value is None else self.read(by_name[name], value)
            for name, value in given.items()
        }

    def read(self, attribute: Attribute, value: Any) -> Any:
        """Return a checked value."""
        try:
            return attribute.check(value)
        except NotThis as error:
            if error.of_body:
                raise _blame(self.argument, self.body, str(error)) from error
            raise _blame(attribute.name, value, str(error)) from error

    def read_list(self, value: Any) -> list[Json]:
        """Return a list of objects."""
        if not isinstance(value, list):
            raise _blame(self.argument, self.body, f"Value not a valid list: {value}")
        return value

    def _refuse_unknown(self, given: Json, known: set[str], path: str) -> None:
        for name in given:
            if name not in known:
                raise bad(f"Unknown attribute for argument {self.argument}.{path}: {name}")


def _fresh(default: Any) -> Any:
    return list(default) if isinstance(default, tuple) else default


def _blame(name: str, value: Any, reason: str) -> Fault:
    return bad(f"Invalid input for field/attribute {name}. Value: '{value}'. {reason}")
