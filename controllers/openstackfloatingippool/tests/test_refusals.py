"""The API server refuses writes for one claim: the others are handled, and the claim says why it waits."""

from __future__ import annotations

from typing import Any

import pytest

from capo.kube.errors import Denied, Gone, Invalid, KubeError
from capo.kube.kinds import IP_ADDRESS, IP_ADDRESS_CLAIM, SECRET, Key
from capo.kube.kinds import OPENSTACK_FLOATING_IP_POOL as KIND
from controllers.openstackfloatingippool.tests.environment import PoolEnvironment, ref
from environments.in_memory import NAMESPACE


class Admission:
    """Refuses writes of objects of one name until it is lifted.

    Args:
        verb: of the client, such as ``create``.
    """

    def __init__(self, stage: PoolEnvironment, verb: str, name: str, error: KubeError) -> None:
        self.is_on = True
        answer = getattr(stage.kube, verb)

        def refusing(kind: Any, *rest: Any, **options: Any) -> Any:
            given = rest[0]["metadata"]["name"] if verb == "create" else rest[1]
            if self.is_on and given == name and kind.plural.startswith("ipaddress"):
                raise error
            return answer(kind, *rest, **options)

        setattr(stage.kube, verb, refusing)


@pytest.mark.parametrize("error", [Invalid("spec.poolRef: not equal"), Denied("denied by a policy")], ids=str)
@pytest.mark.parametrize("verb", ["create", "patch"])
def test_a_claim_that_is_refused_holds_up_no_other_and_is_answered_later(
    stage: PoolEnvironment, verb: str, error: KubeError
) -> None:
    admission = Admission(stage, verb, "a-bad", error)
    stage.pool()
    stage.claim("a-bad")
    stage.claim("good")

    stage.settle(for_s=30)
    assert list(stage.answers()) == ["good"]
    assert stage.shown("ClaimsAnswered") == ("False", "WriteRefused")
    assert str(error) in stage.message("ClaimsAnswered")
    if verb == "create":
        shown = stage.condition(IP_ADDRESS_CLAIM, "a-bad", "Ready")
        assert (shown["status"], shown["reason"]) == ("False", "WriteRefused")
        assert str(error) in shown["message"]
    assert len(stage.floating_ips()) <= 2

    admission.is_on = False
    stage.settle(for_s=120)
    assert sorted(stage.answers()) == ["a-bad", "good"]
    assert len(stage.floating_ips()) == 2
    assert stage.shown("ClaimsAnswered") == ("True", "Ready")


@pytest.mark.parametrize("count", [0, 1], ids=["new address", "prepared address"])
def test_a_claim_that_is_gone_before_it_has_our_finalizer_gets_no_address(stage: PoolEnvironment, count: int) -> None:
    ips = [stage.floating_ip()["floating_ip_address"] for _ in range(count)]
    Admission(stage, "patch", "gone", Gone("not found"))  # the store still has it
    stage.pool(preAllocatedFloatingIPs=ips)
    stage.claim("gone")

    stage.settle(for_s=300)

    assert list(stage.floating_ips()) == ips
    assert not stage.is_there(IP_ADDRESS, "gone")
    del stage.kube.objects[Key(IP_ADDRESS_CLAIM, NAMESPACE, "gone")]
    stage.delete(KIND, "pool")
    stage.settle(for_s=300)
    assert not stage.exists(KIND, "pool")


def test_a_prepared_address_goes_to_the_next_claim_where_the_first_is_refused(stage: PoolEnvironment) -> None:
    ips = [stage.floating_ip()["floating_ip_address"] for _ in range(2)]
    Admission(stage, "create", "a-bad", Invalid("no"))
    stage.pool(preAllocatedFloatingIPs=ips, maxIPs=2)
    stage.claim("a-bad")
    stage.claim("good")

    stage.settle(for_s=30)

    assert stage.answer("good") in ips


