"""Collects an inventory: the projects first and the owners after them, so that no new resource seems to have no owner.

The id of an owner is written before anything is created for it (ADR 0001): whatever a list of a project has, its owner
exists in a list of objects that begins later, unless it was deleted.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from capo.errors import CapoError, IdentityError
from capo.json_types import Object
from capo.openstack.cloud import Cloud
from capo.operations import owners
from capo.operations.access import Management
from capo.operations.errors import NotPermittedError, OperatorError
from capo.operations.inventory import attribution, project
from capo.operations.inventory.attribution import Attribution
from capo.operations.inventory.project import Project
from capo.operations.inventory.report import Inventory
from capo.operations.owners import ClusterName, Owner

Note = Callable[[str], None]


@dataclass(frozen=True)
class Request:
    """What an inventory is taken of.

    Args:
        namespace: of the objects whose projects are read; None: all namespaces.
        cluster: a Cluster in that namespace; None: everything in the projects.
        clouds: projects that were named; those of the objects are not read then.
    """

    managements: Sequence[Management] = ()
    namespace: str | None = None
    cluster: str | None = None
    clouds: Sequence[Cloud] = ()


@dataclass
class _Found:
    owners: list[Owner] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)


def take(request: Request, note: Note) -> Inventory:
    """Return one inventory; see :meth:`Rounds.take`."""
    return Rounds(request).take(note)


class Rounds:
    """Inventories of one request, one after the other.

    A project that was read once is read in each later round, though its last object may be gone by then: resources that
    are in no list any more were removed only if the list was read.
    """

    def __init__(self, request: Request) -> None:
        self._request = request
        self._former: list[Cloud] = []

    def take(self, note: Note) -> Inventory:
        """Return the inventory as it is now.

        Raises:
            OperatorError: the cluster does not exist and did not in a former round, or the objects cannot be read.
            CapoError: no project can be read.
        """
        failures: list[str] = []
        clouds = clouds_of(self._request, failures, is_former=bool(self._former))
        projects = projects_of([*clouds, *self._former], note, failures)
        # Of two that lead to one project the newer stays: the credentials of the other may end.
        self._former = list(by_location([*self._former, *clouds], []).values())
        found = _owners(self._request, note)
        attributed = _attributed(projects, found.owners)
        shown = [each for each in attributed if _is_of(each, self._request)]
        return Inventory(
            shown,
            len(attributed) - len(shown),
            [*failures, *found.failures, *(failure for each in projects for failure in each.failures)],
            bool(self._request.managements),
        )


def _attributed(projects: Sequence[Project], known: Sequence[Owner]) -> list[Attribution]:
    return attribution.attribute([each for of in projects for each in of.resources], known)


# -- which projects --------------------------------------------------------------------------------------------------


def _chosen(request: Request, *, is_former: bool) -> list[tuple[Management, Object]]:
    """Return the objects whose projects are read.

    Args:
        is_former: whether there was a former round: what is gone by now has none.

    Raises:
        OperatorError: the cluster has none in any management cluster.
    """
    if request.clouds:
        return []
    found = [
        (management, obj)
        for management in request.managements
        for owner, obj in owners.read(management, request.namespace)
        if request.cluster is None or _is_cluster(owner.cluster, request)
    ]
    if not found and request.cluster is not None and not is_former:
        where = f"{request.namespace}/" if request.namespace else ""
        raise OperatorError(f"no object of a Cluster {where}{request.cluster} exists in {_named(request)}")
    return found


def _is_cluster(cluster: ClusterName | None, request: Request) -> bool:
    return cluster is not None and cluster.name == request.cluster and request.namespace in (None, cluster.namespace)


def _named(request: Request) -> str:
    return " or ".join(each.name for each in request.managements) or "any management cluster"


def clouds_of(request: Request, failures: list[str], *, is_former: bool = False) -> list[Cloud]:
    """Return the clouds of a request, one for each set of credentials; sends the clouds no request.

    Args:
        failures: gets a sentence for each set of credentials that cannot be read.
        is_former: whether there was a former round, in which the cluster existed.

    Raises:
        OperatorError: the cluster does not exist, or no credentials can be read.
    """
    found: dict[str, Cloud] = {each.fingerprint: each for each in request.clouds}
    refused: dict[str, None] = {}
    for management, obj in _chosen(request, is_former=is_former):
        if not (obj.get("spec") or {}).get("identityRef"):
            continue  # a machine uses the credentials of its cluster or server, which are objects of their own
        try:
            cloud = management.cloud_of(obj)
        except (IdentityError, OperatorError) as error:
            refused[str(error)] = None
        else:
            found[cloud.fingerprint] = cloud
    if refused and not found:
        raise OperatorError(next(iter(refused)))
    failures += refused
    return list(found.values())


def projects_of(clouds: Sequence[Cloud], note: Note, failures: list[str]) -> list[Project]:
    """Return the projects of clouds, each once, though several credentials may lead there.

    Args:
        failures: gets a sentence for each cloud that cannot be read.

    Raises:
        CapoError: none can be read.
    """
    found: dict[str, Project] = {}
    refused: list[CapoError] = []
    for cloud in clouds:
        try:
            if str(cloud.location) not in found:
                found[str(cloud.location)] = project.read(cloud, note)
        except CapoError as error:
            refused.append(error)
    if refused and not found:
        raise refused[0]
    failures += [error.message for error in refused]
    return list(found.values())


def by_location(clouds: Sequence[Cloud], failures: list[str]) -> dict[str, Cloud]:
    """Return clouds by the project that their credentials lead to.

    Args:
        failures: gets a sentence for each cloud that does not answer.
    """
    found: dict[str, Cloud] = {}
    for each in clouds:
        try:
            found[str(each.location)] = each
        except CapoError as error:
            failures.append(error.message)
    return found


# -- whose resources -------------------------------------------------------------------------------------------------


def _owners(request: Request, note: Note) -> _Found:
    found = _Found()
    for management in request.managements:
        note(f"reading the objects of {management.name}")
        _read_owners(management, request, found)
    return found


def _read_owners(management: Management, request: Request, found: _Found) -> None:
    """Read the owners of all namespaces, or those of one where the user may not read all."""
    try:
        found.owners += [owner for owner, _ in owners.read(management)]
    except NotPermittedError:
        if request.namespace is None:
            raise
        found.owners += [owner for owner, _ in owners.read(management, request.namespace)]
        text = f"only namespace {request.namespace} of {management.name} may be read"
        found.failures.append(f"{text}: owners in others are shown as owners without object")


def _is_of(each: Attribution, request: Request) -> bool:
    if request.cluster is None:
        return True
    if each.cluster is None:
        return False
    if each.cluster.namespace:
        return _is_cluster(each.cluster, request)
    # Without a management cluster the namespace is a part of the name.
    wanted = {request.cluster} | ({f"{request.namespace}-{request.cluster}"} if request.namespace else set())
    return each.cluster.name in wanted
