"""Counting requests and writes from the output of services and the manager."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from capo.local.demo import counting, report
from capo.local.demo.counting import LogCounter, Phase

OURS = "cluster-api-provider-openstack"


def line(request: str, *, agent: str = f"{OURS}/1.0 keystoneauth1/5.10") -> str:
    return f'[21/Nov/2026:08:25:31 +0000] {request} => 204 in 155 ms, "{agent}"\n'


def test_only_lines_of_the_provider_that_came_since_are_counted(tmp_path: Path) -> None:
    log = tmp_path / "nova.log"
    log.write_text(line("GET /v2.1/servers"))
    counter = LogCounter(tmp_path, OURS)
    with log.open("a") as out:
        out.write(line("DELETE /v2.1/servers/6cf9215d-0553-4369-bbee-c257a70ecbb7"))
        out.write(line("GET /v2.1/servers/detail?limit=1"))
        out.write(line("GET /v2.1/servers", agent="python-requests/2.34.2"))
        out.write("2026-11-21 08:25:31.308 7356 INFO nova.api.openstack.requestlog something else\n")
        out.write(line("POST /v2.1/servers").rstrip("\n"))

    before = counter.tally()
    with log.open("a") as out:
        out.write("\n")
    after = counter.tally()

    assert before == {("nova", "DELETE /v2.1/servers/{id}"): 1, ("nova", "GET /v2.1/servers/detail"): 1}
    assert after - before == {("nova", "POST /v2.1/servers"): 1}


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        pytest.param("/v2.0/ports?device_id=x", "/v2.0/ports", id="query"),
        pytest.param("/v3/8c5c47bec9454e308936e97fa46a9f72/volumes", "/v3/{id}/volumes", id="id without hyphens"),
        pytest.param(
            "/v2/lbaas/pools/6cf9215d-0553-4369-bbee-c257a70ecbb7/members", "/v2/lbaas/pools/{id}/members", id="uuid"
        ),
    ],
)
def test_routes_have_no_ids(path: str, expected: str) -> None:
    assert counting.route(path) == expected


METRICS = """\
# HELP capo_kubernetes_writes_total Write requests.
# TYPE capo_kubernetes_writes_total counter
capo_kubernetes_writes_total{kind="OpenStackMachine",verb="patch"} 3.0
capo_kubernetes_writes_total{kind="OpenStackMachine",verb="create"} 1.0
capo_kubernetes_writes_total{kind="Event",verb="create"} 40.0
capo_kubernetes_writes_total{kind="Lease",verb="update"} 9.0
capo_kubernetes_writes_created{kind="Lease",verb="update"} 1.7e+09
capo_openstack_api_requests_total{request="security_group_rule_create"} 2.0
capo_openstack_api_requests_total{request="server_list"} 5.0
capo_openstack_api_requests_total{request="token_create"} 1.0
"""


def test_events_and_the_lease_are_no_kubernetes_writes() -> None:
    assert counting.kubernetes_writes(METRICS) == {"OpenStackMachine": 4}


def test_metrics_tell_reads_from_writes() -> None:
    tally = counting.MetricsCounter(lambda: METRICS).tally()

    assert tally.total() == 8
    assert [key for key in tally if counting.is_write(*key)] == [("", "POST security_group_rule")]


def phase(name: str, *, others: int = 0) -> Phase:
    arrived = Counter({("neutron", "POST /v2.0/ports"): 2, ("keystone", "POST /v3/auth/tokens"): 1 + others})
    sent = Counter({("", "POST port"): 2, ("keystone", "POST token"): 1})
    return Phase(name, 12.4, arrived, sent, Counter({"OpenStackServer": 7}), 0.52, 61.6)


def test_tokens_are_requests_but_no_writes() -> None:
    assert (phase("x").request_count, phase("x").write_count) == (3, 2)


def test_figures_of_go_stand_beside_the_same_scenario_alone() -> None:
    same, other = report.rows([phase(report.CREATE), phase("2 more workers")])

    assert same[:8] == ("create", "3 (2)", "695 (54)", "7", "105", "12", "92", "70 requests, 60 Kubernetes writes")
    assert other[2] == other[4] == other[6] == ""


def test_own_count_is_taken_where_others_used_the_cloud_meanwhile() -> None:
    assert report.rows([phase("x", others=9)])[0][1] == "3 (2)*"


def test_markdown_has_a_row_for_each_phase_and_request() -> None:
    text = report.markdown([phase(report.CREATE)], cloud="somewhere", source="logs")

    assert text.startswith("## somewhere\n")
    assert "| create | neutron POST /v2.0/ports | 2 |" in text
    assert "| create | keystone 1, neutron 2 |" in text
    assert "| create | OpenStackServer 7 |" in text


def test_processor_time_and_memory_of_this_process_are_known() -> None:
    import os

    assert counting.cpu_s(os.getpid()) > 0
    assert counting.peak_mib(os.getpid()) > 1
