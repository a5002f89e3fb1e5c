"""Every regular expression of the program runs in linear time, so that no text can stop it."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Final

import pytest

from capo.openstack import faults
from capo.tests import backtracking, patterns
from capo.tests.patterns import Place

pytestmark = pytest.mark.lint

ROOT: Final = Path(__file__).parents[2]
FOLDERS: Final = [ROOT / name for name in ("api", "capo", "controllers")]
PLACES: Final = [place for folder in FOLDERS for place in patterns.under(folder, ROOT)]

UNSEEN: Final[dict[tuple[str, str], Iterable[str]]] = {
    ("capo/openstack/faults.py", "expression"): [e for row in faults.TABLE for e in row.words.split(faults.THEN)],
}
"""Expressions that only exist while the program runs."""
TRUSTED: Final[dict[str, str]] = {
    "capo/components/chart.py": "reads the chart of this project when a release is made",
    "capo/crdgen/mutability.py": "reads docstrings of this project when the definitions are generated",
    "capo/local/demo/counting.py": "reads the manager's own metrics for the demo",
    "capo/simulator/nova/listing.py": "filters that are expressions, as Nova's are; the simulator is for tests",
    "capo/simulator/nova/servers.py": "orders of a test to the simulator",
    "capo/simulator/octavia/state.py": "orders of a test to the simulator",
    "capo/simulator/validation.py": "orders of a test to the simulator",
}
"""Files whose expressions may be slow or unseen, and why no untrusted text reaches them."""


def slow(pattern: str, flags: int, modes: Iterable[tuple[bool, bool]]) -> list[str]:
    found = []
    for is_search, is_full in modes:
        try:
            word = backtracking.pumpable(pattern, flags, is_search=is_search, is_full=is_full)
        except backtracking.UnreadableError as error:
            found.append(f"{error} in {pattern!r}: write it without")
        else:
            found += [f"{pattern!r} is slow where a text repeats {word!r}"] if word else []
    return found


def complaints(place: Place) -> list[str]:
    known = [place.pattern] if place.pattern is not None else UNSEEN.get((place.file, place.source))
    if known is None:
        return [f"{place.source} is only known when it runs: list it in UNSEEN"]
    return [complaint for pattern in known for complaint in slow(pattern, place.flags, place.modes)]


@pytest.mark.parametrize("place", [p for p in PLACES if p.file not in TRUSTED], ids=lambda place: place.name)
def test_the_time_of_each_expression_is_linear_in_the_text(place: Place) -> None:
    assert complaints(place) == []


@pytest.mark.parametrize("file", TRUSTED)
def test_a_file_is_exempt_only_while_it_has_to_be(file: str) -> None:
    assert [complaint for place in PLACES if place.file == file for complaint in complaints(place)] != []


def test_expressions_are_found_in_all_parts_of_the_program() -> None:
    found = {place.file for place in PLACES}

    assert {"capo/redaction.py", "capo/openstack/faults.py", "controllers/openstackserver/nova_faults.py"} <= found
    assert "capo/names.py" in found


def test_no_file_hides_its_calls_behind_names_of_its_own() -> None:
    texts = {path: path.read_text(encoding="utf-8") for folder in FOLDERS for path in patterns.files(folder)}

    assert [str(path) for path, text in texts.items() if patterns.imports_names_of_re(text)] == []


def test_no_expression_is_compiled_by_other_means() -> None:
    """The API server applies the CRDs' patterns; the program would apply pydantic's own."""
    texts = {path: path.read_text(encoding="utf-8") for folder in FOLDERS for path in patterns.files(folder)}

    assert [str(path) for path, text in texts.items() if "import regex" in text or "StringConstraints" in text] == []


NAMED_BEFORE = r"""(?P<q>\\{0,7}["'])(?:password)(?P=q)\s*:\s*(?P=q)(?:\\\\.|(?!(?P=q)).)*(?P=q)"""


@pytest.mark.parametrize(
    ("code", "is_slow"),
    [
        pytest.param(f"re.search({NAMED_BEFORE!r}, text)", True, id="quoted values"),
        pytest.param(r"re.sub(r'\beyJ[\w-]{10,}\.[\w-]+', '', text)", True, id="JSON Web Tokens"),
        pytest.param("re.sub('<(style|title)\\\\b.*?</x>|<[^>]*>', '', text)", True, id="HTML"),
        pytest.param("re.search('volume .*(status|already)', text, re.I)", True, id="words in order"),
        pytest.param(r"re.sub(r'\s*<br>', ' ', text)", True, id="white space before a word"),
        pytest.param("re.search('a*a*b', text)", True, id="two loops side by side"),
        pytest.param("re.fullmatch('(a+)+', text)", True, id="a loop in a loop"),
        pytest.param("re.fullmatch('(a|aa)*', text)", True, id="two ways in a loop"),
        pytest.param("re.fullmatch('(a{0,30}b?){0,30}', text)", True, id="a bounded loop in a bounded loop"),
        pytest.param("re.compile('a+b').search(text)", True, id="compiled"),
        pytest.param("PART = 'a*'\nWHOLE = re.compile(rf'{PART}{PART}b')\nWHOLE.match(text)", True, id="put together"),
        pytest.param("re.search(given, text)", True, id="only known when it runs"),
        pytest.param("re.match('a+b', text)", False, id="a loop at the beginning"),
        pytest.param("re.search('^a+b', text)", False, id="a search at the beginning"),
        pytest.param("re.search('a+', text)", False, id="a search that cannot fail once it began"),
        pytest.param(r"re.search(r'Image \S+ is not active', text)", False, id="a loop that no beginning is in"),
        pytest.param("re.fullmatch('a{1,60}b', text)", False, id="a bounded loop"),
    ],
)
def test_an_expression_that_is_not_linear_is_found(code: str, is_slow: bool) -> None:
    places = patterns.in_text(code)

    assert places != []
    assert bool([complaint for place in places for complaint in complaints(place)]) == is_slow
