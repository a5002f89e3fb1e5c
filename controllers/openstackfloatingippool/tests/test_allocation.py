"""Claims and their addresses: which floating IPs are allocated, in which order, and to whom."""

from __future__ import annotations

from typing import Any

import pytest

from capo import names
from capo.kube.kinds import CLUSTER, IP_ADDRESS, IP_ADDRESS_CLAIM, OPENSTACK_SERVER, Key
from capo.kube.kinds import OPENSTACK_FLOATING_IP_POOL as KIND
from capo.simulator.testing import Client
from controllers.openstackfloatingippool.ipam import in_order
from controllers.openstackfloatingippool.tests.environment import DESCRIPTION, FINALIZER, TAG, PoolEnvironment, ref
from environments.in_memory import NAMESPACE


def test_a_claim_is_answered_as_the_contract_of_ipam_providers_says_c_72(stage: PoolEnvironment) -> None:
    pool = stage.pool()
    claim = stage.claim("mine", labels={names.WATCH_FILTER_LABEL: "x"})

    stage.settle(for_s=30)

    ip = stage.answer("mine")
    address = stage.get(IP_ADDRESS, "mine")
    owner = {"apiVersion": IP_ADDRESS_CLAIM.api_version, "kind": "IPAddressClaim", "name": "mine"}
    ours = {"apiVersion": KIND.api_version, "kind": KIND.kind, "name": "pool", "uid": pool["metadata"]["uid"]}
    assert address["spec"] == {"claimRef": {"name": "mine"}, "poolRef": ref(), "address": ip, "prefix": 32}
    assert address["metadata"]["finalizers"] == [f"{FINALIZER}/delete-floating-ip"]
    assert address["metadata"]["labels"] == {names.WATCH_FILTER_LABEL: "x"}
    assert address["metadata"]["ownerReferences"] == [
        {**owner, "uid": claim["metadata"]["uid"], "controller": True, "blockOwnerDeletion": True},
        {**ours, "controller": False, "blockOwnerDeletion": True},
    ]
    assert stage.get(IP_ADDRESS_CLAIM, "mine")["metadata"]["finalizers"] == [f"{FINALIZER}/release-address"]
    assert stage.condition(IP_ADDRESS_CLAIM, "mine", "Ready")["status"] == "True"
    assert list(stage.floating_ips()) == [ip]
    assert stage.shown() == ("True", "Ready")
    assert stage.status()["claimedIPs"] == [ip]
    assert stage.status()["floatingIPNetwork"]["id"] == stage.external_id


def test_a_created_floating_ip_carries_the_stamp_of_its_claim_from_the_create_on(stage: PoolEnvironment) -> None:
    stage.pool()
    claim = stage.claim("mine")

    stage.settle(for_s=30)

    (body,) = stage.floating_ips().values()
    owner = names.owner_in(stage.get(KIND, "pool"), kind=KIND.kind)
    uid = claim["metadata"]["uid"].replace("-", "")
    assert body["description"] == f"{DESCRIPTION} [capo:{owner}:ip-{uid}]"
    assert stage.writes() == ["POST /v2.0/floatingips"]


def test_a_server_gets_an_address_of_our_pool_and_gives_it_back(stage: PoolEnvironment) -> None:
    stage.pool()
    network = stage.connected()
    spec = {
        "identityRef": {"name": "cloud", "cloudName": "sim"},
        "flavor": "m1.small",
        "image": {"filter": {"name": "tiny-image"}},
        "sshKeyName": "lab",
        "ports": [{"network": {"id": network["id"]}}],
        "floatingIPPoolRef": ref(),
    }
    stage.apply(OPENSTACK_SERVER, {"metadata": {"name": "s"}, "spec": spec})
    stage.settle(for_s=90)
    (body,) = stage.floating_ips().values()
    assert body["port_id"]
    assert stage.get(OPENSTACK_SERVER, "s")["status"]["ready"] is True

    stage.delete(OPENSTACK_SERVER, "s")
    stage.settle(for_s=120)

    assert not stage.exists(OPENSTACK_SERVER, "s")
    assert not stage.exists(IP_ADDRESS_CLAIM, "s-floating-ip-address")
    assert not stage.exists(IP_ADDRESS, "s-floating-ip-address")
    assert stage.floating_ips() == {}


