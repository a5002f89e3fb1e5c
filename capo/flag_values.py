"""Values of flags: what their texts mean, and which are refused.

Each function raises ValueError whose message completes "... is not".
"""

from __future__ import annotations

import ipaddress
import os
import re
from collections.abc import Callable, Mapping
from typing import Final

from capo import tls

SCALE_FROM_ZERO: Final = "AutoScaleFromZero"
GATES: Final[Mapping[str, bool]] = {"PriorityQueue": True, SCALE_FROM_ZERO: True}
_BETA: Final = frozenset({"PriorityQueue"})
_UNITS_BYTES: Final = {"": 1, "Ki": 2**10, "Mi": 2**20, "Gi": 2**30}
STORAGE_VERSION_MIGRATION: Final = "StorageVersionMigration"
CLEANUP_MANAGED_FIELDS: Final = "CleanupManagedFields"
MIGRATION_PHASES: Final = frozenset({STORAGE_VERSION_MIGRATION, CLEANUP_MANAGED_FIELDS})
MAX_FLAVOR_RESOURCES: Final = 64
NODE_INFO: Final[Mapping[str, tuple[str, ...]]] = {
    "architecture": ("amd64", "arm64", "ppc64le", "s390x"),
    "operatingSystem": ("linux", "windows"),
}
"""Fields of ``status.nodeInfo`` of a template, and their values."""
_REQUESTED: Final = re.compile(r"[A-Z0-9_]{1,255}|alias:[^,=\s]{1,255}")
_SUBDOMAIN: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_EXTENDED_RESOURCE: Final = re.compile(
    r"(?=[^/]{1,253}/)[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*"
    r"/[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
)
"""Source: Kubernetes, "Extended resources": a qualified name with a domain."""


def boolean(text: str) -> bool:
    """Return the value of a switch in the spellings that Go's ``strconv.ParseBool`` takes."""
    known = {"1": True, "t": True, "true": True, "0": False, "f": False, "false": False}
    if text.lower() not in known:
        raise ValueError("true or false")
    return known[text.lower()]


def integer(text: str) -> int:
    """Return a whole number with or without a sign."""
    if not re.fullmatch(r"[+-]?\d+", text):
        raise ValueError("a whole number")
    return int(text)


def at_least(least: int, most: int | None = None) -> Callable[[str], int]:
    """Return a parser of whole numbers from ``least`` to ``most``, both included."""

    def parse(text: str) -> int:
        value = integer(text)
        if value < least or (most is not None and value > most):
            raise ValueError(f"a whole number from {least}" + (f" to {most}" if most is not None else " up"))
        return value

    return parse


def size_bytes(text: str) -> int:
    """Return the bytes of a size in the spelling of Kubernetes, such as ``32Mi``."""
    number, unit = (text[:-2], text[-2:]) if text[-2:] in _UNITS_BYTES else (text, "")
    if not number.isascii() or not number.isdecimal() or len(number) > 12:
        raise ValueError("a size such as 512Ki, 32Mi or 1Gi")
    return int(number) * _UNITS_BYTES[unit]


def response_size(text: str) -> int:
    """Return the bytes of a size of 1 MiB or more: the lists of a small cloud fit in it."""
    if (size := size_bytes(text)) < 2**20:
        raise ValueError("a size of at least 1Mi")
    return size


def networks(text: str) -> tuple[ipaddress.IPv4Network | ipaddress.IPv6Network, ...]:
    """Return the networks of a list of CIDRs."""
    try:
        return tuple(ipaddress.ip_network(name) for name in names(text))
    except ValueError as error:
        raise ValueError(f"CIDRs, separated by commas: {error}") from None


def number(text: str) -> float:
    """Return a number with or without a fraction."""
    try:
        return float(text)
    except ValueError:
        raise ValueError("a number") from None


def one_of(*known: str) -> Callable[[str], str]:
    """Return a parser that accepts these texts alone."""

    def parse(text: str) -> str:
        if text not in known:
            raise ValueError("one of " + ", ".join(known))
        return text

    return parse


def file(text: str) -> str:
    """Return the path of a file that this process may read; empty: none."""
    if text and not os.access(text, os.R_OK):
        raise ValueError("a file that can be read")
    return text


def address(text: str) -> str:
    """Return an address to listen on, with its port; empty or ``0``: none."""
    if text not in ("", "0") and not re.fullmatch(r".*:\d{1,5}", text):
        raise ValueError("host:port or :port")
    return text


def object_name(text: str) -> str:
    """Return a name that Kubernetes accepts for most objects, a DNS subdomain (RFC 1123)."""
    if len(text) > 253 or not _SUBDOMAIN.fullmatch(text):
        raise ValueError("a name of a Kubernetes object")
    return text


def names(text: str) -> tuple[str, ...]:
    """Return the parts between commas, without blanks around them and without empty ones."""
    return tuple(filter(None, (name.strip() for name in text.split(","))))


def cipher_suites(text: str) -> tuple[str, ...]:
    """Return the IANA names of cipher suites; those of TLS 1.3 are accepted and have no effect."""
    suites = names(text)
    if not set(suites) <= tls.CIPHER_SUITES.keys() | tls.TLS13_SUITES:
        raise ValueError("a list out of " + ", ".join([*tls.CIPHER_SUITES, *sorted(tls.TLS13_SUITES)]))
    return suites


def phases(text: str) -> tuple[str, ...]:
    """Return phases of the storage version migration."""
    found = names(text)
    if not set(found) <= MIGRATION_PHASES:
        raise ValueError("one of " + ", ".join(sorted(MIGRATION_PHASES)))
    return found


def feature_gates(text: str) -> Mapping[str, bool]:
    """Return all gates with their values; single names override ``AllAlpha`` and ``AllBeta``."""
    wanted: dict[str, bool] = {}
    for pair in names(text):
        name, _, value = pair.partition("=")
        if name not in (*GATES, "AllAlpha", "AllBeta"):
            raise ValueError(f"name=true or name=false with a name out of {', '.join(GATES)}, AllAlpha, AllBeta")
        wanted[name] = boolean(value)
    group = {name: "AllBeta" if name in _BETA else "AllAlpha" for name in GATES}
    return {name: wanted.get(name, wanted.get(group[name], default)) for name, default in GATES.items()}


def flavor_resources(text: str) -> tuple[tuple[str, str], ...]:
    """Return names of extended resources by what a flavor requests."""
    found: dict[str, str] = {}
    for pair in names(text):
        source, _, resource = pair.rpartition("=")
        if not _REQUESTED.fullmatch(source) or not _EXTENDED_RESOURCE.fullmatch(resource):
            raise ValueError("a list of CLASS=domain/name and alias:NAME=domain/name, such as VGPU=nvidia.com/gpu")
        found[source] = resource
    if len(found) > MAX_FLAVOR_RESOURCES:
        raise ValueError(f"a list of at most {MAX_FLAVOR_RESOURCES} entries")
    return tuple(found.items())


def node_info_defaults(text: str) -> tuple[tuple[str, str], ...]:
    """Return values of nodes by field of ``status.nodeInfo``."""
    found: dict[str, str] = {}
    for pair in names(text):
        name, _, value = pair.partition("=")
        if value not in NODE_INFO.get(name, ()):
            known = "; ".join(f"{name} out of {', '.join(values)}" for name, values in NODE_INFO.items())
            raise ValueError(f"a list of field=value, {known}")
        found[name] = value
    return tuple(found.items())
