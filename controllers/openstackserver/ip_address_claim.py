"""The address that a server claims from a pool: IPAddressClaim and IPAddress, with any provider of the pool.

The claim is created before any OpenStack resource: a server whose pool is exhausted costs nothing. It is deleted after
the ports, so that no pool reuses an address that is still associated. Source:
docs/explanation/go-provider.md, G-26 and G-30, W-07, W-14, W-22; Cluster API's contract for IPAM providers
(https://cluster-api.sigs.k8s.io/developer/providers/contracts/ipam).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from capo import names
from capo.engine import conditions
from capo.engine.steps import Done, NotNeeded, Outcome, Wait
from capo.errors import ForeignResourceError, InvalidSpecError
from capo.json_types import Object
from capo.kube import patches
from capo.kube.errors import Conflict, Gone
from capo.kube.kinds import IP_ADDRESS, IP_ADDRESS_CLAIM, Kind
from controllers import ipam_versions
from controllers.openstackserver.scope import ServerScope

WAITING: Final = "WaitingForIPAMProvider"
FINALIZER: Final = "openstackmachine.infrastructure.cluster.x-k8s.io/ip-claim"
"""The Go provider's; the name predates OpenStackServers."""
LOOK_AGAIN_S: Final = 30.0
"""The watch reports the address at once, but may not run yet if the CRDs were installed just now."""
MAX_CONFLICTS: Final = 8
_POOL_KIND: Final = "OpenStackFloatingIPPool"


def ensure(scope: ServerScope) -> Outcome:
    """Require an address allocated from the pool; ``address.py`` associates it."""
    if scope.server.spec.floating_ip_pool_ref is None:
        return NotNeeded()
    if scope.known_server_id is not None:
        return Done()
    found = allocated(scope)
    return found if isinstance(found, Wait) else Done()


def allocated(scope: ServerScope) -> str | Wait:
    """Return the address of the claim, creating the claim if it is missing; or what to wait for.

    Raises:
        InvalidSpecError: the reference to the pool has no API group.
        ForeignResourceError: a claim of this name belongs to another object.
    """
    try:
        claim = _find(scope) or _created(scope)
    except Gone:
        return _wait(f"the kind IPAddressClaim of {IP_ADDRESS_CLAIM.group} is not served: install Cluster API's core")
    if not _is_ours(scope, claim):
        return _of_foreign(scope, claim)
    claim = _with_owner(scope, claim)
    return _address_of(scope, claim) or _wait(f"{_named_pool(claim)} has not allocated an address yet{_cause(claim)}")


def _cause(claim: Object) -> str:
    """Return what the pool's controller reports about a claim that waits; empty if it reports nothing."""
    shown = conditions.find((claim.get("status") or {}).get("conditions") or (), conditions.READY)
    is_waiting = shown is not None and shown.get("status") == "False"
    return f": {shown.get('message') or shown.get('reason')}" if shown and is_waiting else ""


def _named_pool(claim: Mapping[str, Any]) -> str:
    """Return kind and name of a claim's pool, with the API group if it is another provider's."""
    ref = claim["spec"]["poolRef"]
    where = f" of {ref['apiGroup']}" if ref.get("apiGroup") not in (None, names.GROUP) else ""
    return f"{ref['kind']} {ref['name']}{where}"


def remove(scope: ServerScope) -> Outcome:
    """Release the address: remove our finalizer from the claim and delete it; the pool's controller does the rest."""
    if scope.server.spec.floating_ip_pool_ref is None:
        return NotNeeded()
    for _ in range(MAX_CONFLICTS):
        claim = ipam_versions.get(scope.context.deps.kube, IP_ADDRESS_CLAIM, scope.namespace, claim_name(scope))
        if claim is None or not _is_ours(scope, claim):
            return Done()
        try:
            _release(scope, claim)
        except Conflict:
            continue
        return Done()
    raise Conflict(f"IPAddressClaim {claim_name(scope)}: changed at each of {MAX_CONFLICTS} tries")


def _release(scope: ServerScope, claim: Object) -> None:
    """Remove our finalizer and delete the claim, which Kubernetes does only where its garbage collector runs."""
    kube, metadata = scope.context.deps.kube, claim["metadata"]
    served = IP_ADDRESS_CLAIM.as_read(claim)
    if operations := patches.without_finalizer(claim, FINALIZER):
        answer = kube.json_patch(served, scope.namespace, metadata["name"], operations)
        scope.context.deps.store.apply_own(IP_ADDRESS_CLAIM, answer, by=scope.context.key)
    if not metadata.get("deletionTimestamp"):
        kube.delete(served, scope.namespace, metadata["name"], uid=metadata["uid"])


def _find(scope: ServerScope) -> Object | None:
    """Return the server's claim; while the store shows it without an address, it is read from the API server."""
    deps = scope.context.deps
    stored = deps.store.get(IP_ADDRESS_CLAIM, scope.namespace, claim_name(scope))
    if stored is not None and _address_name(stored):
        return stored
    return ipam_versions.get(deps.kube, IP_ADDRESS_CLAIM, scope.namespace, claim_name(scope))


