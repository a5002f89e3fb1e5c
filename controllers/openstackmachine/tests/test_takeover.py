"""Machines whose status was lost (``clusterctl move``), and machines of the Go provider: none is recreated."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from capo import names
from capo.kube.kinds import CLUSTER, OPENSTACK_CLUSTER, OPENSTACK_MACHINE, OPENSTACK_SERVER
from controllers.openstackmachine.tests.control_plane_environment import ControlPlaneEnvironment
from controllers.tests import stamps

NAMES = ("one", "two")
KINDS = (OPENSTACK_MACHINE, OPENSTACK_SERVER)
WATCHED = ("servers", "ports", "volumes", "members", "floatingips")


def come_up(site: ControlPlaneEnvironment, *, has_balancer: bool) -> None:
    """Create two control plane machines with a load balancer or a floating IP."""
    if has_balancer:
        site.balance()
    else:
        site.float()
    for name in NAMES:
        site.add(name)
    site.stage.settle(for_s=300)
    assert all(site.ingress(name) == ("True", "Ready") for name in NAMES)


def move(site: ControlPlaneEnvironment) -> None:
    """Rewrite objects as ``clusterctl move`` does: without status, with other uids."""
    for kind in KINDS:
        for name in NAMES:
            site.stage.patch(kind, name, {"metadata": {"uid": f"moved-{kind.kind}-{name}"}, "status": None})
    for name in NAMES:
        owner = site.stage.get(OPENSTACK_SERVER, name)["metadata"]["ownerReferences"][0]
        moved = [{**owner, "uid": f"moved-OpenStackMachine-{name}"}]
        site.stage.patch(OPENSTACK_SERVER, name, {"metadata": {"ownerReferences": moved}})


def hand_back(site: ControlPlaneEnvironment) -> None:
    """Rewrite machines as the Go provider leaves them: with its status, without our annotations, records and stamps."""
    annotations = {names.OWNER_ID_ANNOTATION: None}
    for kind in KINDS:
        for name in NAMES:
            resources = {"records": None, "pending": None}
            site.stage.patch(kind, name, {"metadata": {"annotations": annotations}, "status": {"resources": resources}})
    for name in NAMES:
        owner = site.stage.get(OPENSTACK_SERVER, name)["metadata"]["ownerReferences"][0]
        plain = {field: owner[field] for field in ("apiVersion", "kind", "name", "uid")}
        site.stage.patch(OPENSTACK_SERVER, name, {"metadata": {"ownerReferences": [plain]}})
        addresses = {"status": {"addresses": None}}
        site.stage.patch(OPENSTACK_SERVER, name, addresses)  # the Go provider never writes them
    site.stage.simulator.call(lambda: stamps.remove_all(site.stage.cloud, but="floatingips"))  # that is the cluster's


def stamp_members(site: ControlPlaneEnvironment) -> None:
    """Replace the stamps of all members by one whose owner is no machine, as after owner ids were lost."""
    for body in site.stage.cloud.table("load-balancer", "members").values():
        body["tags"] = [*body["tags"], f"capo:{'z' * 13}:member-6443"]


def clear(site: ControlPlaneEnvironment) -> None:
    """Delete image and flavor, which a running server does not need."""
    for service, kind in (("image", "images"), ("compute", "flavors")):
        site.stage.simulator.call(site.stage.cloud.table(service, kind).clear)


def ids(site: ControlPlaneEnvironment) -> dict[str, list[str]]:
    return {kind: sorted(body["id"] for body in site.all(kind)) for kind in WATCHED}


@pytest.mark.parametrize("has_balancer", [True, False], ids=["load balancer", "floating IP"])
@pytest.mark.parametrize("blow", [move, hand_back], ids=["moved", "made by the Go provider"])
def test_nothing_is_rebuilt_and_all_is_as_it_was(
    site: ControlPlaneEnvironment, blow: Callable[[ControlPlaneEnvironment], None], has_balancer: bool
) -> None:
    come_up(site, has_balancer=has_balancer)
    before = ids(site)
    provider_ids = [site.stage.get(OPENSTACK_MACHINE, name)["spec"]["providerID"] for name in NAMES]
    blow(site)
    site.stage.start()
    site.stage.cloud.counter.reset()

    site.stage.settle(for_s=1300)

    assert site.stage.writes() == []
    assert ids(site) == before
    for name, provider_id in zip(NAMES, provider_ids, strict=True):
        machine: dict[str, Any] = site.stage.get(OPENSTACK_MACHINE, name)
        assert machine["spec"]["providerID"] == provider_id
        assert machine["status"]["initialization"] == {"provisioned": True}
        assert [a["type"] for a in machine["status"]["addresses"]][-1] == "InternalDNS"
        assert site.stage.condition(OPENSTACK_MACHINE, name, "Ready")["status"] == "True"
        assert site.ingress(name) == ("True", "Ready")


def test_members_with_a_stamp_of_nobody_stay_at_living_machines_and_leave_with_them(
    site: ControlPlaneEnvironment,
) -> None:
    come_up(site, has_balancer=True)
    before = ids(site)
    hand_back(site)
    site.stage.simulator.call(lambda: stamp_members(site))
    site.stage.start()
    site.stage.cloud.counter.reset()

    site.stage.settle(for_s=1300)

    assert site.stage.writes() == []
    assert ids(site) == before
    kept = [site.address_of(name) for name in NAMES[1:]]
    site.delete(NAMES[0])
    site.stage.settle(for_s=300)
    assert site.addresses() == sorted(kept)


@pytest.mark.parametrize("blow", [move, hand_back], ids=["moved", "made by the Go provider"])
def test_a_running_server_needs_neither_image_nor_flavor_any_more(
    site: ControlPlaneEnvironment, blow: Callable[[ControlPlaneEnvironment], None]
) -> None:
    come_up(site, has_balancer=True)
    before = ids(site)
    blow(site)
    clear(site)
    site.stage.start()

    site.stage.settle(for_s=1300)

    assert ids(site) == before
    for name in NAMES:
        assert site.stage.condition(OPENSTACK_MACHINE, name, "Ready")["status"] == "True"


@pytest.mark.parametrize("is_adopted", [True, False], ids=["after a first run", "at once"])
@pytest.mark.parametrize("blow", [move, hand_back], ids=["moved", "made by the Go provider"])
def test_a_machine_that_was_taken_over_goes_with_all_it_has(
    site: ControlPlaneEnvironment, blow: Callable[[ControlPlaneEnvironment], None], is_adopted: bool
) -> None:
    come_up(site, has_balancer=True)
    blow(site)
    site.stage.start()
    if is_adopted:
        site.stage.settle(for_s=300)

    site.delete("one")
    site.stage.settle(for_s=300)

    assert not site.stage.exists(OPENSTACK_MACHINE, "one")
    assert [s["name"] for s in site.all("servers")] == ["two"]
    assert not [p for p in site.all("ports") if p["name"].startswith("one")]
    assert site.addresses() == [site.address_of("two")]


def leave_cluster(site: ControlPlaneEnvironment, *, has_status: bool) -> dict[str, Any]:
    """Rewrite the OpenStackCluster and its load balancer as the Go provider leaves them; return the former records.

    Args:
        has_status: keep the load balancer in its status; else it was lost.
    """
    recorded: dict[str, Any] = site.stage.get(OPENSTACK_CLUSTER, "infra")["status"]["resources"]
    (balancer,) = site.all("loadbalancers")
    known = {"id": balancer["id"], "name": balancer["name"], "ip": "10.0.0.9", "internalIP": "10.0.0.9"}
    status = {"resources": None, "apiServerManagedLoadBalancer": known if has_status else None}
    site.stage.patch(OPENSTACK_CLUSTER, "infra", {"status": status})

    def rename() -> None:
        for pool in site.stage.cloud.table("load-balancer", "pools").values():
            pool["name"] = names.load_balancer_child("default-demo", 6443)

    site.stage.simulator.call(rename)
    return recorded


def test_a_machine_that_is_deleted_before_the_pools_are_recorded_leaves_them(site: ControlPlaneEnvironment) -> None:
    come_up(site, has_balancer=True)
    hand_back(site)
    leave_cluster(site, has_status=True)
    site.stage.start()

    site.delete("one")
    site.stage.settle(for_s=300)

    assert not site.stage.exists(OPENSTACK_MACHINE, "one")
    assert site.addresses() == [site.address_of("two")]


@pytest.mark.parametrize("blow", [move, hand_back], ids=["moved", "made by the Go provider"])
def test_a_machine_waits_for_the_record_of_the_pools_when_nothing_names_the_load_balancer(
    site: ControlPlaneEnvironment, blow: Callable[[ControlPlaneEnvironment], None]
) -> None:
    come_up(site, has_balancer=True)
    blow(site)
    recorded = leave_cluster(site, has_status=False)
    site.stage.start()
    site.delete("one")
    site.stage.settle(for_s=300)
    assert site.stage.exists(OPENSTACK_MACHINE, "one")
    assert "record the pools" in site.stage.condition(OPENSTACK_MACHINE, "one", "Ready")["message"]
    assert {server["name"] for server in site.all("servers")} == {"one", "two"}

    site.stage.patch(OPENSTACK_CLUSTER, "infra", {"status": {"resources": recorded}})
    site.stage.settle(for_s=200)

    assert not site.stage.exists(OPENSTACK_MACHINE, "one")
    assert site.addresses() == [site.address_of("two")]


def test_a_record_that_never_comes_is_not_waited_for_without_end(site: ControlPlaneEnvironment) -> None:
    come_up(site, has_balancer=True)
    hand_back(site)
    leave_cluster(site, has_status=False)
    site.stage.start()

    site.delete("one")
    site.stage.settle(for_s=1000)

    assert not site.stage.exists(OPENSTACK_MACHINE, "one")
    (text,) = {text for _, reason, text in site.stage.events.seen if reason == "MemberLeftBehind"}
    assert names.member("default-demo", 6443, "one") in text


def cluster_is_gone(site: ControlPlaneEnvironment) -> None:
    site.vanish(OPENSTACK_CLUSTER, "infra")


def cluster_is_managed_by_others(site: ControlPlaneEnvironment) -> None:
    site.stage.patch(OPENSTACK_CLUSTER, "infra", {"metadata": {"annotations": {names.MANAGED_BY_ANNOTATION: ""}}})


def cluster_has_no_balancer(site: ControlPlaneEnvironment) -> None:
    site.stage.patch(OPENSTACK_CLUSTER, "infra", {"spec": {"apiServer": {"managedLoadBalancer": {"enabled": False}}}})


def cluster_is_deleted(site: ControlPlaneEnvironment) -> None:
    for kind, name in ((CLUSTER, "demo"), (OPENSTACK_CLUSTER, "infra")):
        site.stage.patch(kind, name, {"metadata": {"finalizers": ["test"]}})
        site.stage.delete(kind, name)


def infrastructure_alone_is_deleted(site: ControlPlaneEnvironment) -> None:
    site.stage.patch(OPENSTACK_CLUSTER, "infra", {"metadata": {"finalizers": ["test"]}})
    site.stage.delete(OPENSTACK_CLUSTER, "infra")


def cluster_has_looked(site: ControlPlaneEnvironment) -> None:
    """Give the OpenStackCluster an owner id and the condition of a load balancer that cannot be created again."""
    shown = {"type": "LoadBalancerReady", "status": "False", "reason": "QuotaExceeded"}
    annotations = {names.OWNER_ID_ANNOTATION: "x"}
    site.stage.patch(
        OPENSTACK_CLUSTER, "infra", {"metadata": {"annotations": annotations}, "status": {"conditions": [shown]}}
    )


@pytest.mark.parametrize(
    "blow",
    [
        cluster_is_gone,
        cluster_is_managed_by_others,
        cluster_has_no_balancer,
        cluster_is_deleted,
        infrastructure_alone_is_deleted,
        cluster_has_looked,
    ],
    ids=lambda blow: blow.__name__,
)
def test_nothing_is_waited_for_that_never_comes(
    site: ControlPlaneEnvironment, blow: Callable[[ControlPlaneEnvironment], None]
) -> None:
    come_up(site, has_balancer=True)
    hand_back(site)
    leave_cluster(site, has_status=False)
    blow(site)
    site.stage.start()

    site.delete("one")
    site.stage.settle(for_s=120)

    assert not site.stage.exists(OPENSTACK_MACHINE, "one")


def test_a_machine_that_never_had_a_server_waits_for_no_record(site: ControlPlaneEnvironment) -> None:
    site.balance()
    leave_cluster(site, has_status=False)
    site.stage.patch(OPENSTACK_CLUSTER, "infra", {"status": {"initialization": None}})
    site.add("one")
    site.stage.settle(for_s=60)

    site.delete("one")
    site.stage.settle(for_s=60)

    assert not site.stage.exists(OPENSTACK_MACHINE, "one")


def machine_addresses(site: ControlPlaneEnvironment, name: str) -> Any:
    return site.stage.get(OPENSTACK_MACHINE, name)["status"]["addresses"]


@pytest.mark.parametrize("has_credentials", [True, False], ids=["credentials", "refused credentials"])
def test_addresses_stay_until_the_server_reports_its_own(site: ControlPlaneEnvironment, has_credentials: bool) -> None:
    come_up(site, has_balancer=True)
    before = machine_addresses(site, "one")
    hand_back(site)
    if not has_credentials:
        text = site.stage.simulator.clouds_yaml.read_bytes().replace(b"password:", b"password: wrong-")
        site.stage.apply_secret(text=text)
    site.stage.start()
    seen: list[Any] = []
    site.stage.kube.before_write = lambda _verb, key, body: seen.append(
        (body.get("status") or {}).get("addresses") if key.kind == OPENSTACK_MACHINE else None
    )

    site.stage.settle(for_s=1300)

    assert [addresses for addresses in seen if addresses not in (None, before)] == []
    assert machine_addresses(site, "one") == before
    assert site.stage.condition(OPENSTACK_MACHINE, "one", "Ready")["status"] == "True"