def test_prepared_floating_ips_come_first_then_tagged_ones_then_new_ones(stage: PoolEnvironment) -> None:
    made = [stage.floating_ip()["floating_ip_address"] for _ in range(2)]
    tagged = stage.floating_ip(tag=TAG)["floating_ip_address"]
    prepared = sorted(made, reverse=True)
    stage.pool(preAllocatedFloatingIPs=[*prepared, prepared[0]])
    for name in ("a", "b", "c", "d"):
        stage.claim(name, creationTimestamp=f"2026-01-01T00:00:0{ord(name) - 96}Z")

    stage.settle(for_s=30)

    found = stage.answers()
    assert [found["a"], found["b"], found["c"]] == [*in_order(made), tagged]
    assert len(stage.floating_ips()) == 4
    assert stage.status()["claimedIPs"] == in_order(found.values())
    assert stage.status()["availableIPs"] == []


def test_a_floating_ip_that_a_user_prepared_is_not_written_to(stage: PoolEnvironment) -> None:
    before = {body["floating_ip_address"]: body for body in (stage.floating_ip(), stage.floating_ip(tag=TAG))}
    prepared = next(iter(before))
    stage.pool(preAllocatedFloatingIPs=[prepared])
    names_ = stage.claims(2)
    stage.settle(for_s=30)
    assert len(stage.answers()) == 2

    for name in names_:
        stage.delete(IP_ADDRESS_CLAIM, name)
    stage.settle(for_s=60)

    assert stage.floating_ips() == before
    assert stage.writes() == []
    assert stage.status()["availableIPs"] == in_order(before)


def test_lists_in_the_status_are_sorted_sets_that_do_not_change_without_cause_w_32(stage: PoolEnvironment) -> None:
    ips = [stage.floating_ip(tag=TAG)["floating_ip_address"] for _ in range(12)]
    stage.pool(preAllocatedFloatingIPs=[*ips[3:6], *ips[3:6]])
    stage.settle(for_s=30)
    writes = len(stage.kube.writes)

    stage.settle(for_s=3000)

    assert stage.status()["availableIPs"] == in_order(ips)
    assert len(stage.kube.writes) == writes


def test_addresses_are_counted_once_for_the_limit_w_33(stage: PoolEnvironment) -> None:
    prepared = [stage.floating_ip()["floating_ip_address"] for _ in range(2)]
    stage.pool(preAllocatedFloatingIPs=prepared, maxIPs=4)

    stage.claims(5)
    stage.settle(for_s=30)

    assert len(set(stage.answers().values())) == 4
    assert len(stage.floating_ips()) == 4


def test_a_claim_beyond_the_limit_waits_and_is_answered_when_another_goes(stage: PoolEnvironment) -> None:
    stage.pool(maxIPs=1)
    stage.claims(2)
    stage.settle(for_s=30)
    assert stage.shown() == ("False", "MaxIPsReached")
    assert stage.shown("FloatingIPsCreated") == ("False", "MaxIPsReached")
    assert stage.condition(IP_ADDRESS_CLAIM, "claim-001", "Ready")["reason"] == "MaxIPsReached"
    assert list(stage.answers()) == ["claim-000"]

    stage.delete(IP_ADDRESS_CLAIM, "claim-000")
    stage.settle(for_s=30)

    assert list(stage.answers()) == ["claim-001"]
    assert stage.shown() == ("True", "Ready")
    assert stage.condition(IP_ADDRESS_CLAIM, "claim-001", "Ready")["status"] == "True"
    assert len(stage.floating_ips()) == 1


@pytest.mark.parametrize("most", [None, -1])
def test_without_a_limit_every_claim_is_answered(stage: PoolEnvironment, most: int | None) -> None:
    limit: dict[str, Any] = {} if most is None else {"maxIPs": most}
    stage.pool(**limit)

    stage.claims(3)
    stage.settle(for_s=30)

    assert len(stage.answers()) == 3


