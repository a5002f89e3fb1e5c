"""A floating IP that somebody uses is never handed out, however long ago it was chosen for a claim (W-13)."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from capo import names
from capo.kube.kinds import IP_ADDRESS, IP_ADDRESS_CLAIM
from capo.kube.kinds import OPENSTACK_FLOATING_IP_POOL as KIND
from controllers.openstackfloatingippool.tests.environment import TAG, PoolEnvironment
from environments.in_memory import killed_when

PAUSED = {names.PAUSED_ANNOTATION: ""}


def interrupt(stage: PoolEnvironment, is_time: Callable[[], bool]) -> None:
    """Kill the manager at a point of the answer to a claim."""
    with killed_when(stage, is_time):
        stage.settle(for_s=10)
    assert is_time()
    assert stage.answers() == {}


def created(stage: PoolEnvironment) -> str:
    """Kill the manager between the create of a floating IP and its IPAddress; return the address."""
    stage.pool()
    stage.claim("mine")
    interrupt(stage, lambda: bool(stage.floating_ips()))
    (ip,) = stage.floating_ips()
    return ip


def allocated(stage: PoolEnvironment) -> str:
    """Kill the manager between the IPAddress with a prepared address and its claim's status; return the address."""
    ip = str(stage.floating_ip()["floating_ip_address"])
    stage.pool(preAllocatedFloatingIPs=[ip])
    stage.claim("mine")
    interrupt(stage, lambda: stage.is_there(IP_ADDRESS, "mine"))
    return ip


def test_a_created_floating_ip_that_somebody_uses_by_now_is_not_handed_out(stage: PoolEnvironment) -> None:
    ip = created(stage)
    port = stage.use(ip)

    stage.start()
    stage.settle(for_s=300)

    assert stage.answers() == {}
    assert list(stage.floating_ips()) == [ip]
    shown = stage.condition(IP_ADDRESS_CLAIM, "mine", "Ready")
    assert (shown["status"], shown["reason"]) == ("False", "ForeignResource")
    assert f"{ip}, which was created for this claim, leads to port {port['id']}" in shown["message"]
    assert stage.shown("FloatingIPsCreated") == ("False", "ForeignResource")

    stage.free(ip)
    stage.settle(for_s=120)
    assert stage.answers() == {"mine": ip}
    assert stage.shown("FloatingIPsCreated")[0] == "True"


def test_a_claim_whose_floating_ip_is_in_use_gets_another_that_exists(stage: PoolEnvironment) -> None:
    ip = created(stage)
    stage.use(ip)
    tagged = str(stage.floating_ip(tag=TAG)["floating_ip_address"])

    stage.start()
    stage.settle(for_s=120)

    assert stage.answers() == {"mine": tagged}
    assert stage.floating_ips()[ip]["port_id"]


def test_a_claim_whose_floating_ip_is_in_use_holds_up_no_other(stage: PoolEnvironment) -> None:
    ip = created(stage)
    stage.use(ip)
    stage.start()

    stage.claim("next")
    stage.settle(for_s=60)

    assert list(stage.answers()) == ["next"]
    assert stage.answer("next") != ip
    assert stage.condition(IP_ADDRESS_CLAIM, "mine", "Ready")["reason"] == "ForeignResource"


def test_a_floating_ip_that_somebody_uses_after_a_pause_of_its_claim_is_not_handed_out(stage: PoolEnvironment) -> None:
    ip = created(stage)
    stage.patch(IP_ADDRESS_CLAIM, "mine", {"metadata": {"annotations": PAUSED}})
    stage.start()
    stage.settle(for_s=60)
    stage.use(ip)

    stage.patch(IP_ADDRESS_CLAIM, "mine", {"metadata": {"annotations": {names.PAUSED_ANNOTATION: None}}})
    stage.settle(for_s=60)

    assert stage.answers() == {}


def test_a_created_floating_ip_that_was_deleted_externally_is_created_again(stage: PoolEnvironment) -> None:
    ip = created(stage)
    stage.start()
    stage.patch(IP_ADDRESS_CLAIM, "mine", {"metadata": {"annotations": PAUSED}})
    stage.settle(for_s=60)
    stage.member.ask("DELETE", f"/network/v2.0/floatingips/{stage.floating_ips()[ip]['id']}")

    stage.patch(IP_ADDRESS_CLAIM, "mine", {"metadata": {"annotations": {names.PAUSED_ANNOTATION: None}}})
    stage.settle(for_s=300)

    assert list(stage.floating_ips()) == list(stage.answers().values())
    assert len(stage.answers()) == 1


def test_an_allocated_address_that_somebody_uses_before_it_is_published_is_withdrawn(stage: PoolEnvironment) -> None:
    network = stage.connected()
    ip = allocated(stage)
    port = stage.use(ip, network)

    stage.start()
    stage.settle(for_s=120)

    assert stage.answer("mine") not in (None, ip)
    assert stage.floating_ips()[ip]["port_id"] == port["id"]
    assert "DELETE" not in {request.partition(" ")[0] for request in stage.writes()}


def test_an_allocated_address_that_was_deleted_before_it_is_published_is_withdrawn(stage: PoolEnvironment) -> None:
    ip = allocated(stage)
    stage.member.ask("DELETE", f"/network/v2.0/floatingips/{stage.floating_ips()[ip]['id']}")

    stage.start()
    stage.settle(for_s=120)

    assert stage.answer("mine") not in (None, ip)


@pytest.mark.parametrize("is_paused", [False, True])
def test_an_allocated_address_that_nobody_uses_is_published_after_a_restart(
    stage: PoolEnvironment, is_paused: bool
) -> None:
    ip = allocated(stage)
    stage.start()
    if is_paused:
        stage.patch(KIND, "pool", {"metadata": {"annotations": PAUSED}})
        stage.settle(for_s=60)
        stage.patch(KIND, "pool", {"metadata": {"annotations": {names.PAUSED_ANNOTATION: None}}})

    stage.settle(for_s=120)

    assert stage.answers() == {"mine": ip}


def test_an_address_that_its_claim_had_before_a_move_is_published_although_it_is_in_use(
    stage: PoolEnvironment,
) -> None:
    network = stage.connected()
    stage.pool()
    stage.claim("mine")
    stage.settle(for_s=30)
    ip = stage.answers()["mine"]
    stage.use(ip, network)
    address, claim = stage.get(IP_ADDRESS, "mine"), stage.get(IP_ADDRESS_CLAIM, "mine")
    for kind in (IP_ADDRESS, IP_ADDRESS_CLAIM):  # no status moves, and each object gets another uid
        stage.patch(kind, "mine", {"metadata": {"finalizers": []}})
        stage.delete(kind, "mine")
    kept = ("name", "namespace", "annotations", "labels", "finalizers")
    for kind, obj in ((IP_ADDRESS_CLAIM, claim), (IP_ADDRESS, address)):
        metadata = {key: value for key, value in obj["metadata"].items() if key in kept}
        stage.apply(kind, {"metadata": metadata, "spec": obj["spec"]})

    stage.start()
    stage.settle(for_s=120)

    assert stage.answers() == {"mine": ip}
    assert list(stage.floating_ips()) == [ip]
