"""Puts the stamp of an owner on a resource that exists: the only write of an adoption to the cloud.

A stamp is a tag, metadata, or the end of a description (ADR 0001); nothing else of the resource changes. Neutron is
asked to refuse the change if the resource has changed since it was read.
"""

from __future__ import annotations

from typing import Final

from capo import names
from capo.errors import UnsupportedByCloudError
from capo.json_types import Body
from capo.names import Stamp
from capo.openstack import extension, server
from capo.openstack.cloud import Cloud
from capo.openstack.kinds import CINDER, DESCRIPTION, LISTENER, LOAD_BALANCER, POOL, SERVER, VOLUME, ResourceKind

MOST_TAGS: Final = server.MAX_TAGS


def put(cloud: Cloud, kind: ResourceKind, body: Body, stamp: Stamp) -> None:
    """Put a stamp on a resource.

    Args:
        body: the resource as it was read.

    Raises:
        ConflictError: it has changed since then, or its load balancer is immutable at present; nothing was done.
    """
    if kind == SERVER:
        server.add_tag(cloud, body["id"], str(stamp))
    elif kind == VOLUME:
        metadata = {"metadata": {names.VOLUME_STAMP_KEY: str(stamp)}}
        cloud.post("volume", f"/volumes/{body['id']}/metadata", json=metadata, microversion=CINDER)
    elif kind.service == LOAD_BALANCER.service:
        _tag(cloud, kind, body, stamp)
    elif kind.stamp_place == DESCRIPTION:
        _describe(cloud, kind, body, stamp)
    else:
        raise UnsupportedByCloudError(f"a {kind.name} takes no stamp after it was created")


def _tag(cloud: Cloud, kind: ResourceKind, body: Body, stamp: Stamp) -> None:
    """Add a tag to a resource of Octavia; each route is written out, for the contract suite reads them."""
    changed, id_ = {kind.body_key: {"tags": [*(body.get("tags") or ()), str(stamp)]}}, body["id"]
    if kind == LOAD_BALANCER:
        cloud.put("load-balancer", f"/lbaas/loadbalancers/{id_}", json=changed)
    elif kind == LISTENER:
        cloud.put("load-balancer", f"/lbaas/listeners/{id_}", json=changed)
    elif kind == POOL:
        cloud.put("load-balancer", f"/lbaas/pools/{id_}", json=changed)
    else:
        cloud.put("load-balancer", f"/lbaas/healthmonitors/{id_}", json=changed)


def _describe(cloud: Cloud, kind: ResourceKind, body: Body, stamp: Stamp) -> None:
    condition, revision = {}, body.get("revision_number")
    if revision is not None and extension.is_there(cloud, extension.REVISION_MATCH):
        condition = {"If-Match": f"revision_number={revision}"}
    described = {"description": names.stamped(str(body.get("description") or ""), stamp)}
    collection = kind.collection.strip("/")
    cloud.put("network", f"/{collection}/{body['id']}", json={kind.body_key: described}, headers=condition)


def is_cut(kind: ResourceKind, body: Body, stamp: Stamp) -> bool:
    """Return whether the description of a resource is too long to be kept as a whole before the stamp."""
    text = str(body.get("description") or "")
    return kind.stamp_place == DESCRIPTION and not names.stamped(text, stamp).startswith(text.rstrip())
