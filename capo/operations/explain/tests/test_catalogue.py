"""Each reason has a meaning and one next step: there is no second list of them."""

from __future__ import annotations

import pytest

from api import documented
from api.v1beta2.conditions import Reason
from capo import errors
from capo.operations.explain import catalogue

pytestmark = pytest.mark.lint


@pytest.mark.parametrize("reason", Reason)
def test_every_reason_has_one_next_step(reason: Reason) -> None:
    text = documented.meanings(Reason)[reason.name]
    stated = [words for words in (catalogue.NEXT_STEP, catalogue.NO_ACTION) if words in text]
    found = catalogue.explain(reason)

    assert found is not None
    assert found.meaning.endswith(".")
    assert found.next_step.endswith(".")
    assert len(stated) == (0 if found.is_error else 1), "an error's advice is its next step; other reasons state one"


def test_a_reason_of_somebody_else_has_no_explanation() -> None:
    assert catalogue.explain("NodeNotReady") is None


def test_an_error_has_its_own_advice() -> None:
    found = catalogue.explain("QuotaExceeded")

    assert found is not None
    assert (found.next_step, found.needs_action) == (errors.QuotaExceededError.advice, True)
    waiting = catalogue.explain("Building")
    assert waiting is not None
    assert not waiting.needs_action
