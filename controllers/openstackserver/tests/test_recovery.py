"""What a server survives: lost annotations and status, moved objects, deleted references."""

from __future__ import annotations

import pytest
import yaml

from capo import names
from capo.kube.kinds import OPENSTACK_MACHINE
from controllers.openstackserver.tests.environment import KIND, made, place, port, server, shown, status
from environments.in_memory import InMemoryEnvironment

OWNER = names.OWNER_ID_ANNOTATION


def settled(stage: InMemoryEnvironment) -> None:
    place(stage, rootVolume={"sizeGiB": 1})
    stage.settle(for_s=30)
    assert status(stage)["ready"] is True


def remove_image(stage: InMemoryEnvironment) -> None:
    """Rename the image, so that none has the name in the spec."""

    def rename() -> None:
        for image in stage.cloud.table("image", "images").values():
            image["name"] = "gone"

    stage.simulator.call(rename)


@pytest.mark.parametrize("deletes", [False, True])
def test_a_lost_owner_id_is_restored_from_the_stamp_of_what_is_recorded(
    stage: InMemoryEnvironment, deletes: bool
) -> None:
    settled(stage)
    before = stage.get(KIND, "s")["metadata"]["annotations"][OWNER]
    stage.patch(KIND, "s", {"metadata": {"annotations": None}})
    if deletes:
        stage.delete(KIND, "s")

    stage.start()
    stage.settle(for_s=60)

    if deletes:
        assert not stage.exists(KIND, "s")
        assert made(stage) == {}
    else:
        assert stage.get(KIND, "s")["metadata"]["annotations"][OWNER] == before
        assert made(stage) == {"servers": 1, "ports": 1, "volumes": 1}
        assert status(stage)["ready"] is True


def test_a_lost_owner_id_is_not_guessed_while_the_cloud_does_not_answer(stage: InMemoryEnvironment) -> None:
    settled(stage)
    before = stage.get(KIND, "s")["metadata"]["annotations"][OWNER]
    stage.patch(KIND, "s", {"metadata": {"annotations": None}})
    stage.add_fault(match={"method": "GET"}, effect={"status": 503})

    stage.start()
    stage.settle(for_s=20)
    assert OWNER not in (stage.get(KIND, "s")["metadata"].get("annotations") or {})

    stage.clear_faults()
    stage.settle(for_s=120)
    assert stage.get(KIND, "s")["metadata"]["annotations"][OWNER] == before


def test_a_moved_server_is_found_although_its_image_is_gone_w_16(stage: InMemoryEnvironment) -> None:
    settled(stage)
    remove_image(stage)
    stage.patch(KIND, "s", {"status": None})

    stage.start()
    stage.settle(for_s=60)

    assert made(stage) == {"servers": 1, "ports": 1, "volumes": 1}
    assert status(stage)["ready"] is True
    assert status(stage)["instanceID"] == server(stage)["id"]
    assert status(stage)["resources"]["ports"] == [{"id": port(stage)["id"]}]


def lose(stage: InMemoryEnvironment, kind: str) -> None:
    """Remove all resources of a kind from the cloud, as an administrator may."""
    service = "volume" if kind == "volumes" else "network"
    stage.simulator.call(lambda: stage.cloud.table(service, kind).clear())


@pytest.mark.parametrize("lost", ["ports", "trunks", "volumes"])
def test_what_a_server_lost_is_not_created_again_after_its_status_was_lost(
    stage: InMemoryEnvironment, lost: str
) -> None:
    place(stage, rootVolume={"sizeGiB": 1}, trunk=True)
    stage.settle(for_s=30)
    left = {kind: number for kind, number in made(stage).items() if kind != lost}
    assert left.keys() == {"servers", "ports", "trunks", "volumes"} - {lost}
    lose(stage, lost)
    stage.patch(KIND, "s", {"status": None})

    stage.start()
    stage.settle(for_s=120)

    assert made(stage) == left
    assert status(stage)["instanceID"] == server(stage)["id"]


def test_a_moved_server_is_deleted_although_its_image_is_gone_w_16(stage: InMemoryEnvironment) -> None:
    settled(stage)
    remove_image(stage)
    stage.patch(KIND, "s", {"status": None})
    stage.delete(KIND, "s")

    stage.start()
    stage.settle(for_s=150)

    assert not stage.exists(KIND, "s")
    assert made(stage) == {}


def test_deletion_before_anything_is_known_makes_nothing_w_04(stage: InMemoryEnvironment) -> None:
    settled(stage)
    stage.patch(KIND, "s", {"status": None})
    stage.delete(KIND, "s")
    stage.cloud.counter.reset()

    stage.start()
    stage.settle(for_s=150)

    assert not [asked for asked in stage.requests() if asked.startswith(("POST", "PUT")) and "tokens" not in asked]
    assert not stage.exists(KIND, "s")


def test_what_the_go_provider_resolved_in_part_is_completed(stage: InMemoryEnvironment) -> None:
    place(stage)
    found = stage.member.ask("GET", "/compute/v2.1/flavors")["flavors"]
    (flavor,) = (each for each in found if each["name"] == "m1.tiny")
    stage.patch(KIND, "s", {"status": {"resolved": {"flavorID": flavor["id"]}}})

    stage.settle(for_s=30)

    assert status(stage)["ready"] is True
    assert status(stage)["resolved"]["flavorID"] == flavor["id"]
    assert status(stage)["resolved"]["imageID"]


