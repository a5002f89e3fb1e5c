"""Changes of resources that exist: user tags, and what is done when the answer of a change does not come."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from capo.controllers.openstackcluster.scope import ClusterScope, Resource
from capo.errors import CapoError
from capo.openstack import tags
from capo.openstack.kinds import KINDS


@contextmanager
def doubting(scope: ClusterScope, kind: str, resource_id: str) -> Iterator[None]:
    """Look at a resource again before it is used, if the change in this block fails: it may have taken effect."""
    try:
        yield
    except CapoError as error:
        scope.observed.failed(kind, resource_id, error)
        raise


def tagged(scope: ClusterScope, kind: str, body: Resource) -> Resource:
    """Have the tags of the spec on a Neutron resource, beside those that others gave it; return it with them (W25)."""
    has, wanted = set(body.get("tags") or ()), set(scope.cluster.spec.tags)
    if wanted <= has:
        return body
    with doubting(scope, kind, body["id"]):
        changed = tags.replace(scope.cloud, KINDS[kind].collection.strip("/"), body, sorted(has | wanted))
    scope.observed.learn(kind, changed)
    return changed
