"""What a cluster has in the cloud, as an operator sees it."""

from __future__ import annotations

import json
import re
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml

from capo.json_types import Json
from capo.kube.kinds import CLUSTER
from capo.kube.tests.fake_apiserver import FakeApiServer
from capo.operations import access, owners
from capo.operations.errors import OperatorError
from capo.operations.inventory import gather, report, watch
from capo.operations.inventory.attribution import Attribution, Basis
from capo.operations.inventory.gather import Request
from capo.operations.inventory.report import Inventory
from capo.operations.tests import environment
from capo.operations.tests.environment import OperatorsEnvironment
from controllers.openstackcluster.tests.environment import FULL
from controllers.openstackcluster.tests.objects import CLUSTER_NAME

OURS = "default.kube"
VOLUMES = {"service": "volume", "method": "GET"}


def take(world: OperatorsEnvironment, **request: Any) -> Inventory:
    with world.management() as management:
        return gather.take(Request([management], **request), lambda _text: None)


def of_kind(found: Inventory, kind: str) -> list[Attribution]:
    return [each for each in found.shown if each.resource.kind == kind]


def without_management(world: OperatorsEnvironment, **request: Any) -> Inventory:
    return gather.take(Request(clouds=[world.named_cloud()], **request), lambda _text: None)


def test_every_resource_of_a_cluster_is_shown_with_its_owner(world: OperatorsEnvironment) -> None:
    world.up(**FULL)

    found = take(world, namespace="default", cluster=CLUSTER_NAME)

    owners = Counter((str(each.owner), each.resource.kind) for each in found.shown)
    cluster, bastion = f"OpenStackCluster default/{CLUSTER_NAME}", f"OpenStackServer default/{CLUSTER_NAME}-bastion"
    assert {kind for owner, kind in owners if owner == bastion} == {"server", "port"}
    assert owners[cluster, "security_group"] == 3
    for kind in ("network", "subnet", "router", "load_balancer", "listener", "pool", "health_monitor"):
        assert owners[cluster, kind] == 1
    shown = {each.resource.id for each in found.shown}
    made = {id_ for kind in ("servers", "networks", "loadbalancers", "floatingips") for id_ in world.created()[kind]}
    assert made <= shown


def test_ports_that_services_created_belong_to_what_they_are_for(world: OperatorsEnvironment) -> None:
    world.up(**FULL)

    ports = of_kind(take(world, cluster=CLUSTER_NAME), "port")

    assert {(each.basis, each.role) for each in ports} >= {
        (Basis.RECORD, "router-interface"),
        (Basis.PART, "Octavia"),
        (Basis.STAMP, "port-0"),
    }


def test_state_age_address_zone_and_size_are_those_of_the_services(world: OperatorsEnvironment) -> None:
    world.up(**FULL)
    world.clock.advance(7200)

    found = take(world, cluster=CLUSTER_NAME)

    (server,) = of_kind(found, "server")
    assert server.resource.state == "ACTIVE"
    assert report.age(server.resource.age_s) == "2h"
    assert server.resource.addresses
    assert server.resource.zone == "az1"
    assert server.resource.size.vcpus == 1
    assert str(server.resource.size) == "m1.small, 1 vCPU, 1 GiB RAM, 5 GiB disk"
    assert report.total(found.shown).load_balancers == 1


def test_without_a_management_cluster_stamps_tell_cluster_and_owners(world: OperatorsEnvironment) -> None:
    world.up(**FULL)

    known, found = take(world), without_management(world)

    assert {each.owner for each in found.shown} == {None}
    assert {str(each.cluster) for each in found.shown if each.cluster} == {f"default-{CLUSTER_NAME}"}
    same = {each.resource.id for each in known.shown if each.cluster}
    assert {each.resource.id for each in found.shown if each.cluster} == same
    one = without_management(world, namespace="default", cluster=CLUSTER_NAME)
    assert {each.resource.id for each in one.shown} == same


def test_the_rest_of_the_project_is_counted_or_shown_as_unowned(world: OperatorsEnvironment) -> None:
    world.up(**FULL)
    world.member.make("/network/v2.0/networks", "network", name="of-a-user")

    found = take(world)
    one = take(world, cluster=CLUSTER_NAME)

    (users,) = (each for each in of_kind(found, "network") if each.resource.name == "of-a-user")
    assert users.basis is Basis.NONE
    assert one.others >= 1
    assert len(one.shown) + one.others == len(found.shown)


