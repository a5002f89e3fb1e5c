"""The quota that replacements free and their owners need again: kept for them until they have it.

What was begun before a restart of this process is restored from what clusters record: the load balancer that an
annotation asks to rebuild, and ``status.bastionReplacement``. Source: docs/reference/quotas.md.
"""

from __future__ import annotations

import contextlib
from typing import Final

from api.v1alpha1 import OpenStackServer
from api.v1beta2 import OpenStackCluster
from capo import names
from capo.contract import references, rules
from capo.engine import conditions
from capo.engine.context import ReconcileContext
from capo.engine.store import Index, key_of
from capo.errors import CapoError, NotYetObserved
from capo.json_types import Object
from capo.kube.kinds import CLUSTER, OPENSTACK_CLUSTER, OPENSTACK_FLOATING_IP_POOL, OPENSTACK_SERVER, Key
from capo.ledger import Ledger
from capo.openstack import quota
from capo.openstack.cloud import Cloud
from capo.openstack.quota import Needs
from controllers import server_spec
from controllers.openstackserver import needs

LOAD_BALANCER: Final = "load balancer"
_SERVICES: Final = {"server": quota.COMPUTE, "port": quota.NETWORK, "volume": quota.VOLUME}


# -- load balancers ----------------------------------------------------------------------------------------------------


def keep_load_balancer(cloud: Cloud, context: ReconcileContext) -> None:
    """Keep the quota of the load balancer, which is about to be deleted."""
    listeners, monitors = (len(context.ledger.records_of_kind(kind)) for kind in ("listener", "health_monitor"))
    cloud.quota_holds.places.keep(context.key, LOAD_BALANCER, quota.of_load_balancer(listeners, monitors))


def renew_load_balancer(cloud: Cloud, context: ReconcileContext) -> None:
    """Keep it while the load balancer that was rebuilt does not exist yet."""
    if _is_rebuilding(context.obj):
        cloud.quota_holds.places.renew(context.key, LOAD_BALANCER, _of_load_balancer(context.obj))


def release_load_balancer(cloud: Cloud, context: ReconcileContext) -> None:
    """Give up what the new load balancer did not take; all if none is wanted any more."""
    cloud.quota_holds.places.release(context.key, LOAD_BALANCER)


def _is_rebuilding(obj: Object) -> bool:
    """Return whether the annotation names the load balancer that the status shows."""
    known = (obj.get("status") or {}).get("apiServerManagedLoadBalancer") or {}
    annotations = obj["metadata"].get("annotations") or {}
    return bool(known.get("id")) and annotations.get(names.REBUILD_LOAD_BALANCER_ANNOTATION) == known["id"]


def _of_load_balancer(obj: Object) -> Needs:
    balancer = (obj["spec"].get("apiServer") or {}).get("managedLoadBalancer") or {}
    listeners = 1 + len(balancer.get("additionalPorts") or ())
    return quota.of_load_balancer(listeners, listeners)


# -- the bastion -------------------------------------------------------------------------------------------------------


def keep_bastion(cloud: Cloud, child: Object) -> None:
    """Keep the quota of what a bastion has, which is about to be deleted or is being deleted."""
    kinds = {each.kind for each in Ledger.read(child.get("status")).records.values()}
    services = {_SERVICES[kind] for kind in kinds & _SERVICES.keys()}
    # While it is being deleted its records become fewer: those at the begin count.
    places, is_begun = cloud.quota_holds.places, bool(child["metadata"].get("deletionTimestamp"))
    for key, wanted in _of_bastion(cloud, child).items():
        freed = {service: amounts for service, amounts in wanted.items() if service in services}
        (places.renew if is_begun else places.keep)(key, _slot(child), freed)


def renew_bastion(cloud: Cloud, child: Object) -> None:
    """Keep it until the new bastion is up.

    Args:
        child: the new OpenStackServer, which need not exist yet.
    """
    for key, wanted in _of_bastion(cloud, child).items():
        cloud.quota_holds.places.renew(key, _slot(child), wanted)


def release_bastion(cloud: Cloud, child: Object) -> None:
    """Give up what the new bastion did not take; all if none is wanted any more."""
    for key in _creators(child):
        cloud.quota_holds.places.release(key, _slot(child))


