"""What a list of load balancers proves about their children."""

from __future__ import annotations

import datetime
from typing import Any, Final

import pytest

from capo.openstack.tests.builders import OWNER, FakeCloud

CLOUD_S: Final = 1_700_000_000.0
CHILDREN: Final = ("listener", "pool", "health_monitor")


def balancer(id_: str = "lb", *, changed_ago_s: float = 600.0) -> dict[str, Any]:
    changed = datetime.datetime.fromtimestamp(CLOUD_S - changed_ago_s, tz=datetime.UTC)
    return {"id": id_, "provisioning_status": "ACTIVE", "updated_at": changed.strftime("%Y-%m-%dT%H:%M:%S")}


@pytest.fixture
def cloud() -> FakeCloud:
    made = FakeCloud(cloud_s=CLOUD_S)
    made.poller.owners.register(OWNER, "key")
    made.put("load_balancer", balancer())
    return made


def listed(cloud: FakeCloud, *kinds: str) -> None:
    """List these kinds one after the other, ten minutes after the last lists."""
    cloud.clock.advance(600)
    for kind in kinds:
        cloud.poller.demand(kind, "key")
        cloud.run()


def confirmed(cloud: FakeCloud) -> list[str]:
    """Return the kinds of children that are as current as the last list of load balancers."""
    began_s = cloud.poller.began_s("load_balancer")
    return [kind for kind in CHILDREN if cloud.poller.began_s(kind) == began_s]


def test_load_balancers_that_did_not_change_stand_for_their_children(cloud: FakeCloud) -> None:
    listed(cloud, *CHILDREN)

    for _ in range(2):
        listed(cloud, "load_balancer")
        assert confirmed(cloud) == list(CHILDREN)


def test_children_that_were_never_listed_are_not_known(cloud: FakeCloud) -> None:
    listed(cloud, "listener")

    listed(cloud, "load_balancer")

    assert confirmed(cloud) == ["listener"]


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(balancer(changed_ago_s=-100), id="a change after the children were listed"),
        pytest.param(balancer(changed_ago_s=5), id="a change right before, which may have been missed"),
        pytest.param({**balancer(), "provisioning_status": "PENDING_UPDATE"}, id="a change that goes on"),
        pytest.param({**balancer(), "updated_at": None}, id="a load balancer without a time"),
    ],
)
def test_any_change_of_the_load_balancers_has_the_children_listed_again(
    cloud: FakeCloud, change: dict[str, Any]
) -> None:
    listed(cloud, *CHILDREN)
    cloud.put("load_balancer", change)

    listed(cloud, "load_balancer")

    assert confirmed(cloud) == []


def test_a_load_balancer_that_is_gone_has_the_children_listed_again(cloud: FakeCloud) -> None:
    cloud.put("load_balancer", balancer("another"))
    listed(cloud, "load_balancer", *CHILDREN)
    del cloud.bodies["load_balancer"]["another"]

    listed(cloud, "load_balancer")

    assert confirmed(cloud) == []


def test_without_the_clouds_time_nothing_is_proven(cloud: FakeCloud) -> None:
    cloud.cloud_s = None
    listed(cloud, *CHILDREN)

    listed(cloud, "load_balancer")

    assert confirmed(cloud) == []
