"""Which pools are requeued when an object of another kind changes; pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from capo.engine.store import Index, Route, Store
from capo.json_types import Object
from capo.kube.kinds import CLUSTER, IP_ADDRESS, IP_ADDRESS_CLAIM
from controllers.openstackfloatingippool import ipam


def of_claim(obj: Object, _store: Store) -> Iterable[ipam.Ident]:
    """Requeue the pool of an IPAddressClaim or an IPAddress."""
    pool = ipam.pool_of(obj)
    return [pool] if pool else []


def of_cluster(cluster: Object, store: Store) -> Iterable[ipam.Ident]:
    """Requeue the pools whose claims wait for a Cluster: it was paused, unpaused or created."""
    namespace, name = ipam.ident(cluster)
    waiting = (
        ipam.pool_of(claim)
        for claim in store.find(_BY_CLUSTER, (namespace, name))
        if ipam.address_name(claim) is None or ipam.is_deleting(claim)
    )
    return sorted({pool for pool in waiting if pool})


def _cluster(claim: Object) -> Iterable[ipam.Ident]:
    name = ipam.cluster_name(claim)
    return [(claim["metadata"]["namespace"], name)] if name else []


_BY_CLUSTER: Final = Index(IP_ADDRESS_CLAIM, _cluster)


ROUTES: Final = (Route(IP_ADDRESS_CLAIM, of_claim), Route(IP_ADDRESS, of_claim), Route(CLUSTER, of_cluster))
