"""Machines can be deleted whatever happened to related objects; blockers are reported."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from capo.kube.kinds import CLUSTER, MACHINE, OPENSTACK_CLUSTER, OPENSTACK_MACHINE, OPENSTACK_SERVER, SECRET, Kind
from controllers.openstackmachine.tests.control_plane_environment import ControlPlaneEnvironment


def gone(kind: Kind, name: str) -> Callable[[ControlPlaneEnvironment], None]:
    """Return an action that removes an object at once."""
    return lambda site: site.vanish(kind, name)


def cluster_half_made(site: ControlPlaneEnvironment) -> None:
    site.stage.patch(
        OPENSTACK_CLUSTER, "infra", {"status": {"network": None, "initialization": None, "conditions": []}}
    )


def cluster_not_ready(site: ControlPlaneEnvironment) -> None:
    not_ready = {"type": "Ready", "status": "False", "reason": "OpenStackError", "message": "", "observedGeneration": 1}
    site.stage.patch(OPENSTACK_CLUSTER, "infra", {"status": {"conditions": [not_ready]}})


def credentials_replaced(site: ControlPlaneEnvironment) -> None:
    """Point the cluster to another Secret, and delete the former one."""
    site.stage.apply_secret("renewed")
    site.stage.patch(OPENSTACK_CLUSTER, "infra", {"spec": {"identityRef": {"name": "renewed"}}})
    site.vanish(SECRET, "cloud")


def image_and_flavor_gone(site: ControlPlaneEnvironment) -> None:
    for service, kind in (("image", "images"), ("compute", "flavors")):
        site.stage.simulator.call(site.stage.cloud.table(service, kind).clear)
    site.stage.start()


def cloud_cleared_by_hand(site: ControlPlaneEnvironment) -> None:
    """Delete server, port and network as an admin."""
    member = site.stage.member
    for server in site.all("servers"):
        member.ask("DELETE", f"/compute/v2.1/servers/{server['id']}")
    site.stage.clock.advance(60)
    site.all("servers")
    for port in site.all("ports"):
        member.request("DELETE", f"/network/v2.0/ports/{port['id']}")
    member.ask("DELETE", f"/network/v2.0/networks/{site.network['id']}")


BLOWS = [
    pytest.param(cluster_half_made, id="OpenStackCluster half made"),
    pytest.param(cluster_not_ready, id="OpenStackCluster not ready"),
    pytest.param(gone(OPENSTACK_CLUSTER, "infra"), id="OpenStackCluster gone"),
    pytest.param(gone(CLUSTER, "demo"), id="Cluster gone"),
    pytest.param(gone(MACHINE, "one"), id="Machine gone"),
    pytest.param(gone(SECRET, "one-boot"), id="bootstrap data gone im-15"),
    pytest.param(credentials_replaced, id="credentials replaced w-12"),
    pytest.param(image_and_flavor_gone, id="image and flavor gone w-16"),
    pytest.param(cloud_cleared_by_hand, id="server, port and network gone"),
]


@pytest.mark.parametrize("is_building", [False, True], ids=["up", "building"])
@pytest.mark.parametrize("has_balancer", [False, True], ids=["floating IP", "load balancer"])
@pytest.mark.parametrize("blow", BLOWS)
def test_a_machine_goes_whatever_happened_around_it(
    site: ControlPlaneEnvironment,
    blow: Callable[[ControlPlaneEnvironment], None],
    has_balancer: bool,
    is_building: bool,
) -> None:
    if has_balancer:
        site.balance()
    site.add("one")
    site.stage.settle(for_s=120, until=(lambda: site.all("servers")) if is_building else None)
    assert site.all("servers")

    blow(site)
    site.delete("one")
    site.stage.settle(for_s=300)

    assert not site.stage.exists(OPENSTACK_MACHINE, "one")
    assert not site.stage.exists(OPENSTACK_SERVER, "one")
    assert not site.all("servers")
    assert not [p for p in site.all("ports") if p["name"].startswith("one")]


def test_replaced_credentials_reach_the_servers_of_a_cluster_and_make_nothing_anew_w_12(
    site: ControlPlaneEnvironment,
) -> None:
    site.add("one")
    site.stage.settle(for_s=120)
    (server,) = site.all("servers")

    credentials_replaced(site)
    site.stage.settle(for_s=60)

    used = site.stage.get(OPENSTACK_SERVER, "one")["spec"]["identityRef"]
    assert (used["name"], used["cloudName"]) == ("renewed", "sim")
    assert [s["id"] for s in site.all("servers")] == [server["id"]]
    assert site.stage.condition(OPENSTACK_MACHINE, "one", "Ready")["status"] == "True"


def test_what_is_in_the_way_of_a_deletion_is_named_and_its_end_is_noticed(site: ControlPlaneEnvironment) -> None:
    site.add("one")
    site.stage.settle(for_s=120)
    (port,) = (p for p in site.all("ports") if p["name"] == "one-0")
    trunk = site.stage.member.make("/network/v2.0/trunks", "trunk", port_id=port["id"], name="theirs")
    site.delete("one")

    site.stage.settle(for_s=120)

    message = site.stage.condition(OPENSTACK_MACHINE, "one", "Ready")["message"]
    assert "OpenStackServer one" in message
    assert port["id"] in message
    assert trunk["id"] in message
    site.stage.member.ask("DELETE", f"/network/v2.0/trunks/{trunk['id']}")
    site.stage.settle(for_s=300)
    assert not site.stage.exists(OPENSTACK_MACHINE, "one")


def test_credentials_that_are_gone_are_named_and_awaited_w_19_c_52(site: ControlPlaneEnvironment) -> None:
    site.add("one")
    site.stage.settle(for_s=120)
    site.vanish(SECRET, "cloud")
    site.stage.start()
    site.delete("one")

    site.stage.settle(for_s=120)
    message = site.stage.condition(OPENSTACK_MACHINE, "one", "Ready")["message"]
    assert "OpenStackServer one" in message
    assert "cloud" in message
    assert "IdentityNotUsable" in message

    site.stage.apply_secret()
    site.stage.settle(for_s=60)
    assert not site.stage.exists(OPENSTACK_MACHINE, "one")


def test_a_pass_that_the_watch_outruns_does_not_delete_its_server_again(site: ControlPlaneEnvironment) -> None:
    site.add("one")
    site.stage.settle(for_s=120)
    site.stage.kube.writes.clear()
    site.stage.unwatched.add(OPENSTACK_SERVER)
    site.stage.cloud.timings.server_delete_s = 20.0

    site.delete("one")
    site.stage.patch(OPENSTACK_MACHINE, "one", {"metadata": {"labels": {"woken": "again"}}})
    site.stage.settle(for_s=1)
    site.stage.patch(OPENSTACK_MACHINE, "one", {"metadata": {"labels": {"woken": "once more"}}})
    site.stage.settle(for_s=1)

    assert site.stage.kube.writes.count(("delete", "OpenStackServer", "one")) == 1
    site.stage.unwatched.clear()
    site.stage.settle(for_s=300)
    assert not site.stage.exists(OPENSTACK_MACHINE, "one")
