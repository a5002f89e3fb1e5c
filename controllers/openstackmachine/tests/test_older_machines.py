"""Machines of old versions of the Go provider: they had a server, but no OpenStackServer (G-36)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from capo import names
from capo.kube.kinds import CLUSTER, MACHINE, OPENSTACK_CLUSTER, OPENSTACK_MACHINE, OPENSTACK_SERVER, SECRET, Key
from controllers.openstackmachine.controller import MachineController
from controllers.openstackmachine.tests import environment
from controllers.openstackserver.controller import ServerController
from controllers.tests import stamps
from environments.in_memory import NAMESPACE, InMemoryEnvironment

NAME = "worker"
SERVER_KEY = Key(OPENSTACK_SERVER, NAMESPACE, NAME)


@pytest.fixture
def stage() -> Iterator[InMemoryEnvironment]:
    """Yield a stage with a worker as an old version left it."""
    with InMemoryEnvironment(MachineController, ServerController) as made:
        made.apply_secret()
        network = made.network()
        made.before = made.inventory()  # type: ignore[attr-defined]
        infra: dict[str, Any] = environment.openstack_cluster()
        infra["spec"] |= {"identityRef": {"name": "cloud", "cloudName": "sim"}}
        infra["spec"].pop("managedSecurityGroups")
        infra["status"]["network"] = {"id": network["id"], "name": "own"}
        machine = environment.openstack_machine(NAME, environment.LABELS)
        machine["spec"] |= {"image": {"filter": {"name": "tiny-image"}}, "sshKeyName": "lab"}
        made.apply(SECRET, {"metadata": {"name": f"{NAME}-boot"}, "data": {"value": "I2Nsb3VkLWNvbmZpZw=="}})
        made.apply(CLUSTER, environment.cluster())
        made.apply(OPENSTACK_CLUSTER, infra)
        made.apply(MACHINE, environment.machine(NAME, environment.LABELS))
        made.apply(OPENSTACK_MACHINE, machine)
        made.settle(for_s=60)
        assert made.condition(OPENSTACK_MACHINE, NAME, "Ready")["status"] == "True"
        age(made)
        yield made


def age(stage: InMemoryEnvironment) -> None:
    """Rewrite machine and cloud as an old version left them."""
    stage.simulator.call(lambda: unstamp(stage))
    del stage.kube.objects[SERVER_KEY]
    stage.patch(OPENSTACK_MACHINE, NAME, {"metadata": {"annotations": {names.OWNER_ID_ANNOTATION: None}}})
    stage.start()
    stage.cloud.counter.reset()


def unstamp(stage: InMemoryEnvironment) -> None:
    for body in stage.cloud.table("network", "ports").values():
        stamps.remove(body)
    for body in stage.cloud.table("compute", "servers").values():
        stamps.remove(body)


def server_ids(stage: InMemoryEnvironment) -> set[str]:
    return set(stage.inventory().get("servers", {}))


def test_an_openstackserver_is_made_for_the_server_that_is_there(stage: InMemoryEnvironment) -> None:
    before = server_ids(stage)

    stage.settle(for_s=120)

    made = stage.get(OPENSTACK_SERVER, NAME)
    records = {record["role"]: record["id"] for record in made["status"]["resources"]["records"]}
    assert {made["status"]["instanceID"]} == {records["server"]} == before == server_ids(stage)
    assert "port-0" in records
    assert stage.writes() == []
    for kind in (OPENSTACK_SERVER, OPENSTACK_MACHINE):
        assert names.TAKEN_OVER_ANNOTATION not in stage.get(kind, NAME)["metadata"]["annotations"]


@pytest.mark.parametrize("type_", ["Ready", "InstanceReady"])
def test_a_machine_that_was_ready_stays_so_while_its_server_is_looked_up(
    stage: InMemoryEnvironment, type_: str
) -> None:
    addresses = stage.get(OPENSTACK_MACHINE, NAME)["status"]["addresses"]
    seen: list[str] = []

    def note(_verb: str, key: Key, body: Any) -> None:
        if key.kind == OPENSTACK_MACHINE:
            shown = (body.get("status") or {}).get("conditions") or ()
            seen.extend(each["status"] for each in shown if each["type"] == type_)

    stage.kube.before_write = note
    stage.add_fault(match={"service": "compute"}, effect={"status": 503})
    stage.settle(for_s=300)
    stage.clear_faults()
    stage.settle(for_s=900)

    assert set(seen) <= {"True"}
    assert stage.get(OPENSTACK_MACHINE, NAME)["status"]["addresses"] == addresses
    assert names.TAKEN_OVER_ANNOTATION not in stage.get(OPENSTACK_MACHINE, NAME)["metadata"]["annotations"]


def test_a_server_that_is_gone_is_not_made_again(stage: InMemoryEnvironment) -> None:
    (server_id,) = server_ids(stage)
    stage.member.ask("DELETE", f"/compute/v2.1/servers/{server_id}")
    stage.settle(for_s=10)
    stage.cloud.counter.reset()

    stage.settle(for_s=300)

    assert server_ids(stage) == set()
    assert stage.condition(OPENSTACK_MACHINE, NAME, "Ready")["status"] == "False"


@pytest.mark.parametrize("is_known", [True, False], ids=["after a first run", "at once"])
def test_the_server_goes_with_the_machine(stage: InMemoryEnvironment, is_known: bool) -> None:
    if is_known:
        stage.settle(for_s=120)

    stage.delete(OPENSTACK_MACHINE, NAME)
    stage.settle(for_s=300)

    before: dict[str, dict[str, Any]] = stage.before  # type: ignore[attr-defined]
    assert not stage.exists(OPENSTACK_MACHINE, NAME)
    assert not stage.exists(OPENSTACK_SERVER, NAME)
    assert server_ids(stage) == set()
    assert set(stage.inventory().get("ports", {})) == set(before.get("ports", {}))


def test_a_machine_whose_server_is_gone_goes_at_once(stage: InMemoryEnvironment) -> None:
    (server_id,) = server_ids(stage)
    stage.member.ask("DELETE", f"/compute/v2.1/servers/{server_id}")
    stage.clock.now_s += 30

    stage.delete(OPENSTACK_MACHINE, NAME)
    stage.settle(for_s=300)

    assert not stage.exists(OPENSTACK_MACHINE, NAME)
    assert not stage.exists(OPENSTACK_SERVER, NAME)
