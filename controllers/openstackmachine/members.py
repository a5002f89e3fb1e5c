"""The machine's member in each pool of the API load balancer; the pools are the OpenStackCluster's.

Members are not among what the observer lists: they are listed in their pool right before one is made, so that none is
made twice, and looked at again with the pools, once per resync. Source: behaviour reference, machines.md 2.7 a.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping
from typing import Any, Final

from capo import names
from capo.api.v1beta2 import OpenStackCluster
from capo.contract import references
from capo.controllers.openstackmachine import ports
from capo.controllers.openstackmachine.child import INFRASTRUCTURE
from capo.controllers.openstackmachine.ports import Place
from capo.controllers.openstackmachine.scope import MachineScope
from capo.engine.steps import Create, Done, NotNeeded, Outcome, Wait
from capo.errors import ConflictError, NotFoundError
from capo.ledger import Ledger, Record
from capo.names import Stamp
from capo.openstack import load_balancer
from capo.openstack.load_balancer import WantedMember

Body = Mapping[str, Any]

KIND: Final = "member"
BUSY_S: Final = 2.0


def role_of(port: int) -> str:
    """Return the role of the machine's member in the pool of an API port."""
    return f"member-{port}"


def pool_role(port: int) -> str:
    """Return the role that the OpenStackCluster gives to the pool of an API port."""
    return f"pool-{port}"


def api_ports(infra: OpenStackCluster) -> list[int]:
    """Return the ports of the load balancer: that of the endpoint, then the additional ones; pure."""
    endpoint = infra.spec.control_plane_endpoint
    balancer = infra.spec.api_server.managed_load_balancer if infra.spec.api_server else None
    first = [endpoint.port] if endpoint and endpoint.port else []
    return list(dict.fromkeys([*first, *(balancer.additional_ports if balancer else ())]))


def pool_ids(scope: MachineScope, api_port_list: list[int]) -> dict[int, str]:
    """Return the ids of the pools that the OpenStackCluster recorded, by port."""
    ledger = Ledger.read((scope.owners.infra or {}).get("status"))
    found = {port: ledger.id_of(pool_role(port)) for port in api_port_list}
    return {port: pool_id for port, pool_id in found.items() if pool_id}


def ensure(scope: MachineScope, infra: OpenStackCluster) -> Outcome:
    """Have one member for this machine in each pool."""
    wanted_ports = api_ports(infra)
    pools = pool_ids(scope, wanted_ports)
    if not wanted_ports or len(pools) < len(wanted_ports):
        return Wait(INFRASTRUCTURE, "the load balancer of the cluster has no pool for every port yet")
    for port, pool_id in pools.items():
        if not _is_known(scope, port, pool_id):
            outcome = _ensure_one(scope, infra, port, pool_id)
            if not isinstance(outcome, Done):
                return outcome
    return Done()


def _is_known(scope: MachineScope, port: int, pool_id: str) -> bool:
    """Tell whether the recorded member was seen in the pool not long ago, or is seen there now."""
    member_id = scope.turn.ledger.id_of(role_of(port))
    if member_id is None:
        return False
    if scope.has_seen_member(pool_id, member_id):
        return True
    pool = scope.observed.get("pool", pool_id)
    is_there = any(member["id"] == member_id for member in pool.get("members") or ())
    if is_there:
        scope.saw_member(pool_id, member_id)
    return is_there


def _ensure_one(scope: MachineScope, infra: OpenStackCluster, port: int, pool_id: str) -> Outcome:
    place = ports.of_machine(scope, infra)
    found = mine(load_balancer.members(scope.cloud, pool_id), scope.stamp(role_of(port)), address=place.address)
    if found is None:
        wanted = wanted_member(scope, infra, port, place)
        return Create(KIND, (role_of(port),), lambda: {role_of(port): _created(scope, pool_id, wanted)})
    if found["address"] != place.address or found["provisioning_status"] == "PENDING_DELETE":
        _delete(scope, pool_id, found)
        return Wait("Building", "a member with another address leaves the pool", after_s=BUSY_S)
    scope.turn.ledger.record(KIND, role_of(port), found["id"])
    scope.saw_member(pool_id, found["id"])
    return Done()


def mine(listed: Iterable[Body], stamp: Stamp, *, address: str | None) -> Body | None:
    """Return the machine's member among those of a pool; pure.

    One without our stamp at the machine's address is its own too: a pool takes each address once. So that of another
    provider is taken over.
    """
    members = list(listed)
    stamped = [member for member in members if str(stamp) in (member.get("tags") or ())]
    placed = [member for member in members if address is not None and member["address"] == address]
    return next(iter([*stamped, *placed]), None)


def wanted_member(scope: MachineScope, infra: OpenStackCluster, port: int, place: Place) -> WantedMember:
    """Return the member of the machine behind one port."""
    cluster = references.cluster_name(scope.owners.machine or scope.turn.obj) or ""
    resource_name = names.cluster_resource_name(scope.namespace, cluster)
    return WantedMember(
        stamp=scope.stamp(role_of(port)),
        name=names.member(resource_name, port, scope.name),
        address=place.address,
        port=port,
        subnet_id=place.subnet_id if is_elsewhere(infra) else None,
        tags=tuple(infra.spec.tags),
    )


def is_elsewhere(infra: OpenStackCluster) -> bool:
    """Tell whether the load balancer is on another network, so that it must be told the subnet of its members; pure."""
    balancer, network = infra.status.api_server_managed_load_balancer, infra.status.network
    its_network = balancer.load_balancer_network if balancer else None
    return its_network is not None and network is not None and its_network.id != network.id


def _created(scope: MachineScope, pool_id: str, wanted: WantedMember) -> Body:
    made = load_balancer.create_member(scope.cloud, pool_id, wanted)
    scope.saw_member(pool_id, made["id"])
    return made


def remove(scope: MachineScope) -> Outcome:
    """Have no member of the machine in any pool: the load balancer sends it nothing when this is done."""
    ledger = Ledger.read((scope.owners.infra or {}).get("status"))
    left = [leaving for record in ledger.of_kind("pool") if (leaving := _leaving(scope, record))]
    if left:
        return Wait("Deleting", "the load balancer takes the machine out of its pools", after_s=BUSY_S)
    return NotNeeded()


def _leaving(scope: MachineScope, pool: Record) -> bool:
    """Ask for the deletion of the machine's member in a pool; tell whether it is still there."""
    role = pool.role.replace("pool-", "member-", 1)
    try:
        found = mine(load_balancer.members(scope.cloud, pool.id), scope.stamp(role), address=None)
    except NotFoundError:
        found = None  # the pool is gone
    if found is None:
        scope.turn.ledger.drop(role)
        return False
    _delete(scope, pool.id, found)
    return True


def _delete(scope: MachineScope, pool_id: str, member: Body) -> None:
    """Ask for the deletion of a member, unless that goes on; a load balancer that is busy is asked again later."""
    if member.get("provisioning_status") != "PENDING_DELETE":
        with contextlib.suppress(ConflictError):
            load_balancer.delete_member(scope.cloud, pool_id, member["id"])
