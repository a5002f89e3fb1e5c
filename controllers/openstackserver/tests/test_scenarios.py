"""Scenarios of an OpenStackServer: objects and cloud state in, objects and cloud state out."""

from __future__ import annotations

from typing import Any

import pytest

from capo import names
from capo.kube.kinds import SECRET
from capo.simulator.testing import Client
from controllers.openstackserver.tests.environment import KIND, made, place, place_more, server, status
from environments.in_memory import InMemoryEnvironment, killed_at_write, killed_before_create


def test_a_minimal_server_comes_up_with_one_port(stage: InMemoryEnvironment) -> None:
    """W-38: the status has the addresses, so parents need not read the server again."""
    place(stage)

    stage.settle(for_s=30)

    assert made(stage) == {"servers": 1, "ports": 1}
    assert status(stage)["ready"] is True
    assert status(stage)["instanceID"] == server(stage)["id"]
    assert status(stage)["addresses"][-1] == {"type": "InternalDNS", "address": "s"}


def test_it_takes_few_requests_and_few_writes(stage: InMemoryEnvironment) -> None:
    """W-39, W-41, W-44: no discovery, one read of the Secret, no reconcile for the provider's own writes."""
    place(stage)

    stage.settle(for_s=30)

    assert len(stage.requests()) <= 9, stage.requests()
    assert len(stage.kube.writes) <= 6, stage.kube.writes


def test_a_full_server_has_everything_that_its_spec_asks_for(stage: InMemoryEnvironment) -> None:
    stage.apply(SECRET, {"metadata": {"name": "data"}, "data": {"value": "I2Nsb3VkLWNvbmZpZw=="}})
    place(
        stage,
        userDataRef={"name": "data"},
        rootVolume={"sizeGiB": 2},
        additionalBlockDevices=[{"name": "etcd", "sizeGiB": 1, "storage": {"type": "Volume"}}],
        tags=["blue"],
        trunk=True,
        serverMetadata=[{"key": "a", "value": "b"}],
        configDrive=True,
        availabilityZone="az2",
    )

    stage.settle(for_s=60)

    assert made(stage) == {"servers": 1, "ports": 1, "volumes": 2, "trunks": 1}
    assert status(stage)["ready"] is True
    (port,) = (p for p in stage.inventory()["ports"].values() if p["name"] == "s-0")
    assert port["tags"] == ["blue"]
    assert server(stage)["metadata"] == {"a": "b"}
    assert {v["name"] for v in stage.inventory()["volumes"].values()} == {"s-root", "s-etcd"}


def test_every_resource_carries_the_stamp_of_its_role(stage: InMemoryEnvironment) -> None:
    place(stage, rootVolume={"sizeGiB": 1})

    stage.settle(for_s=30)

    owner = stage.get(KIND, "s")["metadata"]["annotations"][names.OWNER_ID_ANNOTATION].partition(".")[0]
    inventory = stage.inventory()
    (port,) = (p for p in inventory["ports"].values() if p["name"] == "s-0")
    (volume,) = inventory["volumes"].values()
    assert port["description"].endswith(f"[capo:{owner}:port-0]")
    assert volume["metadata"][names.VOLUME_STAMP_KEY] == f"capo:{owner}:volume-root"
    assert f"capo:{owner}:server" in server(stage)["tags"]


def test_deletion_leaves_nothing_behind(stage: InMemoryEnvironment) -> None:
    place(stage, rootVolume={"sizeGiB": 1}, trunk=True)
    stage.settle(for_s=30)

    stage.delete(KIND, "s")
    stage.settle(for_s=60)

    assert not stage.exists(KIND, "s")
    assert made(stage) == {}


def test_deletion_while_it_is_being_built_leaves_nothing_behind(stage: InMemoryEnvironment) -> None:
    place(stage, rootVolume={"sizeGiB": 1})
    stage.settle(for_s=30, until=lambda: "servers" in stage.inventory())

    stage.delete(KIND, "s")
    stage.settle(for_s=60)

    assert not stage.exists(KIND, "s")
    assert made(stage) == {}