def test_a_full_quota_is_told_after_one_refusal_and_existing_addresses_are_allocated(
    stage: PoolEnvironment,
) -> None:
    stage.pool()
    stage.cloud.set_quota("network", stage.member.project_id, "floatingip", 0)
    stage.claims(20)
    stage.settle(for_s=30)
    assert stage.shown() == ("False", "OpenStackError")
    assert stage.shown("FloatingIPsCreated") == ("False", "QuotaExceeded")
    assert stage.condition(IP_ADDRESS_CLAIM, "claim-000", "Ready")["reason"] == "QuotaExceeded"
    assert len(stage.writes()) <= 4

    stage.cloud.set_quota("network", stage.member.project_id, "floatingip", 1)
    ip = stage.floating_ip(tag=TAG)["floating_ip_address"]
    stage.settle(for_s=120)
    assert list(stage.answers().values()) == [ip]

    stage.cloud.set_quota("network", stage.member.project_id, "floatingip", -1)
    stage.settle(for_s=300)
    assert len(set(stage.answers().values())) == 20
    assert stage.shown() == ("True", "Ready")


@pytest.mark.parametrize(
    ("status", "type_"),
    # A network without a free address, and one whose subnets have none that a floating IP may get.
    [(409, "IpAddressGenerationFailure"), (400, "ExternalIpAddressExhausted")],
)
def test_an_exhausted_network_is_named_until_it_has_an_address(stage: PoolEnvironment, status: int, type_: str) -> None:
    spare = stage.floating_ip()
    stage.pool()
    body = {"NeutronError": {"type": type_, "message": "No address is left on network x.", "detail": ""}}
    match = {"method": "POST", "path": "/v2.0/floatingips"}
    stage.add_fault(match=match, effect={"status": status, "body": body})
    stage.claims(2)
    stage.settle(for_s=300)
    shown = stage.condition(IP_ADDRESS_CLAIM, "claim-000", "Ready")
    assert (shown["status"], shown["reason"]) == ("False", "AddressesExhausted")
    assert "No address is left on network x" in shown["message"]
    assert "allocation pools" in shown["message"]
    assert stage.shown() == ("False", "OpenStackError")
    assert stage.shown("FloatingIPsCreated") == ("False", "AddressesExhausted")

    stage.member.ask("PUT", f"/network/v2.0/floatingips/{spare['id']}/tags", {"tags": [TAG]})
    stage.settle(for_s=120)
    assert list(stage.answers().values()) == [spare["floating_ip_address"]]

    stage.clear_faults()
    stage.settle(for_s=130)
    assert len(stage.answers()) == 2


def test_a_hundred_claims_at_once_cost_at_most_three_requests_each(stage: PoolEnvironment) -> None:
    stage.pool()
    stage.settle(for_s=30)
    stage.cloud.counter.reset()

    stage.claims(100)
    stage.settle(for_s=120)

    assert len(set(stage.answers().values())) == 100
    assert len(stage.requests()) <= 300
    assert len([each for each in stage.requests() if each.startswith("GET")]) <= 20


def test_the_release_of_a_hundred_claims_at_once_costs_at_most_three_requests_each(stage: PoolEnvironment) -> None:
    stage.pool()
    names_ = stage.claims(100)
    stage.settle(for_s=120)
    assert len(stage.floating_ips()) == 100
    stage.cloud.counter.reset()

    for name in names_:
        stage.delete(IP_ADDRESS_CLAIM, name)
    stage.settle(for_s=300)

    assert stage.floating_ips() == {}
    # Each is read before it is deleted: somebody may use it by then.
    assert len([each for each in stage.requests() if each.startswith("DELETE")]) == 100
    assert len(stage.requests()) <= 220


