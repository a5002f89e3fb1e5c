"""Weak points of the Go provider that concern servers, each improved on.

Numbers are those of docs/reference/beyond.md, which names the tests of all; more are beside their subject.
"""

from __future__ import annotations

import base64
from typing import Any, Final

import pytest

from capo.kube.kinds import CLUSTER, IP_ADDRESS_CLAIM, SECRET
from controllers.openstackserver.tests.environment import (
    CLAIM,
    KIND,
    POOL,
    connect_to_our_trunk,
    made,
    place,
    port,
    server,
    shown,
    status,
)
from environments.in_memory import InMemoryEnvironment

DISK: Final = {"sizeGiB": 1, "storage": {"type": "Volume"}}
PORT: Final = {"network": {"filter": {"name": "own"}}}
ID_OF_PORT: Final = {"name": "mine", "key": "id", "value": "1"}


def rows(stage: InMemoryEnvironment, service: str, kind: str) -> dict[str, dict[str, Any]]:
    return stage.simulator.call(lambda: stage.cloud.table(service, kind))


def deleted(stage: InMemoryEnvironment, for_s: float = 60) -> bool:
    stage.delete(KIND, "s")
    stage.settle(for_s=for_s)
    return not stage.exists(KIND, "s")


# -- ownership ---------------------------------------------------------------------------------------------------------


def test_what_is_recorded_nowhere_is_found_by_its_stamp_and_deleted_w_02(stage: InMemoryEnvironment) -> None:
    place(stage, trunk=True, rootVolume={"sizeGiB": 1})
    stage.settle(for_s=30)
    stage.patch(KIND, "s", {"status": {"resources": None, "instanceID": None}})
    stage.start()

    assert deleted(stage)
    assert made(stage) == {}


def test_namesakes_of_others_are_neither_adopted_nor_deleted_w_14_w_26_w_27(stage: InMemoryEnvironment) -> None:
    network = stage.network("10.5.0.0/24")
    theirs = stage.member.make("/network/v2.0/ports", "port", network_id=network["id"], name="s-0")
    flavor = stage.member.ask("GET", "/compute/v2.1/flavors")["flavors"][0]["id"]
    image = stage.member.ask("GET", "/image/v2/images")["images"][0]["id"]
    wanted = {"name": "s", "flavorRef": flavor, "imageRef": image, "networks": [{"port": theirs["id"]}]}
    namesake = stage.member.make("/compute/v2.1/servers", "server", **wanted)
    stage.member.make(f"/volume/v3/{stage.member.project_id}/volumes", "volume", name="s-root", size=1)
    stage.settle(for_s=30)
    place(stage, ports=[{"network": {"id": network["id"]}}], rootVolume={"sizeGiB": 1})

    stage.settle(for_s=60)
    assert made(stage) == {"servers": 1, "ports": 1, "volumes": 1}
    assert status(stage)["instanceID"] != namesake["id"]

    assert deleted(stage)
    assert made(stage) == {}
    before: dict[str, dict[str, Any]] = stage.before  # type: ignore[attr-defined]
    assert stage.inventory().keys() >= {"servers", "volumes"}
    assert before["servers"].keys() == stage.inventory()["servers"].keys()


def test_a_local_disk_never_costs_a_volume_of_that_name_its_life_w_25(stage: InMemoryEnvironment) -> None:
    volumes = f"/volume/v3/{stage.member.project_id}/volumes"
    stage.member.make(volumes, "volume", name="s-scratch", size=1)
    stage.settle(for_s=10)
    place(stage, additionalBlockDevices=[{"name": "scratch", "sizeGiB": 1, "storage": {"type": "Local"}}])
    stage.settle(for_s=30)
    stage.start()
    stage.cloud.counter.reset()

    assert deleted(stage)
    assert [volume["name"] for volume in stage.inventory()["volumes"].values()] == ["s-scratch"]
    assert not [asked for asked in stage.requests() if "volumes" in asked]


def test_ports_of_others_on_our_trunk_outlive_it_w_29(stage: InMemoryEnvironment) -> None:
    network = place(stage, trunk=True)
    stage.settle(for_s=30)
    theirs = connect_to_our_trunk(stage, network)

    assert deleted(stage)
    assert made(stage) == {"ports": 1}
    assert port(stage, "theirs")["id"] == theirs["id"]


