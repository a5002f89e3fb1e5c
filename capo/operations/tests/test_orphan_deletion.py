"""What a reviewed plan deletes, and what it keeps: everything is read and proven again right before."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from capo import names
from capo.json_types import Json
from capo.kube.kinds import OPENSTACK_CLUSTER, OPENSTACK_SERVER, Key
from capo.kube.tests.fake_apiserver import FakeApiServer
from capo.openstack.cloud import Cloud
from capo.operations import access
from capo.operations.access import CloudAccess, Mode
from capo.operations.errors import ExitStatus, NotPermittedError
from capo.operations.inventory import project
from capo.operations.orphans import evidence, findings
from capo.operations.orphans.deletion import Outcome, Report, Run
from capo.operations.orphans.findings import Orphan
from capo.operations.orphans.plan import Plan, Planned
from capo.operations.tests import environment
from capo.operations.tests.environment import OperatorsEnvironment
from controllers.openstackcluster.tests.environment import BALANCER, BASTION, GROUPS, MANAGED

SPEC: Final = {**MANAGED, **GROUPS, **BASTION}
NETWORKS: Final = "/network/v2.0/networks"


class Lost:
    """A cluster whose objects are gone, in a project in which the management cluster still has another object."""

    def __init__(self, world: OperatorsEnvironment, api: FakeApiServer, mode: Mode) -> None:
        self.world, self.api = world, api
        self.management = access.of_connection(api.connection(), name="mgmt")
        self.cloud: Cloud = CloudAccess.of(mode).open(access.credentials_in(world.simulator.clouds_yaml, "sim"))
        location = self.cloud.location.to_status()
        records = [{"kind": "network", "role": "network", "id": "none"}]
        self.put("other", status={"resources": {"records": records, "pending": [], "location": location}})
        self.orphans = self.find()
        self.change: Callable[[], object] = lambda: None

    def put(self, name: str, *, owner: str = "nnnnnnnnnnnnn", **more: Any) -> None:
        annotation = names.restored_owner_id(owner, OPENSTACK_CLUSTER.kind, "default", name)
        metadata = {"name": name, "namespace": "default", "annotations": {names.OWNER_ID_ANNOTATION: annotation}}
        self.api.put(OPENSTACK_CLUSTER, {"metadata": metadata, "spec": {}, **more})

    def find(self) -> list[Orphan]:
        found = project.read(self.cloud, lambda _text: None)
        return findings.find(found, evidence.read([self.management]))

    def owners(self) -> set[str]:
        return {each.attribution.owner_id for each in self.orphans}

    def ids(self, *kinds: str) -> set[str]:
        return {each.resource.id for each in self.orphans if each.resource.kind in kinds}

    def run(self, *, owners: set[str] | None = None, singly: set[str] | None = None, **more: Any) -> list[Report]:
        """Delete what is approved; ``change`` is called when the management clusters are read first."""
        planned = [
            Planned(each.key, each.resource.location, each.attribution.owner_id, each.mark) for each in self.orphans
        ]
        plan = Plan(
            {"uid": "mgmt"}, planned, frozenset(self.owners() if owners is None else owners), frozenset(singly or ())
        )

        def prove() -> evidence.Evidence:
            self.change()
            return evidence.read([self.management])

        clouds = {str(self.cloud.location): self.cloud}
        made = Run(plan, clouds, prove, self.world.clock, lambda _text: None, sleep=self.world.clock.advance, **more)
        return list(made.reports())


@contextmanager
def lost(
    world: OperatorsEnvironment, spec: Json, *, mode: Mode = Mode.WRITE, is_stopped: bool = True
) -> Iterator[Lost]:
    world.up(**spec)
    if is_stopped:
        world.member.ask("POST", f"/compute/v2.1/servers/{world.one('servers')['id']}/action", {"os-stop": None})
    world.clock.advance(7200)
    for kind in (OPENSTACK_CLUSTER, OPENSTACK_SERVER):
        for obj in world.kube.list(kind):
            world.kube.objects.pop(Key(kind, obj["metadata"]["namespace"], obj["metadata"]["name"]))
    with world.served() as api:
        yield Lost(world, api, mode)


def outcomes(reports: list[Report]) -> dict[str, str]:
    return {f"{each.planned.key[0]} {each.planned.key[1]}": each.outcome.value for each in reports}


def kept(reports: list[Report]) -> dict[str, str]:
    return {each.planned.key[0]: each.reason for each in reports if each.outcome is Outcome.KEPT}


def test_all_of_a_dead_cluster_is_deleted_by_its_owners_and_nothing_else(world: OperatorsEnvironment) -> None:
    with lost(world, SPEC) as it:
        world.member.make(NETWORKS, "network", name="of-a-user")

        reports = it.run()

    assert {each.outcome for each in reports} == {Outcome.DELETED}
    assert {kind: len(found) for kind, found in world.created().items() if found} == {"networks": 1}
    assert world.one("networks", name="of-a-user")


def test_a_router_with_l3_ha_is_disconnected_and_deleted(world: OperatorsEnvironment) -> None:
    with lost(world, MANAGED, is_stopped=False) as it:
        interface = world.one("ports", device_owner="network:router_interface")
        owner = {"device_owner": "network:ha_router_replicated_interface"}
        world.simulator.call(lambda: world.cloud.table("network", "ports")[interface["id"]].update(owner))
        it.orphans = it.find()

        reports = it.run()

    assert {each.outcome for each in reports} == {Outcome.DELETED}
    assert not any(world.created().values())


def test_one_owner_of_several_is_deleted_alone(world: OperatorsEnvironment) -> None:
    with lost(world, SPEC) as it:
        (server,) = (each for each in it.orphans if each.resource.kind == "server")

        reports = it.run(owners={server.attribution.owner_id})

    # The floating IP of the bastion is the cluster's: it leads to the port, which is kept for it.
    assert {each.planned.key[0] for each in reports} == {"server", "port"}
    assert world.created()["networks"]


def test_a_running_server_keeps_its_whole_cluster(world: OperatorsEnvironment) -> None:
    with lost(world, SPEC, is_stopped=False) as it:
        writes = len(world.writes())

        reports = it.run()

        assert {each.outcome for each in reports} == {Outcome.KEPT}
        assert "it is ACTIVE" in kept(reports)["server"]
        assert "a kubeconfig may be missing" in kept(reports)["network"]
        assert len(world.writes()) == writes


def test_a_running_server_that_is_named_singly_is_deleted_with_its_cluster(world: OperatorsEnvironment) -> None:
    with lost(world, SPEC, is_stopped=False) as it:
        reports = it.run(singly=it.ids("server"))

    assert {each.outcome for each in reports} == {Outcome.DELETED}


def test_a_load_balancer_that_works_keeps_the_network_below_it(world: OperatorsEnvironment) -> None:
    with lost(world, {**MANAGED, **BALANCER}, is_stopped=False) as it:
        reports = it.run()
        assert kept(reports).keys() >= {"load_balancer", "network", "subnet", "router", "floating_ip"}

        reports = it.run(singly=it.ids("load_balancer"))

    assert {each.outcome for each in reports} == {Outcome.DELETED}
    assert not any(world.created().values())


def test_what_something_else_uses_by_now_is_kept(world: OperatorsEnvironment) -> None:
    with lost(world, SPEC) as it:
        network = world.one("networks")["id"]
        world.member.make("/network/v2.0/ports", "port", network_id=network, name="of-a-user")

        reports = it.run()

    assert {"network", "subnet", "router"} <= kept(reports).keys()
    assert kept(reports)["network"].endswith("uses it")
    assert "server" not in kept(reports)


def test_a_use_that_begins_during_the_run_is_seen(world: OperatorsEnvironment) -> None:
    with lost(world, SPEC) as it:
        network = world.one("networks")["id"]

        def change() -> None:
            if not world.created().get("servers"):
                it.change = lambda: None
                world.member.make("/network/v2.0/ports", "port", network_id=network, name="of-a-user")

        it.change = change
        reports = it.run()

    assert {"network", "subnet", "router"} <= kept(reports).keys()


def test_a_trunk_that_gets_a_port_during_the_run_is_seen(world: OperatorsEnvironment) -> None:
    with lost(world, SPEC) as it:
        (port,) = it.ids("port")

        def change() -> None:
            if not world.created().get("servers"):
                it.change = lambda: None
                world.member.make("/network/v2.0/trunks", "trunk", port_id=port, name="of-a-user")

        it.change = change
        reports = it.run()

    assert kept(reports)["port"].startswith("trunk ")
    assert {"network", "subnet"} <= kept(reports).keys()


def test_a_cloud_without_trunks_needs_no_list_of_them(world: OperatorsEnvironment) -> None:
    world.add_fault(match={"service": "network", "route": "/v2.0/trunks"}, effect={"status": 404})
    with lost(world, SPEC) as it:
        reports = it.run()

    assert {each.outcome for each in reports} == {Outcome.DELETED}


def test_an_object_that_is_back_keeps_what_it_owns(world: OperatorsEnvironment) -> None:
    with lost(world, SPEC) as it:
        (network,) = (each for each in it.orphans if each.resource.kind == "network")
        it.put("restored", owner=network.attribution.owner_id)

        reports = it.run()

    assert kept(reports)["network"] == "it is no orphan any more"
    assert world.created()["networks"]


def test_an_object_that_comes_back_during_the_run_keeps_the_rest(world: OperatorsEnvironment) -> None:
    with lost(world, SPEC) as it:
        (network,) = (each for each in it.orphans if each.resource.kind == "network")
        it.change = lambda: (
            None if world.created().get("servers") else it.put("restored", owner=network.attribution.owner_id)
        )

        reports = it.run()

    assert kept(reports)["network"] == "it is no orphan any more"


def test_a_stamp_that_changed_since_the_plan_keeps_the_resource(world: OperatorsEnvironment) -> None:
    with lost(world, SPEC) as it:
        (group, *_) = it.ids("security_group")
        text = "changed [capo:mmmmmmmmmmmmm:group-worker]"
        world.member.ask("PUT", f"/network/v2.0/security-groups/{group}", {"security_group": {"description": text}})

        reports = it.run()

    (changed,) = (each for each in reports if each.planned.key[1] == group)
    assert (changed.outcome, changed.reason) == (Outcome.KEPT, "its stamp or its name has changed since the plan")


def test_a_management_cluster_that_fails_ends_the_run(world: OperatorsEnvironment) -> None:
    with lost(world, SPEC) as it:

        def change() -> None:
            if not world.created().get("servers"):
                it.api.forbids = lambda _method, _path: "Forbidden"

        it.change = change
        with pytest.raises(NotPermittedError):
            it.run()

    assert world.created()["networks"]


def test_a_list_that_fails_keeps_everything(world: OperatorsEnvironment) -> None:
    with lost(world, SPEC) as it:
        world.add_fault(match={"service": "volume", "method": "GET"}, effect={"status": 503})

        reports = it.run()

    assert {each.outcome for each in reports} == {Outcome.KEPT}
    assert reports[0].reason.startswith("not all lists could be read: volume:")


def test_what_a_resource_uses_is_kept_when_its_own_deletion_fails(world: OperatorsEnvironment) -> None:
    with lost(world, SPEC) as it:
        world.add_fault(match={"service": "compute", "method": "DELETE"}, effect={"status": 500})
        began_s = world.clock.now()

        reports = it.run()

    assert {each.planned.key[0] for each in reports if each.outcome is Outcome.FAILED} == {"server"}
    assert {"port", "network", "subnet", "router"} <= kept(reports).keys()
    assert world.clock.now() - began_s < 60


def test_what_is_gone_already_is_reported_as_that(world: OperatorsEnvironment) -> None:
    with lost(world, SPEC) as it:
        world.member.ask("DELETE", f"/compute/v2.1/servers/{world.one('servers')['id']}")
        world.clock.advance(60)

        reports = it.run()

    assert {each.planned.key[0] for each in reports if each.outcome is Outcome.GONE} == {"server"}
    assert {each.outcome for each in reports} == {Outcome.GONE, Outcome.DELETED}


def test_a_project_to_which_no_credentials_lead_is_left_alone(world: OperatorsEnvironment) -> None:
    with lost(world, SPEC) as it:
        planned = [Planned(each.key, "elsewhere", each.attribution.owner_id, each.mark) for each in it.orphans]
        plan = Plan({"uid": "mgmt"}, planned, frozenset(it.owners()), frozenset())
        made = Run(plan, {}, lambda: evidence.read([it.management]), world.clock, lambda _text: None)

        assert {each.reason for each in made.reports()} == {"no credentials lead to its project"}


def test_credentials_that_cannot_be_used_are_named_with_the_cause(
    world: OperatorsEnvironment, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, file = tmp_path / "plan.yaml", tmp_path / "kubeconfig"
    clouds = ("--cloud", "sim", "--clouds", str(world.simulator.clouds_yaml))
    with lost(world, MANAGED, is_stopped=False) as it:
        given = ("orphans", "--kubeconfig", environment.kubeconfig(file, it.api), *clouds)
        environment.capo(*given, "--plan-file", str(path))
        reviewed = yaml.safe_load(path.read_text())
        reviewed["delete"]["owners"] = sorted(it.owners())
        path.write_text(yaml.safe_dump(reviewed))
        world.add_fault(match={"service": "identity"}, effect={"status": 503})
        capsys.readouterr()

        status = environment.capo(*given, "--delete", str(path), "-o", "json")

    shown = capsys.readouterr()
    (reason,) = {each["reason"] for each in json.loads(shown.out)}
    assert status == ExitStatus.INCOMPLETE
    assert reason.startswith("no credentials lead to its project; not all could be used: ")
    assert f"not complete: {reason.rpartition('used: ')[2]}" in shown.err
    assert "503" in reason


def test_a_rehearsal_shows_the_same_and_sends_no_write(world: OperatorsEnvironment) -> None:
    with lost(world, SPEC, mode=Mode.READ) as it:
        writes = len(world.writes())
        rehearsed = outcomes(it.run(is_rehearsal=True))
        assert len(world.writes()) == writes

        it.cloud = CloudAccess.of(Mode.WRITE).open(access.credentials_in(world.simulator.clouds_yaml, "sim"))
        assert outcomes(it.run()) == rehearsed