def _created(scope: ServerScope) -> Object:
    """Create the claim.

    Raises:
        Gone: its kind is not served.
        Conflict: it was created concurrently; the next reconcile finds it.
    """
    deps = scope.context.deps
    try:
        made = deps.kube.create(IP_ADDRESS_CLAIM, wanted(scope))
    except Gone:
        older = IP_ADDRESS_CLAIM.in_older_version()
        if older is None:
            raise
        made = deps.kube.create(older, {**wanted(scope), "apiVersion": older.api_version})
    deps.store.apply_own(IP_ADDRESS_CLAIM, made, by=scope.context.key)
    deps.events.emit(
        scope.context.obj, "Normal", "CreatingIPAddressClaim", f"Created IPAddressClaim {made['metadata']['name']}"
    )
    return made


def wanted(scope: ServerScope) -> dict[str, Any]:
    """Return the claim to create."""
    obj = scope.context.obj
    given = obj["metadata"].get("labels") or {}
    labels = {label: given[label] for label in (names.CLUSTER_NAME_LABEL, names.WATCH_FILTER_LABEL) if given.get(label)}
    owner = {
        "apiVersion": obj["apiVersion"],
        "kind": obj["kind"],
        "name": scope.name,
        "uid": obj["metadata"]["uid"],
    }
    return {
        "apiVersion": IP_ADDRESS_CLAIM.api_version,
        "kind": IP_ADDRESS_CLAIM.kind,
        "metadata": {
            "name": claim_name(scope),
            "namespace": scope.namespace,
            "labels": labels,
            "finalizers": [FINALIZER],
            "ownerReferences": [owner],
        },
        "spec": {"poolRef": _pool(scope)},
    }


def _pool(scope: ServerScope) -> dict[str, str]:
    ref = scope.server.spec.floating_ip_pool_ref
    assert ref is not None  # noqa: S101 - for the type checker: callers have checked it
    group = ref.api_group or (names.GROUP if ref.kind == _POOL_KIND else None)
    if group is None:
        raise InvalidSpecError(
            f"spec.floatingIPPoolRef names the {ref.kind} {ref.name} without its apiGroup",
            next_step="Create a new server whose spec.floatingIPPoolRef has an apiGroup.",
        )
    return {"apiGroup": group, "kind": ref.kind, "name": ref.name}


def _address_name(claim: Object) -> str | None:
    return ((claim.get("status") or {}).get("addressRef") or {}).get("name") or None


def _address_of(scope: ServerScope, claim: Object) -> str | None:
    name = _address_name(claim)
    found = _read(scope, IP_ADDRESS, name) if name else None
    return str(found["spec"]["address"]) if found else None


def _read(scope: ServerScope, kind: Kind, name: str) -> Object | None:
    deps = scope.context.deps
    return deps.store.get(kind, scope.namespace, name) or ipam_versions.get(deps.kube, kind, scope.namespace, name)


def _is_ours(scope: ServerScope, claim: Object) -> bool:
    """Return whether a claim belongs to this server, or to its machine, as in older versions."""
    ours = {scope.context.obj["metadata"]["uid"], *(o.uid for o in scope.server.metadata.owner_references)}
    owners = claim["metadata"].get("ownerReferences") or ()
    return any(owner.get("uid") in ours for owner in owners) if owners else _is_restored(scope, claim)


def _is_restored(scope: ServerScope, claim: Object) -> bool:
    """Return whether a claim without owners is this server's: a restore from a backup drops owner references.

    Only the server that created the claim writes the finalizer, and it removes it when it is deleted.
    """
    ref, pool = scope.server.spec.floating_ip_pool_ref, claim["spec"]["poolRef"]
    is_of_pool = ref is not None and (ref.kind, ref.name) == (pool.get("kind"), pool.get("name"))
    return is_of_pool and FINALIZER in (claim["metadata"].get("finalizers") or ())


def _with_owner(scope: ServerScope, claim: Object) -> Object:
    """Return a claim of this server that has an owner; write the owner reference if a restore dropped it.

    Raises:
        Conflict: it has changed since it was read; the next reconcile repeats it.
    """
    metadata, deps = claim["metadata"], scope.context.deps
    if metadata.get("ownerReferences"):
        return claim
    fence = {"uid": metadata["uid"], "resourceVersion": metadata["resourceVersion"]}
    body = {"metadata": {**fence, "ownerReferences": wanted(scope)["metadata"]["ownerReferences"]}}
    changed: Object = deps.kube.patch(IP_ADDRESS_CLAIM.as_read(claim), scope.namespace, metadata["name"], body)
    deps.store.apply_own(IP_ADDRESS_CLAIM, changed, by=scope.context.key)
    return changed


def _of_foreign(scope: ServerScope, claim: Object) -> Wait:
    if claim["metadata"].get("deletionTimestamp"):
        return _wait(f"IPAddressClaim {claim_name(scope)} of an earlier server is being deleted")
    raise ForeignResourceError(
        f"IPAddressClaim {claim_name(scope)} was not created for this server",
        resource=f"IPAddressClaim {claim_name(scope)}",
    )


def claim_name(scope: ServerScope) -> str:
    """Return the name of the server's IPAddressClaim."""
    return names.floating_ip_claim(scope.name)


def _wait(message: str) -> Wait:
    return Wait(WAITING, message, LOOK_AGAIN_S)
