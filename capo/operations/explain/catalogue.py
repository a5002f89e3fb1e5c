"""What each reason of a condition means and what the user can do: from the API's list and the error catalogue.

The meaning is the docstring of a reason in ``api/v1beta2/conditions.py``. The next step is the advice of the error of
that name; a reason without an error has it in its docstring, or says there that no action is needed.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final

from api import documented
from api.v1beta2.conditions import Reason
from capo import errors

NEXT_STEP: Final = "Next step: "
NO_ACTION: Final = "No action is needed"
_LATER: Final = "if it lasts, "
AT_FIRST: Final = f"{NO_ACTION} at first; {_LATER}"
SEE_MESSAGE: Final = "Do what the message says; it begins with the name of the error."
"""Next step of a reason that stands for many errors."""
OURS: Final = "Ours: "
_SPLIT: Final = re.compile(f"({NEXT_STEP}|{NO_ACTION})")


@dataclass(frozen=True)
class Explanation:
    """A reason in words.

    Args:
        next_step: what the user can do, or that no action is needed.
        retry: what is retried and when; empty if the next step includes it.
        is_error: whether an error of this name exists; its Events have the same reason.
        is_ours: whether the Go provider lacks it.
    """

    reason: str
    meaning: str
    next_step: str
    retry: str = ""
    is_error: bool = False
    is_ours: bool = False

    @property
    def needs_action(self) -> bool:
        """Whether the user has to do something."""
        return not self.next_step.startswith(NO_ACTION)

    def once_it_lasts(self) -> Explanation:
        """Return it for a condition that lasts: one that needs no action at first needs it then."""
        later = self.next_step.partition(_LATER)[2]
        return replace(self, next_step=_capitalized(later)) if later and not self.needs_action else self


def explain(reason: str) -> Explanation | None:
    """Return the explanation of a reason; None if it is not one of this provider's."""
    return explanations().get(reason)


@functools.lru_cache(maxsize=1)
def explanations() -> Mapping[str, Explanation]:
    """Return the explanation of each reason, in the order of the list."""
    by_reason = error_classes()
    texts = documented.meanings(Reason)
    return {str(Reason[name]): _explanation(str(Reason[name]), text, by_reason) for name, text in texts.items()}


def _explanation(reason: str, text: str, by_reason: Mapping[str, type[errors.CapoError]]) -> Explanation:
    is_ours = text.startswith(OURS)
    meaning, found, rest = [*_SPLIT.split(text.removeprefix(OURS), maxsplit=1), "", ""][:3]
    meaning = _capitalized(meaning.strip())
    if error := by_reason.get(reason):
        return Explanation(reason, meaning, error.advice, error.retry, is_error=True, is_ours=is_ours)
    next_step = _capitalized(rest) if found == NEXT_STEP else f"{found}{rest}"
    return Explanation(reason, meaning, next_step, is_ours=is_ours)


def _capitalized(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}"


def error_classes() -> dict[str, type[errors.CapoError]]:
    """Return the error of each reason; of those that share one, that with a reason of its own."""
    found = {each.reason: each for each in _below(errors.CapoError) if "reason" in vars(each)}
    return {reason: error for reason, error in found.items() if error is not errors.CapoError}


def _below(root: type[errors.CapoError]) -> Iterator[type[errors.CapoError]]:
    for each in root.__subclasses__():
        yield each
        yield from _below(each)
