"""Which edits of ``spec.bastion`` replace the server, and which fields they changed; pure.

The fingerprint covers what the user sets for the server, not what follows from the cluster: ids and credentials may
change without a new bastion (W-60). It has a part per field, so that a replacement can report its cause, and
a version: fingerprints of other versions are not compared and never cause a replacement.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from api.v1beta2.openstackcluster import Bastion

VERSION: Final = "2"
"""Increased whenever :func:`fingerprint` returns something else for the same spec."""
_IGNORED: Final = {"anti_affinity", "identity_ref", "provider_id", "tags"}
_DEFAULTS: Final[Mapping[str, Any]] = {
    "configDrive": False,
    "adminStateUp": True,
    "vnicType": "normal",
    "ovsHWOffload": False,
    "trustedVF": False,
}
"""Defaults: a field that is set to its default equals one that is left out."""
_ORDERED: Final = ("ports", "fixedIPs")
"""Lists whose order is significant."""


def fingerprint(bastion: Bastion, cluster_tags: Sequence[str]) -> str:
    """Return the version and a digest of each field that defines the server."""
    facts = _facts(bastion, cluster_tags)
    return f"{VERSION}-" + ",".join(f"{name}:{_digest(facts[name])}" for name in sorted(facts))


def is_known(fingerprint_: str) -> bool:
    """Return whether a fingerprint has the current version, so that it can be compared."""
    return fingerprint_.startswith(f"{VERSION}-")


def changed_fields(old: str, new: str) -> list[str]:
    """Return the paths of the fields in which two fingerprints differ; empty when one is of another version."""
    if not (is_known(old) and is_known(new)):
        return []
    before, after = _parts(old), _parts(new)
    return [_path(name) for name in sorted({*before, *after}) if before.get(name) != after.get(name)]


def _parts(text: str) -> dict[str, str]:
    pairs = (part.partition(":") for part in text.partition("-")[2].split(","))
    return {name: digest for name, _, digest in pairs}


def _path(name: str) -> str:
    return f"spec.bastion.{name}" if name == "availabilityZone" else f"spec.bastion.spec.{name}"


def _digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:10]


def _facts(bastion: Bastion, cluster_tags: Sequence[str]) -> dict[str, Any]:
    machine = bastion.spec.model_dump(mode="json", by_alias=True, exclude=_IGNORED) if bastion.spec else {}
    trunk = machine.pop("trunk", False)
    ports = [_port(port, i, trunk) for i, port in enumerate(machine.pop("ports", None) or [{}])]
    tags = sorted({*(bastion.spec.tags if bastion.spec else ()), *cluster_tags})
    found = _plain({**machine, "availabilityZone": bastion.availability_zone, "tags": tags})
    return {**found, "ports": ports}


def _port(port: Mapping[str, Any], index: int, trunk: bool) -> dict[str, Any]:
    """Return a port with the server's trunk setting applied, and without a name suffix that equals the default."""
    own = port.get("trunk")
    suffix = None if port.get("nameSuffix") == str(index) else port.get("nameSuffix")
    has_trunk = (trunk if own is None else own) or None
    return dict(_plain({**port, "nameSuffix": suffix, "trunk": has_trunk}))


def _plain(value: Any, name: str = "") -> Any:
    """Return a value without empty and default fields, and with unordered lists sorted."""
    if isinstance(value, Mapping):
        fields = {key: _plain(each, key) for key, each in value.items()}
        # An empty filter differs from an absent one: it matches everything.
        has_filter = fields.get("filter") == {}
        kept = {key: each for key, each in fields.items() if each not in (None, "", [], {})}
        kept |= {"filter": {}} if has_filter else {}
        return {key: each for key, each in kept.items() if key not in _DEFAULTS or each != _DEFAULTS[key]}
    if isinstance(value, list):
        items = [_plain(each) for each in value]
        return items if name in _ORDERED else sorted(items, key=lambda each: json.dumps(each, sort_keys=True))
    return value
