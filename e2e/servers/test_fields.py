"""Every field of an OpenStackServer, written by hand, without a Cluster: the cloud has what the spec requests.

All selected servers are applied together, so that they are created in parallel, as in a scale-out.
"""

from __future__ import annotations

import re

import pytest

from e2e.servers.cases import CASES, Case, Seen
from e2e.servers.environment import ServersEnvironment

pytestmark = pytest.mark.integration


def name_of(wanted: Case) -> str:
    return re.sub("[^a-z0-9]+", "-", wanted.id.lower())


@pytest.fixture(scope="session")
def applied(ground: ServersEnvironment, request: pytest.FixtureRequest) -> ServersEnvironment:
    """Return the ground with the servers of all selected cases."""
    items = [item for item in request.session.items if isinstance(item, pytest.Function)]
    params = [item.callspec.params.get("wanted") for item in items if hasattr(item, "callspec")]
    selected = {wanted.id: wanted for wanted in params if isinstance(wanted, Case)}
    ground.apply(*(ground.server_object(name_of(c), **c.spec(ground)) for c in selected.values()))
    return ground


@pytest.mark.parametrize("wanted", CASES.values(), ids=lambda c: c.id)
def test_what_is_asked_for_is_what_there_is(applied: ServersEnvironment, wanted: Case) -> None:
    name = name_of(wanted)
    obj = applied.wait_until_ready(name)
    server = applied.show("server", obj["status"]["instanceID"])

    assert server["name"] == name
    wanted.check(Seen(applied, obj, server, applied.records(obj, "port")))
    assert obj["status"]["resources"]["ports"] == [{"id": p["id"]} for p in applied.records(obj, "port")]
    for type_ in ("PortsReady", "InstanceReady"):
        shown = applied.condition("openstackservers", name, type_)
        assert not shown.get("message"), "W-34: nothing of it counts as changed by somebody"


def test_nothing_is_left_of_servers_that_are_deleted(ground: ServersEnvironment) -> None:
    mine = [item["metadata"]["name"] for item in ground.list("openstackservers")]
    for name in mine:
        ground.delete("openstackservers", name)

    ground.wait_until("all servers are gone", lambda: not ground.list("openstackservers"))

    assert ground.remaining() == {}
