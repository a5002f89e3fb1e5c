"""Shape of an Event in each of the two API groups that have Events; pure.

The API server shows one object in both: ``regarding`` and ``note`` of events.k8s.io are ``involvedObject`` and
``message`` in the core group. Who reads which field is in ``docs/reference/events.md``.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from kubernetes import client

from capo import names
from capo.json_types import Json
from capo.kube import models
from capo.kube.kinds import OPENSTACK_CLUSTER, Kind

EVENT: Final = Kind("events.k8s.io", "v1", "events", "Event")
CORE_EVENT: Final = Kind("", "v1", "events", "Event")
CONTROLLER: Final = "capo-controller-manager"
MAX_NAME: Final = 253
MAX_NOTE: Final = 1024
MAX_REASON: Final = 128
MAX_INSTANCE: Final = 128
REGARDED_AS: Final[Mapping[str, str]] = {OPENSTACK_CLUSTER.kind: f"{names.GROUP}/v1beta1"}
"""Version by which readers select Events of one of our kinds, where it differs from the version that we read.

Magnum's driver uses that of the Go provider's releases. For the other kinds only ``kubectl events --for`` selects by
version, by the newest served one.
"""
_SUFFIX: Final = len(".") + 16


@dataclass(frozen=True)
class Happening:
    """An event to show.

    Args:
        regarding: a reference to the object.
        at_ns: nanoseconds since 1970; unique within a process.
        instance: name of the process.
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
        """Return what all happenings of one series have in common."""
        return self.regarding["uid"], self.reason, self.note

    @property
    def namespace(self) -> str:
        """Return the namespace of its Event: ``default`` for an object without a namespace."""
        return self.regarding["namespace"] or "default"


def reference(obj: Mapping[str, Any]) -> dict[str, str]:
    """Return a reference to an object, in the version by which readers select it."""
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

    A name that is too long is cut; all Events of an object still share its beginning.
    """
    # A label of a DNS name must not end with a hyphen or be empty.
    return f"{object_name[: MAX_NAME - _SUFFIX].rstrip('-.')}.{at_ns:016x}"


def created(kind: Kind, happening: Happening, at_ns: int) -> Json:
    """Return the Event of a first happening, for the group of ``kind``; its name contains ``at_ns``."""
    metadata = client.V1ObjectMeta(name=name(happening.regarding["name"], at_ns), namespace=happening.namespace)
    event = _core(happening, metadata) if kind == CORE_EVENT else _modern(happening, metadata)
    return {"apiVersion": kind.api_version, "kind": kind.kind, **models.to_json(event)}


def repeated(kind: Kind, happening: Happening, count: int) -> Json:
    """Return the patch that counts another happening on an Event that was created in the group of ``kind``."""
    if kind == CORE_EVENT:
        return dict(models.to_json({"count": count, "lastTimestamp": _second(happening.at_ns)}))
    series = client.EventsV1EventSeries(count=count, last_observed_time=_microsecond(happening.at_ns))
    return {"series": models.to_json(series)}


def _modern(happening: Happening, metadata: Any) -> Any:
    # The group refuses the fields of the core group: count, firstTimestamp, lastTimestamp and source.
    return client.EventsV1Event(
        metadata=metadata,
        event_time=_microsecond(happening.at_ns),
        reporting_controller=CONTROLLER,
        reporting_instance=happening.instance[:MAX_INSTANCE],
        action=happening.action,
        reason=happening.reason,
        regarding=_present(happening.regarding),
        note=happening.note,
        type=happening.type,
    )


def _core(happening: Happening, metadata: Any) -> Any:
    # As client-go's recorder of this group: with an eventTime the rules of the other group would apply.
    instance = happening.instance[:MAX_INSTANCE]
    return client.CoreV1Event(
        metadata=metadata,
        first_timestamp=_second(happening.at_ns),
        last_timestamp=_second(happening.at_ns),
        count=1,
        source=client.V1EventSource(component=CONTROLLER, host=instance),
        reporting_component=CONTROLLER,
        reporting_instance=instance,
        action=happening.action,
        reason=happening.reason,
        involved_object=_present(happening.regarding),
        message=happening.note,
        type=happening.type,
    )


def cut(note: str) -> str:
    """Return a note cut to the API server's limit in bytes."""
    data = note.encode()
    return note if len(data) <= MAX_NOTE else data[: MAX_NOTE - 3].decode(errors="ignore") + "..."


def _present(regarding: Mapping[str, str]) -> Any:
    return client.V1ObjectReference.from_dict({key: value for key, value in regarding.items() if value})


def _microsecond(at_ns: int) -> datetime.datetime:
    return _second(at_ns) + datetime.timedelta(microseconds=at_ns // 1000 % 1_000_000)


def _second(at_ns: int) -> datetime.datetime:
    return datetime.datetime.fromtimestamp(at_ns // 1_000_000_000, datetime.UTC)
