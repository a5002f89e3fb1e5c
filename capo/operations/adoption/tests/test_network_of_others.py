"""A lost cluster in a network that it does not own, with stamps and without."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from capo.json_types import Json
from capo.operations.access import CloudAccess, credentials_in
from capo.operations.adoption import network_of_others, search, survey
from capo.operations.adoption.survey import Survey
from capo.operations.adoption.tests.environment import NAME, NetworkEnvironment
from capo.operations.errors import OperatorError
from controllers.tests import stamps

BARE: Json = {"managedSecurityGroups": None, "bastion": None}


def build(world: NetworkEnvironment, *, is_stamped: bool = True, **spec: Any) -> None:
    """Build a cluster in a network of the user, and lose its objects."""
    world.make_network()
    places: Json = {"network": {"id": world.lan["id"]}, "subnets": [{"id": world.subnet["id"]}]}
    world.build(managedSubnets=[], **places, **spec)
    world.former = world.lose_management_cluster()
    if not is_stamped:
        world.simulator.call(lambda: stamps.remove_all(world.cloud))
    world.cloud.counter.reset()


@pytest.mark.parametrize("is_stamped", [True, False], ids=["ours", "the Go provider's"])
def test_a_lost_cluster_in_a_network_of_others_is_adopted(tmp_path: Path, is_stamped: bool) -> None:
    with NetworkEnvironment(tmp_path) as world:
        build(world, is_stamped=is_stamped)
        before = world.ids()

        status, plan = world.write(*([] if is_stamped else ["--from-go-provider"]))
        world.adopt(plan)
        world.converge()

        assert plan.findings == []
        assert status == 0
        assert world.spec()["network"] == {"id": world.lan["id"]}
        assert world.unready() == []
        assert world.ids() == before
        assert world.writes() == []


def test_the_network_of_others_stays_when_the_adopted_cluster_is_deleted(tmp_path: Path) -> None:
    with NetworkEnvironment(tmp_path) as world:
        build(world)
        world.adopt(world.write()[1])
        world.converge()

        world.delete_all()

        assert "capo:" not in str(world.inventory())
        assert {world.lan["id"], world.subnet["id"], world.router["id"]} <= set(str(world.ids()).split("'"))


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Survey]:
    """A cluster without managed groups: nothing but a person ties its worker to it."""
    with NetworkEnvironment(tmp_path_factory.mktemp("plans")) as world:
        build(world, **BARE)
        yield survey.take(CloudAccess().open(credentials_in(world.simulator.clouds_yaml, "sim")))


def test_a_server_that_nothing_ties_to_the_cluster_is_named_and_left_out(bare: Survey) -> None:
    found = search.find(bare, "default", NAME)

    assert [each.name for each in found.servers] == [f"{NAME}-cp-0", f"{NAME}-cp-1"]
    (finding,) = found.findings
    assert finding.endswith(f"({NAME}-w-0) may be of the cluster: name it with --server")


def test_a_server_that_a_person_names_is_of_the_cluster(bare: Survey) -> None:
    worker = next(body["id"] for body in bare.of("server") if body["name"] == f"{NAME}-w-0")

    found = search.find(bare, "default", NAME, chosen=[worker])

    assert found.findings == []
    assert [each.name for each in found.servers] == [f"{NAME}-cp-0", f"{NAME}-cp-1", f"{NAME}-w-0"]


def test_servers_in_several_networks_need_a_person_to_name_the_clusters(bare: Survey) -> None:
    moved = [{**body, "network_id": "other"} if body["name"] == f"{NAME}-cp-1-0" else body for body in bare.of("port")]
    found = search.find(Survey({**bare.bodies, "port": moved}, bare.members), "default", NAME)
    lan = next(body["id"] for body in bare.of("network") if body["name"] == "lan")

    with pytest.raises(OperatorError, match=r"use \S+, \S+: name one with --network"):
        network_of_others.complete(found)
    assert network_of_others.complete(found, lan).network_id == lan


def test_a_network_in_which_the_cluster_has_no_port_is_refused(bare: Survey) -> None:
    found = search.find(bare, "default", NAME)

    with pytest.raises(OperatorError, match=r"network lan has no port of .*: --network takes an id"):
        network_of_others.complete(found, "lan")
