"""IPAddressClaims and IPAddresses of a pool: which they are and what their state means; pure.

Source: docs/reference/contract.md, C-72 to C-74.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from typing import Any, Final

from capo import names
from capo.contract import references, rules
from capo.engine.store import Index, Store
from capo.json_types import Object
from capo.kube.kinds import CLUSTER, IP_ADDRESS, IP_ADDRESS_CLAIM, OPENSTACK_FLOATING_IP_POOL, Kind

ADDRESS_FINALIZER: Final = f"{names.finalizer(OPENSTACK_FLOATING_IP_POOL.kind)}/delete-floating-ip"
"""The Go provider's: an IPAddress exists until its floating IP is released."""
CLAIM_FINALIZER: Final = f"{names.finalizer(OPENSTACK_FLOATING_IP_POOL.kind)}/release-address"
"""A claim exists until its IPAddress is deleted: the pool owns the IPAddress, too, so Kubernetes does not delete it."""
_OF_KUBERNETES: Final = {"foregroundDeletion", "orphan"}
"""Finalizers that wait for the IPAddress, so that waiting for them would never end."""

Ident = tuple[str, str]


def ident(obj: Object) -> Ident:
    """Return namespace and name."""
    return obj["metadata"]["namespace"], obj["metadata"]["name"]


def pool_of(obj: Object) -> Ident | None:
    """Return namespace and name of the OpenStackFloatingIPPool of a claim or an IPAddress; None for other pools."""
    ref = (obj.get("spec") or {}).get("poolRef") or {}
    is_ours = ref.get("kind") == OPENSTACK_FLOATING_IP_POOL.kind and ref.get("apiGroup") in (None, "", names.GROUP)
    return (obj["metadata"]["namespace"], ref["name"]) if is_ours and ref.get("name") else None


def of_pool(kind: Kind, pool: Object, store: Store) -> list[Object]:
    """Return the claims or IPAddresses of a pool, oldest first."""
    found = store.find(_BY_POOL[kind], ident(pool))
    return sorted(found, key=lambda each: (str(each["metadata"].get("creationTimestamp") or ""), ident(each)))


def _pools(obj: Object) -> list[Ident]:
    pool = pool_of(obj)
    return [pool] if pool else []


_BY_POOL: Final = {kind: Index(kind, _pools) for kind in (IP_ADDRESS, IP_ADDRESS_CLAIM)}


def with_ip(ip: str, store: Store) -> list[Object]:
    """Return the IPAddresses of an address, in its usual spelling, of all pools and namespaces."""
    return store.find(_BY_IP, ip)


_BY_IP: Final = Index(IP_ADDRESS, lambda address: [ip_of(address)])


def is_moving(obj: Object) -> bool:
    """Return whether ``clusterctl move`` deletes an object here because it exists elsewhere."""
    return names.DELETE_FOR_MOVE_ANNOTATION in (obj["metadata"].get("annotations") or {})


def is_deleting(obj: Object) -> bool:
    """Return whether the deletion of an object was requested."""
    return bool(obj["metadata"].get("deletionTimestamp"))


def is_held(obj: Object, finalizer: str) -> bool:
    """Return whether the deletion of an object waits for our finalizer; False during ``clusterctl move``."""
    return is_deleting(obj) and finalizer in (obj["metadata"].get("finalizers") or ()) and not is_moving(obj)


def is_let_go(claim: Object) -> bool:
    """Return whether a claim is being deleted and its user holds it no longer, as a server does for its ports."""
    left = set(claim["metadata"].get("finalizers") or ()) - {CLAIM_FINALIZER} - _OF_KUBERNETES
    return is_deleting(claim) and not left and not is_moving(claim)


def address_name(claim: Object) -> str | None:
    """Return the name of the IPAddress in a claim's status, None if there is none."""
    return ((claim.get("status") or {}).get("addressRef") or {}).get("name") or None