def test_prepared_addresses_cost_at_most_three_requests_each_too(stage: PoolEnvironment) -> None:
    ips = [stage.floating_ip()["floating_ip_address"] for _ in range(30)]
    stage.pool(preAllocatedFloatingIPs=ips)
    stage.settle(for_s=30)
    stage.cloud.counter.reset()

    stage.claims(30)
    stage.settle(for_s=60)

    assert sorted(stage.answers().values()) == sorted(ips)
    assert len(stage.requests()) <= 90


def test_one_that_leads_to_a_port_is_not_handed_out_and_told_w_13(stage: PoolEnvironment) -> None:
    ip = stage.floating_ip()["floating_ip_address"]
    port = stage.use(ip)
    stage.pool(preAllocatedFloatingIPs=[ip])

    stage.claim("mine")
    stage.settle(for_s=30)

    assert stage.answer("mine") not in (None, ip)
    assert stage.floating_ips()[ip]["port_id"] == port["id"]
    assert stage.status()["failedIPs"] == [ip]
    assert port["id"] in stage.message()


def test_one_that_was_used_since_the_last_list_is_not_handed_out_w_13(stage: PoolEnvironment) -> None:
    ip = stage.floating_ip()["floating_ip_address"]
    network = stage.connected()
    stage.pool(preAllocatedFloatingIPs=[ip], maxIPs=0)
    stage.settle(for_s=20)
    assert stage.status()["availableIPs"] == [ip]
    port = stage.use(ip, network)

    stage.claim("mine")
    stage.settle(for_s=5)
    assert stage.answer("mine") is None
    assert stage.floating_ips()[ip]["port_id"] == port["id"]

    stage.free(ip)
    stage.settle(for_s=120)
    assert stage.answer("mine") == ip


def test_a_prepared_address_that_is_missing_is_told_and_allocated_once_it_is_there_w_33(stage: PoolEnvironment) -> None:
    gone = stage.floating_ip()
    ip = gone["floating_ip_address"]
    stage.member.ask("DELETE", f"/network/v2.0/floatingips/{gone['id']}")
    stage.pool(preAllocatedFloatingIPs=[ip], maxIPs=0)
    stage.claim("mine")
    stage.settle(for_s=30)
    assert stage.answer("mine") is None
    assert stage.status()["failedIPs"] == [ip]

    with_address = stage.floating_ip(floating_ip_address=ip) if _may_choose(stage) else stage.floating_ip()
    stage.patch(KIND, "pool", {"spec": {"preAllocatedFloatingIPs": [with_address["floating_ip_address"]]}})
    stage.settle(for_s=120)

    assert stage.answer("mine") == with_address["floating_ip_address"]
    assert stage.status()["failedIPs"] == []


def _may_choose(stage: PoolEnvironment) -> bool:
    """Return whether a member may choose the address of a floating IP; Neutron permits that to administrators."""
    return False


def test_one_with_the_stamp_of_somebody_else_is_never_handed_out(stage: PoolEnvironment) -> None:
    body = stage.floating_ip(description="theirs [capo:aaaaaaaaaaaaa:fip-api]", tag=TAG)
    stage.pool(preAllocatedFloatingIPs=[body["floating_ip_address"]])

    stage.claim("mine")
    stage.settle(for_s=30)

    assert stage.answer("mine") not in (None, body["floating_ip_address"])
    assert "something else" in stage.message()


def test_pools_of_one_name_in_two_namespaces_share_no_address_w_08(stage: PoolEnvironment) -> None:
    stage.apply_secret()
    secret = stage.kube.get(*next(key for key in stage.kube.objects if key.kind.kind == "Secret"))
    assert secret is not None
    stage.apply(_kind_of(stage, "Secret"), {**secret, "metadata": {"name": "cloud", "namespace": "other"}})
    tagged = stage.floating_ip(tag=TAG)["floating_ip_address"]
    stage.pool()
    stage.pool(metadata={"namespace": "other"})
    for namespace in (NAMESPACE, "other"):
        stage.claim(f"in-{namespace}", namespace=namespace)
        stage.claim(f"more-{namespace}", namespace=namespace)

    stage.settle(for_s=60)

    found = stage.answers()
    assert len(found) == 4
    assert len(set(found.values())) == 4
    assert tagged in found.values()


