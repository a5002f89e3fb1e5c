"""Docstrings of the members of an enumeration, as data: what condition types and reasons mean."""

from __future__ import annotations

import ast
import inspect
import itertools
from enum import StrEnum


def meanings(members: type[StrEnum]) -> dict[str, str]:
    """Return the docstring below each member of an enumeration, by the member's name."""
    body = ast.parse(inspect.getsource(members)).body[0]
    statements = body.body if isinstance(body, ast.ClassDef) else []
    found: dict[str, str] = {}
    for member, text in itertools.pairwise(statements):
        match member, text:
            case ast.Assign(targets=[ast.Name(id=name)]), ast.Expr(value=ast.Constant(value=str(meaning))):
                found[name] = " ".join(meaning.split())
    return found
