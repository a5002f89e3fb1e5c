"""The first reconciles of a takeover, planned before the provider is replaced."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

import capo
from capo import names
from capo.json_types import Json
from capo.kube.kinds import OPENSTACK_CLUSTER, OPENSTACK_MACHINE, OPENSTACK_SERVER
from capo.operations.console import Console
from capo.operations.errors import ExitStatus
from capo.operations.plan import changes, report
from capo.operations.plan.planning import Outcome
from capo.operations.plan.tests.environment import PlannedEnvironment, planned
from controllers.tests import stamps
from environments.provider import OURS

PAGE: Final = Path(capo.__file__).parents[1] / "docs" / "how-to" / "take-over.md"
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


def rows(text: str) -> set[tuple[str, str, str]]:
    """Return action, kind and the first cause of each line of a plan."""
    found = [re.split(r" {2,}", line.strip()) for line in text.splitlines()]
    return {
        (each[0], each[1], each[-1].partition(";")[0]) for each in found if each[0] in ("create", "update", "delete")
    }


def test_the_page_has_the_lines_of_a_clean_takeover_and_its_exit_statuses(
    environment: PlannedEnvironment, capsys: pytest.CaptureFixture[str]
) -> None:
    page = PAGE.read_text(encoding="utf-8")
    block = page.partition("A takeover that is clean")[2].partition("Read what else it has")[0]

    assert report.show(Console(), environment.plan()) == ExitStatus.FOUND
    assert rows(block) == rows(capsys.readouterr().out)
    environment.converge()
    assert report.show(Console(), environment.plan()) == ExitStatus.DONE
    assert capsys.readouterr().out.startswith("no change")
    assert "`capo plan` exits with 3 for such a plan" in page
    assert "says `no change` and exits with 0" in page


def test_a_rule_that_was_added_is_a_line_beside_these(
    environment: PlannedEnvironment, capsys: pytest.CaptureFixture[str]
) -> None:
    groups = environment.inventory()["security_groups"].values()
    group = next(each["id"] for each in groups if "controlplane" in each["name"])
    ports = {"protocol": "tcp", "port_range_min": 80, "port_range_max": 80}
    rule = {"security_group_id": group, "direction": "ingress", **ports}
    environment.member.make("/network/v2.0/security-group-rules", "security_group_rule", **rule)
    report.show(Console(), environment.plan())
    assert ("delete", "security group rule") in {each[:2] for each in rows(capsys.readouterr().out)}