def test_another_order_of_a_trunks_tags_is_no_difference_w_31(stage: InMemoryEnvironment) -> None:
    place(stage, trunk=True, tags=["b", "a"])
    stage.settle(for_s=30)
    stage.simulator.call(lambda: [t["tags"].reverse() for t in stage.cloud.table("network", "trunks").values()])
    stage.cloud.counter.reset()

    stage.start()
    stage.settle(for_s=60)

    (trunk,) = stage.inventory()["trunks"].values()
    assert sorted(trunk["tags"]) == ["a", "b"]
    assert not [asked for asked in stage.requests() if asked.startswith("PUT")]


# -- volumes ----------------------------------------------------------------------------------------------------------


def test_a_volume_that_failed_is_replaced_and_blocks_nothing_w_05(stage: InMemoryEnvironment) -> None:
    place(stage, rootVolume={"sizeGiB": 1})
    stage.settle(for_s=60, until=lambda: "volumes" in made(stage))
    failed = [each for each in rows(stage, "volume", "volumes").values() if each["name"] == "s-root"]
    stage.simulator.call(lambda: [each.update(status="error") for each in failed])

    stage.settle(for_s=180)

    assert "VolumeFailed" in stage.events.reasons()
    assert status(stage)["ready"] is True
    assert made(stage) == {"servers": 1, "ports": 1, "volumes": 1}
    assert failed[0]["id"] not in stage.inventory()["volumes"]


def test_a_volume_that_fails_each_time_is_made_ever_more_rarely_w_46(stage: InMemoryEnvironment) -> None:
    place(stage, rootVolume={"sizeGiB": 1})
    volumes = rows(stage, "volume", "volumes")

    def break_all() -> bool:
        new = [each for each in volumes.values() if each["status"] != "deleting"]
        stage.simulator.call(lambda: [each.update(status="error") for each in new])
        return False

    stage.settle(for_s=600, until=break_all)

    made_s = [asked for asked in stage.requests() if asked.startswith("POST") and asked.endswith("/volumes")]
    assert 3 < len(made_s) < 12
    assert shown(stage, "VolumesReady")[0] == "False"


def test_a_server_that_the_cloud_would_keep_after_its_deletion_goes_at_once_w_30(stage: InMemoryEnvironment) -> None:
    place(stage, rootVolume={"sizeGiB": 1})
    stage.settle(for_s=30)
    row = rows(stage, "compute", "servers")[server(stage)["id"]]
    stage.simulator.call(lambda: row.update(status="SOFT_DELETED"))
    stage.start()

    assert deleted(stage)
    assert f"POST /v2.1/servers/{row['id']}/action" in stage.requests()  # a DELETE has no effect on a real Nova
    assert made(stage) == {}


# -- deletion without dependencies -------------------------------------------------------------------------------------


@pytest.mark.parametrize("is_deleting", [False, True])
def test_a_cluster_that_is_gone_blocks_nothing_w_15(stage: InMemoryEnvironment, is_deleting: bool) -> None:
    place(stage, metadata={"labels": {"cluster.x-k8s.io/cluster-name": "gone"}})

    stage.settle(for_s=30)
    assert status(stage)["ready"] is True
    if is_deleting:
        assert deleted(stage)
        assert made(stage) == {}


def test_a_pause_of_the_cluster_pauses_the_server_c_40(stage: InMemoryEnvironment) -> None:
    stage.apply(CLUSTER, {"metadata": {"name": "c"}, "spec": {"paused": True}})
    place(stage, metadata={"labels": {"cluster.x-k8s.io/cluster-name": "c"}})

    stage.settle(for_s=30)

    assert shown(stage, "Paused") == ("True", "Paused")
    assert made(stage) == {}


def test_a_secret_that_is_gone_is_named_and_deletion_goes_on_when_it_is_back_w_19(stage: InMemoryEnvironment) -> None:
    place(stage)
    stage.settle(for_s=30)
    secret = stage.get(SECRET, "cloud")
    stage.delete(SECRET, "cloud")
    stage.start()

    assert not deleted(stage)
    message = stage.condition(KIND, "s", "OpenStackAuthenticationSucceeded")["message"]
    assert "Secret default/cloud does not exist" in message

    stage.apply(SECRET, {"metadata": {"name": "cloud"}, "data": secret["data"]})
    stage.settle(for_s=60)
    assert not stage.exists(KIND, "s")
    assert made(stage) == {}


