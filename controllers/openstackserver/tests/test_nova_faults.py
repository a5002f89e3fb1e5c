"""A server in ERROR: Nova's message is classified, and shown with advice."""

from __future__ import annotations

import uuid

import pytest

from capo.errors import (
    CapoError,
    ImageNotFoundError,
    NoValidHostError,
    PortFailedError,
    QuotaExceededError,
    ServerFailedError,
    VolumeFailedError,
)
from controllers.openstackserver import nova_faults
from controllers.openstackserver.tests.environment import KIND, place, server, shown, status
from environments.in_memory import InMemoryEnvironment

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
    pytest.param(
        f"Build of instance 1 aborted: Volume {uuid.uuid4()} did not finish being created after 3 attempts",
        VolumeFailedError,
        id="volume in time",
    ),
    pytest.param("Block Device Mapping is Invalid.", VolumeFailedError, id="block device"),
    pytest.param(f"Image {uuid.uuid4()} could not be found.", ImageNotFoundError, id="image"),
    pytest.param(
        "Quota exceeded for instances: Requested 1, but already used 10 of 10 instances", QuotaExceededError, id="quota"
    ),
    pytest.param("The hypervisor is on fire.", None, id="anything else"),
]
WORDS_ONLY = [
    pytest.param("Flavor volume-heavy is not allowed here.", id="a word of another kind"),
    pytest.param("Image conversion took too long.", id="an image that is there"),
]


@pytest.mark.parametrize(("text", "cause"), FAULTS)
def test_the_sentence_of_nova_decides_what_failed(text: str, cause: type[CapoError] | None) -> None:
    assert nova_faults.cause_of(text) is cause


@pytest.mark.parametrize("text", WORDS_ONLY)
def test_a_sentence_that_only_speaks_of_something_names_no_cause(text: str) -> None:
    assert nova_faults.cause_of(text) is None


@pytest.mark.parametrize(("text", "cause"), FAULTS)
def test_a_server_in_error_names_what_failed_and_what_to_do(
    stage: InMemoryEnvironment, text: str, cause: type[CapoError] | None
) -> None:
    told = cause or ServerFailedError
    place(stage)
    stage.settle(for_s=30)
    order = {"id": server(stage)["id"], "message": text}
    stage.member.ask("POST", "/_simulator/tweaks/compute/break_server", order)

    stage.settle(for_s=61)

    assert (status(stage)["ready"], status(stage)["instanceState"]) == (False, "ERROR")
    assert shown(stage, "InstanceReady") == ("False", "InstanceStateError")
    message = stage.condition(KIND, "s", "InstanceReady")["message"]
    assert message.startswith(f"{told.reason} [server {server(stage)['id']}]: {text.rstrip('.')}")
    assert told.advice in message
    assert ServerFailedError.retry in message
    assert told.reason in stage.events.reasons()
