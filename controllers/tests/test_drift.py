"""The table of what is compared, as the page shows it; the pace of repairs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from api.v1beta2.driftpolicy import DriftPolicy
from capo.engine.tests.fake_kube import FakeClock
from capo.errors import ForbiddenError
from capo.openstack.kinds import KINDS
from controllers import drift

PAGE = Path(__file__).parents[2] / "docs/reference/drift.md"


def _row(row: drift.Compared) -> str:
    conditions = ", ".join(f"`{each}`" for each in row.condition.split(", "))
    others = row.others or "-"
    return f"| `{row.field}` | {row.of} | {row.compared} | `{row.default.value}` | {others} | {conditions} |"


@pytest.mark.lint
def test_the_page_has_the_table() -> None:
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    shown = [line for line in lines if line.startswith("| `") and line.count("|") == 7]

    assert shown == [_row(row) for row in drift.TABLE]


@pytest.mark.lint
@pytest.mark.lint
def test_the_page_says_after_how_many_resync_periods_a_change_shows() -> None:
    rows = {"ports": "port", "networks": "network", "subnets": "subnet", "routers": "router"}
    usual = "servers, security groups, load balancers with listeners, pools and health monitors"
    wanted = {usual: 2, **{text: int(KINDS[kind].age_factor) + 1 for text, kind in rows.items()}}
    rest = {"server", "security_group", "load_balancer", "listener", "pool", "health_monitor"}

    text = PAGE.read_text().partition("| Kind | Resync periods |")[2]
    found = dict(re.findall(r"^\| ([a-z ,]+) \| (\d+) \|$", text, re.MULTILINE))

    assert {KINDS[kind].age_factor for kind in rest} == {1.0}
    assert {kind: int(periods) for kind, periods in found.items()} == wanted


def test_each_field_has_a_row_and_its_description_the_default() -> None:
    assert {row.field for row in drift.TABLE} == {str(field.alias) for field in DriftPolicy.model_fields.values()}


def test_three_repairs_follow_each_other_then_one_in_ten_minutes() -> None:
    clock = FakeClock(1000.0)
    repairs = drift.Repairs(clock)
    sent = []

    for _ in range(240):  # an hour
        if not repairs.postponed(drift.RULES, "group"):
            repairs.note(drift.RULES, "group")
            sent.append(clock.now() - 1000.0)
        clock.advance(15)

    assert sent == [0, 15, 30, 630, 1230, 1830, 2430, 3030]
    assert repairs.postponed(drift.RULES, "group")
    assert not repairs.postponed(drift.RULES, "another")
    assert not repairs.postponed(drift.TAGS, "group")


def test_a_refusal_is_quoted_until_the_next_attempt_ten_minutes_later() -> None:
    clock = FakeClock(1000.0)
    repairs = drift.Repairs(clock)

    repairs.note(drift.MTU, "net", error=ForbiddenError("policy does not allow it", request_id="req-1"))

    text = repairs.postponed(drift.MTU, "net")
    assert "retried within 10 minutes: " in text
    assert "policy does not allow it (request req-1)" in text
    clock.advance(drift.PERIOD_S)
    assert repairs.postponed(drift.MTU, "net") == ""


def test_a_list_of_any_length_takes_little_room() -> None:
    assert drift.listing(["c", "a", "b"]) == "a, b, c"
    assert drift.listing(map(str, range(100))) == "0, 1, 10 and 97 more"


def test_what_the_spec_does_not_say_has_the_default() -> None:
    chosen = DriftPolicy(mtu="Repair")

    assert drift.of_spec(None, drift.RULES) is drift.Policy.REPAIR
    assert drift.of_spec(chosen, drift.GROUPS, default=drift.Policy.REPORT) is drift.Policy.REPORT
    assert drift.of_spec(chosen, drift.MTU, default=drift.Policy.REPORT) is drift.Policy.REPAIR