def test_a_settled_server_costs_one_list_a_minute(stage: InMemoryEnvironment) -> None:
    """W-40: no server is polled separately."""
    place(stage)
    stage.settle(for_s=30)
    stage.cloud.counter.reset()
    stage.kube.writes.clear()

    stage.settle(for_s=600)

    assert len(stage.requests()) <= 15, stage.requests()
    assert stage.kube.writes == []


@pytest.mark.parametrize("number", range(1, 7))
def test_a_manager_that_dies_at_any_write_to_kubernetes_makes_nothing_twice(
    stage: InMemoryEnvironment, number: int
) -> None:
    place(stage, rootVolume={"sizeGiB": 1})
    with killed_at_write(stage, number):
        stage.settle(for_s=30)

    stage.start()
    stage.settle(for_s=180)

    assert made(stage) == {"servers": 1, "ports": 1, "volumes": 1}
    assert status(stage)["ready"] is True
    assert status(stage)["resources"]["pending"] == []


@pytest.mark.parametrize("route", ["/v2.0/ports", "/v3/{project_id}/volumes", "/v2.1/servers"])
@pytest.mark.parametrize("cut", ["before", "after"])
def test_a_lost_answer_makes_nothing_twice_and_loses_nothing(stage: InMemoryEnvironment, route: str, cut: str) -> None:
    """W-05: a resource whose create lost its answer is found by its stamp."""
    stage.add_fault(match={"method": "POST", "route": route, "nth": 1}, effect={"cut": cut})
    place(stage, rootVolume={"sizeGiB": 1})

    stage.settle(for_s=300)

    assert made(stage) == {"servers": 1, "ports": 1, "volumes": 1}
    assert status(stage)["ready"] is True


def test_a_server_that_vanished_is_noticed_within_a_minute_and_not_made_again(stage: InMemoryEnvironment) -> None:
    place(stage)
    stage.settle(for_s=30)

    stage.member.ask("DELETE", f"/compute/v2.1/servers/{server(stage)['id']}")
    stage.settle(for_s=61)

    assert status(stage)["ready"] is False
    assert stage.condition(KIND, "s", "InstanceReady")["reason"] in ("InstanceNotFound", "InstanceDeleted")
    stage.settle(for_s=1200)
    assert "servers" not in made(stage)


def test_a_server_that_breaks_and_is_repaired_is_shown_so_within_a_minute_each(stage: InMemoryEnvironment) -> None:
    place(stage)
    stage.settle(for_s=30)
    server_id = server(stage)["id"]

    order = {"id": server_id, "message": "The hypervisor is on fire."}
    stage.member.ask("POST", "/_simulator/tweaks/compute/break_server", order)
    stage.settle(for_s=61)

    assert "The hypervisor is on fire" in stage.condition(KIND, "s", "Ready")["message"]
    assert stage.events.reasons().count("ServerFailed") == 1
    stage.settle(for_s=200)
    with Client(stage.simulator, "sim-admin").session as admin:
        body = {"os-resetState": {"state": "active"}}
        admin.post(f"{stage.simulator.url}/compute/v2.1/servers/{server_id}/action", json=body).raise_for_status()
    stage.settle(for_s=61)
    assert stage.condition(KIND, "s", "Ready")["status"] == "True"


def test_an_error_of_nova_is_shown_in_its_own_words(stage: InMemoryEnvironment) -> None:
    """W-18: the fault is reported, with its own reason."""
    place(stage, flavor="lab.too-big")

    stage.settle(for_s=60)

    shown = stage.condition(KIND, "s", "InstanceReady")
    assert shown["status"] == "False"
    assert "No valid host was found" in shown["message"]
    assert "NoValidHost" in shown["message"]
    stage.delete(KIND, "s")
    stage.settle(for_s=60)
    assert made(stage) == {}


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        pytest.param({"image": {"filter": {"name": "none"}}}, "ImageNotFound", id="image"),
        pytest.param({"flavor": "none"}, "FlavorNotFound", id="flavor"),
        pytest.param({"ports": [{"network": {"filter": {"name": "none"}}}]}, "NetworkNotFound", id="network"),
        pytest.param({"sshKeyName": "none"}, "KeyPairNotFound", id="key-pair"),
        pytest.param({"userDataRef": {"name": "none"}}, "BootstrapDataNotFound", id="user-data"),
    ],
)
def test_what_is_missing_is_named_with_a_next_step(
    stage: InMemoryEnvironment, spec: dict[str, Any], words: str
) -> None:
    place(stage, **spec)

    stage.settle(for_s=60)

    shown = stage.condition(KIND, "s", "InstanceReady")
    assert shown["status"] == "False"
    assert words in shown["message"]
    assert "servers" not in made(stage)
    stage.delete(KIND, "s")
    stage.settle(for_s=60)
    assert made(stage) == {}