def _slot(child: Object) -> str:
    return f"bastion {child['metadata']['name']}"


def _of_bastion(cloud: Cloud, child: Object) -> dict[Key, Needs]:
    """Return what a bastion needs, by the object that creates it."""
    server, *pools = _creators(child)
    own = needs.of_object(cloud, OpenStackServer.model_validate(child))
    return {server: own, **dict.fromkeys(pools, quota.of_create("floating_ip", 1))}


def _creators(child: Object) -> list[Key]:
    """Return the keys of the OpenStackServer, and of the pool of its address."""
    namespace, name = child["metadata"]["namespace"], child["metadata"]["name"]
    pool = child["spec"].get("floatingIPPoolRef") or {}
    is_ours = pool.get("kind") == OPENSTACK_FLOATING_IP_POOL.kind
    pools = [Key(OPENSTACK_FLOATING_IP_POOL, namespace, pool["name"])] if is_ours else []
    return [Key(OPENSTACK_SERVER, namespace, name), *pools]


# -- after a restart ---------------------------------------------------------------------------------------------------


def restore(cloud: Cloud, context: ReconcileContext) -> None:
    """Keep what the replacements of other clusters need that an earlier process began in the project of a cloud."""
    places = cloud.quota_holds.places
    for obj in context.deps.store.find(_UNFINISHED, str(cloud.location)):
        key = key_of(OPENSTACK_CLUSTER, obj)
        if key == context.key or rules.pause_cause(obj, _owner(obj, context)):
            continue
        if _waits_for_load_balancer(obj) and not places.knows(key, LOAD_BALANCER):
            places.keep(key, LOAD_BALANCER, _of_load_balancer(obj))
        if _is_replacing_bastion(obj):
            with contextlib.suppress(CapoError, NotYetObserved, ValueError):  # a fault of the other cluster
                _restore_bastion(cloud, obj, context)


def _restore_bastion(cloud: Cloud, obj: Object, context: ReconcileContext) -> None:
    child = _new_bastion(obj, context)
    if child and not cloud.quota_holds.places.knows(_creators(child)[0], _slot(child)):
        renew_bastion(cloud, child)


def _waits_for_load_balancer(obj: Object) -> bool:
    shown = conditions.find((obj.get("status") or {}).get("conditions") or (), "LoadBalancerReady")
    return _is_rebuilding(obj) and shown is not None and shown["status"] == "False"


def _is_replacing_bastion(obj: Object) -> bool:
    return bool((obj.get("status") or {}).get("bastionReplacement"))


def _unfinished(obj: Object) -> list[str]:
    """Return the location of a cluster with a replacement that is in progress, nothing for any other."""
    location = Ledger.read(obj.get("status")).location
    is_one = _waits_for_load_balancer(obj) or _is_replacing_bastion(obj)
    return [str(location)] if location and is_one and not obj["metadata"].get("deletionTimestamp") else []


_UNFINISHED: Final = Index(OPENSTACK_CLUSTER, _unfinished)


def _owner(obj: Object, context: ReconcileContext) -> Object | None:
    name = references.owner_cluster_name(obj)
    return context.deps.store.get(CLUSTER, obj["metadata"]["namespace"], name) if name else None


def _new_bastion(obj: Object, context: ReconcileContext) -> Object | None:
    """Return the OpenStackServer of a bastion, or one as the spec asks for; None if the spec asks for none."""
    cluster, namespace = OpenStackCluster.model_validate(obj), obj["metadata"]["namespace"]
    name = names.bastion(references.owner_cluster_name(obj) or references.cluster_name(obj) or obj["metadata"]["name"])
    if known := context.deps.store.get(OPENSTACK_SERVER, namespace, name):
        return known
    bastion = cluster.spec.bastion
    if bastion is None or bastion.spec is None:
        return None
    purpose = server_spec.Purpose(identity_ref=cluster.spec.identity_ref)
    spec = server_spec.server_spec(bastion.spec, cluster, purpose)
    return {"metadata": {"namespace": namespace, "name": name}, "spec": spec}
