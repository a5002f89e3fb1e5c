"""Labels whose values tenants choose: bounded in number and in length, in every metric, and none hides another."""

from __future__ import annotations

from collections import Counter
from typing import Any, Final

import pytest
from prometheus_client import REGISTRY, CollectorRegistry
from prometheus_client.core import Sample

from capo import caches, gauges, shares
from capo.engine import metrics as engine_metrics
from capo.gauges import CHOSEN, MAX_IN_NAMESPACE, MAX_LENGTH, MAX_NAMESPACES, OTHER, NamespaceGauge
from capo.kube import client
from capo.openstack import metrics as openstack_metrics
from capo.openstack import quota_holds, quota_usage
from capo.openstack.quota import Usage
from controllers import credentials, drift

IMPORTED: Final = (
    caches,
    shares,
    engine_metrics,
    client,
    openstack_metrics,
    quota_holds,
    quota_usage,
    credentials,
    drift,
)
IN_THE_CODE: Final = frozenset(
    (
        "budget",
        "cache",
        "controller",
        "kind",
        "pool",
        "reason",
        "request",
        "resource",
        "result",
        "state",
        "type",
        "verb",
    )
)
"""Labels whose values tenants do not choose."""
OF_CONTROLLERS: Final = {
    "leader_election_master_status",  # the name of the lease
    "workqueue_depth",
    "workqueue_queue_duration_seconds",
}
"""Metrics whose label ``name`` is that of a lease or a controller."""
COLLECTORS: Final[list[Any]] = list(REGISTRY._collector_to_names)
BOUNDED: Final = [each for each in COLLECTORS if isinstance(each, NamespaceGauge)]
QUOTAS: Final = (quota_usage.USED, quota_usage.LIMIT)


@pytest.fixture
def gauge(monkeypatch: pytest.MonkeyPatch) -> NamespaceGauge[float]:
    """Return a gauge by namespace, host and kind."""
    monkeypatch.setattr(gauges, "REGISTRY", CollectorRegistry())
    return gauges.of_number("g", "", ("kind", "namespace", "host"))


def samples(gauge: NamespaceGauge[Any]) -> list[Sample]:
    (metric,) = gauge.collect()
    return list(metric.samples)


def shown(gauge: NamespaceGauge[Any]) -> dict[tuple[str, ...], float]:
    return {tuple(each.labels[name] for name in gauge.labels): each.value for each in samples(gauge)}


def test_each_label_of_each_metric_is_in_the_code_or_bounded() -> None:
    assert IMPORTED
    plain = {each._name: set(each._labelnames) for each in COLLECTORS if hasattr(each, "_labelnames")}
    assert {"capo_objects", "capo_openstack_api_requests", "workqueue_depth"} <= plain.keys()

    for name in OF_CONTROLLERS:
        plain[name].remove("name")
    assert {name: labels - IN_THE_CODE for name, labels in plain.items() if labels - IN_THE_CODE} == {}
    assert set().union(*(each.labels for each in BOUNDED)) <= IN_THE_CODE | CHOSEN
    assert len(BOUNDED) >= 7


@pytest.mark.parametrize("gauge", BOUNDED, ids=lambda each: each.name)
def test_whatever_tenants_invent_the_series_of_a_metric_are_few_and_their_labels_short(
    gauge: NamespaceGauge[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    value = Usage(9, 10) if gauge in QUOTAS else 1.0
    names = [[f"{'n' * 2000}{i}", f"{i}{'n' * 2000}"] for i in range(2 * MAX_NAMESPACES)]
    hostile = {
        tuple(
            f"n{number}" if label == "namespace" else name if label in CHOSEN else "fixed" for label in gauge.labels
        ): value
        for number, pair in enumerate(names)
        for name in (*pair, *(str(i) for i in range(2 * MAX_IN_NAMESPACE)))
    }
    monkeypatch.setattr(gauge, "_read", lambda: hostile)

    found = samples(gauge)

    by_namespace = Counter(each.labels["namespace"] for each in found)
    assert len(by_namespace) == MAX_NAMESPACES + 1
    assert max(by_namespace.values()) <= MAX_IN_NAMESPACE + 1
    assert by_namespace[OTHER] == 1
    assert max(len(text) for each in found for text in each.labels.values()) <= MAX_LENGTH


def test_many_names_in_one_namespace_take_the_place_of_none_in_another(gauge: NamespaceGauge[float]) -> None:
    invented: dict[gauges.Labels, float] = {("cloud", "tenant", f"host-{number:04}"): 9.0 for number in range(1000)}
    gauge.set_function(lambda: {**invented, ("cloud", "team", "keystone"): 1.0, ("pool", "team", "keystone"): 2.0})

    found = shown(gauge)

    assert found["cloud", "team", "keystone"] == 1
    assert found["pool", "team", "keystone"] == 2
    assert found["cloud", "tenant", OTHER] == 9
    assert len(found) == MAX_IN_NAMESPACE + 3


def test_the_worst_series_of_a_namespace_and_the_worst_namespaces_are_shown(gauge: NamespaceGauge[float]) -> None:
    hosts: dict[gauges.Labels, float] = {
        ("cloud", "team", f"h{number}"): float(number) for number in range(2 * MAX_IN_NAMESPACE)
    }
    spaces: dict[gauges.Labels, float] = {
        ("cloud", f"n{number}", "h"): number + 1000.0 for number in range(MAX_NAMESPACES)
    }
    gauge.set_function(lambda: {**hosts, **spaces})

    found = shown(gauge)

    assert not any(namespace == "team" for _, namespace, _ in found)
    assert found["cloud", OTHER, OTHER] == max(hosts.values())
    gauge.set_function(lambda: hosts)
    assert shown(gauge) == {
        **{labels: value for labels, value in hosts.items() if value >= MAX_IN_NAMESPACE},
        ("cloud", "team", OTHER): MAX_IN_NAMESPACE - 1.0,
    }


def test_what_is_shown_among_equals_is_the_same_at_each_scrape(gauge: NamespaceGauge[float]) -> None:
    values: dict[gauges.Labels, float] = {("cloud", f"n{number:04}", "h"): 1.0 for number in range(2 * MAX_NAMESPACES)}
    gauge.set_function(lambda: dict(reversed(values.items())))
    first = shown(gauge)
    gauge.set_function(lambda: values)

    assert shown(gauge) == first


def test_of_credentials_the_soonest_expiry_is_the_worst(monkeypatch: pytest.MonkeyPatch) -> None:
    expiry = {("Secret", "team", "s", f"c{number}", ""): float(number) for number in range(MAX_IN_NAMESPACE + 5)}
    monkeypatch.setattr(credentials.EXPIRES, "_read", lambda: expiry)

    found = shown(credentials.EXPIRES)

    assert found["Secret", "team", "s", "c0", ""] == 0
    assert found["Secret", "team", OTHER, OTHER, OTHER] == MAX_IN_NAMESPACE


def test_use_and_limit_of_a_quota_are_shown_of_the_same_projects(monkeypatch: pytest.MonkeyPatch) -> None:
    used: dict[tuple[str, ...], Usage] = {
        ("team", "h", "", f"p{number}", "cores"): Usage(number, 100 + (number * 37) % 50) for number in range(100)
    }
    for each in QUOTAS:
        monkeypatch.setattr(each, "_read", lambda: used)

    amounts, limits = map(shown, QUOTAS)

    assert amounts.keys() == limits.keys()
    assert len(amounts) == MAX_IN_NAMESPACE + 1
    fullest = max(used, key=lambda labels: used[labels].used / used[labels].limit)
    assert (amounts[fullest], limits[fullest]) == used[fullest]