def test_a_failing_object_makes_at_most_six_attempts_a_minute(stage: InMemoryEnvironment) -> None:
    stage.add_fault(
        match={"method": "POST", "route": "/v2.0/ports"}, effect={"status": 409, "message": "Quota exceeded"}
    )
    place(stage)

    stage.settle(for_s=60)

    assert stage.requests().count("POST /v2.0/ports") <= 6


def test_a_server_that_cannot_be_made_yet_is_not_looked_for(stage: InMemoryEnvironment) -> None:
    place(stage, image={"filter": {"name": "none"}})
    stage.settle(for_s=60)

    stage.start()
    stage.settle(for_s=60)

    assert not [asked for asked in stage.requests() if "/servers" in asked]


def test_it_recovers_when_the_cause_is_mended(stage: InMemoryEnvironment) -> None:
    stage.add_fault(
        match={"method": "POST", "route": "/v2.0/ports"}, effect={"status": 409, "message": "Quota exceeded"}
    )
    place(stage)
    stage.settle(for_s=20)

    stage.clear_faults()
    stage.settle(for_s=120)

    assert status(stage)["ready"] is True


def test_wrong_credentials_are_shown_and_a_mended_secret_heals_within_15_seconds(stage: InMemoryEnvironment) -> None:
    wrong = stage.simulator.clouds_yaml.read_bytes().replace(b"password: ", b"password: x")
    stage.apply_secret(text=wrong)
    place(stage)
    stage.settle(for_s=20)
    assert stage.condition(KIND, "s", "OpenStackAuthenticationSucceeded")["status"] == "False"

    stage.apply_secret()
    stage.settle(for_s=15)

    assert stage.condition(KIND, "s", "OpenStackAuthenticationSucceeded")["status"] == "True"
    stage.settle(for_s=60)
    assert status(stage)["ready"] is True


def test_a_paused_server_is_left_alone_until_it_is_unpaused(stage: InMemoryEnvironment) -> None:
    """W-35: the pause is shown."""
    place(stage)
    stage.patch(KIND, "s", {"metadata": {"annotations": {names.PAUSED_ANNOTATION: ""}}})

    stage.settle(for_s=60)
    assert made(stage) == {}
    assert stage.condition(KIND, "s", "Paused")["status"] == "True"

    stage.patch(KIND, "s", {"metadata": {"annotations": {names.PAUSED_ANNOTATION: None}}})
    stage.settle(for_s=60)
    assert status(stage)["ready"] is True


def test_a_restarted_manager_changes_nothing(stage: InMemoryEnvironment) -> None:
    place(stage, rootVolume={"sizeGiB": 1})
    stage.settle(for_s=30)
    stage.kube.writes.clear()
    stage.cloud.counter.reset()

    stage.start()
    stage.settle(for_s=60)

    assert stage.kube.writes == []
    assert not [r for r in stage.requests() if not r.startswith("GET") and "tokens" not in r]


def test_a_server_whose_status_was_lost_is_found_by_its_stamps(stage: InMemoryEnvironment) -> None:
    place(stage, rootVolume={"sizeGiB": 1})
    stage.settle(for_s=30)
    stage.patch(KIND, "s", {"status": None})

    stage.start()
    stage.settle(for_s=180)

    assert made(stage) == {"servers": 1, "ports": 1, "volumes": 1}
    assert status(stage)["instanceID"] == server(stage)["id"]


def test_a_server_that_stays_in_build_is_shown_as_failed_and_still_counts_when_it_comes_up(
    stage: InMemoryEnvironment,
) -> None:
    place(stage, serverMetadata=[{"key": "lab-spawn-seconds", "value": "400"}])

    stage.settle(for_s=330)
    shown = stage.condition(KIND, "s", "InstanceReady")
    assert "BUILD for more than 300 s" in shown["message"]

    stage.settle(for_s=250)
    assert status(stage)["ready"] is True


