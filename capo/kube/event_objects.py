"""What an Event looks like in each of the two API groups that have Events; pure.

The API server shows one object in both: ``regarding`` and ``note`` of events.k8s.io are ``involvedObject`` and
``message`` in the core group. Who reads which field is in ``docs/reference/events.md``.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from capo import names
from capo.kube.kinds import OPENSTACK_CLUSTER, Kind

Object = dict[str, Any]

EVENT: Final = Kind("events.k8s.io", "v1", "events", "Event")
CORE_EVENT: Final = Kind("", "v1", "events", "Event")
CONTROLLER: Final = "capo-controller-manager"
MAX_NAME: Final = 253
MAX_NOTE: Final = 1024
MAX_REASON: Final = 128
MAX_INSTANCE: Final = 128
REGARDED_AS: Final[Mapping[str, str]] = {OPENSTACK_CLUSTER.kind: f"{names.GROUP}/v1beta1"}
"""The version in which readers select Events of a kind of ours, where it is not the one that we read.

Magnum's driver asks for that of the Go provider's releases. Of the other kinds only ``kubectl events --for`` selects by
version, by the newest one that is served.
"""
_SUFFIX: Final = len(".") + 16


@dataclass(frozen=True)
class Happening:
    """Something to show as an Event.

    Args:
        regarding: a reference to the object.
        at_ns: nanoseconds since 1970; another one for each happening of a process.
        instance: names the process.
    """

    regarding: Mapping[str, str]
    type: str
    reason: str
    note: str
    action: str
    at_ns: int
    instance: str

    @property
    def identity(self) -> tuple[str, str, str]:
        """Return what the happenings of one series have in common."""
        return self.regarding["uid"], self.reason, self.note

    @property
    def namespace(self) -> str:
        """Return where its Event belongs: that of an object without a namespace is in ``default``."""
        return self.regarding["namespace"] or "default"


def reference(obj: Mapping[str, Any]) -> dict[str, str]:
    """Return a reference to an object, in the version in which readers look for it."""
    metadata = obj["metadata"]
    kind, api_version = obj.get("kind", ""), obj.get("apiVersion", "")
    is_ours = api_version.startswith(f"{names.GROUP}/")
    return {
        "apiVersion": REGARDED_AS.get(kind, api_version) if is_ours else api_version,
        "kind": kind,
        "namespace": metadata.get("namespace", ""),
        "name": metadata["name"],
        "uid": metadata.get("uid", ""),
    }


def name(object_name: str, at_ns: int) -> str:
    """Return ``<object name>.<hex of the nanoseconds>``, by which Events of an object sort by time.

    A name that is too long is cut; it still begins alike for all Events of the object.
    """
    # A label of a DNS name does not end with a hyphen, and is not empty.
    return f"{object_name[: MAX_NAME - _SUFFIX].rstrip('-.')}.{at_ns:016x}"


def created(kind: Kind, happening: Happening, at_ns: int) -> Object:
    """Return the Event of a first happening, for the group of ``kind``; ``at_ns`` makes its name."""
    metadata = {"name": name(happening.regarding["name"], at_ns), "namespace": happening.namespace}
    body = _core(happening) if kind == CORE_EVENT else _modern(happening)
    return {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata, **body}


def repeated(kind: Kind, happening: Happening, count: int) -> Object:
    """Return the patch that counts another happening on an Event that was created in the group of ``kind``."""
    if kind == CORE_EVENT:
        return {"count": count, "lastTimestamp": _second(happening.at_ns)}
    return {"series": {"count": count, "lastObservedTime": _microsecond(happening.at_ns)}}


def _modern(happening: Happening) -> Object:
    # The group refuses the fields of the core group: count, firstTimestamp, lastTimestamp and source.
    return {
        "eventTime": _microsecond(happening.at_ns),
        "reportingController": CONTROLLER,
        "reportingInstance": happening.instance[:MAX_INSTANCE],
        "action": happening.action,
        "reason": happening.reason,
        "regarding": _present(happening.regarding),
        "note": happening.note,
        "type": happening.type,
    }


def _core(happening: Happening) -> Object:
    # As client-go's recorder of this group: with an eventTime the other group's rules would apply.
    instance = happening.instance[:MAX_INSTANCE]
    return {
        "firstTimestamp": _second(happening.at_ns),
        "lastTimestamp": _second(happening.at_ns),
        "count": 1,
        "source": {"component": CONTROLLER, "host": instance},
        "reportingComponent": CONTROLLER,
        "reportingInstance": instance,
        "action": happening.action,
        "reason": happening.reason,
        "involvedObject": _present(happening.regarding),
        "message": happening.note,
        "type": happening.type,
    }


def cut(note: str) -> str:
    """Return a note of at most as many bytes as the API server takes."""
    data = note.encode()
    return note if len(data) <= MAX_NOTE else data[: MAX_NOTE - 3].decode(errors="ignore") + "..."


def _present(regarding: Mapping[str, str]) -> dict[str, str]:
    return {key: value for key, value in regarding.items() if value}


def _microsecond(at_ns: int) -> str:
    return f"{_at(at_ns):%Y-%m-%dT%H:%M:%S}.{at_ns // 1000 % 1_000_000:06d}Z"


def _second(at_ns: int) -> str:
    return f"{_at(at_ns):%Y-%m-%dT%H:%M:%SZ}"


def _at(at_ns: int) -> datetime.datetime:
    return datetime.datetime.fromtimestamp(at_ns // 1_000_000_000, datetime.UTC)
