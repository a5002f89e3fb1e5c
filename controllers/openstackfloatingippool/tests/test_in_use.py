"""A floating IP that somebody uses is never handed out, however long ago it was chosen for a claim (W-13)."""

from __future__ import annotations

from collections.abc import Callable

from capo import names
from capo.kube.kinds import IP_ADDRESS_CLAIM
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
