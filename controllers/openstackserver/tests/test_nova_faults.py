"""A server in ERROR: what kind of failure Nova's sentence is, and that it is shown with what to do."""

from __future__ import annotations

import pytest

from capo.controllers.openstackserver import nova_faults
from capo.controllers.openstackserver.tests.world import KIND, place, server, shown, status
from capo.controllers.tests.stage import Stage
from capo.errors import NoValidHostError, PortFailedError, ServerFailedError

FAULTS = [
    pytest.param("No valid host was found. There are not enough hosts available.", NoValidHostError, id="no host"),
    pytest.param(
        "Exceeded maximum number of retries. Exhausted all hosts available for retrying build failures for instance 1.",
        NoValidHostError,
        id="every host tried",
    ),
    pytest.param(
        "Build of instance 1 aborted: Failed to allocate the network(s), not rescheduling.",
        PortFailedError,
        id="no network in time",
    ),
    pytest.param(
        "Binding failed for port 1, please check neutron logs for more information.", PortFailedError, id="binding"
    ),
    pytest.param("Virtual Interface creation failed", PortFailedError, id="interface"),
    pytest.param("The hypervisor is on fire.", ServerFailedError, id="anything else"),
]


@pytest.mark.parametrize(("text", "kind"), FAULTS)
def test_the_sentence_of_nova_decides_what_failed(text: str, kind: type[ServerFailedError]) -> None:
    assert nova_faults.kind_of(text) is kind


@pytest.mark.parametrize(("text", "kind"), FAULTS)
def test_a_server_in_error_names_what_failed_and_what_to_do(
    stage: Stage, text: str, kind: type[ServerFailedError]
) -> None:
    place(stage)
    stage.settle(for_s=30)
    order = {"id": server(stage)["id"], "message": text}
    stage.member.ask("POST", "/_simulator/tweaks/compute/break_server", order)

    stage.settle(for_s=61)

    assert (status(stage)["ready"], status(stage)["instanceState"]) == (False, "ERROR")
    assert shown(stage, "InstanceReady") == ("False", "InstanceStateError")
    message = stage.condition(KIND, "s", "InstanceReady")["message"]
    assert message.startswith(f"{kind.reason} [server {server(stage)['id']}]: {text.rstrip('.')}")
    assert kind.advice in message
    assert kind.retry in message
    assert kind.reason in stage.events.reasons()