def _kind_of(stage: PoolEnvironment, name: str) -> Any:
    return next(key.kind for key in stage.kube.objects if key.kind.kind == name)


def test_two_pools_that_name_the_same_prepared_address_allocate_it_once(stage: PoolEnvironment) -> None:
    ip = stage.floating_ip()["floating_ip_address"]
    stage.pool(preAllocatedFloatingIPs=[ip])
    stage.pool("second", preAllocatedFloatingIPs=[ip])
    stage.claim("a")
    stage.claim("b", "second")

    stage.settle(for_s=60)

    assert ip in stage.answers().values()
    assert len(set(stage.answers().values())) == 2
    assert not [verb for verb, kind, _ in stage.kube.writes if (verb, kind) == ("delete", "IPAddress")]


@pytest.mark.parametrize("is_created", [False, True], ids=["before the IPAddress", "after the IPAddress"])
def test_two_new_pools_whose_reconciles_overlap_allocate_a_prepared_address_once(
    stage: PoolEnvironment, is_created: bool
) -> None:
    """The second pool is reconciled while the first creates its IPAddress, or is about to publish it."""
    ip = stage.floating_ip()["floating_ip_address"]
    stage.pool("warm")
    stage.claim("listed", "warm")
    stage.settle(for_s=20)  # the floating IPs are listed already
    stage.pool("first", preAllocatedFloatingIPs=[ip])
    stage.pool("second", preAllocatedFloatingIPs=[ip])
    stage.claim("a", "first")
    stage.claim("b", "second")

    def overlap(verb: str, key: Key, _body: object) -> None:
        is_due = verb == "create" if not is_created else stage.is_there(IP_ADDRESS, "a")
        if is_due and key.name in ("a", "first"):
            stage.kube.before_write = None
            stage._sync()
            stage.pools.reconcile(Key(KIND, NAMESPACE, "second"))

    stage.kube.before_write = overlap
    stage.settle(for_s=120)

    assert stage.kube.before_write is None
    assert ip in stage.answers().values()
    assert len(set(stage.answers().values())) == 3
    assert [stage.condition(IP_ADDRESS_CLAIM, each, "Ready")["status"] for each in ("a", "b")] == ["True", "True"]


def test_a_pool_that_creates_its_floating_ips_needs_no_write_more_for_its_location(stage: PoolEnvironment) -> None:
    stage.pool()
    stage.claim("mine")

    stage.settle(for_s=30)

    # Owner id, intent with the location, and the outcome.
    assert [verb for verb, kind, _ in stage.kube.writes if kind == KIND.kind] == ["patch", *["patch/status"] * 2]


def test_what_the_go_provider_serves_is_held_until_the_location_of_its_pool_is_stored(stage: PoolEnvironment) -> None:
    ip = stage.floating_ip(tag=TAG)["floating_ip_address"]
    begun = {names.OWNER_ID_ANNOTATION: "begun", names.PAUSED_ANNOTATION: ""}
    stage.pool("second", status={"claimedIPs": [ip]}, metadata={"annotations": begun})
    stage.pool(preAllocatedFloatingIPs=[ip])

    stage.address("served", ip, pool="second")
    stage.claim("mine")
    stage.settle(for_s=60)

    assert stage.answer("mine") not in (None, ip)


@pytest.mark.parametrize("where", ["another pool", "the same pool", "another pool, known without its location"])
def test_of_two_managers_that_chose_the_same_address_one_withdraws(stage: PoolEnvironment, where: str) -> None:
    """The other one's IPAddress, and in one case its pool's status, is not in the store yet: only a list shows it."""
    ip = stage.floating_ip()["floating_ip_address"]
    stage.pool(preAllocatedFloatingIPs=[ip])
    stage.pool("second")
    stage.settle(for_s=10)
    stage.unwatched |= {IP_ADDRESS, KIND}
    if "without" in where:
        stage.store.apply(KIND, "MODIFIED", {**stage.get(KIND, "second"), "status": {}})
    stage.address("rival", ip, pool="pool" if where == "the same pool" else "second")

    stage.claim("mine")
    stage.settle(for_s=5, until=lambda: "mine" in stage.answers())
    stage.unwatched.clear()
    stage.settle(for_s=60)

    assert stage.answer("mine") not in (None, ip)
    assert stage.get(IP_ADDRESS, "rival")["spec"]["address"] == ip
    assert ip in stage.floating_ips()


