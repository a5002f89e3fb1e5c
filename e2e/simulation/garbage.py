"""The garbage collector and the namespace controller of kube-controller-manager.

Source: ``k8s.io/kubernetes/pkg/controller/garbagecollector``. An owner is looked up by kind and name, and its uid
must be that of the reference: an owner that is missing in a restored etcd is absent. A reference to a kind that is not
served, or from a cluster-scoped object to a namespaced one, has no effect.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from capo.json_types import Json
from capo.kube.kinds import NAMESPACE, Key, Kind
from e2e.simulation.metadata import FOREGROUND, ORPHAN
from e2e.simulation.registry import DeleteOptions, Registry, Target
from e2e.simulation.storage import Stored, path_of


@dataclass
class _Owners:
    """The references of one object, by the state of the owner."""

    solid: list[Json] = field(default_factory=list)
    absent: list[Json] = field(default_factory=list)
    waiting: list[Json] = field(default_factory=list)
    unknown: list[Json] = field(default_factory=list)


def collect(registry: Registry, served: Iterable[Kind], *, limit: int | None = None) -> list[Key]:
    """Check every object once; return those that were written or deleted."""
    kinds = tuple(served)
    by_name = {(kind.group, kind.kind): kind for kind in kinds}
    done: list[Key] = []
    for kind, found in _concerned(registry, kinds):
        if limit is not None and len(done) >= limit:
            break
        key = _key(kind, found)
        if registry.storage.find(kind, path_of(key.namespace, key.name)) is not found:
            continue  # written by this very round
        if _attend(registry, by_name, key, found):
            done.append(key)
    return done


def finish_namespaces(registry: Registry, served: Iterable[Kind]) -> list[Key]:
    """Delete the objects of namespaces that are being deleted; finish those that are empty."""
    done: list[Key] = []
    kinds = tuple(served)
    for namespace in list(registry.storage.listing(NAMESPACE)):
        name = namespace.metadata["name"]
        if "deletionTimestamp" not in namespace.metadata:
            continue
        content = [key for key, _ in _objects(registry, kinds) if key.namespace == name]
        for key in content:
            before = registry.storage.version
            registry.delete(_target(key), DeleteOptions(propagation="Background"))
            if registry.storage.version > before:
                done.append(key)
        if not content:
            registry.finish_namespace(name)
            done.append(Key(NAMESPACE, "", name))
    return done


def _concerned(registry: Registry, kinds: Iterable[Kind]) -> list[tuple[Kind, Stored]]:
    """Return the objects that have owners or are being deleted."""
    return [
        (kind, each)
        for kind in kinds
        for each in registry.storage.listing(kind)
        if "ownerReferences" in each.metadata or "deletionTimestamp" in each.metadata
    ]


def _objects(registry: Registry, kinds: Iterable[Kind]) -> Iterator[tuple[Key, Stored]]:
    for kind in kinds:
        for each in registry.storage.listing(kind):
            yield _key(kind, each), each


def _attend(registry: Registry, by_name: dict[tuple[str, str], Kind], key: Key, found: Stored) -> bool:
    """Process one object; return whether it was written or deleted."""
    metadata = found.metadata
    if "deletionTimestamp" in metadata:
        finalizers = metadata.get("finalizers") or []
        if ORPHAN in finalizers:
            return _orphan(registry, by_name, key, found)
        return FOREGROUND in finalizers and _finish_foreground(registry, by_name, key, found)
    if not metadata.get("ownerReferences"):
        return False
    owners = _owners(registry, by_name, key, metadata["ownerReferences"])
    if owners.unknown:
        return False  # no mapping for the kind: the real one retries later
    if owners.solid:
        gone = [*owners.absent, *owners.waiting]
        return bool(gone) and _drop_references(registry, key, found, {owner["uid"] for owner in gone})
    propagation = "Background"
    if owners.waiting and any(_dependents(registry, by_name.values(), metadata["uid"])):
        propagation = "Foreground"
    elif ORPHAN in (metadata.get("finalizers") or []):
        propagation = "Orphan"
    elif FOREGROUND in (metadata.get("finalizers") or []):
        propagation = "Foreground"
    registry.delete(_target(key), DeleteOptions(uid=metadata["uid"], propagation=propagation))
    return True


def _owners(registry: Registry, by_name: dict[tuple[str, str], Kind], key: Key, references: list[Json]) -> _Owners:
    owners = _Owners()
    for reference in references:
        kind = by_name.get((reference["apiVersion"].rpartition("/")[0], reference["kind"]))
        if kind is None or (kind.is_namespaced and not key.kind.is_namespaced):
            owners.unknown.append(reference)
            continue
        owner = registry.storage.find(kind, path_of(key.namespace if kind.is_namespaced else "", reference["name"]))
        if owner is None or owner.metadata["uid"] != reference["uid"]:
            owners.absent.append(reference)
        elif _waits_for_dependents(owner.metadata):
            owners.waiting.append(reference)
        else:
            owners.solid.append(reference)
    return owners


def _finish_foreground(registry: Registry, by_name: dict[tuple[str, str], Kind], key: Key, found: Stored) -> bool:
    """Finish an object whose dependents are deleted; delete the remaining dependents."""
    if any(
        _blocks(dependent, found) for _, dependent in _dependents(registry, by_name.values(), found.metadata["uid"])
    ):
        return False
    return _drop_finalizer(registry, key, FOREGROUND)


def _orphan(registry: Registry, by_name: dict[tuple[str, str], Kind], key: Key, found: Stored) -> bool:
    uid = found.metadata["uid"]
    for dependent, stored in list(_dependents(registry, by_name.values(), uid)):
        _drop_references(registry, dependent, stored, {uid})
    return _drop_finalizer(registry, key, ORPHAN)


def _dependents(registry: Registry, kinds: Iterable[Kind], uid: str) -> Iterator[tuple[Key, Stored]]:
    for key, each in _objects(registry, kinds):
        if any(reference["uid"] == uid for reference in each.metadata.get("ownerReferences") or ()):
            yield key, each


def _blocks(dependent: Stored, owner: Stored) -> bool:
    uid = owner.metadata["uid"]
    references = dependent.metadata["ownerReferences"]
    return any(reference["uid"] == uid and reference.get("blockOwnerDeletion") for reference in references)


def _waits_for_dependents(metadata: dict[str, Any]) -> bool:
    return "deletionTimestamp" in metadata and FOREGROUND in (metadata.get("finalizers") or [])


def _drop_references(registry: Registry, key: Key, found: Stored, uids: set[str]) -> bool:
    kept = [one for one in found.metadata["ownerReferences"] if one["uid"] not in uids]

    def change(obj: Json) -> Json:
        return {**obj, "metadata": {**obj["metadata"], "ownerReferences": kept}}

    registry.update(_target(key), change)
    return True


def _drop_finalizer(registry: Registry, key: Key, finalizer: str) -> bool:
    def change(obj: Json) -> Json:
        kept = [one for one in obj["metadata"]["finalizers"] if one != finalizer]
        return {**obj, "metadata": {**obj["metadata"], "finalizers": kept}}

    registry.update(_target(key), change)
    return True


def _key(kind: Kind, stored: Stored) -> Key:
    return Key(kind, stored.metadata.get("namespace", ""), stored.metadata["name"])


def _target(key: Key) -> Target:
    return Target(key.kind, key.namespace, key.name)
