"""Without a load balancer the floating IP of the endpoint follows the living control plane (W-09)."""

from __future__ import annotations

from typing import Any

import pytest

from capo.kube.kinds import OPENSTACK_CLUSTER, OPENSTACK_MACHINE
from controllers.openstackmachine.tests.control_plane_environment import ControlPlaneEnvironment


def port_of(site: ControlPlaneEnvironment, name: str) -> str:
    return next(str(p["id"]) for p in site.all("ports") if p["name"] == f"{name}-0")


def endpoint(site: ControlPlaneEnvironment, **api_server: Any) -> dict[str, Any]:
    """Create a floating IP that the OpenStackCluster did not record: the user's, or its own before a move."""
    site.float()
    site.record()
    (address,) = site.all("floatingips")
    host = {"host": address["floating_ip_address"], "port": 6443}
    site.stage.patch(
        OPENSTACK_CLUSTER, "infra", {"spec": {"controlPlaneEndpoint": host, "apiServer": api_server or None}}
    )
    return address


def holder(site: ControlPlaneEnvironment) -> str | None:
    """Return the port of the only floating IP."""
    (address,) = site.all("floatingips")
    return address["port_id"] or None


def add(site: ControlPlaneEnvironment, *names: str) -> None:
    """Create control plane machines one after the other, and wait until they are ready."""
    for name in names:
        site.add(name)
        site.stage.settle(for_s=120)


def test_floating_ip_sits_on_one_living_machine_and_survives_it_w_09(site: ControlPlaneEnvironment) -> None:
    site.float()
    add(site, "one", "two")
    assert holder(site) == port_of(site, "one")
    assert site.ingress("one") == site.ingress("two") == ("True", "Ready")

    site.delete("one")
    site.stage.settle(for_s=120)

    assert holder(site) == port_of(site, "two")
    assert not site.stage.exists(OPENSTACK_MACHINE, "one")


def test_it_moves_before_the_server_under_it_goes_w_09(site: ControlPlaneEnvironment) -> None:
    site.float()
    add(site, "one", "two")
    site.delete("one")

    site.stage.settle(for_s=120, until=lambda: holder(site) == port_of(site, "two"))

    assert len(site.all("servers")) == 2


def test_it_stays_without_a_place_when_the_last_machine_goes_and_the_next_one_takes_it_w_09(
    site: ControlPlaneEnvironment,
) -> None:
    site.float()
    add(site, "one")
    site.delete("one")
    site.stage.settle(for_s=120)
    assert holder(site) is None

    add(site, "two")

    assert holder(site) == port_of(site, "two")


@pytest.mark.parametrize("action", ["stopped", "deleted"])
def test_it_leaves_a_machine_whose_server_died_w_09(site: ControlPlaneEnvironment, action: str) -> None:
    site.float()
    add(site, "one", "two")
    (server,) = (s for s in site.all("servers") if s["name"] == "one")
    path = f"/compute/v2.1/servers/{server['id']}"
    if action == "stopped":
        site.stage.member.ask("POST", f"{path}/action", {"os-stop": None})
    else:
        site.stage.member.ask("DELETE", path)

    site.stage.settle(for_s=120)

    assert holder(site) == port_of(site, "two")


@pytest.mark.parametrize("api_server", [{}, {"floatingIP": "it"}], ids=["by the endpoint", "named in the spec"])
def test_the_users_floating_ip_is_attached_and_kept_w_09(
    site: ControlPlaneEnvironment, api_server: dict[str, Any]
) -> None:
    endpoint(site, **api_server)

    add(site, "one", "two")
    assert holder(site) == port_of(site, "one")
    site.delete("one")
    site.stage.settle(for_s=120)

    assert holder(site) == port_of(site, "two")


def test_the_users_floating_ip_is_not_taken_from_somebody_else_w_71(site: ControlPlaneEnvironment) -> None:
    address = endpoint(site)
    theirs = site.stage.member.make("/network/v2.0/ports", "port", network_id=site.network["id"])
    body = {"floatingip": {"port_id": theirs["id"]}}
    site.stage.member.ask("PUT", f"/network/v2.0/floatingips/{address['id']}", body)

    add(site, "one")

    assert holder(site) == theirs["id"]
    assert site.ingress("one") == ("False", "FloatingIPError")
    assert theirs["id"] in site.stage.condition(OPENSTACK_MACHINE, "one", "APIServerIngressReady")["message"]


def test_an_endpoint_that_is_no_floating_ip_is_left_to_whoever_gave_it(site: ControlPlaneEnvironment) -> None:
    add(site, "one")

    assert site.ingress("one") == ("True", "Ready")


def test_a_floating_ip_that_cannot_be_moved_does_not_hold_up_a_deletion(site: ControlPlaneEnvironment) -> None:
    site.float()
    add(site, "one", "two")
    refusal = {"status": 403, "message": "Policy doesn't allow update_floatingip to be performed."}
    site.stage.add_fault(match={"service": "network", "method": "PUT", "route": "*/floatingips/*"}, effect=refusal)
    site.delete("one")

    site.stage.settle(for_s=120)

    assert not site.stage.exists(OPENSTACK_MACHINE, "one")
    site.stage.clear_faults()
    site.stage.settle(for_s=300)
    assert holder(site) == port_of(site, "two")
