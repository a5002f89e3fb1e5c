"""Generates pages of ``docs/reference`` from the source; pure."""

from __future__ import annotations

import ast
import inspect
import itertools
from enum import StrEnum
from typing import Final

from api.v1beta2.conditions import ConditionType, Reason

_INTRO: Final = """\
<!-- Generated from api/v1beta2/conditions.py by `capo crds --write`; do not edit. -->
# Conditions

`kubectl describe` and `clusterctl describe cluster --show-conditions all` show them. Those that the Go provider has
too keep its meaning; those marked *ours* are added.
"""


def conditions_page() -> str:
    """Return the page of all condition types and reasons."""
    return "\n".join((_INTRO, *_table("Types", ConditionType), "", *_table("Reasons", Reason), ""))


def _table(title: str, members: type[StrEnum]) -> list[str]:
    rows = [f"| `{members[name]}` | {text} |" for name, text in meanings(members).items()]
    return [f"## {title}", "", f"| {title[:-1]} | Meaning |", "| --- | --- |", *rows]


def meanings(members: type[StrEnum]) -> dict[str, str]:
    """Return the docstring below each member of an enumeration, by the member's name."""
    body = ast.parse(inspect.getsource(members)).body[0]
    statements = body.body if isinstance(body, ast.ClassDef) else []
    found: dict[str, str] = {}
    for member, text in itertools.pairwise(statements):
        match member, text:
            case ast.Assign(targets=[ast.Name(id=name)]), ast.Expr(value=ast.Constant(value=str(meaning))):
                found[name] = _marked(" ".join(meaning.split()))
    return found


def _marked(meaning: str) -> str:
    head, separator, rest = meaning.partition("Ours: ")
    return f"*Ours*: {rest}" if separator and not head else meaning
