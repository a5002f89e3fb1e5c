"""A load balancer in ERROR: it is reported, and deleted if a user asked for exactly that one to be rebuilt.

The next reconciles create it again as after any deletion: with the addresses of its VIPs from the status, listeners and
pools; floating IP and members follow. Between both the address is free: another port may take it, and then the create
fails with Neutron's words until the address is free again.
"""

from __future__ import annotations

from typing import Final

from capo import names
from capo.engine.steps import Wait
from capo.errors import NotFoundError
from capo.openstack import load_balancer, octavia_providers
from capo.openstack.load_balancer import LoadBalancer
from controllers import load_balancer_failure, replacements
from controllers.openstackcluster import vip_addresses
from controllers.openstackcluster.changes import doubting
from controllers.openstackcluster.scope import ClusterScope

KIND: Final = "load_balancer"
_DELETED_S: Final = 30.0
"""If it is in ERROR for so long after the request, Octavia failed to delete it; lists show that as no change."""


def of_failed(scope: ClusterScope, found: LoadBalancer) -> Wait:
    """Return the wait for the end of a load balancer in ERROR that a user asked to rebuild.

    Raises:
        LoadBalancerFailedError: no user asked for that, the control plane endpoint would be lost, or Octavia failed to
            delete it; it is asked again.
    """
    if host := vip_addresses.endpoint_to_lose(scope, found):
        scope.cloud_view.invalidate(KIND, found.id)
        raise load_balancer_failure.error(found, kept_for=host)
    if not _is_asked_for(scope, found):
        scope.cloud_view.invalidate(KIND, found.id)
        raise load_balancer_failure.error(found)
    scope.found.is_rebuilt = True
    if not _is_recorded(scope, found):
        # After a lost status: the addresses must be known before the only place that shows them is deleted.
        return Wait("Building", f"the addresses of load balancer {found.name} are being recorded", after_s=1)
    live = _live(scope, found.id)
    if live is None or live.provisioning_status != "ERROR":
        scope.cloud_view.poll(KIND)
        return Wait("Building", f"load balancer {found.name} is changing", after_s=1)
    return _delete(scope, live)


def _is_asked_for(scope: ClusterScope, found: LoadBalancer) -> bool:
    """Return whether the annotation names this load balancer, and it is proven to belong to the cluster."""
    annotations = scope.context.obj["metadata"].get("annotations") or {}
    if annotations.get(names.REBUILD_LOAD_BALANCER_ANNOTATION) != found.id:
        return False
    return any(each["id"] == found.id for each in scope.owned(KIND))


def _is_recorded(scope: ClusterScope, found: LoadBalancer) -> bool:
    """Return whether the status has the addresses of all its VIPs."""
    known = scope.known_load_balancer
    return known is not None and [known.internal_ip, *known.additional_internal_ips] == found.vip_addresses


def _live(scope: ClusterScope, load_balancer_id: str) -> LoadBalancer | None:
    """Return the load balancer as Octavia shows it now: since the list an admin may have repaired it."""
    try:
        return LoadBalancer(load_balancer.show(scope.cloud, load_balancer_id))
    except NotFoundError:
        return None


def _delete(scope: ClusterScope, live: LoadBalancer) -> Wait:
    was_asked = scope.was_refused(f"deletion of {live.id}")
    if not was_asked:  # else its quota may never be free
        replacements.keep_load_balancer(scope.cloud, scope.context)
    if live.provider == octavia_providers.OVN:
        # As the default it would refuse the new one with its children, and the refused one may keep the address.
        scope.note_refusal(scope.region_key)
    with doubting(scope, KIND, live.id):
        load_balancer.delete(scope.cloud, live.id)
    scope.note_refusal(f"deletion of {live.id}")
    scope.balancers.forget(scope.uid)
    scope.cloud_view.mark_written(KIND)
    if was_asked:
        raise load_balancer_failure.error(live, ", because Octavia failed to delete it, and is asked again")
    text = f"Deleted load balancer {live.name} with id {live.id} to create it again, as an annotation asks"
    scope.emit("SuccessfulDeleteLoadBalancer", text)
    scope.cloud_view.poll(KIND)
    return Wait("Building", f"load balancer {live.name} is being deleted, to be created again", after_s=_DELETED_S)
