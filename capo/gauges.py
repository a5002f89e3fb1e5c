"""Gauges by namespace, and by other names that tenants choose: few and short, whatever these are.

Of each metric the worst series are shown, so that nothing hides what is worse, and many names in one namespace take
the place of none in another. The rest is one series, which is called ``Other`` and has the worst of its values.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final, Generic, TypeVar

from prometheus_client import REGISTRY
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

Labels = tuple[str, ...]
K = TypeVar("K", str, Labels)
V = TypeVar("V")

OTHER: Final = "Other"
"""No namespace is called so: their names are in lower case."""
NAMESPACE: Final = "namespace"
CHOSEN: Final = frozenset({NAMESPACE, "name", "host", "cloud", "region", "project"})
"""Labels whose values come from an object or a cloud. Those of all other labels are in the code."""
MAX_NAMESPACES: Final = 500
MAX_IN_NAMESPACE: Final = 20
"""Combinations of the other chosen labels in one namespace."""
MAX_LENGTH: Final = 253
"""As names of Kubernetes and of hosts have."""


class NamespaceGauge(Collector, Generic[V]):
    """A gauge with a label for the namespace, whose series are read at each scrape.

    Args:
        labels: those in ``CHOSEN`` are limited.
        rank: how bad a value is; the highest ones are shown.
        shown: what is exported of a value.
    """

    def __init__(
        self,
        name: str,
        documentation: str,
        labels: Labels,
        *,
        rank: Callable[[V], float],
        shown: Callable[[V], float],
    ) -> None:
        self.name, self.documentation, self.labels = name, documentation, labels
        self._rank, self._shown = rank, shown
        self._read: Callable[[], Mapping[Labels, V]] = dict
        self._at = labels.index(NAMESPACE)
        REGISTRY.register(self)

    def set_function(self, read: Callable[[], Mapping[Labels, V]]) -> None:
        """Show what a function returns: a value for each combination of labels. It is called from any thread."""
        self._read = read

    def describe(self) -> Iterator[Metric]:
        """Yield the metric without series: the registry does not read them to know its name."""
        yield GaugeMetricFamily(self.name, self.documentation, labels=self.labels)

    def collect(self) -> Iterator[Metric]:
        """Yield the metric."""
        family = GaugeMetricFamily(self.name, self.documentation, labels=self.labels)
        for labels, value in self._bounded().items():
            family.add_metric(labels, self._shown(value))
        yield family

    def _bounded(self) -> dict[Labels, V]:
        found = self._worst((self._renamed(labels, _cut), value) for labels, value in self._read().items())
        ranks: dict[str, dict[Labels, float]] = {}
        for labels, value in found.items():
            of_namespace, chosen, rank = ranks.setdefault(labels[self._at], {}), self._chosen(labels), self._rank(value)
            of_namespace[chosen] = max(rank, of_namespace.get(chosen, rank))
        namespaces = _highest(MAX_NAMESPACES, {name: max(each.values()) for name, each in ranks.items()})
        kept = {name: _highest(MAX_IN_NAMESPACE, ranks[name]) for name in namespaces}
        return self._worst((self._kept(labels, kept), value) for labels, value in found.items())

    def _kept(self, labels: Labels, kept: Mapping[str, set[Labels]]) -> Labels:
        """Return the labels of a series, or those of the series of the rest."""
        namespace = labels[self._at]
        if namespace not in kept:
            return self._renamed(labels, lambda _: OTHER)
        if self._chosen(labels) in kept[namespace]:
            return labels
        others = self._renamed(labels, lambda _: OTHER)
        return *others[: self._at], namespace, *others[self._at + 1 :]

    def _chosen(self, labels: Labels) -> Labels:
        return tuple(value for label, value in zip(self.labels, labels, strict=True) if label in CHOSEN)

    def _renamed(self, labels: Labels, rename: Callable[[str], str]) -> Labels:
        named = zip(self.labels, labels, strict=True)
        return tuple(rename(value) if label in CHOSEN else value for label, value in named)

    def _worst(self, series: Iterable[tuple[Labels, V]]) -> dict[Labels, V]:
        """Return one value for each combination of labels: the worst one."""
        found: dict[Labels, V] = {}
        for labels, value in series:
            found[labels] = max(value, found.get(labels, value), key=self._rank)
        return found


def _cut(text: str) -> str:
    return text if len(text) <= MAX_LENGTH else f"{text[: MAX_LENGTH - 3]}..."


def _highest(most: int, ranks: Mapping[K, float]) -> set[K]:
    """Return those of the highest rank, of equal ones always the same."""
    if len(ranks) <= most:
        return set(ranks)
    return set(heapq.nsmallest(most, ranks, key=lambda each: (-ranks[each], each)))


def of_number(name: str, documentation: str, labels: Labels) -> NamespaceGauge[float]:
    """Return a gauge of numbers, of which the highest is the worst."""
    return NamespaceGauge(name, documentation, labels, rank=float, shown=float)
