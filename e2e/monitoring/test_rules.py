"""Each alert in promtool's own test: it fires after its time, with its texts, and ends with its cause."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from capo.components import chart
from capo.components.monitoring.alerts import ALERTS, Alert
from e2e.monitoring.prometheus import program

pytestmark = pytest.mark.integration

RULES = chart.FOLDER / "files" / "alerts.yaml"
DAY = 24


class Course(NamedTuple):
    """What an alert sees.

    Args:
        series: values in promtool's notation, one in each unit of time.
        quiet: when it does not fire yet.
        fires: when it fires.
        ended: when it fires no more.
        unit: minutes or hours.
    """

    series: dict[str, str]
    quiet: int
    fires: int
    ended: int
    description: str
    labels: dict[str, str] = {}
    unit: str = "m"


LEADER = 'leader_election_master_status{name="controller-leader-election-capo",pod="capo-1"}'
CREDENTIALS = {"type": "Secret", "namespace": "team", "name": "cloud", "cloud": "openstack"}
EXPIRY = (
    'capo_credentials_expiry_timestamp_seconds{type="Secret",namespace="team",name="cloud",cloud="openstack",region=""}'
)
QUOTA = '{namespace="team",host="keystone.example.org",region="one",project="0123",resource="cores"}'
EXPIRES_IN = "The credentials of cloud openstack in Secret cloud, which objects of namespace team use, expire in "
IN_20_DAYS = f"{20 * DAY * 3600}x{18 * DAY} _x{DAY}"
COURSES = {
    "CapoNotLeading": Course(
        {LEADER: "1x10 0x9 1x10"},
        14,
        17,
        22,
        "No manager of the OpenStack provider holds the lease, or none is scraped: nothing is reconciled.",
    ),
    "CapoWatchStale": Course(
        {"capo_watch_silent_seconds": "0x10 70+60x9 0x10", "capo_watch_failures_total": "0x30"},
        14,
        18,
        24,
        "The leader sees changes of objects late or not at all.",
    ),
    "CapoCloudFailing": Course(
        {'capo_clouds_failing{namespace="team",host="keystone.example.org"}': "_x10 2x15 stale _x10"},
        18,
        22,
        30,
        "Lists of the cloud whose Identity service is keystone.example.org fail, for the objects of namespace team; "
        "refused credentials do not count.",
        {"namespace": "team", "host": "keystone.example.org"},
    ),
    "CapoObjectNotReady": Course(
        {'capo_objects_longest_seconds{namespace="team",kind="OpenStackMachine",state="not_ready"}': "0+60x40 0x10"},
        34,
        40,
        45,
        "An OpenStackMachine in namespace team has not been ready for 40m 0s.",
        {"namespace": "team", "kind": "OpenStackMachine"},
    ),
    "CapoDeletionBlocked": Course(
        {'capo_objects_longest_seconds{namespace="team",kind="OpenStackCluster",state="deleting"}': "0+60x70 0x10"},
        64,
        70,
        75,
        "An OpenStackCluster in namespace team has been deleted for 1h 10m 0s and still exists.",
        {"namespace": "team", "kind": "OpenStackCluster"},
    ),
    "CapoCreatePending": Course(
        {'capo_pending_creates_longest_seconds{namespace="team"}': "0+60x25 stale _x10"},
        20,
        25,
        30,
        "A create for namespace team was sent 25m 0s ago, and whether it took effect could not be found out.",
        {"namespace": "team"},
    ),
    "CapoQuotaHeld": Course(
        {
            'capo_quota_waiting{namespace="team",resource="cores"}': "_x5 60x20 stale _x10",
            'capo_quota_waiting{namespace="team",resource="ram"}': "0x40",
        },
        14,
        20,
        30,
        "60 objects in namespace team wait until the quota of their project has room.",
        {"namespace": "team", "resource": "cores"},
    ),
    "CapoQuotaNear": Course(
        {
            f"capo_openstack_quota_used{QUOTA}": "5x10 19x20 5x10",
            f"capo_openstack_quota_limit{QUOTA}": "20x50",
            'capo_openstack_quota_used{resource="router"}': "1x50",
            'capo_openstack_quota_limit{resource="router"}': "1x50",
        },
        24,
        30,
        40,
        "Project 0123 in keystone.example.org, with objects of namespace team, uses 95% of its quota of cores.",
        {"namespace": "team", "host": "keystone.example.org", "region": "one", "project": "0123", "resource": "cores"},
    ),
    "CapoCredentialsExpire": Course(
        {EXPIRY: IN_20_DAYS},
        6 * DAY,
        16 * DAY,
        18 * DAY + 10,
        f"{EXPIRES_IN}4d 0h 0m 0s.",
        CREDENTIALS,
        "h",
    ),
    "CapoCredentialsExpireSoon": Course(
        {EXPIRY: IN_20_DAYS},
        16 * DAY,
        18 * DAY,
        18 * DAY + 10,
        f"{EXPIRES_IN}2d 0h 0m 0s.",
        CREDENTIALS,
        "h",
    ),
}


def fired(alert: Alert, course: Course) -> dict[str, Any]:
    """Return the alert as promtool has to see it."""
    summary = alert.summary
    for name, value in course.labels.items():
        summary = summary.replace(f"{{{{ $labels.{name} }}}}", value)
    return {
        "exp_labels": {"severity": alert.severity, **course.labels},
        "exp_annotations": {
            "summary": summary,
            "description": course.description,
            "runbook": f"docs/how-to/monitor.md#{alert.name.lower()}",
        },
    }


def unit_test(alert: Alert) -> dict[str, Any]:
    """Return promtool's test of an alert."""
    course = COURSES[alert.name]
    expected = {course.quiet: [], course.fires: [fired(alert, course)], course.ended: []}
    return {
        "name": alert.name,
        "interval": f"1{course.unit}",
        "input_series": [{"series": series, "values": values} for series, values in course.series.items()],
        "alert_rule_test": [
            {"eval_time": f"{at}{course.unit}", "alertname": alert.name, "exp_alerts": alerts}
            for at, alerts in expected.items()
        ],
    }


