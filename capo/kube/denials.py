"""Cache of denied writes, for writes that have an alternative."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from capo.caches import Bounded
from capo.kube.errors import Denied, KubeError
from capo.kube.kinds import Kind

REMEMBERED_S: Final = 600.0
MAX_REMEMBERED: Final = 4096
_FORBIDDEN: Final = 403
_Key = tuple[str, str, str]


@dataclass
class Denials:
    """Denials by verb, kind and namespace; a role may be bound in some namespaces only. Not thread-safe.

    Args:
        clock: monotonic seconds.
    """

    clock: Callable[[], float] = time.monotonic
    _until: Bounded[_Key, float] = field(default_factory=lambda: Bounded.by_number(MAX_REMEMBERED))

    def is_denied(self, verb: str, kind: Kind, namespace: str) -> bool:
        """Return whether this was denied within the last ten minutes."""
        until_s = self._until.get((verb, kind.group, namespace))
        return until_s is not None and self.clock() < until_s

    def in_order(self, verb: str, kinds: Sequence[Kind], namespace: str) -> list[Kind]:
        """Return the kinds in the order in which to try them: denied ones last, otherwise unchanged."""
        return sorted(kinds, key=lambda kind: self.is_denied(verb, kind, namespace))

    def note(self, verb: str, kind: Kind, namespace: str) -> bool:
        """Record a denial; return whether it is the first since this was last allowed."""
        key = verb, kind.group, namespace
        until_s, now_s = self._until.get(key), self.clock()
        # A denial that is repeated does not last longer: the right may have been granted.
        self._until.put(key, until_s if until_s is not None and now_s < until_s else now_s + REMEMBERED_S)
        return until_s is None

    def forget(self, verb: str, kind: Kind, namespace: str) -> None:
        """Record that this was allowed."""
        self._until.drop((verb, kind.group, namespace))


def is_for_want_of_rights(error: KubeError) -> bool:
    """Return whether the identity is known but lacks the right; 401 is no statement about rights."""
    return isinstance(error, Denied) and error.status == _FORBIDDEN and not is_terminating(error)


def is_terminating(error: KubeError) -> bool:
    """Return whether creates fail because the namespace is being deleted: a 403 for every identity."""
    return isinstance(error, Denied) and "because it is being terminated" in str(error)
