"""Release the addresses of claims that are deleted, and delete the pool's floating IPs with the pool.

The deletion of a claim is requested by its user; then the pool deletes the IPAddress, whose deletion timestamp is the
record that the release began, deletes or keeps the floating IP, and removes the finalizers. Each part is repeated by
the next reconcile if this one ends early. A floating IP that leads to a port is never deleted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from capo.engine.steps import Done, NotNeeded, Outcome, Wait
from capo.errors import BlockedError, CapoError, NotFoundError, NotYetObserved
from capo.json_types import Body, Object
from capo.kube.errors import Conflict, Denied, Invalid
from capo.kube.kinds import IP_ADDRESS, IP_ADDRESS_CLAIM
from capo.openstack import floating_ip
from capo.openstack.floating_ip import FloatingIP
from controllers import ipam_versions
from controllers.openstackfloatingippool import candidates, ipam, ipam_writes, takeover
from controllers.openstackfloatingippool.scope import KIND, PoolScope, ip_in, role_of

LOOK_AGAIN_S: Final = 30.0
"""No event reports that a floating IP was dissociated."""


def ensure_released(scope: PoolScope) -> Outcome:
    """Release the addresses of all claims that are being deleted and that their users let go."""
    _hold_all(scope)
    blocked = _release_all(scope)
    return Wait("Deleting", blocked, LOOK_AGAIN_S) if blocked else Done()


def remove_all(scope: PoolScope) -> Outcome:
    """Release addresses, wait for the other claims, then delete the pool's floating IPs unless they are retained."""
    if scope.context.is_taken_over:
        takeover.record(scope)
    _hold_all(scope)
    blocked = _release_all(scope)
    if waited_for := _left(scope):
        return Wait("Deleting", f"waiting for {waited_for}" + (f"; {blocked}" if blocked else ""), LOOK_AGAIN_S)
    own = candidates.own(scope)
    if scope.pool.spec.reclaim_policy == "Retain":
        return _leave(scope, own)
    if own and (unseen := _unseen(scope)):
        return Wait("Deleting", unseen, LOOK_AGAIN_S)
    for body in candidates.recorded(scope):
        if not scope.is_own(body):
            _report_kept(scope, body)
    prepared = candidates.prepared_ips(scope)
    used = [left for body in own if ip_in(body) not in prepared if (left := _end(scope, body))]
    if used:
        raise BlockedError("; ".join(used), next_step="Dissociate them, or have the pool retain its floating IPs.")
    return NotNeeded()


def _hold_all(scope: PoolScope) -> None:
    """Add our finalizers to the claims with an IPAddress, and to that.

    The Go provider answered some without the first; without the other an IPAddress is deleted while its claim exists.
    """
    deps, store = scope.context.deps, scope.context.deps.store
    for claim in scope.claims():
        address = ipam.address_of(claim, store)
        if address is None or not ipam.is_of(address, claim) or ipam.is_deleting(claim):
            continue
        if ipam.pause_cause(claim, store) is None:
            with scope.isolated(claim):
                ipam_writes.add_finalizer(deps, IP_ADDRESS_CLAIM, claim, ipam.CLAIM_FINALIZER, by=scope.context.key)
                ipam_writes.add_finalizer(deps, IP_ADDRESS, address, ipam.ADDRESS_FINALIZER, by=scope.context.key)


def _unseen(scope: PoolScope) -> str:
    """Return which claims and IPAddresses the API server has although the store does not, in words; empty for none.

    The store forgets a kind that is not served at present. A floating IP is not deleted because of that.
    """
    left = []
    for kind in (IP_ADDRESS_CLAIM, IP_ADDRESS):
        listed = ipam_versions.list_all(scope.context.deps.kube, kind, scope.context.key.namespace)
        if listed is None:
            return (
                f"the API server does not serve {kind.kind}s at present, so nothing shows which floating IPs are in "
                "use; they are deleted when it does"
            )
        left += [f"{kind.kind} {ipam.ident(each)[1]}" for each in listed if ipam.pool_of(each) == ipam.ident(scope.obj)]
    return f"waiting for {_listed(left)} to be deleted" if left else ""


