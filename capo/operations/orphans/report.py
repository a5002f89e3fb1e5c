"""Orphans and results of a deletion, for people and for programs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from capo.json_types import Json
from capo.operations.console import Cell, Console, Node
from capo.operations.inventory import report
from capo.operations.orphans.deletion import Outcome, Report
from capo.operations.orphans.findings import Orphan
from capo.operations.orphans.plan import Together

COLUMNS: Final = ("RESOURCE", "NAME", "STATE", "AGE", "SIZE", "DELETED")
WIDE: Final = ("ID", "PROJECT", "PROOF")
_STYLES: Final = {Outcome.DELETED: "good", Outcome.GONE: "dim", Outcome.KEPT: "warning", Outcome.FAILED: "bad"}


def show(orphans: Sequence[Orphan], document: Json, console: Console) -> None:
    """Print orphans; programs get the document of the plan.

    Args:
        document: a plan that approves nothing.
    """
    if console.wants_data:
        console.data(document)
        return
    if not orphans:
        console.line("no orphans")
        return
    columns = (*COLUMNS, *(WIDE if console.is_wide else ()))
    together = Together(orphans)
    rows: dict[str, list[Node]] = {}
    for each in orphans:
        rows.setdefault(_label(each), []).append(_row(each, _way(each, together), is_wide=console.is_wide))
    console.tree(columns, [Node(label, (), rows[label]) for label in sorted(rows)])


def _label(orphan: Orphan) -> str:
    mine = orphan.attribution
    cluster = f" of {mine.cluster}" if mine.cluster else ""
    return f"owner {mine.owner_id}{cluster}" if mine.owner_id else f"by name{cluster}"


def _row(orphan: Orphan, way: Cell, *, is_wide: bool) -> Node:
    resource, role = orphan.resource, orphan.attribution.role
    cells: list[str | Cell] = [
        resource.name,
        Cell(resource.state, report.style_of(resource.state)),
        report.age(resource.age_s),
        str(resource.size),
        way,
    ]
    more = [resource.id, resource.location, orphan.proof] if is_wide else []
    shown = f" {role}" if role and role not in (resource.word, "workload") else ""
    return Node(f"{resource.word}{shown}", [*cells, *more])


def _way(orphan: Orphan, together: Together) -> Cell:
    """Return how a reviewer can approve the deletion."""
    if orphan.refusal:
        return Cell(f"not now: {orphan.refusal}", "bad")
    doubts = orphan.left_doubts(together.of(orphan))
    return Cell(f"singly: {doubts[0]}", "warning") if doubts else Cell("by owner")


def show_results(results: Sequence[Report], console: Console, *, is_rehearsal: bool) -> None:
    """Print what became of planned resources."""
    if console.wants_data:
        console.data([_result(each) for each in results])
        return
    rows = [_cells(each, is_rehearsal=is_rehearsal) for each in results]
    console.table(("RESOURCE", "ID", "OWNER", "RESULT", "REASON"), rows)


def _cells(result: Report, *, is_rehearsal: bool) -> list[str | Cell]:
    kind, id_ = result.planned.key
    is_future = is_rehearsal and result.outcome is Outcome.DELETED
    word = "would be deleted" if is_future else result.outcome.value
    return [kind.replace("_", " "), id_, result.planned.owner, Cell(word, _STYLES[result.outcome]), result.reason]


def _result(result: Report) -> Json:
    kind, id_ = result.planned.key
    return {
        "kind": kind,
        "id": id_,
        "project": result.planned.project,
        "owner": result.planned.owner,
        "result": result.outcome.value,
        "reason": result.reason,
    }