def test_what_workloads_created_belongs_to_their_cluster(world: OperatorsEnvironment) -> None:
    world.up(**FULL)
    subnet = world.one("subnets", name=f"k8s-clusterapi-cluster-default-{CLUSTER_NAME}")["id"]
    left = world.workloads(OURS)
    balancer = left.load_balancer("shop", subnet)
    left.floating_ip("shop", world.external()["id"], balancer["vip_port_id"])
    left.security_group("shop")
    shared = world.workloads("kubernetes").load_balancer("other", subnet)

    found = take(world, cluster=CLUSTER_NAME)

    marked = [each for each in found.shown if each.basis is Basis.WORKLOAD]
    assert Counter(each.resource.kind for each in marked) == {
        "load_balancer": 2,
        "floating_ip": 1,
        "security_group": 1,
        **dict.fromkeys(("listener", "pool", "port"), 2),
    }
    # A name that clusters share says nothing, the network of the cluster does.
    assert shared["id"] in {each.resource.id for each in marked}


def test_what_the_go_provider_created_is_known_by_names_and_what_hangs_on_it(world: OperatorsEnvironment) -> None:
    world.up(**FULL)
    before = {each.resource.id for each in take(world, cluster=CLUSTER_NAME).shown}
    world.unstamp()

    found = without_management(world, namespace="default", cluster=CLUSTER_NAME)

    assert {each.resource.id for each in found.shown} == before
    assert {each.basis for each in found.shown} == {Basis.NAME, Basis.PART}


def test_an_owner_without_an_object_is_named_by_its_id(world: OperatorsEnvironment) -> None:
    world.up(**FULL)
    world.kube.objects.clear()
    world.apply_secret()

    with world.management() as management:
        found = gather.take(Request([management], clouds=[world.named_cloud()]), lambda _text: None)

    labels = [str(each.label) for each in report.trees(found, is_wide=False)]
    assert f"default-{CLUSTER_NAME} (no object)" in labels


def test_a_list_that_fails_is_named_and_the_rest_is_shown(world: OperatorsEnvironment) -> None:
    world.up(**FULL)
    world.add_fault(match=VOLUMES, effect={"status": 503})

    found = take(world, cluster=CLUSTER_NAME)

    assert [failure.partition(":")[0] for failure in found.failures] == ["volume"]
    assert of_kind(found, "server")


def test_a_cluster_that_does_not_exist_is_an_error(world: OperatorsEnvironment) -> None:
    with pytest.raises(OperatorError, match="no object of a Cluster default/nothing exists in mgmt"):
        take(world, namespace="default", cluster="nothing")


def test_owners_of_namespaces_that_may_not_be_read_are_told(world: OperatorsEnvironment) -> None:
    world.up(**FULL)
    with world.served() as api:
        api.forbids = lambda _method, path: "" if "/namespaces/" in path else "Forbidden"
        management = access.of_connection(api.connection(), name="mgmt")
        found = gather.take(Request([management], namespace="default"), lambda _text: None)

    assert found.failures == [
        "only namespace default of mgmt may be read: owners in others are shown as owners without object"
    ]
    assert of_kind(found, "server")[0].owner is not None


# -- output ----------------------------------------------------------------------------------------------------------


def test_a_tree_has_the_cluster_its_owners_and_their_resources(world: OperatorsEnvironment) -> None:
    world.up(**FULL)
    console, out = environment.console()

    report.show(take(world, cluster=CLUSTER_NAME), console)

    lines = out.getvalue().splitlines()
    assert lines[0].split() == list(report.COLUMNS)
    assert lines[1].startswith(f"default/{CLUSTER_NAME} ")
    assert "1 server, 1 load balancer, 2 floating IPs" in lines[1]
    assert f"|- OpenStackCluster {CLUSTER_NAME}" in [line.rstrip() for line in lines]
    assert any(line.startswith("|  |- load balancer lb-api") for line in lines)


def test_programs_get_every_field_of_every_resource(world: OperatorsEnvironment) -> None:
    world.up(**FULL)

    found = report.to_json(take(world, cluster=CLUSTER_NAME))

    (server,) = (each for each in found["resources"] if each["kind"] == "server")
    assert server["owner"] == {"kind": "OpenStackServer", "namespace": "default", "name": f"{CLUSTER_NAME}-bastion"}
    assert server["basis"] == "stamp"
    assert found["clusters"][0]["cluster"] == {"namespace": "default", "name": CLUSTER_NAME}
    assert found["clusters"][0]["total"]["servers"] == 1
    json.dumps(found)


