"""Without a load balancer: associate the cluster's floating IP with one control plane machine, never with a dead one.

It belongs to the OpenStackCluster, which creates and deletes it, or to the user. A machine takes it unless another
living one has it, and hands it over before its own deletion (W-09). A floating IP of the user is taken only from
machines of this control plane (W-71).
"""

from __future__ import annotations

import contextlib

from api.v1beta2 import OpenStackCluster
from capo.engine.steps import Done, Outcome, Wait
from capo.errors import CapoError, InvalidSpecError
from capo.json_types import Body
from capo.ledger import Ledger
from capo.openstack import floating_ip
from capo.openstack.floating_ip import FloatingIP
from controllers.openstackmachine import control_plane, ports
from controllers.openstackmachine.openstackserver import INFRASTRUCTURE
from controllers.openstackmachine.ports import Place
from controllers.openstackmachine.scope import MachineScope
from controllers.roles import API_FLOATING_IP


def ensure(scope: MachineScope, infra: OpenStackCluster) -> Outcome:
    """Ensure that this machine or another living one has the floating IP."""
    found = _find(scope, infra)
    given = infra.spec.control_plane_endpoint
    if found is None and given and given.host:
        return Done(f"no floating IP of the project has the address {given.host}")
    if found is None:
        return Wait(INFRASTRUCTURE, "the floating IP of the cluster is not there")
    others = control_plane.siblings_of(scope)
    if FloatingIP(found).port_id in {port_id for each in others if each.is_living for port_id in each.port_ids}:
        return Done(f"another control plane machine has {FloatingIP(found).address}")
    place = ports.place_of_machine(scope, infra)
    if ":" in place.address:
        raise InvalidSpecError(
            f"floating IP {FloatingIP(found).address} cannot lead to the machine: its port on the network of the "
            "cluster has no address of IPv4"
        )
    if FloatingIP(found).port_id != place.port_id:
        if found["id"] != _recorded_id(scope):
            of_control_plane = {
                *control_plane.port_ids(scope.server),
                *(id_ for each in others for id_ in each.port_ids),
            }
            found = floating_ip.refresh_if_unused(scope.cloud, scope.cloud_view, found["id"], ports=of_control_plane)
        _move(scope, found, place)
    return Done()


def _find(scope: MachineScope, infra: OpenStackCluster) -> Body | None:
    """Return the floating IP: the one that the OpenStackCluster recorded, else the one with the endpoint's address."""
    if recorded := _recorded_id(scope):
        return scope.cloud_view.get("floating_ip", recorded)
    endpoint, api_server = infra.spec.control_plane_endpoint, infra.spec.api_server
    wanted = {endpoint.host if endpoint else None, api_server.floating_ip if api_server else None}
    found = floating_ip.with_addresses(scope.cloud_view, *filter(None, wanted))
    return found[0] if found else None


def _recorded_id(scope: MachineScope) -> str | None:
    return Ledger.read((scope.owners.infra or {}).get("status")).id_of(API_FLOATING_IP)


def _move(scope: MachineScope, body: Body, place: Place) -> None:
    moved = floating_ip.associate(scope.cloud, body["id"], port_id=place.port_id, fixed_ip=place.address)
    scope.cloud_view.upsert("floating_ip", moved)


def failover(scope: MachineScope, infra: OpenStackCluster) -> None:
    """Associate the floating IP with another living machine before this one is deleted.

    Failures are ignored: the other machine takes it in its own reconcile.
    """
    own = control_plane.port_ids(scope.server)
    heirs = [each for each in control_plane.siblings_of(scope) if each.is_living] if own else []
    network_id = infra.status.network.id if infra.status.network else ""
    places = (ports.port_id_on(each.server, network_id, each.ports_of_cluster) for each in heirs)
    heir_id = next(filter(None, places), None)
    if heir_id is None:
        return
    with contextlib.suppress(CapoError):
        found = _find(scope, infra)
        if found and FloatingIP(found).port_id in own:
            _move(scope, found, ports.place_of(scope.cloud_view.get("port", heir_id)))
