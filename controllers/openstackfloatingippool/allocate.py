"""Give each claim a floating IP: an existing one of the pool, else a new one.

The IPAddress with the name of the claim is the record of the allocation; ``answer.py`` publishes it in the claim. A
floating IP is read from Neutron right before it is allocated, and one that leads to a port is left alone. Source: W-08,
W-13, W-33; ADR 0001.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Final

from capo import names
from capo.engine.steps import Create, Done, Outcome, Wait
from capo.errors import CapoError, NotFoundError
from capo.json_types import Body, Object
from capo.kube.kinds import IP_ADDRESS_CLAIM
from capo.ledger import Pending
from capo.openstack import floating_ip, quota
from capo.openstack.floating_ip import FloatingIP, WantedFloatingIP
from controllers.openstackfloatingippool import candidates, ipam, ipam_writes, takeover
from controllers.openstackfloatingippool.scope import KIND, PoolScope, ip_in, role_of

FRESH_S: Final = 30.0
"""A list older than this does not show what a user prepared or freed since."""
EXHAUSTED_S: Final = 60.0
"""Interval at which free floating IPs are searched for while claims wait."""
BATCH: Final = 10
"""Floating IPs that are created between two writes of the status."""
MAX_CREATES: Final = 30
"""Floating IPs that one reconcile creates, so that others of the namespace and a deletion take their turn."""
MAX_ADDRESSES: Final = 2000
"""Addresses of one pool: its status names each, and etcd stores at most 1.5 MiB."""


def ensure_allocated(scope: PoolScope) -> Outcome:
    """Allocate the floating IPs that exist to the claims that wait."""
    waiting = [claim for claim in scope.unanswered() if _is_kept(scope, claim)]
    if scope.context.is_taken_over:
        takeover.record(scope)
    bodies = scope.floating_ips(max_age_s=FRESH_S if waiting else None)
    if waiting and bodies and not scope.is_located():
        return wait_for_location()
    born = candidates.born(scope, bodies)
    left = [claim for claim in waiting if not _allocate_born(scope, claim, born.get(role_of(claim)))]
    held = candidates.holders(scope)
    for body in candidates.free(scope, bodies, held):
        left = [claim for claim in left if not scope.is_refused(claim)]
        if not left:
            break
        if _allocate_free(scope, left[0], body):
            left.pop(0)
    _settle(scope, left)
    _drop_stale_records(scope, bodies)
    scope.found.refused |= candidates.refusals(scope, scope.known(), candidates.holders(scope))
    return Done()


def wait_for_location() -> Wait:
    """Return the wait for the write of the pool's location. The intents of creates are stored with it, too."""
    return Wait("Building", "recording the project of the pool before its first address", after_s=0.0)


def _is_kept(scope: PoolScope, claim: Object) -> bool:
    """Add our finalizer to a claim before anything is done for it; return False if it is gone, or that is refused."""
    deps, key = scope.context.deps, scope.context.key
    kept = None
    with scope.isolated(claim):
        kept = ipam_writes.add_finalizer(deps, IP_ADDRESS_CLAIM, claim, ipam.CLAIM_FINALIZER, by=key)
    if kept is None:
        return False
    scope.found.kept.add(claim["metadata"]["uid"])
    return True


def _settle(scope: PoolScope, waiting: list[Object]) -> None:
    """Decide unanswered creates for claims that do not wait any more: they are answered, or gone."""
    ledger = scope.context.ledger
    roles = {role_of(claim) for claim in waiting}
    for pending in [each for each in ledger.pending.values() if each.role not in roles]:
        if scope.cloud_view.find(KIND, pending.role) is None and _is_over(scope, pending):
            ledger.drop(pending.role)


def _drop_stale_records(scope: PoolScope, bodies: list[Body]) -> None:
    """Drop the records of floating IPs that were deleted externally: the status names each record.

    A list without one is no proof, so each is read; a few in each reconcile.
    """
    ledger, listed = scope.context.ledger, {body["id"] for body in bodies}
    claims = {role_of(claim) for claim in scope.claims()}
    gone = [each for each in ledger.records_of_kind(KIND) if each.id not in listed and each.role not in claims]
    for record in gone[:BATCH]:
        try:
            floating_ip.get(scope.cloud, record.id)
        except NotFoundError:
            scope.cloud_view.forget(KIND, record.id)
            ledger.drop(record.role)


