"""Checks and conversions of single values, with Neutron's wording.

A check returns the converted value, or raises `Invalid` (the attribute's name is put before its reason) or a `Fault`.
"""

from __future__ import annotations

import ipaddress
import re
import uuid
from collections.abc import Callable, Collection
from typing import Any, Final, TypeAlias

from capo.simulator.neutron.service import invalid_input
from capo.simulator.routing import Fault

Check: TypeAlias = Callable[[Any], Any]
TRUE: Final = {"true", "1"}
FALSE: Final = {"false", "0"}
MAC: Final = re.compile(r"(?:[0-9a-f]{2}:){5}[0-9a-f]{2}")


class Invalid(Exception):  # noqa: N818 - becomes a Fault once the attribute is known
    """A value is not valid for its attribute."""


def anything(value: Any) -> Any:
    return value


def boolean(value: Any) -> bool:
    text = str(value).lower()
    if value is not None and text in TRUE:
        return True
    if value is not None and text in FALSE:
        return False
    raise invalid_input(f"'{value}' cannot be converted to boolean.")


def string(limit: int) -> Check:
    def check(value: Any) -> str:
        if not isinstance(value, str):
            raise Invalid(f"'{value}' is not a valid string")
        if len(value) > limit:
            raise Invalid(f"'{value}' exceeds maximum length of {limit}")
        return value

    return check


def is_uuid(value: Any) -> bool:
    """Return whether Neutron accepts the value as a UUID: dashes and case do not matter."""
    try:
        return str(uuid.UUID(value)).replace("-", "") == str(value).lower().replace("-", "")
    except (ValueError, AttributeError, TypeError):
        return False


def uuid_text(value: Any) -> str:
    if not is_uuid(value):
        raise Invalid(f"'{value}' is not a valid UUID")
    return str(value)


def or_none(check: Check) -> Check:
    return lambda value: None if value is None else check(value)


def one_of(values: Collection[Any], convert: Check = anything) -> Check:
    def check(value: Any) -> Any:
        converted = convert(value)
        if converted not in values:
            raise Invalid(f"{converted} is not in valid_values")
        return converted

    return check


def integer(value: Any) -> int:
    try:
        return int(value)
    except (TypeError, ValueError) as error:
        raise invalid_input(f"'{value}' is not an integer.") from error


def non_negative(value: Any) -> int:
    number = integer(value)
    if number < 0:
        raise Invalid(f"'{number}' should be non-negative")
    return number


def ip_text(value: Any) -> str:
    try:
        return str(ipaddress.ip_address(value))
    except ValueError as error:
        raise Invalid(f"'{value}' is not a valid IP address") from error


def cidr(value: Any) -> str:
    try:
        return str(ipaddress.ip_network(value, strict=False))
    except (ValueError, TypeError) as error:
        raise invalid_input(f"{value} is not in a CIDR format.") from error


NO_MAC: Final = frozenset({"00:00:00:00:00:00", "ff:ff:ff:ff:ff:ff"})


def mac(value: Any) -> str:
    text = str(value).lower().replace("-", ":")
    if not MAC.fullmatch(text) or text in NO_MAC:
        raise Invalid(f"'{value}' is not a valid MAC address")
    return text


def list_of(check: Check, *, none_is_empty: bool = False) -> Check:
    def check_list(value: Any) -> list[Any]:
        if value is None and none_is_empty:
            return []
        if not isinstance(value, list):
            raise Invalid(f"'{value}' is not a list")
        return [check(item) for item in value]

    return check_list


def unique(values: list[Any]) -> None:
    """Refuse a list with duplicates."""
    twice = [value for value in dict.fromkeys(values) if values.count(value) > 1]
    if twice:
        raise Invalid(f"Duplicate items in the list: '{', '.join(map(str, twice))}'")


def uuid_list(value: Any) -> list[str]:
    found: list[str] = list_of(uuid_text, none_is_empty=True)(value)
    unique(found)
    return found


def tags(value: Any) -> list[str]:
    found: list[str] = list_of(string(255))(value)
    unique(found)
    return found


def nameservers(value: Any) -> list[str]:
    def check(item: Any) -> str:
        try:
            return ip_text(item)
        except Invalid as error:
            raise Invalid(f"'{item}' is not a valid nameserver. {error}") from error

    found: list[str] = list_of(check, none_is_empty=True)(value)
    unique(found)
    return found


def host_routes(value: Any) -> list[dict[str, str]]:
    def check(item: Any) -> dict[str, str]:
        if not isinstance(item, dict) or set(item) != {"destination", "nexthop"}:
            raise Invalid(f"Invalid data format for hostroute: '{item}'")
        return {"destination": cidr(item["destination"]), "nexthop": ip_text(item["nexthop"])}

    found: list[dict[str, str]] = list_of(check, none_is_empty=True)(value)
    return found


def pools(value: Any) -> list[dict[str, str]]:
    def check(item: Any) -> dict[str, str]:
        if not isinstance(item, dict) or set(item) != {"start", "end"}:
            raise Invalid(f"Invalid data format for IP pool: '{item}'")
        return {"start": ip_text(item["start"]), "end": ip_text(item["end"])}

    found: list[dict[str, str]] = list_of(check)(value)
    return found


def fixed_ips(value: Any) -> list[dict[str, str]]:
    if not isinstance(value, list):
        raise Invalid(f"Invalid data format for fixed IP: '{value}'")
    found: list[dict[str, str]] = []
    for item in value:
        if not isinstance(item, dict):
            raise Invalid(f"Invalid data format for fixed IP: '{item}'")
        entry: dict[str, str] = {}
        if item.get("ip_address") is not None:
            entry["ip_address"] = ip_text(item["ip_address"])
            if any(entry["ip_address"] == other.get("ip_address") for other in found):
                raise Invalid(f"Duplicate IP address '{entry['ip_address']}'")
        if item.get("subnet_id") is not None:
            entry["subnet_id"] = uuid_text(item["subnet_id"])
        found.append(entry)
    return found


def address_pairs(value: Any) -> list[dict[str, Any]]:
    if value is None:
        return []
    if not isinstance(value, list):
        raise Fault(400, "Allowed address pairs must be a list.", "HTTPBadRequest")
    found: list[dict[str, Any]] = []
    for item in value:
        if "ip_address" not in item:
            raise Fault(400, "AllowedAddressPair must contain ip_address", "AllowedAddressPairsMissingIP")
        entry = {"mac_address": item.get("mac_address"), "ip_address": _address_or_cidr(item["ip_address"])}
        if entry["mac_address"] is not None:
            entry["mac_address"] = mac(entry["mac_address"])
        if entry in found:
            raise Fault(
                400,
                "Request contains duplicate address pair: mac_address {mac_address} ip_address {ip_address}.".format(
                    **entry
                ),
                "DuplicateAddressPairInRequest",
            )
        extra = set(item) - {"mac_address", "ip_address"}
        if extra:
            raise Fault(400, f"Unrecognized attribute(s) '{', '.join(sorted(extra))}'", "HTTPBadRequest")
        found.append(entry)
    return found


def _address_or_cidr(value: Any) -> str:
    try:
        network = ipaddress.ip_network(value, strict=False)
    except ValueError as error:
        raise Fault(400, f"'{value}' is not a valid IP address", "HTTPBadRequest") from error
    return str(value) if "/" in str(value) else str(network.network_address)
