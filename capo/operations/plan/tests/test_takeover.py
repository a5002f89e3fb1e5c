"""The first reconciles of a takeover, planned before the provider is replaced."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from capo import names
from capo.json_types import Json
from capo.kube.kinds import OPENSTACK_CLUSTER, OPENSTACK_MACHINE, OPENSTACK_SERVER
from capo.operations.plan import changes
from capo.operations.plan.planning import Outcome
from capo.operations.plan.tests.environment import PlannedEnvironment, planned
from controllers.tests import stamps
from environments.provider import OURS

SPEC: Json = {
    "managedSecurityGroups": {"allowAllInClusterTraffic": True},
    "apiServer": {"managedLoadBalancer": {"enabled": True}},
}


@pytest.fixture
def environment() -> Iterator[PlannedEnvironment]:
    with PlannedEnvironment() as made:
        made.cluster("cp-0", "worker-0", **SPEC)
        made.converge()
        made.simulator.call(lambda: [stamps.remove(each) for each in stamps.bodies(made.cloud)])
        for key, obj in made.kube.objects.items():
            if key.kind in OURS:
                _remove_ours(obj)
        made.start()
        yield made


def _remove_ours(obj: Json) -> None:
    """Remove what only this provider writes to an object."""
    obj["metadata"].pop("annotations", None)
    status = obj.get("status") or {}
    (status.get("resources") or {}).pop("records", None)
    status["conditions"] = [each for each in status.get("conditions") or () if each["type"] == "Ready"]


def taken_over(outcome: Outcome) -> set[str]:
    """Return the objects that are planned to be taken over."""
    return {each.name for each in outcome.changes if each.cause.startswith("taken over from another provider")}


def test_the_first_reconciles_of_a_takeover_are_planned(environment: PlannedEnvironment) -> None:
    outcome = environment.plan()
    environment.expect_as_planned()
    assert planned(outcome) == environment.sent()
    assert {"default/faulty", "default/cp-0", "default/worker-0"} <= taken_over(outcome)
    for kind in (OPENSTACK_CLUSTER, OPENSTACK_MACHINE, OPENSTACK_SERVER):
        own = [obj for key, obj in environment.kube.objects.items() if key.kind == kind]
        assert all(names.ADOPTED_ANNOTATION in obj["metadata"]["annotations"] for obj in own)


def test_a_takeover_creates_and_deletes_nothing(environment: PlannedEnvironment) -> None:
    outcome = environment.plan()
    assert {each.action for each in outcome.changes} == {changes.UPDATE}
    assert outcome.stops == []
