"""A lost cluster that only the Go provider managed: found by names, reviewed, and taken over by the controllers."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from capo import names
from capo.json_types import Json
from capo.kube.kinds import OPENSTACK_CLUSTER, OPENSTACK_SERVER
from capo.operations.access import CloudAccess, credentials_in
from capo.operations.adoption import survey, unstamped
from capo.operations.adoption.survey import Survey
from capo.operations.adoption.tests.environment import NAME, AdoptionEnvironment, OperatorsKube
from capo.operations.errors import OperatorError
from controllers.tests import stamps

RESOURCE = f"default-{NAME}"
INTERNAL: Json = {
    "enableExternalNetwork": False,
    "apiServer": {"enableFloatingIP": False, "managedLoadBalancer": {"enabled": True}},
    "managedSecurityGroups": None,
    "bastion": None,
}


def build(world: AdoptionEnvironment, **spec: Any) -> None:
    """Build a cluster as the Go provider leaves it, and lose its objects."""
    world.build(**spec)
    world.former = world.lose_management_cluster()
    world.simulator.call(lambda: stamps.remove_all(world.cloud))
    world.cloud.counter.reset()


def existing(world: AdoptionEnvironment) -> set[str]:
    """Return the ids of all resources of the project."""
    return {id_ for items in world.inventory().values() for id_ in items}


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Survey]:
    with AdoptionEnvironment(tmp_path_factory.mktemp("plans")) as world:
        build(world)
        cloud = CloudAccess().open(credentials_in(world.simulator.clouds_yaml, "sim"))
        yield survey.take(cloud, names.load_balancer(RESOURCE))


@pytest.mark.parametrize("spec", [{}, INTERNAL], ids=["default", "internal"])
def test_a_lost_cluster_of_the_go_provider_is_taken_over_without_a_write_to_the_cloud(
    tmp_path: Path, spec: Json
) -> None:
    with AdoptionEnvironment(tmp_path) as world:
        build(world, **spec)
        before = world.inventory()

        status, plan = world.write("--from-go-provider")
        world.adopt(plan)
        world.converge()

        assert plan.findings == []
        assert status == 0
        assert world.unready() == []
        assert world.writes() == []
        assert world.inventory() == before


def test_what_is_taken_over_is_deleted_as_a_whole(tmp_path: Path) -> None:
    with AdoptionEnvironment(tmp_path) as world:
        build(world)
        _, plan = world.write("--from-go-provider")
        world.adopt(plan)
        world.converge()
        ids = {each.id for each in plan.resources}

        assert ids <= existing(world)

        world.delete_all()

        assert not ids & existing(world)


def test_the_floating_ip_of_an_api_with_a_dns_name_is_deleted_with_the_cluster(tmp_path: Path) -> None:
    with AdoptionEnvironment(tmp_path) as world:
        build(world, bastion=None)
        _, plan = world.write("--from-go-provider", "--endpoint", "api.example.org:6443")
        world.adopt(plan)
        world.converge()
        (address,) = [each.id for each in plan.resources if each.kind == "floating_ip"]

        assert world.writes() == []

        world.delete_all()

        assert address not in existing(world)


def test_an_owner_is_not_chosen_where_there_are_no_stamps(tmp_path: Path) -> None:
    refusal = "--owner chooses among stamps, which --from-go-provider has none of"
    with AdoptionEnvironment(tmp_path) as world, pytest.raises(OperatorError, match=refusal):
        world.write("--from-go-provider", "--owner", "aaaaaaaaaaaaa")


def test_a_chosen_server_that_does_not_exist_is_refused(project: Survey) -> None:
    with pytest.raises(OperatorError, match="no server of the project has the id nonsense"):
        unstamped.find(project, "default", NAME, chosen=["nonsense"])


def test_a_second_subnet_in_the_network_is_not_the_clusters(project: Survey) -> None:
    def add(bodies: list[Json]) -> None:
        bodies.append(
            {**named(bodies, names.network(RESOURCE)), "id": "second", "name": "mine", "cidr": "192.0.2.0/24"}
        )

    found = unstamped.find(changed(project, "subnet", add), "default", NAME)

    assert found.parts["subnet"].body["name"] == names.network(RESOURCE)


def test_a_floating_ip_of_the_description_at_another_port_is_left_out_and_named(project: Survey) -> None:
    def add(bodies: list[Json]) -> None:
        bodies.append({**bodies[0], "id": "other", "port_id": "elsewhere", "description": names.created_by(RESOURCE)})

    (finding,) = unstamped.find(changed(project, "floating_ip", add), "default", NAME).findings

    assert finding == (
        "floating IP other has the description of the cluster and is neither at its API nor at its bastion: "
        "it is left out"
    )


def test_without_the_option_nothing_is_written_and_the_option_is_named(tmp_path: Path) -> None:
    with AdoptionEnvironment(tmp_path) as world:
        build(world)

        with pytest.raises(OperatorError, match=r"only the name tells whose it is; .* --from-go-provider"):
            world.write()


def test_a_cluster_that_a_go_provider_still_manages_is_refused(tmp_path: Path) -> None:
    with AdoptionEnvironment(tmp_path) as world:
        build(world)
        _, plan = world.write("--from-go-provider")
        server = next(each.id for each in plan.resources if each.kind == "server")
        theirs, empty = OperatorsKube("https://theirs.example.org"), OperatorsKube("https://new.example.org")
        theirs.put(OPENSTACK_SERVER, {"metadata": {"name": "x"}, "spec": {}, "status": {"instanceID": server}})

        with pytest.raises(OperatorError, match=rf"has recorded {server}: it is not lost"):
            world.adopt(plan, theirs, into=empty)

        assert empty.writes == []


def test_a_resource_that_got_an_owner_after_the_review_is_refused(tmp_path: Path) -> None:
    with AdoptionEnvironment(tmp_path) as world:
        build(world)
        _, plan = world.write("--from-go-provider")
        network = next(each.id for each in plan.resources if each.kind == "network")
        world.simulator.call(
            lambda: world.cloud.table("network", "networks")[network].update(description="[capo:aaaaaaaaaaaaa:network]")
        )

        with pytest.raises(OperatorError, match=rf"network {network} carries the stamp capo:aaaaaaaaaaaaa:network"):
            world.adopt(plan)


def test_a_plan_that_was_applied_is_applied_again_without_a_change(tmp_path: Path) -> None:
    with AdoptionEnvironment(tmp_path) as world:
        build(world)
        _, plan = world.write("--from-go-provider")
        world.adopt(plan)
        world.converge()

        assert {line.rpartition(" ")[2] for line in world.adopt(plan)} == {"exists"}


def test_our_objects_say_that_they_are_taken_over_and_that_of_the_bastion_by_its_id(tmp_path: Path) -> None:
    with AdoptionEnvironment(tmp_path) as world:
        build(world)
        _, plan = world.write("--from-go-provider")

    ours = [each for each in plan.objects if each["kind"].startswith("OpenStack")]
    bastion = f"OpenStackServer {names.bastion(NAME)}"
    noted = {
        f"{each['kind']} {each['metadata']['name']}": each["metadata"]["annotations"][names.TAKEN_OVER_ANNOTATION]
        for each in ours
    }
    assert noted.pop(bastion) == next(each.id for each in plan.resources if (each.of, each.kind) == (bastion, "server"))
    assert set(noted.values()) == {"true"}
    assert f"{OPENSTACK_CLUSTER.kind} {NAME}" in noted


def changed(project: Survey, kind: str, change: Callable[[list[Json]], Any]) -> Survey:
    """Return a survey in which the resources of a kind were changed."""
    bodies = [copy.deepcopy(dict(body)) for body in project.of(kind)]
    change(bodies)
    return Survey({**project.bodies, kind: bodies}, project.members)


def named(bodies: list[Json], name: str) -> Json:
    return next(body for body in bodies if body["name"] == name)


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("network", names.network(RESOURCE)),
        ("router", names.network(RESOURCE)),
        ("security_group", names.security_group(RESOURCE, "worker")),
        ("load_balancer", names.load_balancer(RESOURCE)),
    ],
)
def test_two_resources_of_one_name_are_named_and_nothing_is_written(project: Survey, kind: str, name: str) -> None:
    twice = changed(project, kind, lambda bodies: bodies.append({**named(bodies, name), "id": "twin"}))

    with pytest.raises(OperatorError, match=r"there is more than one .*: .*twin"):
        unstamped.find(twice, "default", NAME)


def test_a_resource_of_the_name_with_an_owner_is_refused(project: Survey) -> None:
    def own(bodies: list[Json]) -> None:
        named(bodies, names.network(RESOURCE))["description"] = "[capo:aaaaaaaaaaaaa:network]"

    with pytest.raises(OperatorError, match=r"network \S+ carries the stamp of owner aaaaaaaaaaaaa: .* by its stamps"):
        unstamped.find(changed(project, "network", own), "default", NAME)


def test_a_server_in_the_network_whose_ports_have_other_names_is_left_out_and_named(project: Survey) -> None:
    def rename(bodies: list[Json]) -> None:
        named(bodies, f"{NAME}-w-0-0")["name"] = "mine"

    found = unstamped.find(changed(project, "port", rename), "default", NAME)

    assert f"{NAME}-w-0" not in [each.name for each in found.servers]
    assert [text.partition(": ")[2] for text in found.findings] == [
        "none of its ports is named after it, as those of the Go provider are"
    ]


def test_a_server_with_the_name_of_a_member_at_another_address_is_not_taken(project: Survey) -> None:
    server = {**named([dict(body) for body in project.of("server")], f"{NAME}-cp-0"), "id": "twin"}
    place = {"fixed_ips": [{"subnet_id": "theirs", "ip_address": "192.0.2.9"}], "network_id": "elsewhere"}

    def add(bodies: list[Json]) -> None:
        port = named(bodies, f"{NAME}-cp-0-0")
        bodies.append({**port, "id": "twin-port", "device_id": "twin", "security_groups": [], **place})

    both = changed(changed(project, "port", add), "server", lambda bodies: bodies.append(server))

    servers = unstamped.find(both, "default", NAME).servers
    assert [each.name for each in servers] == [f"{NAME}-cp-0", f"{NAME}-cp-1", f"{NAME}-w-0"]
    assert "twin" not in [each.server.id for each in servers]


@pytest.mark.parametrize("name", ["guest", "default-guest"])
def test_a_server_whose_ports_name_another_cluster_is_left_out_and_named(project: Survey, name: str) -> None:
    def describe(bodies: list[Json]) -> None:
        named(bodies, f"{NAME}-w-0-0").update(description=names.created_by(name), security_groups=[])

    found = unstamped.find(changed(project, "port", describe), "default", NAME)

    assert [each.name for each in found.servers] == [f"{NAME}-cp-0", f"{NAME}-cp-1"]
    assert [text.partition("its ports name ")[2].partition(":")[0] for text in found.findings] == [f"cluster {name}"]


def test_a_server_whose_ports_name_the_cluster_with_its_namespace_is_taken(project: Survey) -> None:
    def describe(bodies: list[Json]) -> None:
        named(bodies, f"{NAME}-w-0-0").update(description=names.created_by(RESOURCE), security_groups=[])

    found = unstamped.find(changed(project, "port", describe), "default", NAME)

    assert f"{NAME}-w-0" in [each.name for each in found.servers]


def test_a_server_with_an_owner_is_left_out_and_named(project: Survey) -> None:
    def own(bodies: list[Json]) -> None:
        named(bodies, f"{NAME}-w-0")["tags"] = ["capo:aaaaaaaaaaaaa:server"]

    found = unstamped.find(changed(project, "server", own), "default", NAME)

    assert [each.name for each in found.servers] == [f"{NAME}-cp-0", f"{NAME}-cp-1"]
    assert "has an owner" in found.findings[0]


def test_a_volume_that_nova_keeps_is_not_the_machines(project: Survey) -> None:
    def keep(bodies: list[Json]) -> None:
        for each in named(bodies, f"{NAME}-w-0")["os-extended-volumes:volumes_attached"]:
            each["delete_on_termination"] = False

    found = unstamped.find(changed(project, "server", keep), "default", NAME)

    worker = next(each for each in found.servers if each.name == f"{NAME}-w-0")
    assert {part.kind for part in worker.parts.values()} == {"server", "port"}


def test_nothing_has_the_names_of_another_cluster(project: Survey) -> None:
    with pytest.raises(
        OperatorError, match="no resource has a name that the Go provider gives to cluster default/other"
    ):
        unstamped.find(project, "default", "other")