def claim_name(address: Object) -> str:
    """Return the name of the claim of an IPAddress."""
    return str(((address.get("spec") or {}).get("claimRef") or {}).get("name") or address["metadata"]["name"])


def is_of(address: Object, claim: Object) -> bool:
    """Return whether an IPAddress is that of a claim, by names: a restored claim has another uid than its owner."""
    is_named = claim_name(address) == address["metadata"]["name"] == claim["metadata"]["name"]
    return is_named and pool_of(address) is not None and pool_of(address) == pool_of(claim)


def is_unmoved(address: Object, claim: Object) -> bool:
    """Return whether an IPAddress was created for this very claim; one that was moved or restored has another uid."""
    created_for = (address["metadata"].get("annotations") or {}).get(names.CLAIM_UID_ANNOTATION)
    return bool(created_for == claim["metadata"]["uid"])


def address_of(claim: Object, store: Store) -> Object | None:
    """Return the IPAddress that has the name of a claim, of whatever claim; None if there is none."""
    return store.get(IP_ADDRESS, *ident(claim))


def ip_of(address: Object) -> str:
    """Return the address of an IPAddress in its usual spelling."""
    return spelt(str((address.get("spec") or {}).get("address") or ""))


def spelt(ip: str) -> str:
    """Return an address in its usual spelling; other text is returned as it is."""
    try:
        return str(ipaddress.ip_address(ip))
    except ValueError:
        return ip


def in_order(ips: Iterable[str]) -> list[str]:
    """Return addresses as a set, in numerical order."""
    return sorted({spelt(ip) for ip in ips}, key=_rank)


def _rank(ip: str) -> tuple[int, int, str]:
    try:
        parsed = ipaddress.ip_address(ip)
    except ValueError:
        return (9, 0, ip)
    return (parsed.version, int(parsed), ip)


def cluster_name(claim: Object) -> str | None:
    """Return the name of a claim's Cluster, None if it has none."""
    return (claim.get("spec") or {}).get("clusterName") or references.cluster_name(claim)


def pause_cause(claim: Object, store: Store) -> str | None:
    """Return why a claim is not handled at present, None if it is.

    A Cluster that is gone blocks no release.
    """
    name = cluster_name(claim)
    cluster = store.get(CLUSTER, claim["metadata"]["namespace"], name) if name else None
    if name and cluster is None and not is_deleting(claim):
        return f"Cluster {name} does not exist"
    is_annotated = cluster is not None and names.PAUSED_ANNOTATION in (cluster["metadata"].get("annotations") or {})
    if is_annotated:
        return f"Cluster {name} has the annotation {names.PAUSED_ANNOTATION}"
    return rules.pause_cause(claim, cluster)


def wanted_address(claim: Object, pool: Object, ip: str) -> dict[str, Any]:
    """Return the IPAddress that allocates an address to a claim, in the version of the claim."""
    given = claim["metadata"].get("labels") or {}
    labels = {label: given[label] for label in (names.CLUSTER_NAME_LABEL, names.WATCH_FILTER_LABEL) if given.get(label)}
    namespace, name = ident(pool)
    return {
        "apiVersion": claim["apiVersion"],
        "kind": IP_ADDRESS.kind,
        "metadata": {
            "name": claim["metadata"]["name"],
            "namespace": namespace,
            "labels": labels,
            "annotations": {names.CLAIM_UID_ANNOTATION: claim["metadata"]["uid"]},
            "finalizers": [ADDRESS_FINALIZER],
            "ownerReferences": [
                references.controller_reference(claim),
                {**references.controller_reference(pool), "controller": False},
            ],
        },
        "spec": {
            "claimRef": {"name": claim["metadata"]["name"]},
            "poolRef": {**claim["spec"]["poolRef"], "name": name},  # Cluster API wants it equal to the claim's
            "address": ip,
            "prefix": ipaddress.ip_address(ip).max_prefixlen,
        },
    }
