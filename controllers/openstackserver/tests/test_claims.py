"""A server with an address from a pool; the tests play the pool's controller."""

from __future__ import annotations

from typing import Any

import pytest

from capo import names
from capo.kube.kinds import IP_ADDRESS, IP_ADDRESS_CLAIM
from controllers.openstackserver.tests.environment import (
    CLAIM,
    KIND,
    POOL,
    Pool,
    made,
    place,
    port,
    server,
    shown,
    status,
)
from environments.in_memory import InMemoryEnvironment

ADDRESS = "FloatingAddressFromPoolReady"


@pytest.fixture
def pool(stage: InMemoryEnvironment) -> Pool:
    return Pool(stage)


def wait_for_the_claim(stage: InMemoryEnvironment, pool: Pool, **spec: Any) -> None:
    """Create a server on a network that the pool's addresses reach, and wait until it has a claim."""
    network = place(stage, **{"floatingIPPoolRef": POOL, **spec})
    pool.connect(network["id"])
    stage.before = stage.inventory()  # type: ignore[attr-defined]
    stage.settle(for_s=5)


def test_the_claim_is_made_as_the_go_provider_makes_it(stage: InMemoryEnvironment, pool: Pool) -> None:
    """W-07: the claim has the label that separates managers."""
    labels = {names.CLUSTER_NAME_LABEL: "c", names.WATCH_FILTER_LABEL: "mine"}
    place(stage, metadata={"labels": labels}, floatingIPPoolRef=POOL)

    stage.settle(for_s=5)

    claim = stage.get(IP_ADDRESS_CLAIM, CLAIM)
    owner = {"apiVersion": KIND.api_version, "kind": KIND.kind, "name": "s"}
    assert claim["metadata"]["labels"] == labels
    assert claim["metadata"]["finalizers"] == ["openstackmachine.infrastructure.cluster.x-k8s.io/ip-claim"]
    assert claim["metadata"]["ownerReferences"] == [{**owner, "uid": stage.get(KIND, "s")["metadata"]["uid"]}]
    assert claim["spec"] == {"poolRef": POOL}


def test_nothing_is_made_in_the_cloud_before_the_pool_allocates_an_address(
    stage: InMemoryEnvironment, pool: Pool
) -> None:
    wait_for_the_claim(stage, pool, rootVolume={"sizeGiB": 1})

    stage.settle(for_s=300)

    assert made(stage) == {}
    assert shown(stage, ADDRESS) == ("False", "WaitingForIPAMProvider")
    assert shown(stage, "InstanceReady") == ("False", "InstanceNotReady")
    assert not status(stage).get("ready")


def test_the_address_leads_to_the_server_and_is_among_its_addresses(stage: InMemoryEnvironment, pool: Pool) -> None:
    wait_for_the_claim(stage, pool)

    floating_ip = pool.serve()
    stage.settle(for_s=30)

    assert pool.show(floating_ip)["port_id"] == port(stage)["id"]
    assert shown(stage, ADDRESS) == ("True", "Ready")
    assert status(stage)["ready"] is True
    external = {"type": "ExternalIP", "address": floating_ip["floating_ip_address"]}
    assert external in status(stage)["addresses"]
    assert "SuccessfulAssociateFloatingIP" in stage.events.reasons()


def test_it_costs_one_write_to_kubernetes_more_than_a_server_without_address(
    stage: InMemoryEnvironment, pool: Pool
) -> None:
    wait_for_the_claim(stage, pool)
    waiting = len(stage.kube.writes)

    pool.serve()
    stage.settle(for_s=30)

    assert ("create", "IPAddressClaim", CLAIM) in stage.kube.writes
    assert waiting <= 3
    assert len(stage.kube.writes) <= 8, stage.kube.writes


def test_of_several_ports_the_address_leads_to_the_one_that_its_network_reaches(
    stage: InMemoryEnvironment, pool: Pool
) -> None:
    apart = stage.network("10.8.0.0/24")
    network = place(stage, floatingIPPoolRef=POOL)
    pool.connect(network["id"])
    ports = [{"network": {"id": apart["id"]}}, {"network": {"id": network["id"]}, "nameSuffix": "reached"}]
    stage.patch(KIND, "s", {"spec": {"ports": ports}})
    stage.settle(for_s=5)

    floating_ip = pool.serve()
    stage.settle(for_s=30)

    leads_to = stage.inventory()["ports"][pool.show(floating_ip)["port_id"]]
    assert leads_to["name"] == "s-reached"