def for_ever(alert: Alert) -> dict[str, str]:
    """Return the series of an alert as a tenant causes it in a namespace of its own, at all times."""
    course = COURSES[alert.name]
    value = 0 if "expiry" in alert.expression else 10**6
    return {
        series.replace('namespace="team"', 'namespace="tenant"'): values
        if "_limit" in series
        else f"{value}x{course.ended + 10}"
        for series, values in course.series.items()
        if 'namespace="team"' in series
    }


def promtool(*arguments: str) -> None:
    ended = subprocess.run([program("promtool"), *arguments], capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr


def test_promtool_accepts_the_file_of_the_chart() -> None:
    promtool("check", "rules", str(RULES))


@pytest.mark.parametrize("alert", ALERTS, ids=lambda alert: alert.name)
def test_an_alert_fires_after_its_time_and_ends_with_its_cause(alert: Alert, tmp_path: Path) -> None:
    file = tmp_path / "test.yaml"
    wanted = {
        "rule_files": [str(RULES)],
        "evaluation_interval": f"1{COURSES[alert.name].unit}",
        "tests": [unit_test(alert)],
    }
    file.write_text(yaml.safe_dump(wanted))

    promtool("test", "rules", str(file))


@pytest.mark.parametrize(
    "alert", [alert for alert in ALERTS if "namespace" in COURSES[alert.name].labels], ids=lambda alert: alert.name
)
def test_what_a_tenant_causes_for_ever_hides_no_alert_for_another_namespace(alert: Alert, tmp_path: Path) -> None:
    course = COURSES[alert.name]
    wanted = unit_test(alert)
    del wanted["alert_rule_test"]
    wanted["input_series"] += [{"series": series, "values": values} for series, values in for_ever(alert).items()]
    firing = 'count(ALERTS{{alertname="{}",alertstate="firing",namespace="{}"}}) > bool 0 or vector(0)'
    wanted["promql_expr_test"] = [
        {
            "expr": firing.format(alert.name, namespace),
            "eval_time": f"{at}{course.unit}",
            "exp_samples": [{"labels": "{}", "value": value}],
        }
        for at, is_firing in ((course.quiet, 0), (course.fires, 1), (course.ended, 0))
        for namespace, value in (("team", is_firing), ("tenant", 1))
    ]
    file = tmp_path / "test.yaml"
    rules = {"rule_files": [str(RULES)], "evaluation_interval": f"1{course.unit}"}
    file.write_text(yaml.safe_dump({**rules, "tests": [wanted]}))

    promtool("test", "rules", str(file))
