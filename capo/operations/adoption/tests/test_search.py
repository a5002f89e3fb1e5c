"""Which resources are those of a lost cluster, where a project has more than one of everything."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from capo.json_types import Body, Json
from capo.openstack.kinds import KINDS
from capo.openstack.load_balancer import Member
from capo.operations.access import CloudAccess, credentials_in
from capo.operations.adoption import cluster_manifest, network_of_others, search, survey
from capo.operations.adoption.cluster_manifest import Endpoint
from capo.operations.adoption.survey import Survey
from capo.operations.adoption.tests.environment import NAME, AdoptionEnvironment, NetworkEnvironment
from capo.operations.errors import OperatorError

OTHER = "aaaaaaaaaaaaa"
IDENTITY = {"name": "cloud", "cloudName": "sim"}


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Survey]:
    with AdoptionEnvironment(tmp_path_factory.mktemp("plans")) as environment:
        environment.build()
        yield survey.take(CloudAccess().open(credentials_in(environment.simulator.clouds_yaml, "sim")))


def owner_of(project: Survey) -> str:
    return search.find(project, "default", NAME).owner


def changed(project: Survey, kind: str, change: Callable[[list[Json]], Any]) -> Survey:
    """Return a survey in which the resources of a kind were changed."""
    bodies = [copy.deepcopy(dict(body)) for body in project.of(kind)]
    change(bodies)
    return Survey({**project.bodies, kind: bodies}, project.members)


def stamped(body: Body, kind: str, stamp: str) -> Json:
    """Return a resource with another stamp, or without one."""
    old = str(KINDS[kind].stamp_of(body))
    return {**body, "description": str(body.get("description")).replace(f"[{old}]", stamp)}


def of(project: Survey, kind: str, role: str, owner: str) -> Json:
    return next(dict(body) for k, stamp, body in project.stamped(owner) if (k, stamp.role) == (kind, role))


def test_two_clusters_of_one_name_are_told_apart_by_their_owners(project: Survey) -> None:
    owner = owner_of(project)
    network = of(project, "network", "network", owner)
    twin = {**stamped(network, "network", f"[capo:{OTHER}:network]"), "id": "twin"}
    both = changed(project, "network", lambda bodies: bodies.append(twin))

    with pytest.raises(OperatorError, match=rf"choose with --owner: .*{OTHER} \(network twin\)"):
        search.find(both, "default", NAME)
    assert search.find(both, "default", NAME, owner=owner).body("network") == network
    with pytest.raises(OperatorError, match=r"no resource .* has the stamp of owner bbbbbbbbbbbbb"):
        search.find(both, "default", NAME, owner="bbbbbbbbbbbbb")


def test_a_name_without_a_stamp_proves_nothing(project: Survey) -> None:
    bare = {kind: [stamped(body, kind, "") for body in project.of(kind)] for kind in ("network", "router")}
    unstamped = Survey({**bare, "load_balancer": [], "security_group": []}, {})

    with pytest.raises(OperatorError, match=r"network \S+, router \S+ has the name .* without our stamp"):
        search.find(unstamped, "default", NAME)


def test_a_chosen_server_that_does_not_exist_is_refused(project: Survey) -> None:
    with pytest.raises(OperatorError, match="no server of the project has the id nonsense"):
        search.find(project, "default", NAME, chosen=["nonsense"])


def test_a_network_is_not_chosen_for_a_cluster_that_has_its_own(project: Survey) -> None:
    found = search.find(project, "default", NAME)

    with pytest.raises(OperatorError, match="the cluster has a network of its own: --network does not apply"):
        network_of_others.complete(found, "lan")


def test_a_port_in_a_network_without_visible_subnets_does_not_matter(tmp_path: Path) -> None:
    with NetworkEnvironment(tmp_path) as world:
        world.make_network()

        def lend() -> None:
            ports, owner = world.cloud.table("network", "ports"), world.lan["project_id"]
            place = {"id": "lent", "project_id": owner, "tenant_id": owner, "network_id": "theirs", "fixed_ips": []}
            ports["lent"] = {**next(iter(ports.values())), **place}

        world.simulator.call(lend)
        found = survey.take(CloudAccess().open(credentials_in(world.simulator.clouds_yaml, "sim")))

    assert "lent" in [body["id"] for body in found.of("port")]
    assert found.foreign == []


def test_a_name_that_nothing_has_is_an_error(project: Survey) -> None:
    with pytest.raises(OperatorError, match="has the name of cluster team-a/prod"):
        search.find(project, "team-a", NAME)


def test_two_resources_of_one_role_are_refused_with_both_ids(project: Survey) -> None:
    network = of(project, "network", "network", owner_of(project))
    twice = changed(project, "network", lambda bodies: bodies.append({**network, "id": "twin"}))

    with pytest.raises(OperatorError, match=rf"network {network['id']} and network twin both carry the stamp"):
        search.find(twice, "default", NAME)


@pytest.mark.parametrize(
    "role", ["volume-999999999", "volume-1000", "volume-1x", "volume-00", "port-7", "pool-6443", "nonsense"]
)
def test_a_volume_with_a_role_that_none_has_leaves_its_server_out(project: Survey, role: str) -> None:
    before = search.find(project, "default", NAME).servers
    worker = next(each for each in before if each.name == "prod-w-0")
    forged = {"id": "forged", "size": 1, "metadata": {"capo-owner": f"capo:{worker.owner}:{role}"}}

    found = search.find(changed(project, "volume", lambda bodies: bodies.append(forged)), "default", NAME)

    text = f"is left out: volume forged has the role {role}, which no volume of a server has"
    assert [each for each in found.findings if text in each and worker.server.id in each]
    assert [each.name for each in found.servers] == [each.name for each in before if each is not worker]


@pytest.mark.parametrize(
    ("kind", "role"), [("pool", "pool-x"), ("pool", "network-2"), ("network", "listener-7777"), ("subnet", "volume-1")]
)
def test_a_resource_with_a_role_that_the_cluster_does_not_have_is_left_out_and_named(
    project: Survey, kind: str, role: str
) -> None:
    text = f"capo:{owner_of(project)}:{role}"
    forged = {"id": "forged", "tags": [text], "description": f"[{text}]"}

    found = search.find(changed(project, kind, lambda bodies: bodies.append(forged)), "default", NAME)

    assert f"{kind} forged is left out: it has the role {role}, which no {kind} of a cluster has" in found.findings
    assert role not in found.parts or found.parts[role].body["id"] != "forged"
    assert [each.name for each in found.servers] == [
        each.name for each in search.find(project, "default", NAME).servers
    ]


def test_a_server_without_our_stamp_in_the_network_is_left_out_and_named(project: Survey) -> None:
    def strip(bodies: list[Json]) -> None:
        next(body for body in bodies if body["name"] == "prod-w-0")["tags"] = []

    found = search.find(changed(project, "server", strip), "default", NAME)

    assert [each.name for each in found.servers] == ["prod-cp-0", "prod-cp-1"]
    assert [text.partition(" is in ")[2] for text in found.findings] == ["the cluster's network without our stamp"]


def test_a_server_that_lost_a_port_is_left_out_because_the_port_would_be_created(project: Survey) -> None:
    def renumber(bodies: list[Json]) -> None:
        port = next(body for body in bodies if body["name"] == "prod-cp-0-0")
        port["description"] = port["description"].replace(":port-0]", ":port-1]")

    found = search.find(changed(project, "port", renumber), "default", NAME)

    assert [each.name for each in found.servers] == ["prod-cp-1", "prod-w-0"]
    assert found.findings[0].endswith("is left out: port-0 was deleted, and would be created again")


def test_two_servers_of_one_name_are_refused(project: Survey) -> None:
    def rename(bodies: list[Json]) -> None:
        next(body for body in bodies if body["name"] == "prod-cp-1")["name"] = "prod-cp-0"

    with pytest.raises(OperatorError, match="several servers of the cluster are named prod-cp-0"):
        search.find(changed(project, "server", rename), "default", NAME)


def test_a_server_of_another_cluster_of_the_project_is_not_taken(project: Survey) -> None:
    def move(bodies: list[Json]) -> None:
        port = next(body for body in bodies if body["name"] == "prod-w-0-0")
        port.update(network_id="elsewhere", security_groups=[])

    found = search.find(changed(project, "port", move), "default", NAME)

    assert [each.name for each in found.servers] == ["prod-cp-0", "prod-cp-1"]


def port_of(bodies: list[Json], server: str) -> Json:
    """Return the first port of a server."""
    return next(body for body in bodies if body["name"] == f"{server}-0")


def test_a_server_at_the_address_of_a_member_in_another_subnet_is_not_taken(project: Survey) -> None:
    def overlap(bodies: list[Json]) -> None:
        address = port_of(bodies, "prod-cp-0")["fixed_ips"][0]["ip_address"]
        places = [{"subnet_id": "theirs", "ip_address": address}]
        port_of(bodies, "prod-w-0").update(network_id="elsewhere", security_groups=[], fixed_ips=places)

    found = search.find(changed(project, "port", overlap), "default", NAME)

    assert [each.name for each in found.servers] == ["prod-cp-0", "prod-cp-1"]


def test_a_worker_at_the_address_of_a_member_of_another_cluster_stays_a_worker(project: Survey) -> None:
    address = port_of([dict(body) for body in project.of("port")], "prod-w-0")["fixed_ips"][0]["ip_address"]
    theirs = Member({"address": address, "subnet_id": "theirs", "tags": [f"capo:{OTHER}:member-6443"]})
    both = Survey(project.bodies, {**project.members, "theirs": [theirs]})

    worker = search.find(both, "default", NAME).servers[-1]

    assert (worker.name, worker.is_control_plane, worker.member_owners) == ("prod-w-0", False, frozenset())


@pytest.mark.parametrize(("suffix", "taken"), [("", True), ("-other", False)], ids=["its name", "another name"])
def test_a_member_without_a_subnet_ties_the_server_of_its_name(project: Survey, suffix: str, taken: bool) -> None:
    def untie(bodies: list[Json]) -> None:
        port_of(bodies, "prod-cp-0").update(network_id="elsewhere", security_groups=[])

    elsewhere = changed(project, "port", untie)
    members = {
        pool: [Member({**each.body, "subnet_id": None, "name": each.body["name"] + suffix}) for each in listed]
        for pool, listed in project.members.items()
    }

    found = search.find(Survey(elsewhere.bodies, members), "default", NAME)

    assert ("prod-cp-0" in [each.name for each in found.servers]) is taken


def describe_guest(bodies: list[Json], **changes: Any) -> None:
    """Describe the port of the worker as that of a cluster that uses the network of another one."""
    port = port_of(bodies, "prod-w-0")
    port["description"] = port["description"].replace(f"cluster {NAME}", "cluster guest")
    port.update(changes)


def test_a_server_whose_ports_name_another_cluster_is_left_out_until_a_person_names_it(project: Survey) -> None:
    guest = changed(project, "port", lambda bodies: describe_guest(bodies, security_groups=[]))
    worker = next(body["id"] for body in project.of("server") if body["name"] == "prod-w-0")

    found = search.find(guest, "default", NAME)

    assert [each.name for each in found.servers] == ["prod-cp-0", "prod-cp-1"]
    assert found.findings == [
        f"server {worker} (prod-w-0) is in the cluster's network, and its ports name cluster guest: "
        "it is left out; name it with --server if it is this cluster's"
    ]
    assert "prod-w-0" in [each.name for each in search.find(guest, "default", NAME, chosen=[worker]).servers]


def test_a_server_in_a_group_of_the_cluster_is_taken_whatever_its_ports_name(project: Survey) -> None:
    found = search.find(changed(project, "port", describe_guest), "default", NAME)

    assert [each.name for each in found.servers] == ["prod-cp-0", "prod-cp-1", "prod-w-0"]


def test_a_rule_that_is_missing_or_that_no_field_can_name_is_found(project: Survey) -> None:
    group = of(project, "security_group", "group-worker", owner_of(project))

    def replace(bodies: list[Json]) -> None:
        rules = next(body for body in bodies if body["id"] == group["id"])["security_group_rules"]
        gone = next(rule for rule in rules if rule["protocol"] == "udp")
        rules.remove(gone)
        rules.append(
            {**gone, "id": "new", "remote_group_id": None, "remote_ip_prefix": None, "remote_address_group_id": "ag"}
        )

    found = search.find(changed(project, "security_group", replace), "default", NAME)
    findings = cluster_manifest.openstack_cluster(found, IDENTITY, Endpoint()).findings

    assert [text.split(" (worker) ")[1].split(" the rule")[0] for text in findings] == ["lacks", "has"]


def test_the_endpoint_can_be_a_name(project: Survey) -> None:
    found = search.find(project, "default", NAME)

    written = cluster_manifest.openstack_cluster(found, IDENTITY, Endpoint("api.example.org", 9443)).obj["spec"]

    assert written["controlPlaneEndpoint"] == {"host": "api.example.org", "port": 9443}
    assert written["apiServer"]["managedLoadBalancer"]["additionalPorts"] == [6443]


def test_an_endpoint_that_nothing_shows_must_be_named(project: Survey) -> None:
    owner = owner_of(project)
    lost: dict[str, list[Json]] = {"load_balancer": [], "floating_ip": [], "listener": []}
    found = search.find(Survey({**project.bodies, **lost}, {}), "default", NAME, owner=owner)

    with pytest.raises(OperatorError, match="name it with --endpoint"):
        cluster_manifest.openstack_cluster(found, IDENTITY, Endpoint())
