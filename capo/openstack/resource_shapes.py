"""The form that a resource in a successful answer must have before any value is shown or compared; pure.

A body in another form may be anything that the manager reaches (see :mod:`capo.openstack.foreign`): it is refused as a
whole, and the error names the first field that no service fills so.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from capo.openstack.kinds import KINDS

SINGLE: Final = frozenset(kind.body_key for kind in KINDS.values())
"""Keys under which an answer has one resource with an id."""
LISTS: Final = frozenset(kind.key for kind in KINDS.values()) | {"flavors", "images"}
"""Keys under which an answer has resources with ids."""
MAX_TEXT: Final = 1024
"""Four times the longest name: databases of services have 255 characters for it."""

_ID: Final = re.compile(r"[A-Za-z0-9_.: -]{1,255}")
"""Users choose the ids of flavors, from these characters."""
_WORD: Final = re.compile(r"[A-Za-z0-9_./ -]{0,64}")
_ADDRESS: Final = re.compile(r"[0-9A-Fa-f.:/]{0,50}")


def _matches(pattern: re.Pattern[str]) -> Callable[[Any], bool]:
    return lambda value: value is None or (isinstance(value, str) and pattern.fullmatch(value) is not None)


def _is_text(value: Any) -> bool:
    return value is None or (isinstance(value, str) and len(value) <= MAX_TEXT)


def _is_string(value: Any) -> bool:
    return value is None or isinstance(value, str)


def _is_fault(value: Any) -> bool:
    if value is None:
        return True
    return isinstance(value, Mapping) and _is_text(value.get("message")) and isinstance(value.get("code", 0), int)


def _is_texts(value: Any) -> bool:
    return value is None or (isinstance(value, list) and all(isinstance(each, str) for each in value))


def _is_mapping(value: Any) -> bool:
    return value is None or isinstance(value, Mapping)


_Rules = Mapping[str, Callable[[Any], bool]]
_COMMON: Final[_Rules] = {
    "id": lambda value: isinstance(value, int) or _matches(_ID)(value),  # a key pair's is a number
    "name": _is_text,
    **dict.fromkeys(("status", "provisioning_status", "operating_status"), _matches(_WORD)),
    "tags": _is_texts,
}
_RULES: Final[_Rules] = {
    **_COMMON,
    **dict.fromkeys(("OS-EXT-STS:task_state", "OS-EXT-STS:vm_state"), _matches(_WORD)),
    **dict.fromkeys(
        ("device_owner", "device_id", "port_id", "network_id", "request_id", "zoneName", "alias"), _is_text
    ),
    **dict.fromkeys(("floating_ip_address", "fixed_ip_address", "vip_address"), _matches(_ADDRESS)),
    "description": _is_string,  # a flavor's may have 64 KiB
    "fault": _is_fault,
    "metadata": _is_mapping,
}


def strange_field(body: Mapping[str, Any]) -> str | None:
    """Return the first field that no service fills so, None if the body is valid."""
    for key, value in body.items():
        if key in SINGLE and not isinstance(value, Mapping):
            return key
        if strange := _strange_in(key, value):
            return strange
    return _strange_of(body, _COMMON) if "id" in body else None


def _strange_in(key: str, value: Any) -> str | None:
    # Users give images fields of any name.
    rules, must_have_id = (_COMMON if key == "images" else _RULES), key in SINGLE | LISTS
    resources = [value] if isinstance(value, Mapping) else value if isinstance(value, list) else []
    for resource in resources:
        if not isinstance(resource, Mapping):
            continue
        if must_have_id and not (isinstance(resource.get("id"), str) and resource["id"]):
            return "id"
        if strange := _strange_of(resource, rules):
            return strange
    return None


def _strange_of(resource: Mapping[str, Any], rules: _Rules) -> str | None:
    return next((name for name, fits in rules.items() if name in resource and not fits(resource[name])), None)
