"""The metrics of objects by state follow each change of the store."""

from __future__ import annotations

from typing import Any

import pytest
from prometheus_client import REGISTRY

from capo.engine import metrics
from capo.engine.object_states import ObjectStates
from capo.engine.router import object_filter
from capo.engine.store import Store
from capo.engine.tests.builders import FakeClock, an_object
from capo.json_types import Json
from capo.kube.client import Snapshot
from capo.kube.kinds import (
    CLUSTER,
    OPENSTACK_CLUSTER,
    OPENSTACK_CLUSTER_IDENTITY,
    OPENSTACK_FLOATING_IP_POOL,
    OPENSTACK_MACHINE,
    OPENSTACK_MACHINE_TEMPLATE,
    Kind,
)

CREATED = "1970-01-01T00:10:00Z"
KINDS = (
    CLUSTER,
    OPENSTACK_CLUSTER,
    OPENSTACK_CLUSTER_IDENTITY,
    OPENSTACK_FLOATING_IP_POOL,
    OPENSTACK_MACHINE,
    OPENSTACK_MACHINE_TEMPLATE,
)


class Fleet:
    """A store with objects, at second 1000."""

    def __init__(self, watch_filter: str = "") -> None:
        metrics.OBJECTS_WAITING.clear()  # what objects of other tests wait for
        self.store, self.clock = Store(), FakeClock()
        self._provisioned = {kind: value("capo_provisioning_seconds_sum", kind=kind.kind) for kind in KINDS}
        self.states = ObjectStates(self.store, KINDS, accepts=object_filter("", watch_filter), wall=self.clock)

    def show(self, kind: Kind = OPENSTACK_MACHINE, *, version: int = 1, **fields: Any) -> None:
        self.store.apply(kind, "MODIFIED", made(version=version, **fields))

    def count(self, state: str, kind: Kind = OPENSTACK_MACHINE) -> float:
        return value("capo_objects", kind=kind.kind, state=state)

    def longest_s(self, state: str) -> float:
        return longest_s(state)

    def provisioned_s(self) -> float:
        return value("capo_provisioning_seconds_sum", kind="OpenStackMachine") - self._provisioned[OPENSTACK_MACHINE]


def value(name: str, **labels: str) -> float:
    return REGISTRY.get_sample_value(name, labels) or 0.0


def longest_s(state: str, namespace: str = "default") -> float:
    return value("capo_objects_longest_seconds", namespace=namespace, kind="OpenStackMachine", state=state)


def waiting(reason: str) -> float:
    return value("capo_objects_waiting", kind="OpenStackMachine", reason=reason)


def made(
    name: str = "m", *, version: int = 1, conditions: list[Json] | None = None, status: Json | None = None, **more: Any
) -> Json:
    obj = an_object(name, version=version, uid=f"uid-of-{name}", creationTimestamp=CREATED, **more)
    return {**obj, "status": {"conditions": conditions or [], **(status or {})}}


def condition(status: str, reason: str = "Ready", *, type_: str = "Ready", since: str = CREATED) -> Json:
    return {"type": type_, "status": status, "reason": reason, "lastTransitionTime": since}


def test_an_object_is_counted_in_the_state_that_it_is_in_and_in_no_other() -> None:
    fleet = Fleet()

    fleet.show(version=1)
    assert (fleet.count("not_ready"), fleet.count("ready")) == (1, 0)

    fleet.show(version=2, conditions=[condition("True")])
    assert (fleet.count("not_ready"), fleet.count("ready")) == (0, 1)

    fleet.store.apply(OPENSTACK_MACHINE, "DELETED", made(version=3))
    assert (fleet.count("not_ready"), fleet.count("ready")) == (0, 0)


@pytest.mark.parametrize(
    ("kind", "fields", "state"),
    [
        (OPENSTACK_MACHINE, {"deletionTimestamp": CREATED, "conditions": [condition("True")]}, "deleting"),
        (OPENSTACK_MACHINE, {"conditions": [condition("Unknown", "InstanceNotReady")]}, "not_ready"),
        (OPENSTACK_MACHINE, {"conditions": [condition("False"), condition("True", type_="Paused")]}, "paused"),
        (OPENSTACK_CLUSTER, {"annotations": {"cluster.x-k8s.io/managed-by": "terraform"}}, "external"),
        (OPENSTACK_MACHINE_TEMPLATE, {"conditions": [condition("Unknown", "NotReferred")]}, "unknown"),
        (OPENSTACK_CLUSTER_IDENTITY, {}, "unknown"),
        (
            OPENSTACK_CLUSTER_IDENTITY,
            {"conditions": [condition("False", type_="OpenStackAuthenticationSucceeded")]},
            "not_ready",
        ),
        (
            OPENSTACK_FLOATING_IP_POOL,
            {"conditions": [condition("True", type_="OpenstackFloatingIPPoolReadyCondition")]},
            "ready",
        ),
    ],
)
def test_the_state_follows_from_conditions_and_metadata(kind: Kind, fields: Json, state: str) -> None:
    fleet = Fleet()

    fleet.show(kind, **fields)

    assert fleet.count(state, kind) == 1


