"""The demo's client, against the simulator."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from capo.local.demo import inventory
from capo.local.demo.openstack import USER_AGENT, CloudError, OpenStack
from capo.simulator.simulator import Simulator


@pytest.fixture(scope="module")
def simulator() -> Iterator[Simulator]:
    with Simulator.start() as running:
        yield running


def entry(simulator: Simulator, name: str = "sim") -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(simulator.clouds_yaml.read_text())["clouds"][name]
    return found


@pytest.mark.parametrize("has_type", [True, False])
def test_an_application_credential_opens_the_same_project_named_as_such_or_not(
    simulator: Simulator, has_type: bool
) -> None:
    application = entry(simulator, "sim-appcred")
    if not has_type:
        application.pop("auth_type")

    found, member = OpenStack(application), OpenStack(entry(simulator))

    assert (found.project_id, found.user_id) == (member.project_id, member.user_id)
    assert "member" in member.roles


def test_lists_are_read_page_by_page(simulator: Simulator) -> None:
    cloud = OpenStack(entry(simulator))
    made = [cloud.send("POST", "network", "/networks", {"network": {"name": "page"}})["network"] for _ in range(5)]

    found = list(cloud.list("network", "/networks?name=page&limit=2", "networks"))

    assert {each["id"] for each in found} == {each["id"] for each in made}
    for each in made:
        assert cloud.send("DELETE", "network", f"/networks/{each['id']}") == {}


def test_every_service_is_found_and_listed(simulator: Simulator) -> None:
    cloud = OpenStack(entry(simulator))

    kinds = {kind for kind, _ in inventory.take(cloud)}

    assert {"image", "network", "subnet", "security group"} <= kinds
    assert all(cloud.has(listing.service) for listing in inventory.LISTINGS)


def test_requests_say_that_they_are_the_demos(simulator: Simulator) -> None:
    simulator.call(simulator.cloud.counter.reset)

    OpenStack(entry(simulator)).get("compute", "/servers")

    agents = {call["user_agent"] for call in simulator.call(simulator.cloud.counter.log)}
    assert {agent.startswith(USER_AGENT) for agent in agents} == {True}


def test_a_refusal_says_what_was_asked_and_answered(simulator: Simulator) -> None:
    cloud = OpenStack(entry(simulator))

    with pytest.raises(CloudError, match=r"GET .*/networks/none: 404 .*none"):
        cloud.get("network", "/networks/none")


def test_a_password_that_is_refused_and_a_cloud_that_is_away_are_told(simulator: Simulator) -> None:
    wrong, away = entry(simulator), entry(simulator)
    wrong["auth"]["password"] = "no"
    away["auth"]["auth_url"] = "http://127.0.0.1:9/v3"

    for each in (wrong, away):
        with pytest.raises(CloudError, match=each["auth"]["auth_url"]):
            OpenStack(each)
