"""Which resources are orphans, by what proof, and what speaks against their deletion; pure. Source: ADR 0017."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from capo.openstack import cloud_provider
from capo.openstack.server import Server
from capo.openstack.volume import Volume
from capo.operations.inventory.attribution import Attribution, Basis, attribute, workload_of
from capo.operations.inventory.project import Project
from capo.operations.inventory.resource import Resource
from capo.operations.orphans.evidence import Evidence
from capo.operations.orphans.usage import ResourceKey, Use, Uses, is_idle, state_doubt
from controllers.openstackcluster import leftovers

DELETABLE: Final = (
    "floating_ip",
    "load_balancer",
    "server",
    "server_group",
    "volume",
    "trunk",
    "port",
    "router",
    "subnet",
    "network",
    "security_group",
)
"""The kinds that can be deleted, in the order of their deletion; what is not among them is deleted with its whole."""
YOUNG_S: Final = 3600.0
"""What is younger may belong to an object that is on its way, as by a move."""
_BY_NAME: Final = "only its name or description names the cluster, which is no proof"
_BY_MARK: Final = "only the mark of a workload names the cluster, which is no proof"


@dataclass(frozen=True)
class Orphan:
    """A resource whose owner's object is gone.

    Args:
        proof: why it is an orphan.
        doubts: why it is deleted only if it is named singly.
        uses: what uses it; each is a doubt unless it is deleted, too.
        refusal: why it is not deleted even then; empty if it may be.
    """

    attribution: Attribution
    proof: str
    doubts: tuple[str, ...] = ()
    uses: tuple[Use, ...] = ()
    refusal: str = ""

    @property
    def resource(self) -> Resource:
        """The resource."""
        return self.attribution.resource

    @property
    def key(self) -> ResourceKey:
        """Kind and id."""
        return self.resource.kind, self.resource.id

    @property
    def mark(self) -> str:
        """The evidence of its owner: its stamp, else its name and description."""
        stamp = self.resource.stamp
        return str(stamp) if stamp else f"{self.resource.name}|{self.resource.description}"

    def left_doubts(self, deleted: Collection[ResourceKey]) -> list[str]:
        """Return all doubts when some resources are deleted, too."""
        return [*self.doubts, *(use.text for use in self.uses if use.is_left(deleted))]


def find(project: Project, evidence: Evidence, *, singly: Collection[str] = ()) -> list[Orphan]:
    """Return the orphans of a project in the order of their deletion.

    Args:
        project: read before the evidence.
        singly: ids that a user named: servers among them are no sign of life.
    """
    return _Search(project, evidence, frozenset(singly)).orphans()


def find_one(project: Project, evidence: Evidence, key: ResourceKey, *, singly: Collection[str] = ()) -> Orphan | None:
    """Return a resource as an orphan, None if it is none; see :func:`find`."""
    return _Search(project, evidence, frozenset(singly)).orphan(key)


class _Search:
    def __init__(self, project: Project, evidence: Evidence, singly: frozenset[str]) -> None:
        self._evidence = evidence
        self._attributed = attribute(project.resources, evidence.owners)
        self._uses = Uses(project.resources)
        self._has_objects = project.location in evidence.locations or any(each.is_known for each in self._attributed)
        self._alive = {
            group: each.resource
            for each in self._attributed
            if each.resource.kind == "server" and not is_idle(each.resource) and each.resource.id not in singly
            for group in groups(each)
        }
        self._recorded = {key for each in evidence.owners for key in each.recorded}
        clusters = [each.cluster for each in evidence.owners if each.cluster]
        # Names without a namespace may be those of several clusters, which makes them known, too.
        self._names = {name for each in clusters for name in (each.name, each.resource_name)}
        self._servers = {each.name for each in evidence.owners if each.kind in ("OpenStackServer", "OpenStackMachine")}

    def orphans(self) -> list[Orphan]:
        found = [orphan for each in self._attributed if (orphan := self._orphan(each))]
        return sorted(found, key=lambda each: (DELETABLE.index(each.resource.kind), each.resource.name, each.key))

    def orphan(self, key: ResourceKey) -> Orphan | None:
        found = (each for each in self._attributed if (each.resource.kind, each.resource.id) == key)
        return next(filter(None, map(self._orphan, found)), None)

    def _orphan(self, each: Attribution) -> Orphan | None:
        proof = self._proof(each) if each.resource.kind in DELETABLE else None
        if proof is None:
            return None
        resource = each.resource
        return Orphan(each, proof, tuple(self._doubts(each)), tuple(self._uses.of(resource)), refusal(resource) or "")

    def _proof(self, each: Attribution) -> str | None:
        """Return why a resource is an orphan, None if it is none."""
        nobody = f"no object in {self._evidence.names}"
        if each.basis is Basis.STAMP:
            is_known = each.owner is not None or each.owner_id in self._evidence.owner_ids or self._is_recorded(each)
            return None if is_known else f"stamp of owner {each.owner_id}, which {nobody} has"
        is_known = each.is_known or self._is_recorded(each) or each.basis is Basis.RECORD
        if each.cluster is None or is_known or each.cluster.name in self._names:
            return None
        if each.basis is Basis.WORKLOAD:
            marked = workload_of(each.resource)
            # A mark that clusters share proves nothing, also where the resource stands on what is left of a cluster.
            is_own = marked is not None and marked not in cloud_provider.SHARED_NAMES
            return f"mark of the workloads of cluster {marked}, of which there is {nobody}" if is_own else None
        is_server = each.basis is Basis.PART and each.resource.kind == "server"
        if each.basis is Basis.NAME or is_server:
            return f"name or description of cluster {each.cluster}, of which there is {nobody}"
        return None

    def _is_recorded(self, each: Attribution) -> bool:
        return (each.resource.kind, each.resource.id) in self._recorded

    def _doubts(self, each: Attribution) -> Iterator[str]:
        resource = each.resource
        if not self._has_objects:
            yield f"{self._evidence.names} has no object in this project: a kubeconfig may be missing"
        if each.basis is not Basis.STAMP:
            yield _BY_MARK if each.basis is Basis.WORKLOAD else _BY_NAME
        if (state := state_doubt(resource)) is not None:
            yield state
        yield from self._life(each)
        if each.cluster is not None and each.cluster.namespace:
            yield f"a Cluster {each.cluster} exists: its objects may have lost their owner ids"
        if self._has_namesake(resource):
            yield "an object with the name of its server exists: it may have lost its owner id"
        if resource.age_s is not None and resource.age_s < YOUNG_S:
            yield "it is younger than an hour: its object may be on its way"

    def _life(self, each: Attribution) -> Iterable[str]:
        alive = next((self._alive[group] for group in groups(each) if group in self._alive), None)
        if alive is not None and alive is not each.resource:
            yield f"server {alive.id} of the same owner or cluster is {alive.state}: a kubeconfig may be missing"

    def _has_namesake(self, resource: Resource) -> bool:
        name = resource.name if resource.kind == "server" else resource.name.rpartition("-")[0]
        return resource.kind in ("server", "port", "volume", "trunk") and name in self._servers


def groups(each: Attribution) -> list[str]:
    """Return by what resources live together: their owner and their cluster."""
    return [text for text in (each.owner_id, each.cluster.resource_name if each.cluster else "") if text]


def refusal(resource: Resource) -> str | None:
    """Return why a resource cannot be deleted now, also if it is named singly; None if it can."""
    if resource.kind == "server":
        server = Server(resource.body)
        if server.status == "UNKNOWN" or server.tags is None:
            return "its Nova cell is down"
        return f"it changes: {resource.state}" if server.task_state else None
    if resource.kind == "load_balancer" and resource.state.startswith("PENDING_"):
        return f"it changes: {resource.state}"
    if resource.kind == "volume" and Volume(resource.body).status not in (*leftovers.DELETABLE, "in-use"):
        return f"it is {resource.state}"
    return None


def owners_of(orphans: Sequence[Orphan]) -> list[str]:
    """Return the owner ids in the stamps of orphans, each once."""
    return list(dict.fromkeys(each.attribution.owner_id for each in orphans if each.attribution.owner_id))