def test_the_reason_of_a_step_specifies_a_general_one_of_the_summary() -> None:
    fleet = Fleet()
    general = condition("False", "OpenStackError")

    fleet.show(version=1, conditions=[general, condition("False", "QuotaExceeded", type_="PortsReady")])
    assert (waiting("QuotaExceeded"), waiting("OpenStackError")) == (1, 0)

    fleet.show(version=2, conditions=[general])
    assert (waiting("QuotaExceeded"), waiting("OpenStackError")) == (0, 1)

    fleet.show(version=3, conditions=[condition("True")])
    assert waiting("OpenStackError") == 0


def test_reasons_that_others_wrote_share_one_label() -> None:
    fleet = Fleet()

    fleet.show(name="a", conditions=[condition("False", "MadeUpByATenant1")])
    fleet.show(name="b", conditions=[condition("False", "MadeUpByATenant2")])

    assert waiting("Other") == 2


def test_the_longest_wait_is_that_of_the_first_object_that_still_waits() -> None:
    fleet = Fleet()
    fleet.show(name="first", conditions=[condition("False", since="1970-01-01T00:11:40Z")])
    fleet.show(name="second", conditions=[condition("False", since="1970-01-01T00:15:00Z")])
    assert fleet.longest_s("not_ready") == 300

    fleet.show(name="first", version=2, conditions=[condition("True")])
    assert fleet.longest_s("not_ready") == 100

    fleet.clock.advance(50)
    assert fleet.longest_s("not_ready") == 150
    assert fleet.longest_s("deleting") == 0


def test_an_object_of_one_namespace_hides_none_of_another_that_waits_less_long() -> None:
    fleet = Fleet()
    pending = {"resources": {"pending": [{"kind": "server", "role": "server", "since": "1970-01-01T00:15:00Z"}]}}

    fleet.show(name="for-ever", namespace="tenant")
    fleet.show(
        name="new", namespace="team", conditions=[condition("False", since="1970-01-01T00:15:00Z")], status=pending
    )

    assert (longest_s("not_ready", "tenant"), longest_s("not_ready", "team")) == (400, 100)
    assert value("capo_pending_creates_longest_seconds", namespace="team") == 100
    assert REGISTRY.get_sample_value("capo_pending_creates_longest_seconds", {"namespace": "tenant"}) is None


def test_a_pending_create_is_counted_until_its_resource_is_known() -> None:
    fleet = Fleet()
    before = value("capo_pending_creates")
    pending = [{"kind": "server", "role": "server", "since": "1970-01-01T00:15:00Z"}]

    fleet.show(version=1, status={"resources": {"pending": pending}})
    assert value("capo_pending_creates") == before + 1
    assert value("capo_pending_creates_longest_seconds", namespace="default") == 100

    fleet.show(version=2, status={"resources": {"pending": []}})
    assert value("capo_pending_creates") == before
    assert value("capo_pending_creates_longest_seconds", namespace="default") == 0


def test_the_time_until_a_machine_is_provisioned_is_recorded_once() -> None:
    fleet = Fleet()
    done = {"initialization": {"provisioned": True}}

    fleet.show(version=1)
    fleet.show(version=2, status=done)
    fleet.clock.advance(1000)
    fleet.show(version=3, status=done, conditions=[condition("False")])

    assert fleet.provisioned_s() == 400


def test_a_machine_that_was_provisioned_before_the_start_is_not_recorded() -> None:
    fleet = Fleet()

    fleet.show(version=1, status={"initialization": {"provisioned": True}})

    assert fleet.provisioned_s() == 0


def test_objects_of_another_manager_are_not_counted() -> None:
    fleet = Fleet(watch_filter="blue")

    fleet.show(name="theirs")
    fleet.show(name="ours", labels={"cluster.x-k8s.io/watch-filter": "blue"})

    assert fleet.count("not_ready") == 1


def test_objects_of_other_kinds_are_not_counted() -> None:
    fleet = Fleet()

    fleet.show(CLUSTER)

    assert value("capo_objects", kind="Cluster", state="not_ready") == 0


def test_after_a_restored_state_the_objects_of_that_state_are_counted() -> None:
    fleet = Fleet()
    fleet.show(name="kept", version=7, conditions=[condition("True")])
    fleet.show(name="gone", version=8, conditions=[condition("True")])

    listing = Snapshot([made("kept", version=3)], "5")
    fleet.store.reset(OPENSTACK_MACHINE, listing, namespace=None)

    assert (fleet.count("not_ready"), fleet.count("ready")) == (1, 0)
