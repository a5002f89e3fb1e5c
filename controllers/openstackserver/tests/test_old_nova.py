"""A Nova older than the required microversion is refused in one sentence, and blocks no deletion."""

from __future__ import annotations

from typing import Any

import pytest

from capo.simulator.nova import service as nova
from capo.simulator.routing import Microversions
from controllers.openstackserver.tests.environment import KIND, made, place, place_more, shown
from environments.in_memory import InMemoryEnvironment

ROCKY = (2, 65)
SENTENCE = (
    "the compute service offers microversions 2.1 to 2.65, and 2.69 is needed, which it has since OpenStack Stein"
)


def age_nova(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nova.service, "microversions", Microversions("compute", nova.MINIMUM, ROCKY))


@pytest.fixture
def old_nova(monkeypatch: pytest.MonkeyPatch) -> None:
    age_nova(monkeypatch)


def nova_requests(stage: InMemoryEnvironment) -> list[str]:
    compute = ("flavors", "servers", "os-")
    return [request for request in stage.requests() if request.partition("/v2.1/")[2].startswith(compute)]


@pytest.mark.usefixtures("old_nova")
def test_it_is_refused_in_one_sentence_and_nothing_is_created(stage: InMemoryEnvironment) -> None:
    place(stage)

    stage.settle(for_s=600)

    assert shown(stage, "Ready")[0] == "False"
    message = stage.condition(KIND, "s", "Ready")["message"]
    assert SENTENCE in message
    assert message.count("2.69") == 1
    assert made(stage) == {}


@pytest.mark.usefixtures("old_nova")
def test_it_is_asked_rarely_whatever_the_number_of_servers(stage: InMemoryEnvironment) -> None:
    place(stage)
    place_more(stage, 10)
    stage.settle(for_s=300)
    stage.cloud.counter.reset()

    stage.settle(for_s=1200)

    assert 0 < len(nova_requests(stage)) <= 15


@pytest.mark.usefixtures("old_nova")
@pytest.mark.parametrize("is_resolved", [False, True], ids=["nothing made", "ports made"])
def test_a_server_that_was_never_made_is_deleted_after_a_restart(stage: InMemoryEnvironment, is_resolved: bool) -> None:
    spec: dict[str, Any] = {"flavor": None, "flavorID": "1"} if is_resolved else {}
    place(stage, **spec)
    stage.settle(for_s=300)
    stage.start()

    stage.delete(KIND, "s")
    stage.settle(for_s=600)

    assert not stage.exists(KIND, "s")
    assert made(stage) == {}


def test_a_server_that_was_made_waits_for_a_nova_that_can_tell_of_it(
    stage: InMemoryEnvironment, monkeypatch: pytest.MonkeyPatch
) -> None:
    place(stage)
    stage.settle(for_s=60)
    with monkeypatch.context() as patched:
        age_nova(patched)
        stage.start()
        stage.delete(KIND, "s")
        stage.settle(for_s=600)
        assert stage.exists(KIND, "s")
        assert SENTENCE in stage.condition(KIND, "s", "Ready")["message"]

    stage.settle(for_s=600)

    assert not stage.exists(KIND, "s")
    assert made(stage) == {}


def test_it_is_used_soon_after_it_was_upgraded(stage: InMemoryEnvironment, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched:
        age_nova(patched)
        place(stage)
        stage.settle(for_s=1200)

    stage.settle(for_s=300)

    assert shown(stage, "Ready") == ("True", "Ready")
