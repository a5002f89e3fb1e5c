"""Names of Events, the version of the object that they regard, and their shape in each API group."""

from __future__ import annotations

import re
from typing import Any

import pytest

from capo.kube import event_objects
from capo.kube.event_objects import CORE_EVENT, EVENT, Happening
from capo.kube.kinds import Kind

GROUP = "infrastructure.cluster.x-k8s.io"
AT_NS = 1_767_225_600_123_456_789
SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
"""Valid names of objects (Kubernetes, "Object Names and IDs", DNS subdomain names)."""


def an_object(kind: str, api_version: str, **metadata: Any) -> dict[str, Any]:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": "demo", "namespace": "here", **metadata}}


@pytest.mark.parametrize(
    ("kind", "read_as", "shown_as"),
    [
        pytest.param("OpenStackCluster", f"{GROUP}/v1beta2", f"{GROUP}/v1beta1", id="cluster"),
        pytest.param("OpenStackCluster", f"{GROUP}/v1beta1", f"{GROUP}/v1beta1", id="cluster in its old version"),
        pytest.param("OpenStackMachine", f"{GROUP}/v1beta2", f"{GROUP}/v1beta2", id="machine"),
        pytest.param("OpenStackServer", f"{GROUP}/v1alpha1", f"{GROUP}/v1alpha1", id="server"),
        pytest.param("OpenStackFloatingIPPool", f"{GROUP}/v1alpha1", f"{GROUP}/v1alpha1", id="pool"),
        pytest.param("IPAddress", "ipam.cluster.x-k8s.io/v1beta2", "ipam.cluster.x-k8s.io/v1beta2", id="address"),
        pytest.param("OpenStackCluster", "example.com/v1beta2", "example.com/v1beta2", id="another group"),
    ],
)
def test_an_object_is_regarded_in_the_version_that_readers_select(kind: str, read_as: str, shown_as: str) -> None:
    assert event_objects.reference(an_object(kind, read_as, uid="u")) == {
        "apiVersion": shown_as,
        "kind": kind,
        "namespace": "here",
        "name": "demo",
        "uid": "u",
    }


def test_a_name_is_the_objects_and_the_nanoseconds_in_hex() -> None:
    assert event_objects.name("demo", AT_NS) == f"demo.{AT_NS:x}"


def test_names_sort_by_time() -> None:
    times = [0, 1, 15, 16, AT_NS - 1, AT_NS, AT_NS + 1, AT_NS + 10**18]

    made = [event_objects.name("demo", at_ns) for at_ns in times]

    assert made == sorted(made)
    assert len(set(made)) == len(times)


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("a" * 253, id="longest"),
        pytest.param("a" * 236, id="just short enough"),
        pytest.param("a" * 237, id="one too long"),
        pytest.param("a" * 235 + "." + "b" * 17, id="cut behind a dot"),
        pytest.param("a" * 235 + "-" + "b" * 17, id="cut behind a hyphen"),
        pytest.param("a" * 230 + "-.--.-" + "b" * 17, id="cut behind several"),
        pytest.param("a.b-c", id="with a dot"),
    ],
)
def test_names_of_any_object_are_valid(name: str) -> None:
    made = event_objects.name(name, AT_NS)

    assert len(made) <= 253
    assert SUBDOMAIN.fullmatch(made)
    assert made.endswith(f".{AT_NS:x}")


def happening(**changes: Any) -> Happening:
    values: dict[str, Any] = {
        "regarding": event_objects.reference(an_object("OpenStackServer", f"{GROUP}/v1alpha1", uid="u")),
        "type": "Warning",
        "reason": "FailedCreateServer",
        "note": "No valid host",
        "action": "Reconciling",
        "at_ns": AT_NS,
        "instance": "pod-1",
    }
    return Happening(**{**values, **changes})


def test_events_k8s_io_has_a_microtime_and_a_series() -> None:
    event = event_objects.created(EVENT, happening(), AT_NS)

    assert (event["apiVersion"], event["eventTime"]) == ("events.k8s.io/v1", "2026-01-01T00:00:00.123456Z")
    assert (event["regarding"]["uid"], event["note"]) == ("u", "No valid host")
    assert event_objects.repeated(EVENT, happening(), 3) == {
        "series": {"count": 3, "lastObservedTime": "2026-01-01T00:00:00.123456Z"}
    }


def test_the_core_group_has_a_count_and_two_times() -> None:
    event = event_objects.created(CORE_EVENT, happening(), AT_NS)

    assert event["apiVersion"] == "v1"
    assert (event["involvedObject"]["uid"], event["message"]) == ("u", "No valid host")
    assert (event["firstTimestamp"], event["lastTimestamp"]) == (
        "2026-01-01T00:00:00.000000Z",
        "2026-01-01T00:00:00.000000Z",
    )
    assert (event["count"], event["source"]) == (1, {"component": "capo-controller-manager", "host": "pod-1"})
    assert (event["reportingComponent"], event["reportingInstance"]) == ("capo-controller-manager", "pod-1")
    assert event_objects.repeated(CORE_EVENT, happening(), 3) == {
        "count": 3,
        "lastTimestamp": "2026-01-01T00:00:00.000000Z",
    }


@pytest.mark.parametrize("kind", [EVENT, CORE_EVENT], ids=["events.k8s.io", "core"])
def test_both_groups_name_an_event_alike_and_limit_the_instance(kind: Kind) -> None:
    event = event_objects.created(kind, happening(instance="i" * 200), AT_NS + 1)

    assert event["metadata"] == {"name": f"demo.{AT_NS + 1:x}", "namespace": "here"}
    assert event["reportingInstance"] == "i" * 128
