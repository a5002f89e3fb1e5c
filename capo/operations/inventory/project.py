"""Reads every resource of a project: all pages of one list of each kind."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final

from capo.errors import CapoError, NotFoundError, UnsupportedByCloudError
from capo.json_types import Body
from capo.openstack.cloud import Cloud
from capo.openstack.kinds import KINDS, ResourceKind
from capo.openstack.load_balancer import LoadBalancer
from capo.operations.inventory.resource import MEMBER, Resource

AT_ONCE: Final = 4
"""Lists that are read at the same time."""
_OPTIONAL: Final = ("trunk", *(kind.name for kind in KINDS.values() if kind.service == "load-balancer"))
"""Kinds that a cloud may not have."""


@dataclass(frozen=True)
class Project:
    """The resources of a project.

    Args:
        failures: one sentence for each list that could not be read; what it would have shown is missing.
    """

    location: str
    resources: Sequence[Resource]
    failures: Sequence[str] = ()


def read(cloud: Cloud, note: Callable[[str], None]) -> Project:
    """Return what a project has; services that the cloud does not offer have nothing.

    Args:
        note: called with what is read now.

    Raises:
        CapoError: the credentials are refused, or the Identity service does not answer.
    """
    location, project_id = str(cloud.location), cloud.project_id
    kinds = [kind for kind in KINDS.values() if kind.name not in _OPTIONAL or cloud.offers(kind.service)]

    def listed(kind: ResourceKind) -> tuple[list[Resource], str | None]:
        note(f"reading {kind.collection.strip('/')} of {location}")
        return _listed(cloud, kind, location, project_id)

    with ThreadPoolExecutor(AT_ONCE) as pool:
        results = list(pool.map(listed, kinds))
        found = list(itertools.chain.from_iterable(resources for resources, _ in results))
        members = list(pool.map(lambda each: _members(cloud, each), [each for each in found if each.kind == "pool"]))
    both = [*results, *members]
    return Project(
        location,
        [each for resources, _ in both for each in resources],
        [failure for _, failure in both if failure],
    )


def _listed(cloud: Cloud, kind: ResourceKind, location: str, project_id: str) -> tuple[list[Resource], str | None]:
    try:
        bodies = cloud.list_all(
            kind.service,
            kind.list_path,
            kind.key,
            params=kind.list_params(project_id),
            microversion=kind.microversion,
        )
    except (NotFoundError, UnsupportedByCloudError) as error:
        return [], None if kind.name in _OPTIONAL else f"{kind.name}: {error.message}"
    except CapoError as error:
        return [], f"{kind.name}: {error.message}"
    return list(_resources(cloud, kind.name, kind.service, location, bodies)), None


def _members(cloud: Cloud, pool: Resource) -> tuple[list[Resource], str | None]:
    try:
        bodies = cloud.list_all("load-balancer", f"/lbaas/pools/{pool.id}/members", "members")
    except NotFoundError:
        return [], None  # the pool was deleted since it was listed
    except CapoError as error:
        return [], f"members of pool {pool.id}: {error.message}"
    bodies = [{**body, "pool_id": pool.id} for body in bodies]
    return list(_resources(cloud, MEMBER, "load-balancer", pool.location, bodies)), None


def _resources(cloud: Cloud, kind: str, service: str, location: str, bodies: Iterable[Body]) -> Iterable[Resource]:
    for body in bodies:
        if LoadBalancer(body).provisioning_status == "DELETED":
            continue  # Octavia shows some for a while
        bare = Resource(kind, location, body)
        yield Resource(kind, location, body, _age_s(cloud, service, bare))


def _age_s(cloud: Cloud, service: str, resource: Resource) -> float | None:
    if resource.created is None:
        return None
    # Cinder and Octavia write times in UTC without a zone.
    text = resource.created if resource.created.endswith("Z") or "+" in resource.created else f"{resource.created}Z"
    try:
        return max(0.0, cloud.ages.age_s(service, resource.id, text))
    except ValueError:
        return None