def test_a_port_that_vanished_from_a_running_server_is_not_replaced_and_told_w_01(stage: InMemoryEnvironment) -> None:
    settled(stage)
    port_id = port(stage)["id"]
    stage.simulator.call(lambda: stage.cloud.table("network", "ports").pop(port_id))

    for minute in range(3):
        stage.settle(for_s=700)
        stage.patch(KIND, "s", {"metadata": {"labels": {"resync": str(minute)}}})
        stage.settle(for_s=30)

    assert "ports" not in made(stage)
    assert "port-0" in stage.condition(KIND, "s", "PortsReady")["message"]


def test_a_port_that_vanished_before_the_server_was_made_is_replaced_once_w_01(stage: InMemoryEnvironment) -> None:
    stage.add_fault(
        match={"method": "POST", "route": "/v2.1/servers"}, effect={"status": 403, "message": "Quota exceeded"}
    )
    place(stage)
    stage.settle(for_s=10)
    port_id = port(stage)["id"]
    stage.simulator.call(lambda: stage.cloud.table("network", "ports").pop(port_id))
    stage.start()
    stage.settle(for_s=30)

    stage.clear_faults()
    stage.settle(for_s=300)

    assert made(stage) == {"servers": 1, "ports": 1}
    assert status(stage)["resources"]["ports"] == [{"id": port(stage)["id"]}]
    assert status(stage)["ready"] is True


@pytest.mark.parametrize("deletes", [False, True])
def test_credentials_of_another_project_make_nothing_vanish(stage: InMemoryEnvironment, deletes: bool) -> None:
    settled(stage)
    stage.clock.advance(stage.settings.sync_period_s + 1)
    stage.apply_secret(text=clouds_yaml_of(stage, "sim-admin"))
    resync_or_delete(stage, deletes)

    stage.settle(for_s=60)

    assert status(stage)["ready"] is True
    assert shown(stage, "OpenStackAuthenticationSucceeded") == ("False", "OpenStackAuthenticationFailed")
    assert "lead to project" in stage.condition(KIND, "s", "Ready")["message"]
    assert made(stage) == {"servers": 1, "ports": 1, "volumes": 1}

    stage.apply_secret()
    stage.settle(for_s=120)
    assert made(stage) == ({} if deletes else {"servers": 1, "ports": 1, "volumes": 1})
    assert stage.exists(KIND, "s") is not deletes


def test_credentials_of_another_project_make_nothing_vanish_days_later_either(stage: InMemoryEnvironment) -> None:
    settled(stage)
    stage.clock.advance(stage.settings.sync_period_s + 1)
    stage.apply_secret(text=clouds_yaml_of(stage, "sim-admin"))
    for _ in range(3):
        resync_or_delete(stage, deletes=False)
        stage.settle(for_s=60)
        stage.clock.advance(43200)
    stage.apply(KIND, {"metadata": {"name": "other"}, "spec": stage.get(KIND, "s")["spec"]})

    stage.settle(for_s=900)

    assert status(stage)["ready"] is True
    assert "lead to project" in stage.condition(KIND, "s", "Ready")["message"]


def resync_or_delete(stage: InMemoryEnvironment, deletes: bool) -> None:
    if deletes:
        stage.delete(KIND, "s")
    else:
        stage.patch(KIND, "s", {"metadata": {"labels": {"resync": "now"}}})


def test_other_credentials_of_the_same_project_are_as_good(stage: InMemoryEnvironment) -> None:
    settled(stage)
    stage.clock.advance(stage.settings.sync_period_s + 1)
    stage.apply_secret(text=clouds_yaml_of(stage, "sim-appcred"))
    resync_or_delete(stage, deletes=False)

    stage.settle(for_s=60)

    assert shown(stage, "Ready") == ("True", "Ready")
    assert len(stage.clouds.pollers) == 2


def clouds_yaml_of(stage: InMemoryEnvironment, name: str) -> bytes:
    """Return a clouds.yaml whose entry ``sim`` is another one of the simulator's clouds."""
    clouds = yaml.safe_load(stage.simulator.clouds_yaml.read_text())["clouds"]
    return yaml.safe_dump({"clouds": {"sim": clouds[name]}}).encode()


def test_a_server_that_vanished_before_it_was_moved_is_not_made_again(stage: InMemoryEnvironment) -> None:
    settled(stage)
    server_id = server(stage)["id"]
    machine = {"metadata": {"name": "s", "uid": "of-machine"}, "spec": {"providerID": f"openstack:///{server_id}"}}
    stage.apply(OPENSTACK_MACHINE, machine)
    owner = {"apiVersion": OPENSTACK_MACHINE.api_version, "kind": "OpenStackMachine", "name": "s", "uid": "of-machine"}
    stage.patch(KIND, "s", {"metadata": {"ownerReferences": [owner]}, "status": None})
    stage.member.ask("DELETE", f"/compute/v2.1/servers/{server_id}")
    stage.clock.advance(60)

    stage.start()
    stage.settle(for_s=120)

    assert "servers" not in made(stage)
    assert shown(stage, "InstanceReady") == ("False", "InstanceNotFound")
    assert (status(stage)["ready"], status(stage)["instanceState"]) == (False, "DELETED")


@pytest.mark.parametrize("service", ["network", "volume", "image"])
def test_a_service_that_is_down_does_not_hide_that_the_server_vanished(
    stage: InMemoryEnvironment, service: str
) -> None:
    settled(stage)
    stage.add_fault(match={"service": service}, effect={"status": 503})
    stage.settle(for_s=700)

    stage.member.ask("DELETE", f"/compute/v2.1/servers/{server(stage)['id']}")
    stage.settle(for_s=61)

    assert status(stage)["ready"] is False
    assert shown(stage, "InstanceReady")[1] in ("InstanceNotFound", "InstanceDeleted")