def test_credentials_may_move_to_another_secret_w_12(stage: InMemoryEnvironment) -> None:
    place(stage)
    stage.settle(for_s=30)
    stage.apply_secret("other")
    stage.delete(SECRET, "cloud")

    stage.patch(KIND, "s", {"spec": {"identityRef": {"name": "other"}}})
    stage.settle(for_s=60)

    assert shown(stage, "Ready") == ("True", "Ready")
    assert made(stage) == {"servers": 1, "ports": 1}
    assert deleted(stage)


# -- errors are reported, and retried with delays ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        pytest.param({"ports": []}, "spec.ports is empty", id="W-22: no port"),
        pytest.param({"ports": [{}]}, "names neither a network nor a subnet", id="W-22: a port without a network"),
        pytest.param({"userDataRef": {"name": "none"}}, "Secret default/none does not exist", id="W-23: no Secret"),
        pytest.param({"userDataRef": {"name": "empty"}}, "has no key value", id="W-23: no key"),
        pytest.param({"userDataRef": {"name": "large"}}, "Nova takes 65535", id="W-24: too much user data"),
        pytest.param({"tags": ["x" * 61]}, "1 to 60 characters", id="a tag that is too long"),
        pytest.param({"tags": [f"t{i}" for i in range(50)]}, "Nova takes 50", id="too many tags"),
        pytest.param({"serverMetadata": [{"key": "Größe", "value": "1"}]}, "are not: Größe", id="a key of metadata"),
        pytest.param({"serverMetadata": [{"key": "k", "value": "x" * 256}]}, "are not: k", id="a value of metadata"),
        pytest.param({"sshKeyName": "k" * 256}, "key pair has 256 characters", id="the name of a key pair"),
        pytest.param({"availabilityZone": "z" * 256}, "zone has 256 characters", id="the name of a zone"),
        pytest.param({"additionalBlockDevices": [{**DISK, "name": "a,b"}]}, "are not: a,b", id="a device with a comma"),
        pytest.param({"additionalBlockDevices": [{**DISK, "name": "d" * 61}]}, "are not: ddd", id="a device's name"),
        pytest.param({"ports": [{**PORT, "nameSuffix": "p" * 254}]}, "characters at most", id="the name of a port"),
        pytest.param({"ports": [{**PORT, "tags": ["t" * 256]}]}, "characters at most", id="a tag of a port"),
        pytest.param(
            {"ports": [{**PORT, "valueSpecs": [ID_OF_PORT]}]}, "valueSpecs", id="a value spec that is refused"
        ),
    ],
)
def test_what_is_sure_to_be_refused_is_told_before_anything_is_made(
    stage: InMemoryEnvironment, spec: dict[str, Any], words: str
) -> None:
    stage.apply(SECRET, {"metadata": {"name": "empty"}, "data": {}})
    large = base64.b64encode(b"#" * 49_152).decode()
    stage.apply(SECRET, {"metadata": {"name": "large"}, "data": {"value": large}})
    place(stage, **{"rootVolume": {"sizeGiB": 1}, "floatingIPPoolRef": POOL, **spec})

    stage.settle(for_s=60)

    assert shown(stage, "InstanceReady") == ("False", "DependencyFailed")
    assert shown(stage, "DependenciesResolved")[0] == "False"
    assert words in stage.condition(KIND, "s", "InstanceReady")["message"]
    assert made(stage) == {}
    assert not stage.exists(IP_ADDRESS_CLAIM, CLAIM)
    assert deleted(stage)


def test_user_data_that_is_corrected_lets_the_server_be_made_w_24(stage: InMemoryEnvironment) -> None:
    large, small = (base64.b64encode(b"#" * size).decode() for size in (49_152, 10))
    stage.apply(SECRET, {"metadata": {"name": "data"}, "data": {"value": large}})
    place(stage, userDataRef={"name": "data"})
    stage.settle(for_s=60)

    stage.patch(SECRET, "data", {"data": {"value": small}})
    stage.settle(for_s=180)

    assert status(stage)["ready"] is True


