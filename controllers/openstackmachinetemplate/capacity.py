"""Capacity and properties of the nodes of a template, from flavor, image and root volume; pure.

Names and values that a cloud or a tenant chose are bounded: what is no plausible number is left out and reported.
Source: docs/reference/contract.md, C-75 to C-77; Compute API, "Flavor extra specs"; Image service, "Useful image
properties".
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from capo.openstack.flavor import Flavor
from capo.openstack.image import Image

MIB: Final = 2**20
GIB: Final = 2**30
MAX_VALUE: Final = 2**63 - 1
"""The largest integer that Kubernetes' quantities hold exactly."""
MAX_DIGITS: Final = 19
MAX_TOLD: Final = 5
MAX_WORD: Final = 64
ALIAS: Final = "alias:"
"""Prefix of the names of PCI aliases in the setting that maps them."""
_BINARY_UNITS: Final = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
_RESOURCES: Final = re.compile(r"resources[A-Za-z0-9_-]{0,64}:([A-Z0-9_]{1,255})")
_GPU_CLASSES: Final = frozenset({"VGPU", "PGPU"})
"""Resource classes whose missing mapping is reported; others are not devices of the node, or of no use to pods."""
_ARCHITECTURES: Final[Mapping[str, str]] = {
    "x86_64": "amd64",
    "aarch64": "arm64",
    "ppc64le": "ppc64le",
    "s390x": "s390x",
}
_WINDOWS: Final = "windows"
_SYSTEMS: Final = frozenset({"linux", _WINDOWS})


@dataclass
class Capacity:
    """Resources of one node.

    Args:
        resources: quantities by the name of the resource.
        notes: why something is left out, in words.
    """

    resources: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    @property
    def message(self) -> str:
        """What is left out and why; empty if nothing is."""
        more = len(self.notes) - MAX_TOLD
        return "; ".join([*self.notes[:MAX_TOLD], *([f"and {more} more"] if more > 0 else [])])

    def add(self, name: str, value: int | None, *, unit: int = 1) -> None:
        """Add a resource; nothing if there is none of it.

        Args:
            unit: bytes of one; 1 for what has no bytes.
        """
        if not value:
            return
        if not 0 < value * unit <= MAX_VALUE:
            self.notes.append(f"{name} is left out: the flavor or the root volume has an impossible value")
            return
        self.resources[name] = str(value) if unit == 1 else binary(value * unit)


def of(flavor: Flavor, *, root_volume_gib: int | None, mapping: Mapping[str, str]) -> Capacity:
    """Return the capacity of a node.

    Args:
        root_volume_gib: size of the root volume; None if the node boots from the flavor's disk.
        mapping: names of extended resources by resource class, or by ``alias:`` and the name of a PCI alias.
    """
    found = Capacity()
    found.add("cpu", flavor.vcpus)
    found.add("memory", flavor.ram_mib, unit=MIB)
    root_gib = root_volume_gib or flavor.disk_gib
    # kubelet's ephemeral storage is the file system of its root: the ephemeral disk if there is one, as the Go provider
    # reports, else the root disk.
    found.add("ephemeral-storage", flavor.ephemeral_gib or root_gib, unit=GIB)
    found.add("storage", root_gib, unit=GIB)
    for name, count in _devices(flavor.extra_specs or {}, mapping, found.notes).items():
        found.add(name, count)
    return found


def binary(number_of_bytes: int) -> str:
    """Return bytes as Kubernetes' canonical quantity with a binary suffix, such as ``8Gi``."""
    exponent = 0
    while number_of_bytes % 1024 == 0 and number_of_bytes and exponent < len(_BINARY_UNITS) - 1:
        number_of_bytes, exponent = number_of_bytes // 1024, exponent + 1
    return f"{number_of_bytes}{_BINARY_UNITS[exponent]}"


def _devices(extra_specs: Mapping[str, Any], mapping: Mapping[str, str], notes: list[str]) -> dict[str, int]:
    """Return the number of devices by extended resource, of those that the site has mapped to one."""
    counts: dict[str, int] = {}
    for source, value in _requested(extra_specs):
        name = mapping.get(source)
        if name is None:
            if source.startswith(ALIAS) or source in _GPU_CLASSES:
                notes.append(f"{_cut(source)} of the flavor is left out: no resource is configured for it")
        elif (count := _number(value)) is None:
            notes.append(f"{name} is left out: the flavor's {_cut(source)} is no plausible number")
        else:
            counts[name] = counts.get(name, 0) + count
    return counts


def _requested(extra_specs: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield what a flavor requests, as named in the setting, and how many of it, as written."""
    for key in sorted(extra_specs):
        value = extra_specs[key]
        if not isinstance(value, str):
            continue
        if found := _RESOURCES.fullmatch(key):
            yield found[1], value
        elif key == "pci_passthrough:alias":
            for part in value.split(","):
                alias, _, count = part.strip().rpartition(":")
                yield f"{ALIAS}{alias}", count


def _number(value: str) -> int | None:
    """Return a number of at most 19 digits."""
    text = value.strip()
    return int(text) if 0 < len(text) <= MAX_DIGITS and text.isascii() and text.isdecimal() else None


@dataclass
class NodeInfo:
    """``status.nodeInfo`` of one node.

    Args:
        values: by field; only values that Cluster API's contract has.
        notes: what is assumed, and why something is left out, in words.
    """

    values: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    @property
    def message(self) -> str:
        """What is assumed or left out; empty if nothing is."""
        return "; ".join(self.notes)

    def add(self, name: str, value: str | None, *, said: str, default: str | None, source: str) -> None:
        """Add a field; what nothing states is assumed, what is unknown is left out.

        Args:
            value: what was found.
            said: what flavor and image state about it; empty for nothing.
            source: where it would be stated, for the note.
        """
        if value:
            self.values[name] = value
        elif said:
            self.notes.append(f"{name} is left out: {_cut(said)} is not supported")
        elif default:
            # The autoscaler takes a missing field as an empty label, not as its own default.
            self.values[name] = default
            self.notes.append(f"{name} {default} is assumed: {source} is not set")


def node_info(flavor: Flavor | None, image: Image, *, defaults: Mapping[str, str]) -> NodeInfo:
    """Return ``status.nodeInfo``.

    Args:
        flavor: None if it is not known.
        defaults: values by field, assumed if neither image nor flavor states any.
    """
    found = NodeInfo()
    traits = (flavor.extra_specs if flavor else None) or {}
    required, excluded = _traits(traits, "required"), _traits(traits, "forbidden")
    architecture = _ARCHITECTURES.get(image.architecture.lower()) or (required[0] if len(required) == 1 else None)
    default = defaults.get("architecture")
    found.add(
        "architecture",
        architecture,
        said=image.architecture or " and ".join(required),
        default=None if default in excluded else default,
        source="hw_architecture of the image",
    )
    distribution = image.os_distro.lower()
    system = image.os_type.lower() or (distribution if distribution == _WINDOWS else "")
    found.add(
        "operatingSystem",
        system if system in _SYSTEMS else None,
        said=system,
        default=defaults.get("operatingSystem"),
        source="os_type of the image",
    )
    return found


def _traits(extra_specs: Mapping[str, Any], wanted: str) -> list[str]:
    """Return the architectures whose trait a flavor requires or forbids, sorted."""
    return sorted(
        architecture
        for name, architecture in _ARCHITECTURES.items()
        if extra_specs.get(f"trait:HW_ARCH_{name.upper()}") == wanted
    )


def _cut(text: str) -> str:
    return text if len(text) <= MAX_WORD else f"{text[:MAX_WORD]}..."
