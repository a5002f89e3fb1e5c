"""Which edits of an object that owns machines replace them; pure.

Source: Cluster API book, "Updating Machine Infrastructure and Bootstrap Templates" and "In-place propagation of
changes affecting Kubernetes objects only"; the definitions of MachineDeployment and KubeadmControlPlane.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from capo.contract import references
from capo.json_types import Object
from capo.kube.kinds import KUBEADM_CONTROL_PLANE, MACHINE_DEPLOYMENT, Kind

_ROLLED_OUT: Final = (
    ("spec", "version"),
    ("spec", "kubeadmConfigSpec"),
    ("spec", "machineTemplate", "infrastructureRef"),
    ("spec", "machineTemplate", "spec", "infrastructureRef"),
    ("spec", "template", "spec", "infrastructureRef"),
    ("spec", "template", "spec", "bootstrap"),
    ("spec", "template", "spec", "version"),
    ("spec", "template", "spec", "failureDomain"),
)
"""Fields whose edit replaces machines; Cluster API changes the others in place."""
_AFTER: Final = (("spec", "rollout", "after"), ("spec", "rolloutAfter"))
_STRATEGY: Final = (("spec", "rollout", "strategy", "type"), ("spec", "strategy", "type"))
_KNOWN: Final = frozenset({"replicas", "version", "machineTemplate", "rollout", "rolloutAfter"})
"""Fields of a control plane of any kind that are known here."""


@dataclass(frozen=True)
class Rollout:
    """What an edit means for the machines of an owner.

    Args:
        edits: what replaces machines, in words; empty: nothing does.
        created_before: only machines that were created before this time are replaced; None: all of them.
        unknown: what is not known of the edit, in words; empty if it is.
    """

    edits: str = ""
    created_before: dt.datetime | None = None
    unknown: str = ""

    def replaces(self, machine: Object) -> bool:
        """Return whether a machine is replaced."""
        if not self.edits or self.created_before is None:
            return bool(self.edits)
        created = _time(str(machine["metadata"].get("creationTimestamp")))
        return created is None or created < self.created_before


def of_edit(kind: Kind, before: Object | None, after: Object, *, now_s: float) -> Rollout:
    """Return the rollout of an edit.

    Args:
        before: None for an owner that is new.
        now_s: seconds since 1970.
    """
    if before is None or _is_held(kind, after):
        return Rollout()
    unknown = _unknown(kind, before, after)
    if edits := list(_edits(before, after)):
        return Rollout(", ".join(edits), unknown=unknown)
    path, text = _rollout_after(before, after)
    if not text:
        return Rollout(unknown=unknown)
    due = _time(text)
    if due is None:
        return Rollout(unknown=f"the API server would refuse {path}: {text} is no time")
    if due.timestamp() > now_s:
        return Rollout(unknown=unknown or f"its machines are replaced after {text}")
    return Rollout(f"{path} {text}", due, unknown)


def _is_held(kind: Kind, owner: Object) -> bool:
    """Return whether no edit replaces a machine."""
    if kind != MACHINE_DEPLOYMENT:
        return False
    return _at(owner, ("spec", "paused")) is True or any(_at(owner, path) == "OnDelete" for path in _STRATEGY)


def _unknown(kind: Kind, before: Object, after: Object) -> str:
    if kind == MACHINE_DEPLOYMENT:
        is_resumed = _at(before, ("spec", "paused")) is True
        return "what was edited while it was paused is not planned" if is_resumed else ""
    if kind == KUBEADM_CONTROL_PLANE:
        return ""
    old, new = before.get("spec") or {}, after.get("spec") or {}
    others = sorted(name for name in {**old, **new}.keys() - _KNOWN if old.get(name) != new.get(name))
    fields = ", ".join(f"spec.{name}" for name in others)
    return f"whether it replaces machines for {fields} is not planned" if fields else ""


def _rollout_after(before: Object, after: Object) -> tuple[str, str]:
    """Return the place and the value of the time of a rollout that is new; empty if there is none."""
    found = ((".".join(path), str(_at(after, path))) for path in _AFTER if _at(after, path) != _at(before, path))
    return next(((path, text) for path, text in found if text != "None"), ("", ""))


def _edits(before: Object, after: Object) -> Iterator[str]:
    for path in _ROLLED_OUT:
        old, new = _at(before, path), _at(after, path)
        if _compared(path, old) != _compared(path, new):
            words = f" {old['name']} -> {new['name']}" if _are_named(old, new) else " changed"
            yield f"{'.'.join(path)}{words}"


def _are_named(old: Any, new: Any) -> bool:
    both = (old, new)
    return all(isinstance(each, Mapping) and "name" in each for each in both) and old["name"] != new["name"]


def _compared(path: tuple[str, ...], value: Any) -> Any:
    """Return what Cluster API compares of a value.

    Its webhooks add the namespace of a reference and the v of a version; the version of a reference is not compared.
    """
    if path[-1] == "version" and value:
        return f"v{str(value).removeprefix('v')}"
    if not isinstance(value, Mapping):
        return value
    if value.keys() >= {"kind", "name"}:
        return (references.group_of(value), value["kind"], value["name"])
    return {name: _compared((*path, name), each) for name, each in value.items()}


def _at(obj: Object, path: tuple[str, ...]) -> Any:
    value: Any = obj
    for name in path:
        value = value.get(name) if isinstance(value, Mapping) else None
    return value


def _time(text: str) -> dt.datetime | None:
    """Return a time as the API server writes it, None if it is none."""
    try:
        found = dt.datetime.fromisoformat(text)
    except ValueError:
        return None
    return found if found.tzinfo else None