def test_an_address_that_a_user_forged_for_a_pool_of_nobody_blocks_no_one(stage: PoolEnvironment) -> None:
    ip = stage.floating_ip()["floating_ip_address"]
    stage.pool(preAllocatedFloatingIPs=[ip])
    stage.address("forged", ip, pool="no-such-pool", namespace="other")

    stage.claim("mine")
    stage.settle(for_s=30)

    assert stage.answer("mine") == ip


def test_an_address_that_a_user_forged_for_a_pool_without_credentials_blocks_no_one(stage: PoolEnvironment) -> None:
    ip = stage.floating_ip()["floating_ip_address"]
    stage.pool("evil", identityRef={"name": "nothing", "cloudName": "sim"}, metadata={"finalizers": [FINALIZER]})
    stage.address("forged", ip, pool="evil")
    stage.settle(for_s=30)
    stage.pool(preAllocatedFloatingIPs=[ip])

    stage.claim("mine")
    stage.settle(for_s=30)

    assert stage.answer("mine") == ip


def test_a_forged_address_that_is_deleted_deletes_no_floating_ip(stage: PoolEnvironment) -> None:
    victim = stage.floating_ip(description="theirs")["floating_ip_address"]
    stage.pool()
    stage.settle(for_s=10)
    stage.address("forged", victim)

    stage.delete(IP_ADDRESS, "forged")
    stage.settle(for_s=60)

    assert not stage.exists(IP_ADDRESS, "forged")
    assert victim in stage.floating_ips()


def test_a_claim_of_another_provider_is_left_alone(stage: PoolEnvironment) -> None:
    stage.pool()
    stage.apply(IP_ADDRESS_CLAIM, {"metadata": {"name": "a"}, "spec": {"poolRef": ref(kind="InClusterIPPool")}})
    stage.apply(IP_ADDRESS_CLAIM, {"metadata": {"name": "b"}, "spec": {"poolRef": ref(apiGroup="ipam.example.com")}})

    stage.settle(for_s=60)

    assert stage.answers() == {}
    assert stage.floating_ips() == {}
    assert "finalizers" not in stage.get(IP_ADDRESS_CLAIM, "a")["metadata"]


def test_an_address_of_another_pool_with_the_name_of_a_claim_is_not_used(stage: PoolEnvironment) -> None:
    stage.pool()
    spec = {"claimRef": {"name": "mine"}, "poolRef": ref("other"), "address": "203.0.113.99", "prefix": 32}
    stage.apply(IP_ADDRESS, {"metadata": {"name": "mine"}, "spec": spec})

    stage.claim("mine")
    stage.settle(for_s=30)

    assert stage.answers() == {}
    assert stage.condition(IP_ADDRESS_CLAIM, "mine", "Ready")["reason"] == "ForeignResource"


def test_claims_of_a_paused_cluster_wait_as_do_those_whose_cluster_is_missing_c_73(stage: PoolEnvironment) -> None:
    stage.apply(CLUSTER, {"metadata": {"name": "asleep"}, "spec": {"paused": True}})
    stage.pool()
    stage.claim("labelled", labels={names.CLUSTER_NAME_LABEL: "asleep"})
    stage.claim("missing", labels={names.CLUSTER_NAME_LABEL: "none"})
    stage.claim("annotated", annotations={names.PAUSED_ANNOTATION: ""})
    stage.claim("free")
    stage.settle(for_s=30)
    assert list(stage.answers()) == ["free"]

    stage.patch(CLUSTER, "asleep", {"spec": {"paused": False}})
    stage.apply(CLUSTER, {"metadata": {"name": "none"}, "spec": {}})
    stage.patch(IP_ADDRESS_CLAIM, "annotated", {"metadata": {"annotations": {names.PAUSED_ANNOTATION: None}}})
    stage.settle(for_s=60)

    assert len(stage.answers()) == 4


