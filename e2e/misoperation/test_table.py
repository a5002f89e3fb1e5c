"""Each row of the table on a running object: the outcome of a wrong value, and that its removal restores everything.

``MISOPERATION=all`` runs every value of every field. Without it, one wrong value per field is tested, and of types
that occur in several places, a third of the rows; a search (``SAMPLE=<seed>``) runs others. ``MISOPERATION=write`` runs
every value and writes the outcomes into ``table``, to be reviewed like code.
"""

from __future__ import annotations

import collections
import os
import random
import re
from collections.abc import Iterator
from typing import Final

import pytest

from capo.json_types import Json
from capo.webhooks.tests.table import places
from e2e import sampling
from e2e.misoperation import bases, expected, rows, trial
from e2e.misoperation.environment import PLACE, RunningObjectEnvironment
from e2e.misoperation.rows import Row
from e2e.misoperation.trial import REFUSED, SAME, Result

SEED: Final = sampling.seed()
MODE: Final = os.environ.get("MISOPERATION", "")
TABLE: Final = rows.table()
FAMILY: Final = re.compile(r"spec(\.template)?(\.metadata|\.spec)?(\.bastion)?(\.spec)?(\.\w+)?")
"""The common part of the paths of the rows of one test."""
REPEATED: Final = re.compile(r"spec\.bastion\..*\.filter\..*|.*\.(controlPlane|worker)NodesSecurityGroupRules\[\].*")
"""Types that occur in several places: the same code handles each, so only a share of their rows is run."""
SHARE: Final = 3
"""One in this number of those rows is run, always the same ones; others by a search."""


def families() -> dict[str, list[Row]]:
    """Return the rows by kind and field; each family is one test."""
    found: dict[str, list[Row]] = collections.defaultdict(list)
    for row in TABLE:
        match = FAMILY.match(row.path)
        found[f"{row.kind} {match[0] if match else row.path}"].append(row)
    return found


FAMILIES: Final = families()


def chosen(family: str) -> list[Row]:
    """Return the rows to run: of the wrong values of a field, the first that is admitted, if one is."""
    if MODE:
        return FAMILIES[family]
    found: dict[tuple[str, str], Row] = {}
    for row in FAMILIES[family]:
        key = (row.path, row.edit)
        if key not in found or (is_refused(found[key]) and not is_refused(row)):
            found[key] = row
    return [row for row in found.values() if is_refused(row) or not REPEATED.fullmatch(row.path) or is_drawn(row)]


def is_drawn(row: Row) -> bool:
    return random.Random(f"{SEED} {row}").randrange(SHARE) == 0


def is_refused(row: Row) -> bool:
    return expected.written(row.kind).get(row.text, "").startswith(REFUSED)


def existing(row: Row) -> Json:
    """Return an object like the running one, only for the webhooks."""
    metadata = {"name": "one", "namespace": "default"}
    spec = rows.base_of(row.version)
    return {"apiVersion": row.version.api_version, "kind": row.kind, "metadata": metadata, "spec": spec}


class Environments:
    """The running objects: one of each kind, replaced after a row that leaves it changed."""

    def __init__(self) -> None:
        self._running: dict[str, RunningObjectEnvironment] = {}
        self.results: dict[str, dict[str, str]] = collections.defaultdict(dict)

    def run(self, row: Row) -> Result:
        """Return the outcome of a row; nothing runs for a template of clusters, or an edit that means the same."""
        verdict, result = trial.review(row, existing(row))
        if row.kind not in PLACE or (result and result.outcome == SAME and not MODE):
            result = result or trial.idle(row, verdict)
        else:
            result = self._on_running_object(row)
        self.results[row.kind][row.text] = str(result)
        return result

    def _on_running_object(self, row: Row) -> Result:
        if row.kind not in self._running:
            self._running[row.kind] = RunningObjectEnvironment(row.kind)
        try:
            result = trial.run(row, self._running[row.kind])
        except Exception:
            self.drop(row.kind)
            raise
        if result.problems:
            self.drop(row.kind)
        return result

    def drop(self, kind: str) -> None:
        """Stop the running object of a kind; the next row creates a new one."""
        self._running.pop(kind).__exit__()

    def end(self) -> None:
        """Stop everything."""
        for kind in list(self._running):
            self.drop(kind)


@pytest.fixture(scope="module")
def environments() -> Iterator[Environments]:
    made = Environments()
    yield made
    made.end()
    if MODE == "write":
        for kind, results in made.results.items():
            expected.write(kind, results)


def complaints(row: Row, result: Result) -> list[str]:
    """Return what is wrong about the outcome of a row."""
    found = [f"{row}: {problem}" for problem in result.problems]
    line, is_permitted = expected.exempt(row), result.outcome in expected.permitted(row)
    if line in expected.KNOWN and result.outcome != line.outcome:
        found.append(f"{row}: {result}, but is listed as {line.outcome} ({line.reason}): take it off the list")
    elif not is_permitted and (line is None or result.outcome != line.outcome):
        says = line.reason if line else expected.sentence(row) or "nothing on when it may change"
        found.append("\n    ".join([f"{row}: {result}, but: {says}", *result.texts]))
    if MODE != "write" and (known := expected.written(row.kind).get(row.text)) != str(result):
        found.append(f"{row}: {result}, but the written table says {known}: see README.md")
    return found


@pytest.mark.parametrize("family", FAMILIES)
def test_a_wrong_value_is_refused_or_shown_and_all_is_as_before_when_it_is_gone(
    environments: Environments, family: str
) -> None:
    found = [text for row in chosen(family) for text in complaints(row, environments.run(row))]

    assert not found, "\n".join(found)


def test_every_kind_has_a_spec_to_start_from() -> None:
    kinds = {version.kind for version in rows.STORED}

    assert kinds == {*bases.BASES}
    assert kinds - {"OpenStackClusterTemplate"} == {*PLACE}


@pytest.mark.parametrize("version", rows.STORED, ids=str)
def test_every_field_has_a_row_and_every_row_a_line_in_the_written_table(version: places.Version) -> None:
    found = [row for row in TABLE if row.kind == version.kind]
    fields = {
        path
        for path, schema in places.schemas(version)
        if path.startswith("spec.") and schema["type"] not in ("object", "array")
    }

    assert fields - {row.path for row in found} == set()
    assert [row.text for row in found] == list(expected.written(version.kind))


@pytest.mark.parametrize("line", [*expected.RIGHT, *expected.KNOWN], ids=lambda line: line.text)
def test_no_line_of_the_exceptions_is_left_over(line: expected.Exempt) -> None:
    assert any(line.covers(row) for row in TABLE)
    assert len([row for row in TABLE if expected.exempt(row) is line]) > 0
