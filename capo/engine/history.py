"""Detects that the API server's state is older than before, as after etcd was restored from a backup; pure.

A list and a GET without ``resourceVersion`` are consistent: they return at least what was known before they were sent.
If they return less, either etcd was restored or a server breaks that promise and answers from a stale cache. The resync
asks again to distinguish the two; this module compares.

Source: Kubernetes API Concepts, "Resource versions"; they are comparable within a kind (KEP-5504).
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from capo.json_types import Object
from capo.kube.client import Snapshot


class Known(NamedTuple):
    """The last known version of an object."""

    uid: str
    version: int


@dataclass(frozen=True)
class Mark:
    """The known state of a kind at one moment.

    Args:
        newest: the highest resource version of the kind that the API server ever returned.
        objects: by namespace and name.
        deleted: uids of deleted objects.
    """

    newest: int
    objects: Mapping[tuple[str, str], Known]
    deleted: Container[str]


@dataclass(frozen=True)
class Witness:
    """An object of which a list returns an older state than was known when the list began.

    Args:
        version: the known one; None: the object was known to be deleted.
    """

    namespace: str
    name: str
    uid: str
    version: int | None

    def agrees(self, fresh: Object | None) -> bool:
        """Return whether a GET confirms that the object is back at an older state."""
        is_same = fresh is not None and fresh["metadata"]["uid"] == self.uid
        if self.version is None:
            return is_same
        return not is_same or (fresh is not None and version_of(fresh) < self.version)


def went_back(mark: Mark, listing: Snapshot) -> bool:
    """Return whether a list that began after the mark is of an older state."""
    return int(listing.resource_version) < mark.newest or next(witnesses(mark, listing), None) is not None


def witnesses(mark: Mark, listing: Snapshot) -> Iterator[Witness]:
    """Yield the objects of which a list that began after the mark returns an older state than was known."""
    listed = {ident_of(item): item for item in listing.items}
    for ident, item in listed.items():
        if (uid := item["metadata"]["uid"]) in mark.deleted:
            yield Witness(*ident, uid, None)
    for ident, known in mark.objects.items():
        shown = listed.get(ident)
        if shown is None or shown["metadata"]["uid"] != known.uid:
            is_older = known.version > int(listing.resource_version)
        else:
            is_older = version_of(shown) < known.version
        if is_older:
            yield Witness(*ident, known.uid, known.version)


def ident_of(obj: Object) -> tuple[str, str]:
    """Return namespace and name."""
    return obj["metadata"].get("namespace") or "", obj["metadata"]["name"]


def version_of(obj: Object) -> int:
    """Return the resource version of an object; 0 if it has none."""
    # Comparable as numbers: Kubernetes documents it since 1.35 (KEP-5504), and etcd's revisions always were.
    return int(obj["metadata"].get("resourceVersion") or 0)
