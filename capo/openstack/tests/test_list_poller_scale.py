"""What a reconcile asks of its project's lists costs as much among 400 objects as among 20."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from capo.openstack.list_poller import ListPoller
from capo.openstack.resource_cache import BY_NAME, found_by, with_ids
from capo.openstack.tests.builders import FakeCloud, port, server
from environments import operations

GROWTH = 1.3


def busy(objects: int) -> ListPoller:
    """Return a poller in the middle of the creation of so many servers."""
    cloud = FakeCloud()
    cloud.cloud_s, cloud.changes = cloud.clock.now(), [server("s7", owner="owner7")]
    cloud.put("port", *(port(f"p{number}", owner=f"owner{number}") for number in range(objects)))
    cloud.put("server", *(server(f"s{number}", owner=f"owner{number}") for number in range(objects)))
    for number in range(objects):
        cloud.poller.owners.register(f"owner{number}", number)
        cloud.poller.claim("port", f"p{number}", number)
    for kind in ("port", "server"):
        cloud.poller.demand(kind, "all")
    cloud.run()
    cloud.poller.select("port", found_by(BY_NAME, "nobody"))  # builds the index
    for number in range(objects):
        cloud.clock.advance(0.001)
        cloud.poller.demand("port", number)
        cloud.poller.poll("server", number, 900.0)
        cloud.poller.track("server", number)
        cloud.poller.invalidate("router", f"r{number}", f"owner{number}")
    return cloud.poller


@pytest.mark.parametrize(
    "act",
    [
        pytest.param(lambda poller: poller.next_due_s(), id="when the next list is due"),
        pytest.param(lambda poller: poller.demand("port", 7), id="a demand"),
        pytest.param(lambda poller: (poller.begin_pass(7), poller.poll("server", 7, 900.0)), id="a poll"),
        pytest.param(lambda poller: poller.claim("port", "p7", 8), id="a claim"),
        pytest.param(lambda poller: poller.of_owner("port", "owner7"), id="the resources of an owner"),
        pytest.param(lambda poller: poller.select("port", found_by(BY_NAME, "name-p7")), id="those with a name"),
        pytest.param(lambda poller: poller.select("port", with_ids(["p7", "p9"])), id="those with ids"),
        pytest.param(lambda poller: poller.invalidate("port", "p7"), id="a doubt"),
        pytest.param(lambda poller: poller.doubted_s("router", "owner7"), id="the last doubt of an owner"),
        pytest.param(lambda poller: poller.is_in_use(""), id="whether it is in use"),
        pytest.param(lambda poller: poller.run("server"), id="a list of changes"),
        pytest.param(lambda poller: poller.unregister("owner7"), id="the end of an owner"),
    ],
)
def test_the_cost_does_not_grow(act: Callable[[ListPoller], object]) -> None:
    few, many = busy(20), busy(400)

    assert operations.count(lambda: act(many)) <= GROWTH * operations.count(lambda: act(few))