def test_a_server_that_is_there_needs_its_user_data_no_more(stage: InMemoryEnvironment) -> None:
    stage.apply(SECRET, {"metadata": {"name": "data"}, "data": {"value": base64.b64encode(b"#").decode()}})
    place(stage, userDataRef={"name": "data"})
    stage.settle(for_s=60)
    stage.delete(SECRET, "data")
    stage.patch(KIND, "s", {"status": None})

    stage.start()
    stage.settle(for_s=60)

    assert status(stage)["ready"] is True
    assert made(stage) == {"servers": 1, "ports": 1}


def test_as_much_user_data_as_nova_takes_is_sent_w_24(stage: InMemoryEnvironment) -> None:
    data = base64.b64encode(b"#" * 49_149).decode()
    stage.apply(SECRET, {"metadata": {"name": "data"}, "data": {"value": data}})
    place(stage, userDataRef={"name": "data"})

    stage.settle(for_s=60)

    assert status(stage)["ready"] is True


@pytest.mark.parametrize(
    ("answer", "reason", "at_most"),
    [
        pytest.param({"status": 400, "message": "Invalid input."}, "InvalidMachineSpec", 6, id="malformed"),
        pytest.param({"status": 403, "message": "Quota exceeded for instances"}, "QuotaExceeded", 9, id="quota"),
        pytest.param({"status": 403, "message": "Policy doesn't allow it"}, "Forbidden", 9, id="policy"),
        pytest.param({"status": 409, "message": "busy"}, "Conflict", 9, id="conflict"),
        pytest.param({"status": 429, "headers": {"Retry-After": "200"}}, "RateLimited", 4, id="rate limit"),
        pytest.param({"status": 400, "message": "Image 1 could not be found."}, "ImageNotFound", 9, id="image is gone"),
        pytest.param({"status": 400, "message": "Flavor 1 could not be found."}, "FlavorNotFound", 9, id="flavor"),
        pytest.param({"status": 400, "message": "Network 1 could not be found."}, "NetworkNotFound", 9, id="network"),
        pytest.param({"status": 400, "message": "Invalid key_name provided."}, "KeyPairNotFound", 9, id="key pair"),
    ],
)
def test_a_refusal_has_its_reason_and_is_repeated_rarely_w_20_w_46(
    stage: InMemoryEnvironment, answer: dict[str, Any], reason: str, at_most: int
) -> None:
    stage.add_fault(match={"service": "compute", "method": "POST", "route": "/v2.1/servers"}, effect=answer)
    place(stage)

    stage.settle(for_s=600)

    assert shown(stage, "InstanceReady") == ("False", "InstanceCreateFailed")
    message = stage.condition(KIND, "s", "InstanceReady")["message"]
    assert message.startswith(reason)
    assert reason in stage.events.reasons()
    assert 2 <= stage.requests().count("POST /v2.1/servers") <= at_most
    stage.clear_faults()
    stage.settle(for_s=250)
    assert status(stage)["ready"] is True


def test_a_refused_port_says_so_with_nothing_made_of_the_server(stage: InMemoryEnvironment) -> None:
    stage.add_fault(
        match={"method": "POST", "route": "/v2.0/ports"}, effect={"status": 400, "message": "MAC is in use"}
    )
    place(stage)

    stage.settle(for_s=60)

    assert shown(stage, "InstanceReady") == ("False", "PortCreateFailed")
    assert "MAC is in use" in stage.condition(KIND, "s", "InstanceReady")["message"]
    assert made(stage) == {}


def test_a_deletion_that_nova_refuses_says_so(stage: InMemoryEnvironment) -> None:
    place(stage)
    stage.settle(for_s=30)
    route = {"method": "DELETE", "route": "/v2.1/servers/{server_id}"}
    stage.add_fault(match=route, effect={"status": 409, "message": "Instance is locked"})

    assert not deleted(stage)
    assert shown(stage, "InstanceReady") == ("False", "InstanceDeleteFailed")
    assert "Instance is locked" in stage.condition(KIND, "s", "InstanceReady")["message"]

    stage.clear_faults()
    stage.settle(for_s=150)
    assert made(stage) == {}
