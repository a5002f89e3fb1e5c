"""Run an action for several resources; a failure does not stop the others."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable
from typing import TypeVar

from capo.errors import CapoError, NotYetObserved

T = TypeVar("T")


def try_each(items: Iterable[T], act: Callable[[T], object]) -> None:
    """Run the action for each item; raise failures after all were tried.

    Raises:
        CapoError: the first failure, with the messages of the others.
        NotYetObserved: no action failed, and at least one needs a list that is not complete.
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
