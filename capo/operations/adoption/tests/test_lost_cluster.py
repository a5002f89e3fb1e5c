"""A cluster whose management cluster was lost: plan, application, and what the controllers do then."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from capo.json_types import Json
from capo.kube.kinds import NAMESPACE, OPENSTACK_CLUSTER, OPENSTACK_MACHINE, OPENSTACK_SERVER, Key
from capo.operations.adoption.plan import Plan
from capo.operations.adoption.tests.environment import NAME, AdoptionEnvironment, OperatorsKube
from capo.operations.errors import OperatorError

RESTRICTED: Json = {
    "apiServer": {
        "enableFloatingIP": False,
        "managedLoadBalancer": {"enabled": True, "allowedCIDRs": ["192.0.2.0/24"], "monitor": {"delay": 20}},
    },
    "managedSecurityGroups": {
        "allowAllInClusterTraffic": True,
        "allowAllOutboundTraffic": False,
        "nodePortAllowedCIDRs": ["198.51.100.0/24"],
        "clusterNodesSecurityGroupRules": [
            {
                "name": "bgp",
                "direction": "ingress",
                "protocol": "tcp",
                "portRangeMin": 179,
                "portRangeMax": 179,
                "remoteManagedGroups": ["worker"],
            }
        ],
    },
    "managedSubnets": [
        {
            "cidr": "10.6.0.0/24",
            "dnsNameservers": ["192.0.2.53"],
            "allocationPools": [{"start": "10.6.0.50", "end": "10.6.0.90"}],
        }
    ],
    "bastion": None,
}
INTERNAL: Json = {
    "enableExternalNetwork": False,
    "apiServer": {"enableFloatingIP": False, "managedLoadBalancer": {"enabled": True}},
    "managedSecurityGroups": None,
    "bastion": None,
}


@pytest.fixture(scope="module")
def lost(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AdoptionEnvironment]:
    """A cluster whose objects exist in ``former`` alone, for tests that change nothing in the cloud."""
    with AdoptionEnvironment(tmp_path_factory.mktemp("plans")) as environment:
        environment.build()
        environment.former = environment.lose_management_cluster()
        yield environment


@pytest.fixture(scope="module")
def plan(lost: AdoptionEnvironment) -> Plan:
    return lost.write()[1]


@pytest.fixture
def empty() -> OperatorsKube:
    return OperatorsKube("https://new.example.org")


@pytest.mark.parametrize("spec", [{}, RESTRICTED, INTERNAL], ids=["default", "restricted", "internal"])
def test_a_lost_cluster_is_adopted_without_a_write_to_the_cloud(tmp_path: Path, spec: Json) -> None:
    with AdoptionEnvironment(tmp_path) as world:
        world.build(**spec)
        before = world.inventory()
        world.lose_management_cluster()
        world.cloud.counter.reset()

        status, plan = world.write()
        world.adopt(plan)
        world.converge()

        assert plan.findings == []
        assert status == 0
        assert world.unready() == []
        assert world.writes() == []
        assert world.inventory() == before


def test_an_adopted_cluster_is_deleted_with_all_that_it_has(tmp_path: Path) -> None:
    with AdoptionEnvironment(tmp_path) as world:
        world.build()
        world.lose_management_cluster()
        world.adopt(world.write()[1])
        world.converge()

        assert "capo:" in str(world.inventory())

        world.delete_all()

        assert "capo:" not in str(world.inventory())


def test_each_server_has_its_objects_and_the_bastion_no_machine(plan: Plan) -> None:
    found = [(each["kind"], each["metadata"]["name"]) for each in plan.objects]

    servers = ("prod-cp-0", "prod-cp-1", "prod-w-0")
    assert sorted(found) == sorted(
        [
            ("Cluster", NAME),
            ("OpenStackCluster", NAME),
            ("OpenStackServer", "prod-bastion"),
            *((kind, name) for kind in ("Machine", "OpenStackMachine", "OpenStackServer") for name in servers),
        ]
    )


def test_machines_keep_the_owner_ids_of_their_members_in_the_pools(lost: AdoptionEnvironment, plan: Plan) -> None:
    machines = {each["metadata"]["name"]: each for each in plan.objects if each["kind"] == OPENSTACK_MACHINE.kind}

    for name in ("prod-cp-0", "prod-cp-1"):
        before = lost.former.objects[Key(OPENSTACK_MACHINE, "default", name)]
        assert machines[name]["metadata"]["annotations"] == before["metadata"]["annotations"]
    assert "annotations" not in machines["prod-w-0"]["metadata"]


def test_the_cluster_comes_last_so_that_no_controller_acts_before_all_objects_exist(plan: Plan) -> None:
    kinds = [each["kind"] for each in plan.objects]

    assert kinds[-1] == "Cluster"
    assert kinds.index("Machine") > max(i for i, kind in enumerate(kinds) if kind.startswith("OpenStack"))


def test_a_plan_contains_no_secret(lost: AdoptionEnvironment, plan: Plan) -> None:
    text = plan.to_yaml()

    for key in ("password", "secret:", "userData", "user_data", "serverMetadata"):
        assert key not in text


# -- what is refused -------------------------------------------------------------------------------------------------


def test_a_cluster_that_another_management_cluster_has_is_refused(
    lost: AdoptionEnvironment, plan: Plan, empty: OperatorsKube
) -> None:
    with pytest.raises(OperatorError, match=r"OpenStackCluster default/prod of \S+ has the owner id \w+: .* not lost"):
        lost.adopt(plan, lost.former, into=empty)

    assert empty.writes == []


def test_a_cluster_of_another_management_cluster_with_the_same_url_is_refused(
    lost: AdoptionEnvironment, plan: Plan, empty: OperatorsKube
) -> None:
    other = OperatorsKube(empty.connection.server, uid="of another one")
    other.put(OPENSTACK_CLUSTER, lost.former.objects[Key(OPENSTACK_CLUSTER, "default", NAME)])

    with pytest.raises(OperatorError, match=r"OpenStackCluster default/prod of \S+ has the owner id \w+: .* not lost"):
        lost.adopt(plan, other, into=empty)

    assert empty.writes == []


def test_a_management_cluster_that_is_given_twice_is_one(
    lost: AdoptionEnvironment, plan: Plan, empty: OperatorsKube
) -> None:
    lost.adopt(plan, into=empty)
    twice = OperatorsKube("https://other-name.example.org", uid=empty.connection.server)
    twice.objects.update({key: obj for key, obj in empty.objects.items() if key.kind != NAMESPACE})

    assert {line.rpartition(" ")[2] for line in lost.adopt(plan, twice, into=empty)} == {"exists"}


def test_a_resource_that_another_object_has_recorded_is_refused(
    lost: AdoptionEnvironment, plan: Plan, empty: OperatorsKube
) -> None:
    server = next(each.id for each in plan.resources if each.kind == "server")
    other = OperatorsKube("https://other.example.org")
    other.put(OPENSTACK_SERVER, {"metadata": {"name": "jump"}, "spec": {}, "status": {"instanceID": server}})

    with pytest.raises(OperatorError, match=rf"OpenStackServer default/jump of \S+ has recorded {server}"):
        lost.adopt(plan, other, into=empty)

    assert empty.writes == []


def test_an_object_of_the_name_that_is_another_one_is_refused(
    lost: AdoptionEnvironment, plan: Plan, empty: OperatorsKube
) -> None:
    empty.put(OPENSTACK_CLUSTER, {"metadata": {"name": NAME}, "spec": {}})

    with pytest.raises(OperatorError, match=r"OpenStackCluster default/prod exists .* is not the one of the plan"):
        lost.adopt(plan, into=empty)

    assert empty.writes == []


def altered(plan: Plan, kind: str, **changes: Any) -> Plan:
    """Return a plan in which the first resource of a kind was read differently."""
    first = next(each for each in plan.resources if each.kind == kind)
    others = [each if each is not first else each.model_copy(update=changes) for each in plan.resources]
    return plan.model_copy(update={"resources": others})


@pytest.mark.parametrize(
    ("kind", "changes", "message"),
    [
        ("router", {"seen": {"name": "before", "gateway": None}}, r"router \S+: name was 'before', is 'k8s"),
        ("network", {"id": "11111111-2222-3333-4444-555555555555"}, r"network 11111111\S+ does not exist"),
        ("volume", {"stamp": "capo:aaaaaaaaaaaaa:volume-0"}, r"volume \S+ carries the stamp capo:\S+, not capo:aaaa"),
        ("server", {"stamp": ""}, r"server \S+ carries the stamp capo:\S+, not none"),
    ],
)
def test_a_resource_that_has_changed_since_the_review_is_named_and_nothing_is_created(
    lost: AdoptionEnvironment, plan: Plan, empty: OperatorsKube, kind: str, changes: Json, message: str
) -> None:
    with pytest.raises(OperatorError, match=message):
        lost.adopt(altered(plan, kind, **changes), into=empty)

    assert empty.writes == []


def test_credentials_of_another_project_are_refused(
    lost: AdoptionEnvironment, plan: Plan, empty: OperatorsKube
) -> None:
    elsewhere = plan.model_copy(update={"location": plan.location.model_copy(update={"project_id": "another"})})

    with pytest.raises(OperatorError, match=r"lead to project .* the plan is of project another"):
        lost.adopt(elsewhere, into=empty)

    assert empty.writes == []


def test_a_plan_that_was_applied_in_part_is_applied_again(
    lost: AdoptionEnvironment, plan: Plan, empty: OperatorsKube
) -> None:
    def interrupt(*_: object) -> None:
        if len(empty.writes) == 5:
            raise KeyboardInterrupt

    empty.before_write = interrupt
    with pytest.raises(KeyboardInterrupt):
        lost.adopt(plan, into=empty)
    empty.before_write = None

    lines = lost.adopt(plan, into=empty)
    again = lost.adopt(plan, into=empty)

    assert sum(line.endswith("exists") for line in lines) == 5
    assert {line.rpartition(" ")[2] for line in again} == {"exists"}
    assert len(empty.writes) == len(plan.objects)


def test_each_server_belongs_to_its_machine_and_the_bastion_to_the_cluster(
    lost: AdoptionEnvironment, plan: Plan, empty: OperatorsKube
) -> None:
    lost.adopt(plan, into=empty)

    servers = {key.name: obj for key, obj in empty.objects.items() if key.kind == OPENSTACK_SERVER}
    owners = {name: [each["kind"] for each in obj["metadata"]["ownerReferences"]] for name, obj in servers.items()}
    assert owners.pop("prod-bastion") == ["OpenStackCluster"]
    assert owners == {name: ["OpenStackMachine"] for name in ("prod-cp-0", "prod-cp-1", "prod-w-0")}
    assert Key(OPENSTACK_CLUSTER, "default", NAME) in empty.objects