def test_a_port_with_two_addresses_is_reached_by_its_first(stage: InMemoryEnvironment, pool: Pool) -> None:
    network = place(stage, floatingIPPoolRef=POOL)
    pool.connect(network["id"])
    port = {"network": {"id": network["id"]}, "fixedIPs": [{"ipAddress": "10.9.0.7"}, {"ipAddress": "10.9.0.8"}]}
    stage.patch(KIND, "s", {"spec": {"ports": [port]}})
    stage.settle(for_s=5)

    floating_ip = pool.serve()
    stage.settle(for_s=30)

    assert pool.show(floating_ip)["fixed_ip_address"] == "10.9.0.7"


def test_an_address_that_reaches_no_port_is_told_and_leads_there_once_there_is_a_router(
    stage: InMemoryEnvironment, pool: Pool
) -> None:
    network = place(stage, floatingIPPoolRef=POOL)
    stage.settle(for_s=5)
    floating_ip = pool.serve()

    stage.settle(for_s=60)
    assert shown(stage, ADDRESS) == ("False", "FloatingIPError")
    assert "router" in stage.condition(KIND, "s", ADDRESS)["message"]
    assert status(stage)["ready"] is False
    assert status(stage)["instanceState"] == "ACTIVE"

    pool.connect(network["id"])
    stage.settle(for_s=150)
    assert pool.show(floating_ip)["port_id"]
    assert status(stage)["ready"] is True


def test_an_address_that_leads_elsewhere_is_not_taken_from_there_w_13(stage: InMemoryEnvironment, pool: Pool) -> None:
    wait_for_the_claim(stage, pool)
    floating_ip = pool.floating_ip()
    subnet = pool._first("subnets", "cidr=10.9.0.0/24")
    other = stage.member.make("/network/v2.0/ports", "port", network_id=subnet["network_id"])
    path = f"/network/v2.0/floatingips/{floating_ip['id']}"
    stage.member.ask("PUT", path, {"floatingip": {"port_id": other["id"]}})

    pool.answer(floating_ip["floating_ip_address"])
    stage.settle(for_s=60)

    assert pool.show(floating_ip)["port_id"] == other["id"]
    assert "ForeignResource" in stage.condition(KIND, "s", ADDRESS)["message"]


def test_an_address_that_the_project_does_not_have_is_told(stage: InMemoryEnvironment, pool: Pool) -> None:
    wait_for_the_claim(stage, pool)

    pool.answer("203.0.113.9")
    stage.settle(for_s=60)

    assert shown(stage, ADDRESS) == ("False", "FloatingIPError")
    assert "203.0.113.9" in stage.condition(KIND, "s", ADDRESS)["message"]


def test_an_address_that_was_taken_away_from_a_running_server_comes_back_at_the_next_resync(
    stage: InMemoryEnvironment, pool: Pool
) -> None:
    wait_for_the_claim(stage, pool)
    floating_ip = pool.serve()
    stage.settle(for_s=30)
    path = f"/network/v2.0/floatingips/{floating_ip['id']}"
    stage.member.ask("PUT", path, {"floatingip": {"port_id": None}})

    stage.settle(for_s=700)
    stage.patch(KIND, "s", {"metadata": {"labels": {"resync": "now"}}})
    stage.settle(for_s=30)

    assert pool.show(floating_ip)["port_id"] == port(stage)["id"]


def test_deletion_gives_the_address_back_once_nothing_of_the_server_is_left(
    stage: InMemoryEnvironment, pool: Pool
) -> None:
    wait_for_the_claim(stage, pool)
    floating_ip = pool.serve()
    stage.settle(for_s=30)
    seen: list[object] = []
    stage.kube.before_write = lambda verb, key, body: (
        seen.append({"servers", "volumes"} & made(stage).keys() or "s-0" in str(stage.inventory()))
        if key.kind == IP_ADDRESS_CLAIM
        else None
    )

    stage.delete(KIND, "s")
    stage.settle(for_s=60)

    assert not stage.exists(KIND, "s")
    assert not stage.exists(IP_ADDRESS_CLAIM, CLAIM)
    assert seen == [False]
    assert pool.show(floating_ip)["port_id"] is None
    assert made(stage) == {"floatingips": 1, "ports": 1}  # the pool's, with the port of its external address


def test_deletion_while_the_pool_has_not_answered_leaves_nothing_behind(stage: InMemoryEnvironment, pool: Pool) -> None:
    wait_for_the_claim(stage, pool)

    stage.delete(KIND, "s")
    stage.settle(for_s=60)

    assert not stage.exists(KIND, "s")
    assert not stage.exists(IP_ADDRESS_CLAIM, CLAIM)


