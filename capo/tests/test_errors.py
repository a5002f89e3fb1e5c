import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from capo import errors
from capo.errors import CapoError

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "errors.md"
BASES = (errors.CapoError, errors.RetryableError, errors.TerminalError, errors.ReferenceNotFoundError)


def leaves(kind: type[CapoError] = CapoError) -> Iterator[type[CapoError]]:
    for each in kind.__subclasses__():
        if each not in BASES:
            yield each
        yield from leaves(each)


def documented() -> dict[str, str]:
    return dict(re.findall(r"^### (\w+)\n\n`(\w+)`\.", PAGE.read_text(), flags=re.MULTILINE))


def test_every_error_has_an_entry_and_every_entry_is_an_error() -> None:
    assert documented() == {kind.reason: kind.__name__ for kind in leaves()}


def test_every_heading_names_its_error() -> None:
    headings = re.findall(r"^### (.*)$", PAGE.read_text(), flags=re.MULTILINE)

    assert sorted(headings) == sorted(documented())


@pytest.mark.parametrize("kind", list(leaves()), ids=lambda kind: str(kind.__name__))
def test_every_error_is_drawn_in_the_tree_and_says_what_to_do(kind: type[CapoError]) -> None:
    assert kind.__name__ in (errors.__doc__ or "")
    assert kind.reason != CapoError.reason
    assert kind.advice.endswith(".")
    assert kind.advice != CapoError.advice


def test_a_sentence_has_reason_resource_words_request_and_next_step() -> None:
    error = errors.QuotaExceededError("Quota exceeded for cores", request_id="req-1", resource="server x")

    assert error.sentence == (
        "QuotaExceeded [server x]: Quota exceeded for cores (request req-1). "
        "Raise the project's quota or remove something. Retried within 2 minutes."
    )


def test_an_error_is_withheld_with_its_resource_and_keeps_the_rest() -> None:
    full = errors.BlockedError("used by p1", resource="port p1", request_id="req-1", if_shared="in use")

    shown = full.withheld()

    assert shown.sentence == full.sentence.replace(" [port p1]: used by p1", ": in use; the manager's log has more")
    assert "p1" not in str(shown)
    assert full.message == "used by p1"


def test_an_error_that_names_nothing_of_others_is_shown_as_it_is() -> None:
    full = errors.BlockedError("it is busy", resource="port p1")

    assert full.withheld() is full


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        pytest.param("No valid host was found. .", "No valid host was found", id="full stops"),
        pytest.param("NetworkNotFound: Network x could not be found.", "Network x could not be found", id="its reason"),
        pytest.param("a very long tale...", "a very long tale...", id="cut short"),
    ],
)
def test_a_sentence_says_nothing_twice(message: str, shown: str) -> None:
    error = errors.NetworkNotFoundError(message, request_id="req-1", next_step="Go on.")

    assert error.sentence == f"NetworkNotFound: {shown} (request req-1). Go on. {error.retry}"


@pytest.mark.parametrize("error", [errors.QuotaExceededError, errors.InvalidSpecError, errors.ImageNotFoundError])
def test_a_sentence_says_what_is_tried_again_and_when(error: type[errors.CapoError]) -> None:
    assert "Retried" in error("no").sentence
    assert "2 minutes" in error("no").sentence


def test_what_never_is_tried_again_says_so() -> None:
    assert "never recreates" in errors.ServerFailedError("the-id", fault="no").sentence