def _leave(scope: PoolScope, own: Iterable[Body]) -> Outcome:
    kept = ipam.in_order(FloatingIP(body).address for body in own)
    if kept:
        scope.emit("FloatingIPKept", f"the pool retains its floating IPs: {', '.join(kept)}")
    return NotNeeded()


def _left(scope: PoolScope) -> str:
    """Return which claims and IPAddresses of the pool are left, in words; empty if there are none."""
    claims = [each["metadata"]["name"] for each in scope.claims()]
    addresses = [each["metadata"]["name"] for each in scope.addresses() if each["metadata"]["name"] not in claims]
    parts = [("IPAddressClaims", claims), ("IPAddresses", addresses)]
    return " and ".join(f"{kind} to be deleted: {_listed(found)}" for kind, found in parts if found)


def _listed(found: list[str], most: int = 20) -> str:
    shown = ", ".join(sorted(found)[:most])
    return shown if len(found) <= most else f"{shown} and {len(found) - most} more"


def _release_all(scope: PoolScope) -> str:
    """Release what can be released; return what blocks the rest, in words.

    Raises:
        CapoError, NotYetObserved: the first failure, after all were tried.
    """
    blocked: list[str] = []
    failure: CapoError | NotYetObserved | None = None
    for task in [*_of_addresses(scope), *_of_claims(scope)]:
        try:
            if left := task():
                blocked.append(left)
        except (CapoError, NotYetObserved) as error:
            failure = failure or error
        except (Conflict, Denied, Invalid) as error:
            blocked.append(f"the API server refused a write: {error}")
    if failure:
        raise failure
    return "; ".join(blocked)


def _of_addresses(scope: PoolScope) -> list[Callable[[], str | None]]:
    def task(address: Object) -> Callable[[], str | None]:
        return lambda: _release(scope, address)

    return [task(address) for address in scope.addresses() if _is_due(scope, address)]


def _of_claims(scope: PoolScope) -> list[Callable[[], str | None]]:
    def task(claim: Object) -> Callable[[], str | None]:
        return lambda: _end_claim(scope, claim)

    store = scope.context.deps.store
    return [
        task(claim)
        for claim in scope.claims()
        if ipam.is_let_go(claim)
        and ipam.CLAIM_FINALIZER in (claim["metadata"].get("finalizers") or ())
        and ipam.pause_cause(claim, store) is None
    ]


def _is_due(scope: PoolScope, address: Object) -> bool:
    """Return whether an IPAddress is to be released: its claim is let go, or both are being deleted or gone.

    That a claim is missing is no reason to delete the IPAddress: in a restore it may follow later.
    """
    store = scope.context.deps.store
    claim = store.get(IP_ADDRESS_CLAIM, address["metadata"]["namespace"], ipam.claim_name(address))
    if ipam.is_moving(address):
        return False
    if claim is not None and ipam.is_of(address, claim):
        return ipam.is_let_go(claim) and ipam.pause_cause(claim, store) is None
    return ipam.is_held(address, ipam.ADDRESS_FINALIZER) and has_lost_claim(scope, address)


def has_lost_claim(scope: PoolScope, address: Object) -> bool:
    """Return whether the API server has no claim of the name of an IPAddress's; the store may lag behind.

    Nothing is known while it serves no claims.
    """
    namespace, name = address["metadata"]["namespace"], ipam.claim_name(address)
    claim = ipam_versions.get(scope.context.deps.kube, IP_ADDRESS_CLAIM, namespace, name)
    return _are_claims_served(scope) if claim is None else not ipam.is_of(address, claim)


def _are_claims_served(scope: PoolScope) -> bool:
    """Return whether the API server serves claims, asked once in a reconcile."""
    if scope.found.are_claims_served is None:
        listed = ipam_versions.list_all(scope.context.deps.kube, IP_ADDRESS_CLAIM, scope.context.key.namespace)
        scope.found.are_claims_served = listed is not None
    return scope.found.are_claims_served