def test_a_paused_pool_does_nothing_and_says_so_w_35(stage: PoolEnvironment) -> None:
    stage.pool(metadata={"annotations": {names.PAUSED_ANNOTATION: ""}})
    stage.claim("mine")
    stage.settle(for_s=60)
    assert stage.shown("Paused") == ("True", "Paused")
    assert stage.requests() == []

    stage.patch(KIND, "pool", {"metadata": {"annotations": {names.PAUSED_ANNOTATION: None}}})
    stage.settle(for_s=60)

    assert stage.shown("Paused") == ("False", "NotPaused")
    assert stage.answer("mine")


def test_credentials_that_are_missing_are_named(stage: PoolEnvironment) -> None:
    stage.pool(identityRef={"name": "nothing", "cloudName": "sim"})
    stage.claim("mine")

    stage.settle(for_s=60)

    assert stage.shown("OpenStackAuthenticationSucceeded")[0] == "False"
    assert "nothing" in stage.message("Ready")


@pytest.mark.parametrize("how", ["id", "filter"])
def test_the_network_is_named_by_id_or_filter(stage: PoolEnvironment, how: str) -> None:
    wanted: dict[str, Any] = {"id": stage.external_id}
    if how == "filter":
        found = stage.member.ask("GET", f"/network/v2.0/networks/{stage.external_id}")["network"]
        wanted = {"filter": {"name": found["name"]}}
    stage.pool(floatingIPNetwork=wanted)

    stage.claim("mine")
    stage.settle(for_s=30)

    assert stage.answer("mine")
    assert stage.status()["floatingIPNetwork"]["id"] == stage.external_id


def test_a_network_that_is_missing_is_told_and_prepared_addresses_are_allocated(
    stage: PoolEnvironment,
) -> None:
    ip = stage.floating_ip()["floating_ip_address"]
    stage.pool(floatingIPNetwork={"filter": {"name": "nowhere"}}, preAllocatedFloatingIPs=[ip])

    stage.claims(2)
    stage.settle(for_s=60)

    assert stage.shown() == ("False", "UnableToFindNetwork")
    assert stage.shown("FloatingIPNetworkReady") == ("False", "UnableToFindNetwork")
    assert stage.answers() == {"claim-000": ip}


def test_a_filter_that_matches_two_networks_allocates_nothing_and_names_both(stage: PoolEnvironment) -> None:
    admin = Client(stage.simulator, "sim-admin")
    name = admin.ask("GET", f"/network/v2.0/networks/{stage.external_id}")["network"]["name"]
    made = admin.make("/network/v2.0/networks", "network", name=name, **{"router:external": True})
    admin.session.close()
    stage.pool(floatingIPNetwork={"filter": {"name": name}})
    stage.claim("mine")

    stage.settle(for_s=60)

    assert stage.shown() == ("False", "UnableToFindNetwork")
    assert made["id"] in stage.message()
    assert stage.external_id in stage.message()
    assert stage.floating_ips() == {}


def test_a_network_that_is_not_external_is_refused(stage: PoolEnvironment) -> None:
    stage.pool(floatingIPNetwork={"id": stage.network()["id"]})

    stage.settle(for_s=30)

    assert stage.shown() == ("False", "UnableToFindNetwork")