def test_finalizers_of_others_on_the_claim_stay(stage: InMemoryEnvironment, pool: Pool) -> None:
    wait_for_the_claim(stage, pool)
    mine = stage.get(IP_ADDRESS_CLAIM, CLAIM)["metadata"]["finalizers"]
    stage.patch(IP_ADDRESS_CLAIM, CLAIM, {"metadata": {"finalizers": [*mine, "ipam.example.org/release"]}})

    stage.delete(KIND, "s")
    stage.settle(for_s=60)

    assert not stage.exists(KIND, "s")
    claim = stage.get(IP_ADDRESS_CLAIM, CLAIM)["metadata"]
    assert claim["finalizers"] == ["ipam.example.org/release"]
    assert claim["deletionTimestamp"]


def test_a_claim_that_was_made_for_something_else_is_not_used_and_not_deleted_w_14(stage: InMemoryEnvironment) -> None:
    stage.apply(IP_ADDRESS_CLAIM, {"metadata": {"name": CLAIM}, "spec": {"poolRef": POOL}})
    place(stage, floatingIPPoolRef=POOL)

    stage.settle(for_s=60)
    assert "ForeignResource" in stage.condition(KIND, "s", ADDRESS)["message"]
    assert made(stage) == {}

    stage.delete(KIND, "s")
    stage.settle(for_s=60)
    assert not stage.exists(KIND, "s")
    assert stage.exists(IP_ADDRESS_CLAIM, CLAIM)


@pytest.fixture
def restored(stage: InMemoryEnvironment, pool: Pool) -> Pool:
    """Return the pool of a server whose claim lost its owner references, as in a restore from a backup."""
    wait_for_the_claim(stage, pool)
    pool.serve()
    stage.patch(IP_ADDRESS_CLAIM, CLAIM, {"metadata": {"ownerReferences": None}})
    return pool


def test_a_restored_claim_without_an_owner_gets_it_again(stage: InMemoryEnvironment, restored: Pool) -> None:
    stage.settle(for_s=60)

    (owner,) = stage.get(IP_ADDRESS_CLAIM, CLAIM)["metadata"]["ownerReferences"]
    assert owner["uid"] == stage.get(KIND, "s")["metadata"]["uid"]
    assert stage.condition(KIND, "s", ADDRESS)["status"] == "True"


def test_a_restored_claim_without_an_owner_is_released_with_its_server(
    stage: InMemoryEnvironment, restored: Pool
) -> None:
    stage.delete(KIND, "s")
    stage.settle(for_s=60)

    assert not stage.exists(KIND, "s")
    assert not stage.exists(IP_ADDRESS_CLAIM, CLAIM)


def test_a_pool_without_api_group_is_ours_w_22(stage: InMemoryEnvironment) -> None:
    place(stage, floatingIPPoolRef={"kind": "OpenStackFloatingIPPool", "name": "pool"})

    stage.settle(for_s=5)

    assert stage.get(IP_ADDRESS_CLAIM, CLAIM)["spec"]["poolRef"] == POOL


def test_a_pool_of_an_unknown_kind_without_api_group_is_refused_in_words_w_22(stage: InMemoryEnvironment) -> None:
    place(stage, floatingIPPoolRef={"kind": "InClusterIPPool", "name": "pool"})

    stage.settle(for_s=60)

    assert not stage.exists(IP_ADDRESS_CLAIM, CLAIM)
    assert "apiGroup" in stage.condition(KIND, "s", ADDRESS)["message"]


def test_without_the_kinds_of_ipam_the_server_waits_and_goes_on_when_they_come(
    stage: InMemoryEnvironment, pool: Pool
) -> None:
    stage.kube.unserved.add(IP_ADDRESS_CLAIM)
    stage.unwatched |= {IP_ADDRESS_CLAIM, IP_ADDRESS}
    wait_for_the_claim(stage, pool)
    assert "is not served" in stage.condition(KIND, "s", ADDRESS)["message"]

    stage.kube.unserved.clear()
    stage.settle(for_s=40)
    pool.serve()
    stage.settle(for_s=60)

    assert status(stage)["ready"] is True


def test_a_pool_that_lost_its_claim_does_not_hide_that_the_server_vanished(
    stage: InMemoryEnvironment, pool: Pool
) -> None:
    wait_for_the_claim(stage, pool)
    pool.serve()
    stage.settle(for_s=30)
    stage.patch(IP_ADDRESS_CLAIM, CLAIM, {"metadata": {"finalizers": []}})
    stage.delete(IP_ADDRESS_CLAIM, CLAIM)
    stage.settle(for_s=5)
    assert shown(stage, ADDRESS) == ("False", "WaitingForIPAMProvider")

    stage.member.ask("DELETE", f"/compute/v2.1/servers/{server(stage)['id']}")
    stage.settle(for_s=61)

    assert status(stage)["ready"] is False
    assert shown(stage, "InstanceReady")[1] in ("InstanceNotFound", "InstanceDeleted")