def test_a_watch_shows_what_was_added_changed_and_removed(world: OperatorsEnvironment) -> None:
    world.up(**FULL)
    before = take(world).shown
    world.member.make("/network/v2.0/networks", "network", name="new")
    world.member.ask("POST", f"/compute/v2.1/servers/{world.one('servers')['id']}/action", {"os-stop": None})
    world.clock.advance(60)
    after = take(world).shown

    found = [*watch.changes(before, after), *watch.changes(after, before)]

    texts = [str(each) for each in found]
    assert texts[0] == "~ server kube-bastion of OpenStackServer default/kube-bastion: " + texts[0].partition(": ")[2]
    assert "SHUTOFF" in texts[0].partition(" -> ")[2]
    assert "+ network new without known owner: ACTIVE" in texts
    assert "- network new without known owner: ACTIVE" in texts


# -- the command -----------------------------------------------------------------------------------------------------


def test_the_command_reads_a_kubeconfig_and_writes_nothing(
    world: OperatorsEnvironment, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    world.up(**FULL)
    world.cloud.counter.reset()
    with world.served() as api:
        status = environment.capo(
            "inventory", CLUSTER_NAME, "--kubeconfig", environment.kubeconfig(tmp_path / "k", api), "-o", "json"
        )
        assert api.writes() == []

    found: Json = json.loads(capsys.readouterr().out)
    assert status == 0
    assert {each["cluster"]["name"] for each in found["resources"]} == {CLUSTER_NAME}
    assert {each.partition(" ")[0] for each in world.requests() if "tokens" not in each} == {"GET"}


def test_the_command_prints_all_formats(world: OperatorsEnvironment, capsys: pytest.CaptureFixture[str]) -> None:
    world.up(**FULL)
    command = ("inventory", "--cloud", "sim", "--clouds", str(world.simulator.clouds_yaml), "-o")
    server = world.one("servers")["id"]
    printed = {}
    for output in ("json", "yaml", "wide"):
        assert environment.capo(*command, output) == 0
        printed[output] = capsys.readouterr().out

    found = json.loads(printed["json"])
    ages = [each.pop("ageSeconds") for each in found["resources"]]
    same = yaml.safe_load(printed["yaml"])
    assert len([each.pop("ageSeconds") for each in same["resources"]]) == len(ages)
    assert same == found
    (row,) = (line for line in printed["wide"].splitlines() if server in line)
    assert " stamp " in row
    assert printed["wide"].splitlines()[0].split() == [*report.COLUMNS, "ID", "BASIS", "OWNER", "ID", "PROJECT"]


def test_the_command_needs_no_management_cluster_for_a_named_cloud(
    world: OperatorsEnvironment, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    world.up(**FULL)
    monkeypatch.setenv("KUBECONFIG", "/nowhere")

    status = environment.capo("inventory", "--cloud", "sim", "--clouds", str(world.simulator.clouds_yaml))

    printed = capsys.readouterr().out
    assert status == 0
    assert f"default-{CLUSTER_NAME}" in printed
    assert "no known owner" in printed


Rounds = list[Callable[[], object]]


@pytest.fixture
def rounds(monkeypatch: pytest.MonkeyPatch) -> Rounds:
    """Return what happens before each further round of a watch; after the last one it is interrupted."""
    wanted: Rounds = []

    def sleep(seconds: float) -> None:
        if not wanted:
            raise KeyboardInterrupt
        assert seconds == 10.0
        wanted.pop(0)()

    monkeypatch.setattr("capo.cli.inventory.time", SimpleNamespace(sleep=sleep, strftime=time.strftime))
    return wanted


def make_network(world: OperatorsEnvironment) -> None:
    world.member.make("/network/v2.0/networks", "network", name="new")


def changes_of(printed: str) -> list[str]:
    """Return the lines of a watch that name a change."""
    return [line.partition(" ")[2] for line in printed.splitlines() if re.match(r"[0-9:]{8} [-+~] ", line)]


def test_the_command_watches_until_it_is_interrupted(
    world: OperatorsEnvironment, capsys: pytest.CaptureFixture[str], rounds: Rounds
) -> None:
    world.up(**FULL)
    rounds += [lambda: make_network(world), lambda: world.add_fault(match=VOLUMES, effect={"status": 503})]
    file = str(world.simulator.clouds_yaml)

    status = environment.capo("inventory", "--cloud", "sim", "--clouds", file, "--watch")

    printed = capsys.readouterr()
    assert status == 130
    assert changes_of(printed.out) == ["+ network new without known owner: ACTIVE"]
    assert "not complete: volume: " in printed.err


def remove_objects(api: FakeApiServer) -> None:
    for kind in (*owners.KINDS, CLUSTER):
        for obj in api.all(kind):
            api.remove(kind, obj["metadata"]["namespace"], obj["metadata"]["name"])


def test_a_watch_shows_a_deletion_to_its_end(
    world: OperatorsEnvironment, tmp_path: Path, capsys: pytest.CaptureFixture[str], rounds: Rounds
) -> None:
    world.up(**FULL)
    with world.served() as api:

        def end() -> None:
            world.member.ask("DELETE", f"/compute/v2.1/servers/{world.one('servers')['id']}")
            world.clock.advance(60)
            remove_objects(api)

        rounds.append(end)
        file = environment.kubeconfig(tmp_path / "k", api)
        status = environment.capo("inventory", "-w", CLUSTER_NAME, "--kubeconfig", file, "-n", "default")

    printed = capsys.readouterr()
    assert status == 130
    removed = [each for each in changes_of(printed.out) if each.startswith("-")]
    assert [each.partition(" of ")[0] for each in removed] == ["- server kube-bastion"]
    assert printed.err == "capo inventory: interrupted\n"


def test_what_lost_its_object_stays_in_a_watch_of_a_namespace(
    world: OperatorsEnvironment, tmp_path: Path, capsys: pytest.CaptureFixture[str], rounds: Rounds
) -> None:
    world.up(**FULL)
    with world.served() as api:
        rounds += [lambda: remove_objects(api), lambda: make_network(world)]
        file = environment.kubeconfig(tmp_path / "k", api)
        assert environment.capo("inventory", "--kubeconfig", file, "-n", "default", "--watch") == 130

    changes = changes_of(capsys.readouterr().out)
    assert not [each for each in changes if each.startswith("-")]
    assert changes[-1] == "+ network new without known owner: ACTIVE"


def test_a_watch_goes_on_after_a_round_in_which_the_api_server_failed(
    world: OperatorsEnvironment, tmp_path: Path, capsys: pytest.CaptureFixture[str], rounds: Rounds
) -> None:
    world.up(**FULL)
    with world.served() as api:

        def fail() -> None:
            api.forbids = lambda _method, _path: "etcdserver: request timed out"

        def recover() -> None:
            api.forbids = lambda _method, _path: ""
            make_network(world)

        rounds += [fail, recover]
        file = environment.kubeconfig(tmp_path / "k", api)
        status = environment.capo("inventory", "--kubeconfig", file, "-n", "default", "--watch")

    printed = capsys.readouterr()
    assert status == 130
    assert printed.err.count("a round failed: ") == 1
    assert changes_of(printed.out) == ["+ network new without known owner: ACTIVE"]


def test_a_watch_by_a_user_of_one_namespace_shows_what_changes(
    world: OperatorsEnvironment, tmp_path: Path, capsys: pytest.CaptureFixture[str], rounds: Rounds
) -> None:
    world.up(**FULL)
    with world.served() as api:
        api.forbids = lambda _method, path: "" if "/namespaces/" in path else "forbidden"
        rounds += [lambda: make_network(world), lambda: None]
        file = environment.kubeconfig(tmp_path / "k", api)
        assert environment.capo("inventory", "--kubeconfig", file, "-n", "default", "--watch") == 130

    printed = capsys.readouterr()
    assert changes_of(printed.out) == ["+ network new without known owner: ACTIVE"]
    assert printed.err.count("only namespace default of") == 1


def test_a_part_that_could_not_be_read_is_the_status_of_the_command(
    world: OperatorsEnvironment, capsys: pytest.CaptureFixture[str]
) -> None:
    world.up(**FULL)
    world.add_fault(match=VOLUMES, effect={"status": 503})

    status = environment.capo("inventory", "--cloud", "sim", "--clouds", str(world.simulator.clouds_yaml))

    assert status == 4
    assert "not complete: volume: " in capsys.readouterr().err
