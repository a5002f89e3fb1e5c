"""With a resource that is proven gone its parts leave the cached lists, and nothing else does."""

from __future__ import annotations

from typing import Any

import pytest

from capo.openstack.kinds import KINDS
from capo.openstack.tests.builders import OWNER, FakeCloud
from capo.parts import PARTS

INTERFACE: dict[str, Any] = {"device_owner": "network:router_interface", "device_id": "r1", "network_id": "n1"}


def body(id_: str, **fields: Any) -> dict[str, Any]:
    return {"id": id_, "name": id_, "tags": [], **fields}


def interface(id_: str, *subnets: str, **fields: Any) -> dict[str, Any]:
    return body(id_, **{**INTERFACE, "fixed_ips": [{"subnet_id": each} for each in subnets], **fields})


@pytest.fixture
def cloud() -> FakeCloud:
    made = FakeCloud()
    made.poller.owners.register(OWNER, "key")
    of_balancer = {"loadbalancers": [{"id": "b1"}]}
    made.put("load_balancer", body("b1"), body("b2"))
    made.put("listener", body("l1", **of_balancer), body("l2", loadbalancers=[{"id": "b2"}]))
    made.put("pool", body("p1", **of_balancer))
    made.put("health_monitor", body("h1", pools=[{"id": "p1"}]), body("h2", pools=[{"id": "p2"}]))
    made.put("network", body("n1"))
    made.put("subnet", body("s1", network_id="n1"), body("s2", network_id="n2"))
    made.put("router", body("r1"))
    of_server = body("of a server", device_owner="compute:nova", device_id="r1", network_id="n1", fixed_ips=[])
    made.put("port", interface("i1", "s1"), interface("i2", "s1", "s2", device_id="r2"), of_server)
    for kind in made.bodies:
        listed(made, kind)
    return made


def listed(cloud: FakeCloud, kind: str) -> None:
    cloud.clock.advance(1)
    cloud.poller.demand(kind, "a")
    cloud.run()


def cached(cloud: FakeCloud, kind: str) -> set[str]:
    return {id_ for id_ in cloud.bodies[kind] if cloud.poller.item(kind, id_)}


@pytest.mark.parametrize(
    ("kind", "id_", "gone"),
    [
        ("load_balancer", "b1", {"l1", "p1", "h1"}),
        ("pool", "p1", {"h1"}),
        ("network", "n1", {"s1", "i1"}),
        ("subnet", "s1", {"i1"}),
        ("router", "r1", {"i1"}),
        ("listener", "l1", set()),
    ],
)
def test_parts_are_gone_with_their_whole(cloud: FakeCloud, kind: str, id_: str, gone: set[str]) -> None:
    before = {each: cached(cloud, each) for each in cloud.bodies}

    cloud.poller.forget(kind, id_)

    left = set().union(*(before[each] - cached(cloud, each) for each in cloud.bodies)) - {id_}
    assert left == gone


def test_parts_are_gone_with_what_a_list_proves_deleted(cloud: FakeCloud) -> None:
    cloud.poller.end("load_balancer", "b1")
    del cloud.bodies["load_balancer"]["b1"]

    listed(cloud, "load_balancer")

    assert cloud.poller.is_gone("listener", "l1")


def test_parts_of_what_a_list_lacks_without_proof_stay(cloud: FakeCloud) -> None:
    del cloud.bodies["load_balancer"]["b1"]

    listed(cloud, "load_balancer")

    assert cached(cloud, "listener") == {"l1", "l2"}


def test_parts_that_a_later_list_shows_are_there_after_all(cloud: FakeCloud) -> None:
    cloud.poller.forget("network", "n1")

    listed(cloud, "subnet")

    assert cached(cloud, "subnet") == {"s1", "s2"}


def test_the_table_names_kinds_that_are_listed() -> None:
    assert {*PARTS, *(part.kind for parts in PARTS.values() for part in parts)} <= KINDS.keys()