def test_claims_of_an_older_core_are_answered_in_its_version(stage: PoolEnvironment) -> None:
    stage.pool()
    older = "ipam.cluster.x-k8s.io/v1beta1"
    stage.apply(IP_ADDRESS_CLAIM, {"apiVersion": older, "metadata": {"name": "old"}, "spec": {"poolRef": ref()}})

    stage.settle(for_s=30)

    assert stage.answer("old")
    assert stage.get(IP_ADDRESS, "old")["apiVersion"] == older
    (shown,) = stage.get(IP_ADDRESS_CLAIM, "old")["status"]["conditions"]
    assert shown.pop("lastTransitionTime")
    # The older definition refuses empty texts, and prunes the generation: it would be written again and again.
    assert shown == {"type": "Ready", "status": "True", "reason": "Ready"}

    stage.delete(IP_ADDRESS_CLAIM, "old")
    stage.settle(for_s=60)
    assert not stage.is_there(IP_ADDRESS_CLAIM, "old")
    assert not stage.is_there(IP_ADDRESS, "old")
    assert stage.floating_ips() == {}


def test_a_claim_of_an_older_core_says_why_it_waits(stage: PoolEnvironment) -> None:
    stage.pool(maxIPs=0)
    older = "ipam.cluster.x-k8s.io/v1beta1"
    theirs = {"type": "Checked", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}
    claim = {"apiVersion": older, "metadata": {"name": "old"}, "spec": {"poolRef": ref()}}
    stage.apply(IP_ADDRESS_CLAIM, {**claim, "status": {"conditions": [theirs]}})
    stage.settle(for_s=30)

    found = stage.get(IP_ADDRESS_CLAIM, "old")["status"]["conditions"]
    (shown,) = (each for each in found if each["type"] == "Ready")
    assert (shown["status"], shown["severity"], shown["reason"]) == ("False", "Warning", "MaxIPsReached")
    assert "all 0 addresses of spec.maxIPs" in shown["message"]
    assert "observedGeneration" not in shown
    assert theirs in found
    stage.kube.writes.clear()
    stage.settle(for_s=600)
    assert [kind for _, kind, _ in stage.kube.writes if kind == IP_ADDRESS_CLAIM.kind] == []

    stage.patch(KIND, "pool", {"spec": {"maxIPs": 1}})
    stage.settle(for_s=60)
    assert stage.answer("old")
    assert stage.condition(IP_ADDRESS_CLAIM, "old", "Ready")["status"] == "True"
    assert "severity" not in stage.condition(IP_ADDRESS_CLAIM, "old", "Ready")


def test_a_claim_whose_status_was_lost_keeps_its_address_as_after_a_move(stage: PoolEnvironment) -> None:
    stage.pool()
    stage.claim("mine")
    stage.settle(for_s=30)
    ip = stage.answer("mine")

    stage.patch(IP_ADDRESS_CLAIM, "mine", {"metadata": {"uid": "another"}, "status": None})
    stage.settle(for_s=60)

    assert stage.answer("mine") == ip
    assert list(stage.floating_ips()) == [ip]


def test_an_address_that_somebody_deletes_stays_while_its_claim_lives(stage: PoolEnvironment) -> None:
    stage.pool()
    stage.claim("mine")
    stage.settle(for_s=30)
    ip = stage.answer("mine")

    stage.delete(IP_ADDRESS, "mine")
    stage.settle(for_s=300)

    assert stage.answer("mine") == ip
    assert list(stage.floating_ips()) == [ip]


def test_floating_ips_of_another_project_that_an_administrator_sees_are_not_handed_out(stage: PoolEnvironment) -> None:
    theirs = stage.floating_ip(tag=TAG)
    stage.cloud.table("network", "floatingips")[theirs["id"]].update(project_id="others", tenant_id="others")
    stage.pool(preAllocatedFloatingIPs=[theirs["floating_ip_address"]])

    stage.claim("mine")
    stage.settle(for_s=30)

    assert stage.answer("mine") not in (None, theirs["floating_ip_address"])


def test_as_many_are_created_as_the_quota_has_room_for(stage: PoolEnvironment) -> None:
    stage.pool()
    stage.cloud.set_quota("network", stage.member.project_id, "floatingip", 5)
    stage.claims(8)
    stage.settle(for_s=60)
    assert len(stage.answers()) == 5

    stage.cloud.set_quota("network", stage.member.project_id, "floatingip", 7)
    stage.settle(for_s=200)

    assert len(stage.answers()) == 7
