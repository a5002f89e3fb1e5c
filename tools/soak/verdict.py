"""Whether a manager stays as it is: each measure in the last quarter of a run against its second quarter."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from tools.soak.sampler import Sample


@dataclass(frozen=True)
class Measure:
    """What must not grow.

    Args:
        factor: growth of the median that is tolerated, and ``more`` in addition.
    """

    name: str
    unit: str
    value: Callable[[Sample], float | None]
    factor: float = 1.0
    more: float = 0.0

    def values(self, samples: Sequence[Sample]) -> list[float]:
        """Return the values of the samples that have one."""
        return [value for value in map(self.value, samples) if value is not None]


KEPT_S: Final[Mapping[str, float]] = {
    "cloud_owners": 1800.0,
    "cloud_resources": 3600.0,
    "clusters_in_place": 86400.0,
    "edits": math.inf,
    "events": math.inf,
    "minted_owners": math.inf,
    "quota_places": 86400.0,
    "tombstones": math.inf,
}
"""For how long a cache keeps what is gone; one without a time fills up to its bound (``docs/reference/metrics.md``)."""


MEASURES: Final = (
    Measure("memory of the manager", "MiB", lambda s: s.manager_mib, factor=1.05, more=2.0),
    Measure("memory of the webhooks", "MiB", lambda s: s.webhooks_mib, factor=1.05, more=2.0),
    Measure("threads", "", lambda s: s.threads, more=4.0),
    Measure("file descriptors", "", lambda s: s.files, more=6.0),
    Measure("sockets", "", lambda s: s.sockets, more=6.0),
    Measure("queue", "", lambda s: s.queue, more=10.0),
    Measure("99 % of the reconciles within", "s", lambda s: s.reconcile_p99_s, factor=2.0, more=0.1),
    Measure("until a machine is ready", "s", lambda s: s.ready_s, factor=1.5, more=2.0),
)
"""Memory of Python is not returned to the system at once: what 5 % hide in one run shows in a longer one."""


@dataclass(frozen=True)
class Finding:
    """The medians of one measure."""

    measure: Measure
    early: float
    late: float
    highest: float

    @property
    def is_flat(self) -> bool:
        """Return whether the late median is within the tolerated growth."""
        return self.late <= self.early * self.measure.factor + self.measure.more


def entries(settled_s: float) -> Measure:
    """Return the measure of what is in memory, without caches that keep for longer than ``settled_s`` what is gone."""

    def counted(sample: Sample) -> float:
        return sum(count for cache, count in sample.entries.items() if KEPT_S.get(cache, 0.0) <= settled_s)

    return Measure("entries in memory", "", counted, factor=1.05, more=50.0)


def findings(samples: Sequence[Sample]) -> list[Finding]:
    """Return a finding for each measure; pure.

    Args:
        samples: in order, at least eight; the first quarter is the warm-up.
    """
    quarter = len(samples) // 4
    if quarter < 2:
        raise ValueError(f"{len(samples)} samples are too few for a verdict")
    early, late = samples[quarter : 2 * quarter], samples[-quarter:]
    found = []
    for measure in (*MEASURES, entries(early[0].at_s)):
        first, last = measure.values(early), measure.values(late)
        if first and last:
            highest = max(measure.values(samples))
            found.append(Finding(measure, statistics.median(first), statistics.median(last), highest))
    return found
