"""Updates of existing resources: user tags, and updates whose answer was lost."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from capo.errors import CapoError
from capo.json_types import Body
from capo.openstack import tags
from capo.openstack.floating_ip import FloatingIP
from capo.openstack.kinds import KINDS
from controllers import drift as drift_table
from controllers.drift import TAGS
from controllers.openstackcluster import drift
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
    """Add the spec's tags to a Neutron resource, keeping those of others; return the updated resource (W-75).

    ``scope.found.changes`` receives the message about missing tags that the policy leaves out.
    """
    has, wanted = set(body.get("tags") or ()), set(scope.cluster.spec.tags)
    if wanted <= has:
        return body
    name, resource_id = f"{kind.replace('_', ' ')} {body['id']}", str(body["id"])
    missing = drift_table.listing(wanted - has)
    # Tags of the spec cannot change: what the status shows has had them.
    is_address = kind == "floating_ip" and drift.is_address_shown(scope, FloatingIP(body).address)
    was_in_place = is_address or drift.is_shown(scope, resource_id)
    change = drift.Change(TAGS, resource_id, sorted(wanted), f"tags of {name} ({missing})", was_in_place)
    text = drift.held(scope, change)
    if text is not None:
        scope.found.changes.setdefault(kind, []).extend([text] if text else ())
        return body
    with doubting(scope, kind, body["id"]):
        changed = tags.replace(scope.cloud, KINDS[kind].collection.strip("/"), body, sorted(has | wanted))
    scope.cloud_view.upsert(kind, changed)
    if was_in_place:
        drift.repaired(scope, TAGS, resource_id, f"tags of {name} were removed externally: {missing}; added them again")
    return changed
