"""The machine's member in each pool of the API load balancer; the pools belong to the OpenStackCluster.

The poller does not list members. They are listed in their pool right before one is created, so that none is created
twice, and after its create until it is ACTIVE; then with a changed pool, once per resync. Missing members of other
machines are added in the same change.
Source: docs/explanation/go-provider.md, G-34, and W-28.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from api.v1beta2 import OpenStackCluster
from capo import names
from capo.engine.steps import Create, Done, NotNeeded, Outcome, Wait
from capo.errors import AmbiguousAnswerError, CapoError, NotFoundError, QuotaExceededError, UnsupportedByCloudError
from capo.json_types import Body
from capo.ledger import Ledger, Record
from capo.names import Stamp
from capo.openstack import load_balancer, octavia_providers, quota
from capo.openstack.load_balancer import Member, WantedMember
from capo.openstack.resource_cache import with_ids
from controllers import drift, roles
from controllers.drift import Policy
from controllers.openstackmachine import (
    control_plane,
    given_pools,
    load_balancer_lock,
    member_states,
    member_weights,
    pools,
    ports,
)
from controllers.openstackmachine.load_balancer_lock import BUSY_S
from controllers.openstackmachine.openstackserver import INFRASTRUCTURE, was_provisioned
from controllers.openstackmachine.ports import Place
from controllers.openstackmachine.scope import MachineScope

KIND: Final = "member"
CONDITION: Final = "APIServerIngressReady"


@dataclass(frozen=True)
class Seat:
    """What the machine's member is in one pool.

    Args:
        role: of the member.
        version: IP version of the virtual IP.
        is_exact: that virtual IP leads to addresses of its own IP version alone.
    """

    port: int
    pool_id: str
    role: str
    version: int
    is_exact: bool

    def place(self, found: Place) -> Place | None:
        """Return the place of a machine here, None if it has no fitting address."""
        if not self.is_exact:
            return found
        return found.of_one_version() if found.is_of(self.version) else None


def pool_ids(scope: MachineScope, infra: OpenStackCluster, api_port_list: list[int]) -> dict[int, str] | Wait:
    """Return the ids of the pools by port: as the OpenStackCluster recorded them, or of an external load balancer.

    Raises:
        CapoError: pools of an external load balancer cannot be identified.
        NotYetObserved: the pools are being listed.
    """
    ledger = Ledger.read((scope.owners.infra or {}).get("status"))
    found = {port: ledger.id_of(roles.pool(port)) for port in api_port_list}
    known = {port: pool_id for port, pool_id in found.items() if pool_id}
    missing = [port for port in api_port_list if port not in known]
    if not missing:
        return known
    if not given_pools.are_given(scope):
        return Wait(INFRASTRUCTURE, "the load balancer of the cluster has no pool for every port yet")
    given = given_pools.to_join(scope, infra, pools.named(scope, missing))
    return given if isinstance(given, Wait) else {**known, **given}


def ensure(scope: MachineScope, infra: OpenStackCluster) -> Outcome:
    """Create one member for this machine in each pool, or one of each IP version where the virtual IPs need both."""
    wanted_ports = pools.api_ports(infra)
    if not wanted_ports:
        return Wait(INFRASTRUCTURE, "the control plane endpoint of the cluster is not known yet")
    known = pool_ids(scope, infra, wanted_ports)
    if isinstance(known, Wait):
        return known
    missing, notes = [], []
    for seat in _seats(scope, infra, known):
        if _is_known(scope, seat):
            notes.append(_weight(scope, infra, seat))
        elif _is_left_out(scope, infra, seat):
            missing.append(seat.pool_id)
        elif seat.is_exact and _place(scope, infra, seat) is None:
            notes.append(f"no address of IPv{seat.version}: that virtual IP does not lead to the machine")
        else:
            outcome = load_balancer_lock.busy(scope) or _ensure_in_turn(scope, infra, seat)
            if not isinstance(outcome, Done):
                return outcome
    _remember(scope, infra, list(known.values()))
    is_shown = missing and _policy(infra) is Policy.REPORT
    removed = f"the member in pool {drift.listing(missing)} was removed externally" if is_shown else ""
    return Done("; ".join(dict.fromkeys(filter(None, (removed, *notes)))))


def _seats(scope: MachineScope, infra: OpenStackCluster, known: dict[int, str]) -> Iterator[Seat]:
    """Yield the places that the machine takes in the pools of the ports.

    A pool belongs to both virtual IPs. Amphorae connect any of them with any member; on OVN each needs members of its
    own IP version.
    """
    versions = ports.versions_of_vips(infra)
    found = load_balancer_lock.found(scope) if len(versions) > 1 else None
    is_exact = found is not None and not octavia_providers.of(found.provider).mixes_ip_versions
    for port, pool_id in known.items():
        yield Seat(port, pool_id, roles.member(port), versions[0], is_exact)
        if is_exact:
            yield Seat(port, pool_id, roles.additional_member(port), versions[1], is_exact)


def _weight(scope: MachineScope, infra: OpenStackCluster, seat: Seat) -> str:
    member_id = scope.context.ledger.id_of(seat.role)
    # A member of a given pool may have been there before, with a weight of the user's choice.
    if member_id is None or given_pools.are_given(scope):
        return ""
    return member_weights.message(scope, infra, seat.pool_id, member_id)


def _policy(infra: OpenStackCluster) -> Policy:
    return drift.of_spec(infra.spec.drift_policy, drift.MEMBERS)


def _is_left_out(scope: MachineScope, infra: OpenStackCluster, seat: Seat) -> bool:
    """Return whether the member was in the pool, was removed externally, and is not created again."""
    if _policy(infra) is Policy.REPAIR or seat.pool_id not in scope.machine.status.joined_pools:
        return False
    member_id = scope.context.ledger.id_of(seat.role)
    if member_id is None and seat.role != roles.member(seat.port):
        return False  # the machine may have joined before second members were created
    return not any(member["id"] == member_id for member in _listed(scope, seat.pool_id))


def _remember(scope: MachineScope, infra: OpenStackCluster, pool_id_list: list[str]) -> None:
    """Record in the status that the members are in their pools, if the policy needs to know it later."""
    is_needed, known = _policy(infra) is not Policy.REPAIR, scope.machine.status.joined_pools
    if is_needed or known:
        scope.context.pinned["joinedPools"] = sorted(pool_id_list) if is_needed else None


def _is_known(scope: MachineScope, seat: Seat) -> bool:
    """Return whether the recorded member was ACTIVE when it was last seen."""
    member_id = scope.context.ledger.id_of(seat.role)
    if member_id is None:
        return False
    shown = scope.machine.status.conditions
    was_joined = any(each.type == CONDITION and each.status == "True" for each in shown)
    seen = member_states.seen(scope, seat.pool_id, member_id)
    if seen is not None:
        # A member that took effect serves while a setting of it changes.
        is_changing = was_joined and seen.provisioning_status == "PENDING_UPDATE"
        return is_changing or seen.provisioning_status == member_states.ACTIVE
    if not was_joined or load_balancer_lock.is_active(scope):
        return False
    # Octavia is busy after a start of this process: that is no reason to doubt the member.
    pool = load_balancer.Pool(scope.cloud_view.get(pools.KIND, seat.pool_id))
    return any(member.id == member_id for member in pool.members)


def _ensure_in_turn(scope: MachineScope, infra: OpenStackCluster, seat: Seat) -> Outcome:
    """Ensure the member in a pool; a create keeps the turn until it was sent.

    One whose answer was lost does not: it is not repeated before its window ends.
    """
    if wait := load_balancer_lock.take_turn(scope):
        return wait
    outcome: Outcome | None = None
    try:
        outcome = _ensure_one(scope, infra, seat)
        return outcome
    finally:
        is_sent_next = isinstance(outcome, Create) and seat.role not in scope.context.ledger.pending
        if not is_sent_next:
            load_balancer_lock.end_turn(scope)


def _ensure_one(scope: MachineScope, infra: OpenStackCluster, seat: Seat) -> Outcome:
    place, role, pool_id = _place(scope, infra, seat), seat.role, seat.pool_id
    if place is None:
        raise AssertionError("only a machine with a fitting address takes the seat")
    listed, is_given = _listed(scope, pool_id), given_pools.are_given(scope)
    # External pools get single changes: a change for all replaces the whole list, which others may be changing, too.
    others = [] if is_given else list(_living_others(scope, infra, seat))
    living_at = {*place.addresses, *(address for each in others for address in each.place.addresses)}
    if _policy(infra) is not Policy.REPAIR:
        others = []  # whether theirs were removed externally is known to them alone
    owners = partial(control_plane.owners, scope)
    if not is_given and (dead := dead_member(listed, role, owners, living_at=living_at)):
        # Its machine was deleted without it, for example because a user removed the finalizer.
        _replace(scope, pool_id, dead)
        return Wait("Building", "a member without a machine leaves the pool", BUSY_S)
    found = mine(listed, scope.stamp(role), addresses=place.addresses)
    if found is None:
        # One change for all instead of one for each.
        absent = [each for each in others if mine(listed, each.stamp, addresses=each.place.addresses) is None]
        candidates = [Candidate(scope.name, scope.stamp(role), place), *absent]
        missing = [wanted_member(scope, infra, seat.port, each) for each in candidates]
        former_id = scope.context.ledger.id_of(role)
        return Create(
            KIND,
            (role,),
            lambda: {role: _created(scope, pool_id, listed, missing, former_id=former_id)},
            note_hold=lambda _reason, _message: load_balancer_lock.end_turn(scope),
        )
    if Member(found).address not in place.addresses or Member(found).provisioning_status == "PENDING_DELETE":
        _replace(scope, pool_id, found)
        return Wait("Building", "a member with another address leaves the pool", BUSY_S)
    scope.context.ledger.record(KIND, role, found["id"])
    return member_states.outcome(scope, pool_id, listed, found)


def _place(scope: MachineScope, infra: OpenStackCluster, seat: Seat) -> Place | None:
    """Return the machine's address of the VIP's IP version, None if only that would do and it has none.

    OVN refuses members of the other version, too, where the load balancer has one virtual IP.
    """
    return seat.place(ports.place_of_machine(scope, infra, version=seat.version))


def _listed(scope: MachineScope, pool_id: str) -> list[Body]:
    try:
        listed = load_balancer.members(scope.cloud, pool_id)
    except NotFoundError:
        scope.cloud_view.invalidate(pools.KIND, pool_id)  # it may have been replaced by another one of the same name
        raise
    _update_pool(scope, pool_id, listed)
    return listed


def _update_pool(scope: MachineScope, pool_id: str, members: Iterable[Body]) -> None:
    """Update the members of the cached pool: without a recorded one there, the OpenStackCluster is not ready."""
    for pool in scope.cloud_view.peek(pools.KIND, among=with_ids([pool_id])):
        scope.cloud_view.upsert(pools.KIND, {**pool, "members": [{"id": each["id"]} for each in members]})


def _living_others(scope: MachineScope, infra: OpenStackCluster, seat: Seat) -> Iterator[Candidate]:
    """Yield the other living control plane machines with their place in the same pool."""
    network_id = infra.status.network.id if infra.status.network else ""
    for each in control_plane.siblings_of(scope):
        port_id = ports.port_id_on(each.server, network_id, each.ports_of_cluster)
        if each.is_living and each.owner and port_id:
            place = seat.place(ports.place_of(scope.cloud_view.get("port", port_id), version=seat.version))
            if place is not None:
                yield Candidate(each.name, Stamp(each.owner, seat.role), place)


def dead_member(
    listed: Iterable[Body], role: str, owners: Callable[[], Collection[str] | None], *, living_at: Collection[str] = ()
) -> Body | None:
    """Return a member that was created for a machine that no longer exists.

    Args:
        owners: returns the owner ids of all machines of the cluster, None when one is unknown: then None is returned.
            It is called only if a member may be such a one, as it examines all machines.
        living_at: addresses of living machines. A member there serves one, even if its stamp has another owner id.
    """
    elsewhere = [(member, _stamps(member, role)) for member in listed if Member(member).address not in living_at]
    suspects = [(member, stamps) for member, stamps in elsewhere if stamps]
    known = owners() if suspects else None
    if known is None:
        return None
    return next((member for member, stamps in suspects if not any(each.owner in known for each in stamps)), None)


def _stamps(member: Body, role: str) -> list[Stamp]:
    return [stamp for tag in Member(member).tags if (stamp := names.stamp_in(tag)) and stamp.role == role]


def mine(
    listed: Iterable[Body], stamp: Stamp, *, addresses: Collection[str] = (), name: str | None = None
) -> Body | None:
    """Return the machine's member among those of a pool; pure.

    A member at the machine's address is its own, whatever its creator, because a pool accepts each address once: so the
    member of another provider is adopted. One without any stamp is identified by its name, too.
    """
    members = list(listed)
    stamped = [member for member in members if str(stamp) in Member(member).tags]
    placed = [member for member in members if Member(member).address in addresses]
    named = [member for member in members if name and member.get("name") == name and not _is_stamped(member)]
    return next(iter([*stamped, *placed, *named]), None)


def _is_stamped(member: Body) -> bool:
    return any(names.stamp_in(tag) for tag in Member(member).tags)


@dataclass(frozen=True)
class Candidate:
    """A machine that is to become a member.

    Args:
        machine: its name.
        stamp: of its member.
    """

    machine: str
    stamp: Stamp
    place: Place


def wanted_member(scope: MachineScope, infra: OpenStackCluster, port: int, candidate: Candidate) -> WantedMember:
    """Return the member of a machine for one port.

    It names its subnet even if that is the VIP's: OVN does not always derive it, and all providers accept it.
    """
    return WantedMember(
        stamp=candidate.stamp,
        name=names.member(pools.resource_name(scope), port, candidate.machine),
        address=candidate.place.address,
        port=port,
        subnet_id=candidate.place.subnet_id,
        tags=tuple(infra.spec.tags),
    )


def _created(
    scope: MachineScope,
    pool_id: str,
    listed: Sequence[Body],
    missing: Sequence[WantedMember],
    *,
    former_id: str | None = None,
) -> Body:
    """Add the machine's member, which is the first, and the missing ones of others; return the machine's own.

    Args:
        former_id: the recorded member, which is not there any more; None without one.
    """
    own, others = missing[0], missing[1:]
    with load_balancer_lock.taken(scope):
        made = _added_together(scope, pool_id, listed, missing) if others else None
        if made is None:
            made = load_balancer.create_member(scope.cloud, pool_id, own)
            _update_pool(scope, pool_id, [*listed, made])
    member_states.saw(scope, pool_id, made)
    if former_id:
        drift.REPAIRS.labels(drift.MEMBERS, "repaired").inc()
        text = f"member {former_id} of pool {pool_id} was removed externally; created it again as {made['id']}"
        scope.context.deps.events.emit(scope.context.obj, "Normal", drift.EVENT, text)
    return made


def _added_together(
    scope: MachineScope, pool_id: str, listed: Sequence[Body], missing: Sequence[WantedMember]
) -> Body | None:
    """Add members in one change and return the first; None if the provider has no such change, or no quota for all.

    Raises:
        AmbiguousAnswerError: the change was accepted, and no list shows the first member.
    """
    try:
        load_balancer.add_members(scope.cloud, pool_id, missing, beside=listed)
    except (QuotaExceededError, UnsupportedByCloudError):
        return None
    address = missing[0].address
    try:
        now = _listed(scope, pool_id)
    except CapoError as error:
        lost = f"members were added to pool {pool_id}, and cannot be listed: {error.message}"
        raise AmbiguousAnswerError(lost, request_id=error.request_id, status=error.status) from error
    made = next((member for member in now if Member(member).address == address), None)
    if made is None:
        raise AmbiguousAnswerError(f"the member {address} was added to pool {pool_id}, and a list lacks it")
    return made


def remove(scope: MachineScope, infra: OpenStackCluster) -> Outcome:
    """Delete the machine's members in all pools; afterwards the load balancer sends it no traffic.

    Raises:
        LoadBalancerFailedError: the load balancer accepts no change.
    """
    found = pools.to_leave(scope, infra, may_be_member=_may_be_member(scope))
    if isinstance(found, Wait):
        return found
    for record in found:
        if wait := load_balancer_lock.busy(scope) or _leave_pool(scope, record):
            text = f"the load balancer takes the machine out of its pools: {wait.message}"
            return Wait("Deleting", text, wait.after_s)
    return NotNeeded()


def _may_be_member(scope: MachineScope) -> bool:
    """Return whether the machine ever had a server, or requested a member."""
    ledger = scope.context.ledger
    has_asked = any(pending.kind == KIND for pending in ledger.pending.values())
    return has_asked or bool(ledger.records_of_kind(KIND)) or was_provisioned(scope)


def _leave_pool(scope: MachineScope, pool: Record) -> Wait | None:
    """Request the deletion of a member of the machine; return the wait for its end, None when the pool has none."""
    wanted = roles.members(roles.port_of_pool(pool.role))
    try:
        listed = load_balancer.members(scope.cloud, pool.id)
    except NotFoundError:  # the pool was deleted
        for role in wanted:
            scope.context.ledger.drop(role)
        return None
    # One after the other: the first deletion makes the load balancer busy.
    return next((wait for role in wanted if (wait := _leave_as(scope, pool.id, listed, role))), None)


def _leave_as(scope: MachineScope, pool_id: str, listed: Sequence[Body], role: str) -> Wait | None:
    name = names.member(pools.resource_name(scope), roles.port_of_member(role), scope.name)
    found = mine(listed, scope.stamp(role), name=name) or _recorded_of_nobody(scope, listed, role)
    if found is None and (left_s := _window_left_s(scope, role)) > 0:
        return Wait("Deleting", "a member whose create was not answered may still come", left_s)
    if found is None:
        scope.context.ledger.drop(role)
        return None
    _leave(scope, pool_id, found)
    if Member(found).provisioning_status == member_states.ERROR:  # an earlier deletion may have failed
        raise member_states.failed(pool_id, found["id"], "its deletion was requested again")
    return Wait("Deleting", f"member {found['id']} is leaving", BUSY_S)


def _recorded_of_nobody(scope: MachineScope, listed: Sequence[Body], role: str) -> Body | None:
    """Return the recorded member, adopted by its address, if its stamp belongs to no machine."""
    member_id = scope.context.ledger.id_of(role)
    recorded = [each for each in listed if each["id"] == member_id]
    return dead_member(recorded, role, partial(control_plane.owners, scope))


def _window_left_s(scope: MachineScope, role: str) -> float:
    """Return for how many seconds an unanswered create of the member may still take effect; 0 when it cannot."""
    pending, context = scope.context.ledger.pending.get(role), scope.context
    return max(0.0, pending.since_s + context.deps.ambiguous_window_s - context.started_s) if pending else 0.0


def _replace(scope: MachineScope, pool_id: str, member: Body) -> None:
    """Request the deletion of a member; keep the quota that it frees for the machine's own."""
    scope.cloud.quota_holds.places.keep(scope.context.key, KIND, quota.of_create(KIND, 1))
    _leave(scope, pool_id, member)


def _leave(scope: MachineScope, pool_id: str, member: Body) -> None:
    """Request the deletion of a member, unless it is in progress.

    Raises:
        ConflictError: the load balancer is immutable although it was listed as ACTIVE; retried with increasing delays.
    """
    if Member(member).provisioning_status != "PENDING_DELETE":
        with load_balancer_lock.taken(scope):
            load_balancer.delete_member(scope.cloud, pool_id, member["id"])
