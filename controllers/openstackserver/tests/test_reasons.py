"""Each reason of the closed list that a server can have: shown with the cloud's words, and cleared with its cause."""

from __future__ import annotations

from typing import Any

import pytest

from api.v1beta2 import conditions
from capo.openstack import extension
from controllers.openstackserver.tests.environment import KIND, made, place, shown, status
from environments.in_memory import InMemoryEnvironment

TWO = {"image": {"filter": {"tags": ["capi"]}}}


@pytest.mark.parametrize(
    ("spec", "reason", "words"),
    [
        pytest.param({"image": {"filter": {"name": "x"}}}, "ImageNotFound", "name x", id="image by name"),
        pytest.param(TWO, "AmbiguousMatch", "2 images match", id="image by tag"),
        pytest.param({"flavor": "x"}, "FlavorNotFound", "named x", id="flavor"),
        pytest.param({"serverGroup": {"filter": {"name": "x"}}}, "ServerGroupNotFound", "named x", id="server group"),
        pytest.param({"ports": [{"network": {"filter": {"name": "x"}}}]}, "NetworkNotFound", "name x", id="network"),
        pytest.param(
            {"ports": [{"network": {"id": "00000000-0000-4000-8000-000000000000"}}]},
            "NetworkNotFound",
            "00000000-0000-4000-8000-000000000000",
            id="network by id",
        ),
        pytest.param(
            {"ports": [{"fixedIPs": [{"subnet": {"filter": {"name": "x"}}}]}]}, "SubnetNotFound", "name x", id="subnet"
        ),
        pytest.param(
            {"securityGroups": [{"filter": {"name": "x"}}]}, "SecurityGroupNotFound", "name x", id="security group"
        ),
    ],
)
def test_a_reference_that_cannot_be_resolved_is_named(
    stage: InMemoryEnvironment, spec: dict[str, Any], reason: str, words: str
) -> None:
    place(stage, **spec)

    stage.settle(for_s=30)

    assert shown(stage, "DependenciesResolved") == ("False", reason)
    assert shown(stage, "InstanceReady") == ("False", "DependencyFailed")
    message = stage.condition(KIND, "s", "InstanceReady")["message"]
    assert message.startswith(reason)
    assert words in message
    assert "Retried" in message
    assert reason in stage.events.reasons()
    assert made(stage) == {}


def test_a_cloud_without_trunks_is_named(stage: InMemoryEnvironment, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extension, "is_there", lambda cloud, alias: False)
    place(stage, trunk=True)

    stage.settle(for_s=30)
    assert shown(stage, "DependenciesResolved") == ("False", "UnsupportedByCloud")
    assert made(stage) == {}

    stage.start()
    stage.delete(KIND, "s")
    stage.settle(for_s=30)
    assert not stage.exists(KIND, "s")
    assert not [asked for asked in stage.requests() if "/trunks" in asked]  # they cannot even be listed


@pytest.mark.parametrize(
    ("match", "effect", "condition", "reason"),
    [
        pytest.param({"service": "image"}, {"status": 503}, "DependenciesResolved", "CloudUnavailable", id="Glance"),
        pytest.param({"service": "network"}, {"status": 500}, "DependenciesResolved", "CloudUnavailable", id="Neutron"),
        pytest.param(
            {"method": "POST", "route": "/v2.0/ports"},
            {"status": 409, "message": "Quota exceeded for resources: ['port']."},
            "PortsReady",
            "QuotaExceeded",
            id="ports",
        ),
        pytest.param(
            {"service": "volume", "method": "POST"},
            {"status": 413, "message": "VolumeSizeExceedsAvailableQuota: quota"},
            "VolumesReady",
            "QuotaExceeded",
            id="volumes",
        ),
        pytest.param(
            {"service": "volume", "method": "POST"},
            {"status": 404, "message": "Volume type x could not be found: volume_type x not there"},
            "VolumesReady",
            "NotFound",
            id="volume type",
        ),
    ],
)
def test_a_step_that_the_cloud_refuses_is_named_and_goes_on_when_it_does_not(
    stage: InMemoryEnvironment, match: dict[str, Any], effect: dict[str, Any], condition: str, reason: str
) -> None:
    place(stage, rootVolume={"sizeGiB": 1})
    stage.add_fault(match=match, effect=effect)

    stage.settle(for_s=60)
    assert shown(stage, condition) == ("False", reason)
    assert shown(stage, "Ready") == ("False", "OpenStackError")

    stage.clear_faults()
    stage.settle(for_s=200)
    assert status(stage)["ready"] is True


def test_refused_credentials_are_named(stage: InMemoryEnvironment) -> None:
    stage.apply_secret(text=stage.simulator.clouds_yaml.read_bytes().replace(b"password: ", b"password: x"))
    place(stage)

    stage.settle(for_s=30)

    assert shown(stage, "OpenStackAuthenticationSucceeded") == ("False", "OpenStackAuthenticationFailed")
    message = stage.condition(KIND, "s", "Ready")["message"]
    assert message.startswith("NotAuthorized [Secret default/cloud, cloud 'sim']")
    assert "NotAuthorized" in stage.events.reasons()


def test_every_reason_that_is_shown_is_in_the_closed_list(stage: InMemoryEnvironment) -> None:
    known = {str(reason) for reason in conditions.Reason}
    place(stage, flavor="lab.too-big", rootVolume={"sizeGiB": 1}, trunk=True)
    seen: set[str] = set()

    def note(_verb: str, _key: Any, body: Any) -> None:
        seen.update(c["reason"] for c in (body.get("status") or {}).get("conditions") or ())

    stage.kube.before_write = note
    stage.settle(for_s=60)
    stage.delete(KIND, "s")
    stage.settle(for_s=60)

    assert "InstanceStateError" in seen
    assert seen <= known
