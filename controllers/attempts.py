"""The same attempt for several resources: one that is stuck holds up none of the others."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable
from typing import TypeVar

from capo.errors import CapoError, NotYetObserved

T = TypeVar("T")


def try_each(items: Iterable[T], act: Callable[[T], object]) -> None:
    """Act on each item; report failures once all were tried.

    Raises:
        CapoError: the first failure, with the words of the others.
        NotYetObserved: nothing failed, and something is not known yet.
    """
    errors: list[CapoError] = []
    unseen: list[NotYetObserved] = []
    for item in items:
        try:
            act(item)
        except CapoError as error:
            errors.append(error)
        except NotYetObserved as error:
            unseen.append(error)
    if errors:
        raise _joined(errors) from errors[0]
    if unseen:
        raise unseen[0]


def _joined(errors: list[CapoError]) -> CapoError:
    first, *others = errors
    also = dict.fromkeys(other.message for other in others if other.message != first.message)
    joined = copy.copy(first)
    joined.message = "; also: ".join([first.message, *also])
    return joined
