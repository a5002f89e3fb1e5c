"""One plan: which objects it is about, what would be written for them, and where it stops."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from capo import names
from capo.contract import references
from capo.engine import conditions
from capo.json_types import Json, Object
from capo.kube.kinds import (
    CLUSTER,
    OPENSTACK_CLUSTER,
    OPENSTACK_CLUSTER_IDENTITY,
    OPENSTACK_FLOATING_IP_POOL,
    OPENSTACK_MACHINE,
    OPENSTACK_MACHINE_TEMPLATE,
    OPENSTACK_SERVER,
    SECRET,
    Key,
    Kind,
)
from capo.operations.access import Management
from capo.operations.errors import NotPermittedError, OperatorError
from capo.operations.plan import changes, manifest, unplanned
from capo.operations.plan.changes import Change, Recorder
from capo.operations.plan.cluster_api import ClusterAPI
from capo.operations.plan.kubernetes import PlannedKube
from capo.operations.plan.rehearsal import Rehearsal, VirtualClock

_RENDERED: Final = "TopologyReconciled"
"""Condition of a Cluster: Cluster API has rendered its topology into objects."""
_REPORTED = (OPENSTACK_CLUSTER, OPENSTACK_MACHINE, OPENSTACK_SERVER, OPENSTACK_FLOATING_IP_POOL)


_CREDENTIALS = {SECRET: "Secret", OPENSTACK_CLUSTER_IDENTITY: "ClusterIdentity"}


@dataclass(frozen=True)
class Stop:
    """An object that is not ready at the end of the plan.

    Args:
        object: its kind, namespace and name.
    """

    object: str
    condition: str
    reason: str
    message: str


@dataclass
class Outcome:
    """A plan.

    Args:
        changes: the writes, in their order.
        stops: the objects that are not ready at its end.
        unknown: what the plan could not see, one sentence each.
        assigned: ids and addresses that the cloud would choose, by the placeholder in ``changes``.
        is_whole: whether each edit of the user, and each pending change of the cluster, is planned.
    """

    changes: Sequence[Change] = ()
    stops: Sequence[Stop] = ()
    unknown: Sequence[str] = ()
    assigned: Mapping[str, str] = field(default_factory=dict)
    is_whole: bool = True

    def to_json(self) -> Json:
        """Return it for programs."""
        return {
            "changes": [each.to_json(self.assigned) for each in self.changes],
            "summary": self.counts(),
            "notReady": [changes.with_words(vars(each), self.assigned) for each in self.stops],
            "unknown": list(self.unknown),
        }

    def counts(self) -> dict[str, int]:
        """Return how many writes there are of each action."""
        actions = (changes.CREATE, changes.UPDATE, changes.DELETE)
        return {action: sum(each.action == action for each in self.changes) for action in actions}


class Planner:
    """Works out one plan.

    Args:
        management: the live management cluster; it is only read.
        namespace: of objects without one.
    """

    def __init__(self, management: Management, namespace: str) -> None:
        self.management, self.namespace = management, namespace
        self.clock, self.recorder = VirtualClock(), Recorder()
        self.kube = PlannedKube(management, self.recorder, self.clock)
        self._core = ClusterAPI(self.kube, self.recorder, is_planned=self.is_planned, clock=self.clock, miss=self._miss)
        self._keys: set[Key] = set()
        self._clusters: set[tuple[str, str]] = set()
        self._unknown: list[str] = []
        self._is_whole = True

    def of_cluster(self, name: str) -> Outcome:
        """Return the plan of a live cluster.

        Raises:
            OperatorError: there is none, or a read failed.
        """
        self._load([self.namespace])
        cluster = self.kube.get(CLUSTER, self.namespace, name)
        infra = self.kube.get(OPENSTACK_CLUSTER, self.namespace, name)
        if cluster is None and infra is None:
            raise OperatorError(f"no Cluster or OpenStackCluster {self.namespace}/{name} in {self.management.name}")
        self._clusters.add((self.namespace, name))
        if cluster is not None:
            self._note_topology(cluster, cluster)
        elif infra is not None:
            self._note(OPENSTACK_CLUSTER, infra)
        return self._run()

    def of_files(self, paths: Iterable[str]) -> Outcome:
        """Return the plan of the objects in files, as if they were applied.

        Raises:
            OperatorError: a file cannot be read or applied, or a read failed.
        """
        found = [obj for path in paths for obj in manifest.read(path)]
        wanted = [obj for obj in found if manifest.is_of_use(obj)]
        self._load(sorted(set(manifest.namespaces(wanted, self.namespace))) or [self.namespace])
        self._note_unplanned(found)
        for obj in wanted:
            key, before = manifest.apply(self.kube, obj, self.namespace)
            self._keys.add(key)
            self._note(key.kind, self.kube.objects[key])
            for user in list(self._users_of(key)):
                self._note(user.kind, self.kube.objects[user])
            self._core.take(key, before)
            if key.kind == CLUSTER:
                self._note_topology(self.kube.objects[key], before)
        return self._run()

    def _note(self, kind: Kind, obj: Object) -> None:
        """Take an object's cluster into the plan."""
        metadata = obj["metadata"]
        name = metadata["name"] if kind == CLUSTER else references.cluster_name(obj)
        name = name or (references.owner_cluster_name(obj) if kind == OPENSTACK_CLUSTER else None)
        name = name or self._core.cluster_name(obj)
        if name:
            self._clusters.add((metadata.get("namespace") or "", name))
        elif kind in _REPORTED:
            self._keys.add(Key(kind, metadata["namespace"], metadata["name"]))

    def _users_of(self, key: Key) -> Iterable[Key]:
        """Return the objects that use a template, or credentials."""
        for user, obj in self.kube.objects.items():
            annotations = obj["metadata"].get("annotations") or {}
            if key.kind == OPENSTACK_MACHINE_TEMPLATE and user.kind == OPENSTACK_MACHINE:
                is_user = annotations.get(names.CLONED_FROM_NAME_ANNOTATION) == key.name
                if is_user and user.namespace == key.namespace:
                    yield user
            elif key.kind in _CREDENTIALS and user.kind in _REPORTED and _has_identity(obj, key):
                yield user

    def _note_topology(self, cluster: Object, before: Object | None) -> None:
        """Note what Cluster API has yet to render of a topology; what it rendered is planned from the live objects."""
        place = f"Cluster {cluster['metadata']['namespace']}/{cluster['metadata']['name']}"
        if edited := sorted(_edited(_topology(before), _topology(cluster))):
            fields = ", ".join(f"spec.topology.{each}" for each in edited)
            text = "what Cluster API renders from the ClusterClass is not planned, only the objects that exist"
            self._miss(f"{place} has other values of {fields}: {text}")
        if before is not None and _topology(before) and (reason := _unrendered(before)):
            self._miss(f"{place}: Cluster API has not yet rendered its topology ({reason})")

    def _note_unplanned(self, wanted: Sequence[Json]) -> None:
        """Note the objects of files whose effect is not planned, before they are applied."""
        has_classes = any(unplanned.is_of_class(obj) for obj in (*self.kube.objects.values(), *wanted))
        for obj in wanted:
            if text := unplanned.text_of(self.management, obj, self.namespace, has_classes=has_classes):
                self._miss(text)

    def _miss(self, text: str) -> None:
        """Note changes that the plan lacks."""
        self._unknown.append(text)
        self._is_whole = False

    def _load(self, namespaces: Sequence[str]) -> None:
        """Read what the controllers watch: of all namespaces, or of some if the user may not list the others."""
        is_partial = False
        for kind in Rehearsal.watched():
            try:
                self.kube.load(kind, None)
            except NotPermittedError:
                if not kind.is_namespaced:
                    continue  # a role of one namespace cannot permit it; an object of the kind is read when it is used
                for namespace in namespaces:
                    self.kube.load(kind, namespace)
                is_partial = True
        if is_partial:
            places = ", ".join(namespaces)
            self._unknown.append(f"objects of other namespaces than {places} were not seen: the user may not list them")

    def is_planned(self, kind: Kind, obj: Object) -> bool:
        """Return whether an object belongs to the plan."""
        metadata = obj["metadata"]
        namespace, name = metadata.get("namespace") or "", metadata["name"]
        if Key(kind, namespace, name) in self._keys:
            return True
        cluster = name if kind == CLUSTER else references.cluster_name(obj)
        cluster = cluster or (references.owner_cluster_name(obj) if kind == OPENSTACK_CLUSTER else None)
        return (namespace, cluster) in self._clusters or self._is_owned(obj)

    def _is_owned(self, obj: Object) -> bool:
        """Return whether an object of the plan owns this one."""
        owners = {ref.get("uid") for ref in obj["metadata"].get("ownerReferences") or ()}
        return any(
            self.kube.objects[key]["metadata"]["uid"] in owners for key in self._keys if key in self.kube.objects
        )

    def _run(self) -> Outcome:
        rehearsal = Rehearsal(
            self.kube, self.recorder, self.clock, is_planned=self.is_planned, settings=self.management.clouds.settings
        )
        rehearsal.wake(self._planned(rehearsal.controllers))
        rehearsal.run(core=self._core.step)
        return Outcome(
            self.recorder.changes,
            list(self._stops(rehearsal)),
            self._unknown,
            {**rehearsal.clouds.assigned, **self.kube.assigned},
            self._is_whole,
        )

    def _planned(self, kinds: Iterable[Kind]) -> list[Key]:
        wanted = set(kinds)
        return [key for key, obj in self.kube.objects.items() if key.kind in wanted and self.is_planned(key.kind, obj)]

    def _stops(self, rehearsal: Rehearsal) -> Iterable[Stop]:
        for key in self._planned(_REPORTED):
            shown: list[dict[str, Any]] = (self.kube.objects[key].get("status") or {}).get("conditions") or []
            ready = next((each for each in shown if each["type"] == conditions.READY), None)
            if ready is None or ready.get("status") != "True":
                yield _stop(key, ready)


