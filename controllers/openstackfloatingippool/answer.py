"""Publish allocated addresses in the claims, and show there why others wait.

Two managers, or two pools that name the same prepared floating IP, may allocate one address at the same time. Each
stores its location before it creates an IPAddress, and lists all IPAddresses after it, so at least one of the two sees
both and that they are of one project; who sees another one withdraws. An address is published only after such a list,
so two claims never get the same.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Any, Final

from capo.engine import conditions
from capo.engine.conditions import Condition
from capo.engine.steps import Done, Outcome, Wait
from capo.json_types import Object
from capo.kube.errors import Conflict
from capo.kube.kinds import IP_ADDRESS, IP_ADDRESS_CLAIM, keys_of, named_in
from capo.openstack import floating_ip
from capo.openstack.floating_ip import FloatingIP
from capo.openstack.kinds import FLOATING_IP
from controllers import ipam_versions
from controllers.openstackfloatingippool import candidates, ipam, ipam_writes
from controllers.openstackfloatingippool.allocate import wait_for_location
from controllers.openstackfloatingippool.scope import KIND, PoolScope

log = logging.getLogger(__name__)

AGAIN_S: Final = 2.0
LATER_S: Final = 60.0
"""Interval of further tries of what only a person can change; an edit of the claim is handled at once."""
REFUSED: Final = "WriteRefused"
_OLDER: Final = "v1beta1"
"""Conditions of claims in this version have another form."""
_OLDER_MESSAGE: Final = 10240
"""Maximum characters of their messages."""


def ensure_answered(scope: PoolScope) -> Outcome:
    """Set the address in the status of each claim that has one.

    Raises:
        NotYetObserved: nothing shows whether an IPAddress that this process did not create is another claim's, too.
    """
    pairs, later = _decidable(scope, _unpublished(scope))
    if pairs and not scope.is_located():
        return wait_for_location()
    everywhere = _by_ip(_listed(scope, pairs[0][1])) if pairs else {}
    withdrawn, taken = [], []
    for claim, address in pairs:
        same = everywhere.get(ipam.ip_of(address), ())
        rivals = [each for each in same if _is_rival(scope, each, address)]
        with scope.isolated(claim):
            if not rivals and _is_taken(scope, claim, address):
                taken.append(address)
                _withdraw(scope, address)
            elif not rivals:
                _publish(scope, claim, address)
            elif _may_withdraw(scope, address):
                withdrawn.append(address)
                scope.reservations.avoid(scope.place(ipam.ip_of(address)))
                _withdraw(scope, address)
            else:
                _note_conflict(scope, claim, address, rivals)
    _explain(scope)
    if later:
        scope.floating_ips()
    if taken:
        used = ", ".join(ipam.in_order(map(ipam.ip_of, taken)))
        return Wait("ForeignResource", f"{used} was deleted, or leads to a port; allocating others", AGAIN_S)
    return _outcome(scope, ipam.in_order(map(ipam.ip_of, withdrawn)))


_Pair = tuple[Object, Object]


def _decidable(scope: PoolScope, pairs: list[_Pair]) -> tuple[list[_Pair], list[_Pair]]:
    """Return what can be published now, and what only after the floating IPs were listed."""
    # What was created before this process started may be another claim's, too; with its first list, each pool shows
    # in its status where it allocates.
    is_listed, created = scope.cloud_view.was_listed(KIND), scope.reservations.has_created
    now = [pair for pair in pairs if is_listed or created(pair[1]["metadata"]["uid"])]
    return now, [pair for pair in pairs if pair not in now]


def _may_withdraw(scope: PoolScope, address: Object) -> bool:
    """Return whether an IPAddress was never named in its claim, so that no server uses it.

    After a restart, a move or a restore a claim without an address may have had one, which a server uses.
    """
    return scope.reservations.has_created(address["metadata"]["uid"]) and scope.cloud_view.was_listed(KIND)


def _is_taken(scope: PoolScope, claim: Object, address: Object) -> bool:
    """Return whether somebody uses or deleted an address since it was allocated, as before a restart or in a pause.

    A claim that was moved or restored lost its status: its own user may use the address.
    """
    ip = ipam.ip_of(address)
    if scope.is_unused(ip) or not ipam.is_unmoved(address, claim):
        return False
    now = floating_ip.find_by_address(scope.cloud, ip)
    if now is not None:
        scope.cloud_view.upsert(KIND, now)
        if not FloatingIP(now).port_id:
            return False
    # Read after Neutron: if the claim names no address by now, its user did not know the address when Neutron was read.
    present = ipam_versions.get(scope.context.deps.kube, IP_ADDRESS_CLAIM, *ipam.ident(claim))
    is_same = present is not None and present["metadata"]["uid"] == claim["metadata"]["uid"]
    return present is not None and is_same and ipam.address_name(present) is None


def _note_conflict(scope: PoolScope, claim: Object, address: Object, rivals: list[Object]) -> None:
    named = ", ".join(named_in(scope.context.key.namespace, IP_ADDRESS, rivals))
    extra = {"key": str(scope.context.key), "others": keys_of(rivals)}
    log.info("An address is in several IPAddresses", extra=extra)
    text = f"{ipam.ip_of(address)} is in {named}, too; delete the claim of one that is not in use"
    scope.found.conflicts[ipam.ident(claim)] = text


def _outcome(scope: PoolScope, withdrawn: list[str]) -> Outcome:
    """Return what is reported, and when the pool is reconciled again."""
    if withdrawn:
        text = f"another claim got {', '.join(withdrawn)} at the same time; allocating others"
        return Wait("Conflict", text, AGAIN_S)
    refusals, conflicts = scope.found.refusals, scope.found.conflicts
    if refusals:
        (_, name), error = next(iter(refusals.items()))
        text = f"the API server refused writes for {len(refusals)} claims; for {name}: {error}"
        is_outdated = all(isinstance(each, Conflict) for each in refusals.values())
        return Wait(REFUSED, text, AGAIN_S if is_outdated else LATER_S)
    if conflicts:
        (_, name), text = next(iter(conflicts.items()))
        return Wait("Conflict", f"{len(conflicts)} claims have addresses of others; {name}: {text}", LATER_S)
    return Done()


def _unpublished(scope: PoolScope) -> list[tuple[Object, Object]]:
    """Return the claims with an IPAddress that their status does not name, each with it."""
    store = scope.context.deps.store
    pairs = ((claim, ipam.address_of(claim, store)) for claim in scope.claims())
    return [
        (claim, address)
        for claim, address in pairs
        if address is not None
        and ipam.is_of(address, claim)
        and not ipam.is_deleting(claim)
        and ipam.address_name(claim) is None
        and ipam.pause_cause(claim, store) is None
    ]


def _listed(scope: PoolScope, like: Object) -> list[Object]:
    """Return all IPAddresses as the API server has them."""
    deps = scope.context.deps
    return list(deps.kube.list(IP_ADDRESS.as_read(like), deps.settings.namespace or None))


def _by_ip(addresses: Iterable[Object]) -> dict[str, list[Object]]:
    found: dict[str, list[Object]] = {}
    for each in addresses:
        found.setdefault(ipam.ip_of(each), []).append(each)
    return found


def _publish(scope: PoolScope, claim: Object, address: Object) -> None:
    """Set the address in a claim."""
    deps, key = scope.context.deps, scope.context.key
    held = ipam_writes.add_finalizer(deps, IP_ADDRESS, address, ipam.ADDRESS_FINALIZER, by=key)
    kept = ipam_writes.add_finalizer(deps, IP_ADDRESS_CLAIM, claim, ipam.CLAIM_FINALIZER, by=key)
    if kept is not None and held is not None:
        scope.reservations.note_published(address["metadata"]["uid"])
        _write(scope, kept, Condition(conditions.READY, "True", "Ready"), address["metadata"]["name"])


def _is_rival(scope: PoolScope, other: Object, address: Object) -> bool:
    """Return whether an IPAddress with the same address is another one, and counts.

    A floating IP with our stamp is this pool's alone, whatever an IPAddress of another pool says.
    """
    if other["metadata"]["uid"] == address["metadata"]["uid"]:
        return False
    if ipam.pool_of(other) == ipam.ident(scope.obj):
        return True
    is_held = candidates.holds(scope, other, read=scope.listed_pool)
    return is_held and not _is_stamped(scope, ipam.ip_of(address))


def _is_stamped(scope: PoolScope, ip: str) -> bool:
    return any(FLOATING_IP.stamp_of(body) is not None and scope.is_own(body) for body in scope.known_with(ip))


def _withdraw(scope: PoolScope, address: Object) -> None:
    """Delete an IPAddress that was never published; its floating IP is left as it is."""
    deps, key = scope.context.deps, scope.context.key
    # In this order: one that is being deleted with our finalizer would be released, which may delete the floating IP.
    ipam_writes.remove_finalizer(deps, IP_ADDRESS, address, ipam.ADDRESS_FINALIZER, by=key)
    ipam_writes.delete_address(deps, address, by=key)


def _explain(scope: PoolScope) -> None:
    """Show in each claim that waits why it does, and in each whose IPAddress was deleted what to do."""
    store = scope.context.deps.store
    for claim in scope.claims():
        if ipam.is_deleting(claim) or ipam.pause_cause(claim, store):
            continue
        with scope.isolated(claim):
            if ipam.address_name(claim) is None:
                _show_cause(scope, claim)
            elif ipam.address_of(claim, store) is None:
                _show_loss(scope, claim)


def _show_loss(scope: PoolScope, claim: Object) -> None:
    """Report that the IPAddress of an answered claim does not exist. Another address would not reach its user."""
    if ipam_versions.get(scope.context.deps.kube, IP_ADDRESS, *ipam.ident(claim)) is not None:
        return  # the store lags behind
    text = f"IPAddress {ipam.address_name(claim)} was deleted; delete this claim, so that its owner creates it again"
    _write(scope, claim, Condition(conditions.READY, "False", "IPAddressDeleted", text))


def _show_cause(scope: PoolScope, claim: Object) -> None:
    address = ipam.address_of(claim, scope.context.deps.store)
    if error := scope.found.refusals.get(ipam.ident(claim)):
        _write(scope, claim, Condition(conditions.READY, "False", REFUSED, f"the API server refused a write: {error}"))
    elif text := scope.found.conflicts.get(ipam.ident(claim)):
        _write(scope, claim, Condition(conditions.READY, "False", "Conflict", text))
    elif address is not None and not ipam.is_of(address, claim):
        text = f"IPAddress {address['metadata']['name']} was allocated to another claim"
        _write(scope, claim, Condition(conditions.READY, "False", "ForeignResource", text))
    elif address is None and (text := scope.found.occupied.get(ipam.ident(claim))):
        _write(scope, claim, Condition(conditions.READY, "False", "ForeignResource", text))
    elif address is None and scope.found.trouble:
        reason, text = scope.found.trouble
        _write(scope, claim, Condition(conditions.READY, "False", reason, text))


def _write(scope: PoolScope, claim: Object, shown: Condition, address_name: str | None = None) -> None:
    """Write a condition of a claim, and the name of its IPAddress."""
    now_s = scope.context.deps.clock.wall()
    is_older = str(claim.get("apiVersion") or "").endswith(f"/{_OLDER}")

    def wanted(present: Object) -> dict[str, Any] | None:
        status, generation = present.get("status") or {}, int(present["metadata"].get("generation") or 0)
        body: dict[str, Any] = {}
        if address_name is not None and ipam.address_name(present) != address_name:
            body["addressRef"] = {"name": address_name}
        before = list(status.get("conditions") or ())
        after = conditions.merged(before, [shown], dropped=(), now_s=now_s, generation=generation)
        if is_older:
            after = [_in_older_form(each) if each["type"] == shown.type else each for each in after]
        if after != before:
            body["conditions"] = after
        return {"status": body} if body else None

    deps, key = scope.context.deps, scope.context.key
    ipam_writes.patch(deps, IP_ADDRESS_CLAIM, claim, wanted, by=key, subresource="status")


def _in_older_form(condition: Object) -> dict[str, Any]:
    """Return a condition as v1beta1 has it: with a severity while it is False, without a generation or empty texts."""
    older = {name: value for name, value in condition.items() if value and name != "observedGeneration"}
    if "message" in older:
        older["message"] = older["message"][:_OLDER_MESSAGE]
    return {**older, "severity": "Warning"} if condition["status"] == "False" else older