def _is_over(scope: PoolScope, pending: Pending) -> bool:
    """Return whether a create without an answer can take effect no longer."""
    return scope.context.started_s >= pending.since_s + scope.context.deps.ambiguous_window_s


def _claimed(scope: PoolScope) -> set[str]:
    return {ipam.ip_of(address) for address in scope.addresses()}


def _allocate_born(scope: PoolScope, claim: Object, body: Body | None) -> bool:
    """Allocate the floating IP that was created for a claim, if there is one; return whether it is allocated."""
    if body is None or scope.addresses_with(ip_in(body)):
        return False
    with _reserved(scope, body) as is_ours:
        return is_ours and _is_still_unused(scope, claim, body) and _allocate(scope, claim, body)


def _is_still_unused(scope: PoolScope, claim: Object, body: Body) -> bool:
    """Return whether the floating IP of a claim leads nowhere; it may be old, as after a restart."""
    ip = ip_in(body)
    if scope.is_unused(ip):
        return True
    now = _read(scope, body)
    if now is None or not scope.is_own(now):
        return False
    if FloatingIP(now).port_id:
        text = f"floating IP {ip}, which was created for this claim, leads to {scope.port_of(now)}; dissociate it"
        scope.found.occupied[ipam.ident(claim)] = text
        return False
    scope.note_unused(ip)
    return True


def _reserved(scope: PoolScope, body: Body) -> AbstractContextManager[bool]:
    return scope.reservations.of(scope.place(ip_in(body)))


def _allocate_free(scope: PoolScope, claim: Object, body: Body) -> bool:
    """Allocate a floating IP that exists; return False if it is not free any more."""
    with _reserved(scope, body) as is_ours:
        return is_ours and _is_usable(scope, body) and _allocate(scope, claim, body)


def _is_usable(scope: PoolScope, body: Body) -> bool:
    """Return whether a floating IP exists and leads nowhere, read from Neutron."""
    now = _read(scope, body)
    if now is None:
        scope.found.refused[ip_in(body)] = "Neutron does not find it"
        return False
    is_same = FloatingIP(now).address == FloatingIP(body).address
    if not is_same or candidates.why_not(scope, now, candidates.holders(scope)) is not None:
        return False
    scope.note_unused(ip_in(now))
    return True


def _read(scope: PoolScope, body: Body) -> Body | None:
    """Return a floating IP, read from Neutron; None if it does not find it."""
    try:
        now = floating_ip.get(scope.cloud, body["id"])
    except NotFoundError:
        scope.cloud_view.invalidate(KIND, body["id"])
        return None
    scope.cloud_view.upsert(KIND, now)
    return now


def _allocate(scope: PoolScope, claim: Object, body: Body) -> bool:
    """Create the IPAddress of a claim; return False if that is refused, as where one of this name exists by now."""
    wanted = ipam.wanted_address(claim, scope.obj, ip_in(body))
    with scope.isolated(claim):
        made = ipam_writes.create_address(scope.context.deps, wanted, scope.context.key)
        scope.reservations.note_created(made["metadata"]["uid"])
        return True
    return False


def ensure_created(scope: PoolScope) -> Outcome:
    """Create floating IPs for the claims that are left, up to ``maxIPs``."""
    # Without our finalizer a claim may be gone, and its IPAddress would have no other owner than the pool.
    kept = [claim for claim in scope.unanswered() if claim["metadata"]["uid"] in scope.found.kept]
    able = [claim for claim in kept if not scope.is_refused(claim)]
    waiting = [claim for claim in able if not _is_found(scope, claim) and not scope.is_refused(claim)]
    if not waiting:
        return _occupied(scope, kept)
    pending = scope.context.ledger.pending
    room = _room(scope)
    decided = [claim for claim in waiting if role_of(claim) not in pending]
    # Those whose create proved to have had no effect hold room already, unless maxIPs was lowered since.
    over = [claim for claim in waiting if (known := pending.get(role_of(claim))) and _is_over(scope, known)]
    batch = over[: max(0, min(BATCH, len(over) + min(0, room)))] or decided[: max(0, min(BATCH, room))]
    if not batch and (over or decided):
        return _full(scope, over + decided)
    if scope.found.created >= MAX_CREATES:
        return Wait("Building", f"creating floating IPs for {len(waiting)} more claims", after_s=0.0)
    batch = batch or waiting[:BATCH]  # creates without an answer, for which the create protocol waits
    scope.found.created += len(batch)
    return _create(scope, batch)