def refuse_and_keep_the_volume(stage: InMemoryEnvironment) -> None:
    """Make Nova refuse the server and leave its volume reserved, as it does when it detects the error late."""
    place(stage, rootVolume={"sizeGiB": 1})
    stage.add_fault(match={"service": "compute", "method": "POST", "route": "/v2.1/servers"}, effect={"status": 409})
    stage.settle(for_s=10)
    assert made(stage) == {"ports": 1, "volumes": 1}
    (volume,) = stage.simulator.call(lambda: list(stage.cloud.table("volume", "volumes").values()))
    volume["status"] = "reserved"
    stage.clear_faults()


def test_a_volume_that_a_refused_create_left_reserved_does_not_stop_the_next_one(stage: InMemoryEnvironment) -> None:
    refuse_and_keep_the_volume(stage)

    stage.settle(for_s=60)

    assert status(stage)["ready"] is True


def test_nor_does_it_stop_the_deletion(stage: InMemoryEnvironment) -> None:
    refuse_and_keep_the_volume(stage)

    stage.delete(KIND, "s")
    stage.settle(for_s=60)

    assert made(stage) == {}
    assert not stage.exists(KIND, "s")


def test_no_pass_waits_for_a_slow_cloud(stage: InMemoryEnvironment) -> None:
    """W-36, W-37, W-45: volumes, servers and deletions that take minutes block no worker; their end is soon seen."""
    stage.cloud.timings.volume_create_s = 120.0
    stage.cloud.timings.server_delete_s = 120.0
    place(stage, rootVolume={"sizeGiB": 1})
    began_s = stage.clock.now()
    stage.settle(for_s=300, until=lambda: status(stage).get("ready") if "status" in stage.get(KIND, "s") else None)
    took_s = stage.clock.now() - began_s
    stage.delete(KIND, "s")
    stage.settle(for_s=300, until=lambda: not stage.exists(KIND, "s"))

    assert not stage.exists(KIND, "s")
    assert 120 <= took_s <= 135


def test_many_servers_at_once_share_their_lists(stage: InMemoryEnvironment) -> None:
    """W-40: the number of lists during a scale-out depends on time, not on the number of servers."""
    place(stage)
    place_more(stage, 9)

    stage.settle(for_s=60)

    assert made(stage) == {"servers": 10, "ports": 10}
    reads = [asked for asked in stage.requests() if asked.startswith("GET")]
    assert len(reads) <= 15, reads


TRUNK_AND_VOLUME: dict[str, Any] = {"trunk": True, "rootVolume": {"sizeGiB": 1}}


CREATES: dict[str, tuple[dict[str, Any], int]] = {
    "plain": ({}, 2),
    "trunk": ({"trunk": True}, 3),
    "volume": (TRUNK_AND_VOLUME, 4),
}


@pytest.mark.parametrize(
    ("spec", "number"),
    [
        pytest.param(spec, number, id=f"{name}-{number}")
        for name, (spec, count) in CREATES.items()
        for number in range(1, count + 1)
    ],
)
def test_a_manager_that_dies_between_two_creates_makes_nothing_twice_and_forgets_nothing(
    stage: InMemoryEnvironment, spec: dict[str, Any], number: int
) -> None:
    place(stage, **spec)
    with killed_before_create(number):
        stage.settle(for_s=60)

    stage.start()
    stage.settle(for_s=300)

    wanted = {"servers": 1, "ports": 1, "volumes": int("rootVolume" in spec), "trunks": int("trunk" in spec)}
    assert made(stage) == {kind: count for kind, count in wanted.items() if count}
    assert status(stage)["ready"] is True
    assert status(stage)["resources"]["pending"] == []


def test_an_intent_that_was_stored_for_a_server_that_must_wait_is_not_kept(stage: InMemoryEnvironment) -> None:
    route = {"service": "compute", "method": "POST", "route": "/v2.1/servers"}
    stage.add_fault(match=route, effect={"status": 403, "message": "Quota exceeded for cores"})
    place(stage)

    stage.settle(for_s=5)

    assert made(stage) == {"ports": 1}
    assert status(stage)["resources"]["pending"] == []