def _topology(cluster: Object | None) -> Mapping[str, Any]:
    spec = (cluster or {}).get("spec") or {}
    return spec.get("topology") or {}


def _unrendered(cluster: Object) -> str:
    """Return why a topology is not rendered into objects as it is now; empty if it is."""
    generation = cluster["metadata"].get("generation") or 0
    shown = (cluster.get("status") or {}).get("conditions") or []
    found = next((each for each in shown if each["type"] == _RENDERED), None)
    if found is None:
        return f"no condition {_RENDERED}"
    if (observed := found.get("observedGeneration") or generation) < generation:
        return f"condition {_RENDERED} is of generation {observed}, the Cluster of {generation}"
    return "" if found.get("status") == "True" else f"{found.get('reason')}: {found.get('message') or 'no message'}"


def _edited(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterable[str]:
    """Return the fields of a topology that differ."""
    return (name for name in before.keys() | after.keys() if before.get(name) != after.get(name))


def _has_identity(obj: Object, key: Key) -> bool:
    """Return whether an object names this Secret or this OpenStackClusterIdentity as its credentials."""
    ref = (obj.get("spec") or {}).get("identityRef") or {}
    is_near = key.namespace in ("", obj["metadata"].get("namespace"))
    return is_near and (ref.get("type") or "Secret", ref.get("name")) == (_CREDENTIALS[key.kind], key.name)


def _stop(key: Key, ready: Mapping[str, Any] | None) -> Stop:
    found = ready or {}
    message = str(found.get("message") or "it was not reconciled")
    return Stop(
        f"{key.kind.kind} {key.namespace}/{key.name}", conditions.READY, str(found.get("reason") or "Unknown"), message
    )