def _release(scope: PoolScope, address: Object) -> str | None:
    """Release one address; return what blocks that, in words, None if it is done."""
    deps, key = scope.context.deps, scope.context.key
    if not ipam.is_deleting(address):
        ipam_writes.delete_address(deps, address, by=key)
    if left := _give_back(scope, ipam.ip_of(address)):
        return f"{left}, which holds IPAddress {address['metadata']['name']}"
    ipam_writes.remove_finalizer(deps, IP_ADDRESS, address, ipam.ADDRESS_FINALIZER, by=key)
    return None


def _give_back(scope: PoolScope, ip: str) -> str | None:
    """Delete the floating IP of a released address if the policy demands it and it is the pool's own."""
    if scope.pool.spec.reclaim_policy == "Retain" or ip in candidates.prepared_ips(scope) or _is_shared(scope, ip):
        return None
    known = scope.known_with(ip)
    # A list that is not older than the pool's last write proves that there is none.
    own = known or [body for body in candidates.own(scope) if ip_in(body) == ip]
    for body in own:
        if not scope.is_own(body):
            _report_kept(scope, body)
        elif left := _end(scope, body):
            return left
    return None


def _report_kept(scope: PoolScope, body: Body) -> None:
    """Report a floating IP that is not deleted because nothing proves that it was created for this pool."""
    text = f"floating IP {FloatingIP(body).address} with id {body['id']} was not created for this pool and is kept"
    scope.emit("FloatingIPKept", text, severity="Warning")


def _is_shared(scope: PoolScope, ip: str) -> bool:
    """Return whether another IPAddress of the pool has the address too, as two managers may have left it."""
    # The one that is released is being deleted by now, and so is skipped.
    return any(not ipam.is_deleting(each) for each in scope.addresses_with(ip))


def _end(scope: PoolScope, body: Body) -> str | None:
    """Delete a floating IP of the pool; return what blocks that, in words, None if it is deleted."""
    now = _now(scope, body)
    if not scope.is_own(now):
        _report_kept(scope, now)  # somebody removed the stamp since the list: it belongs to the pool no longer
        return None
    if FloatingIP(now).port_id:
        return f"floating IP {FloatingIP(now).address} leads to {scope.port_of(now)}"
    try:
        floating_ip.delete(scope.cloud, body["id"])
    except CapoError as error:
        scope.cloud_view.failed(KIND, body["id"], error)
        raise
    scope.cloud_view.forget(KIND, body["id"])
    scope.emit("SuccessfulDeleteFloatingIP", f"Deleted floating IP {FloatingIP(body).address}")
    return None


def _now(scope: PoolScope, body: Body) -> Body:
    """Return a floating IP as Neutron has it; one that it does not find is deleted with the proof that this needs."""
    try:
        now = floating_ip.get(scope.cloud, body["id"])
    except NotFoundError:
        return body if not FloatingIP(body).port_id else {**body, "port_id": None}
    scope.cloud_view.upsert(KIND, now)
    return now


def _end_claim(scope: PoolScope, claim: Object) -> str | None:
    """Remove the finalizer of a claim once its IPAddress is gone; release a floating IP that it never got."""
    deps, key = scope.context.deps, scope.context.key
    namespace, name = ipam.ident(claim)
    address = ipam_versions.get(deps.kube, IP_ADDRESS, namespace, name)
    if address is not None and ipam.is_of(address, claim):
        return None  # its own task releases it, in the next reconcile if it is new to the store
    body = candidates.born(scope, scope.born_for(role_of(claim))).get(role_of(claim))
    ip = ip_in(body) if body is not None else None
    if ip is not None and not scope.addresses_with(ip) and (left := _give_back(scope, ip)):
        return f"{left}, which holds IPAddressClaim {name}"
    ipam_writes.remove_finalizer(deps, IP_ADDRESS_CLAIM, claim, ipam.CLAIM_FINALIZER, by=key)
    return None