def test_an_address_whose_deletion_is_refused_holds_up_no_other_release(stage: PoolEnvironment) -> None:
    stage.pool()
    stage.claims(2)
    stage.settle(for_s=30)
    admission = Admission(stage, "delete", "claim-000", Denied("denied by a policy"))
    kept = stage.answer("claim-000")

    stage.patch(IP_ADDRESS_CLAIM, "claim-000", {"metadata": {"deletionTimestamp": "2026-11-23T00:00:00Z"}})
    stage.delete(IP_ADDRESS_CLAIM, "claim-001")
    stage.delete(KIND, "pool")
    stage.settle(for_s=60)
    assert list(stage.floating_ips()) == [kept]
    assert not stage.exists(IP_ADDRESS_CLAIM, "claim-001")
    assert "denied by a policy" in stage.message("AddressesReleased")

    admission.is_on = False
    stage.settle(for_s=60)
    assert stage.floating_ips() == {}
    assert not stage.exists(KIND, "pool")


@pytest.mark.parametrize("group", ["", "infrastructure.cluster.x-k8s.io"])
def test_the_address_names_the_pool_as_its_claim_does(stage: PoolEnvironment, group: str) -> None:
    """Cluster API's webhook refuses an IPAddress whose ``poolRef`` differs from that of its claim."""
    stage.pool()
    wanted = ref(apiGroup=group)
    stage.apply(IP_ADDRESS_CLAIM, {"metadata": {"name": "mine"}, "spec": {"poolRef": wanted}})

    stage.settle(for_s=30)

    assert stage.get(IP_ADDRESS, "mine")["spec"]["poolRef"] == wanted


def test_an_address_of_two_claims_whose_status_was_lost_is_left_to_a_person(stage: PoolEnvironment) -> None:
    """Two pools of the Go provider may have shared a tag: after a move without status both are as they were."""
    ip = stage.floating_ip()["floating_ip_address"]
    stage.pool(preAllocatedFloatingIPs=[ip])
    stage.pool("second", preAllocatedFloatingIPs=[ip])
    stage.claim("a")
    stage.claim("b", "second")
    stage.address("a", ip)
    stage.address("b", ip, pool="second")

    stage.settle(for_s=200)

    assert [stage.get(IP_ADDRESS, name)["spec"]["address"] for name in ("a", "b")] == [ip, ip]
    assert "Conflict" in {stage.condition(IP_ADDRESS_CLAIM, name, "Ready").get("reason") for name in ("a", "b")}
    assert not [verb for verb, kind, _ in stage.kube.writes if (verb, kind) == ("delete", "IPAddress")]

    loser = next(name for name in ("a", "b") if stage.answer(name) is None)
    other = "b" if loser == "a" else "a"
    stage.patch(IP_ADDRESS, other, {"metadata": {"finalizers": None}})
    stage.kube.delete(IP_ADDRESS_CLAIM, "default", other)
    stage.kube.delete(IP_ADDRESS, "default", other)
    stage.settle(for_s=200)
    assert stage.answer(loser) == ip


def test_an_ipaddress_of_another_namespace_with_the_same_address_is_not_named(stage: PoolEnvironment) -> None:
    stage.kube.put(SECRET, {**stage.get(SECRET, "cloud"), "metadata": {"name": "cloud", "namespace": "payroll"}})
    ip = stage.floating_ip()["floating_ip_address"]
    stage.pool(preAllocatedFloatingIPs=[ip])
    stage.pool(metadata={"namespace": "payroll"}, preAllocatedFloatingIPs=[ip])
    for namespace, name in (("default", "mine"), ("payroll", "salary-db")):
        stage.claim(name, namespace=namespace)
        stage.address(name, ip, namespace=namespace)

    stage.settle(for_s=200)

    claims = [("default", "mine", "salary-db"), ("payroll", "salary-db", "mine")]
    conflicts = 0
    for namespace, name, other in claims:
        claim = stage.kube.get(IP_ADDRESS_CLAIM, namespace, name)
        assert claim is not None
        texts = [each["message"] for each in (claim.get("status") or {}).get("conditions") or ()]
        conflicts += sum("is in IPAddress in another namespace, too" in text for text in texts)
        assert not [text for text in texts if other in text]
    assert conflicts