def _occupied(scope: PoolScope, claims: list[Object]) -> Outcome:
    """Return why claims wait whose floating IPs exist and cannot be allocated."""
    texts = [text for claim in claims if (text := scope.found.occupied.get(ipam.ident(claim)))]
    if not texts:
        return Done()
    # No event reports that a floating IP was dissociated.
    return Wait("ForeignResource", f"{len(texts)} claims wait for their floating IPs; {texts[0]}", EXHAUSTED_S)


def _is_found(scope: PoolScope, claim: Object) -> bool:
    """Allocate the floating IP that was created for a claim; return False if it is proven that there is none.

    One list proves it for all claims: what this reconcile creates for one is not that of another.

    Raises:
        NotYetObserved: the floating IPs are being listed.
    """
    role = role_of(claim)
    if role in scope.found.absent and not scope.context.ledger.knows(role):
        return False
    body = scope.cloud_view.find(KIND, role)
    if body is None:
        scope.found.absent.add(role)
        return False
    ident = ipam.ident(claim)
    if ident in scope.found.occupied:
        return True
    if not _allocate_born(scope, claim, body) and not scope.is_refused(claim):
        text = f"another IPAddress has {FloatingIP(body).address}, which was created for this claim"
        scope.found.occupied.setdefault(ident, text)
    return True


def _room(scope: PoolScope) -> int:
    """Return how many floating IPs the pool may create: claimed ones count, and creates whose answer was lost."""
    limit = scope.pool.spec.max_ips
    born, waiting = candidates.born(scope, scope.known()), map(role_of, scope.unanswered())
    claimed = _claimed(scope) | {ip_in(born[role]) for role in waiting if role in born}
    ledger = scope.context.ledger
    storable = MAX_ADDRESSES - max(len(claimed), len(ledger.records_of_kind(KIND)))
    room = storable if limit is None or limit < 0 else min(storable, limit - len(claimed))
    return room - len(ledger.pending)


def _full(scope: PoolScope, waiting: list[Object]) -> Wait:
    limit = scope.pool.spec.max_ips
    is_own = limit is not None and 0 <= limit <= MAX_ADDRESSES
    most = f"all {limit} addresses of spec.maxIPs" if is_own else f"{MAX_ADDRESSES} addresses, the most of one pool,"
    text = f"{most} are claimed or being created; {len(waiting)} claims wait"
    scope.found.trouble = "MaxIPsReached", text
    return Wait("MaxIPsReached", text, EXHAUSTED_S)


def _create(scope: PoolScope, claims: list[Object]) -> Create:
    """Return the create of one floating IP for each claim, with one write of the intents.

    A refusal ends it. What was created before that is found by its stamp.
    """
    found = scope.found.network
    if found is None:
        raise AssertionError("the network is resolved: the step needs it")
    roles = tuple(map(role_of, claims))
    sent: set[str] = set()

    def call() -> dict[str, Body]:
        made: dict[str, Body] = {}
        for role in roles:
            sent.add(role)
            wanted = WantedFloatingIP(scope.stamp(role), found.id, names.floating_ip_description(scope.name))
            try:
                made[role] = floating_ip.create(scope.cloud, wanted)
            except CapoError as error:
                scope.found.trouble = error.reason, error.sentence
                raise
            scope.cloud_view.upsert(KIND, made[role])
            scope.note_unused(ip_in(made[role]))
        return made

    def note_hold(reason: str, message: str) -> None:
        scope.found.trouble = reason, message

    # It asks for one alone: if there is room for fewer than all, it creates those.
    one = quota.of_create("floating_ip", 1)
    return Create("floating_ip", roles, call, sent, needs=lambda: one, note_hold=note_hold)
