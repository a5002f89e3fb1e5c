"""Updates of existing resources: user tags, and updates whose answer was lost."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from capo.errors import CapoError
from capo.json_types import Body
from capo.openstack import tags
from capo.openstack.kinds import KINDS
from controllers.openstackcluster.scope import ClusterScope


@contextmanager
def doubting(scope: ClusterScope, kind: str, resource_id: str) -> Iterator[None]:
    """Invalidate the cached resource if the change in this block fails, because it may have taken effect."""
    try:
        yield
    except CapoError as error:
        scope.cloud_view.failed(kind, resource_id, error)
        raise


def tagged(scope: ClusterScope, kind: str, body: Body) -> Body:
    """Add the spec's tags to a Neutron resource, keeping those of others; return the updated resource (W-75)."""
    has, wanted = set(body.get("tags") or ()), set(scope.cluster.spec.tags)
    if wanted <= has:
        return body
    with doubting(scope, kind, body["id"]):
        changed = tags.replace(scope.cloud, KINDS[kind].collection.strip("/"), body, sorted(has | wanted))
    scope.cloud_view.upsert(kind, changed)
    return changed
