"""Controllers read OpenStack's resources through the views of ``capo/openstack``, never by the keys of an answer.

Such keys have underscores, or the name of an extension and a colon; those of Kubernetes objects have neither.
"""

from __future__ import annotations

import ast
import importlib
import pkgutil
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

import controllers
from capo import openstack
from capo.openstack import kinds
from capo.openstack.view import Field, View

pytestmark = pytest.mark.lint

ROOT: Final = Path(controllers.__file__).parent
SHARED: Final = frozenset(
    {"address", "addresses", "created", "id", "image", "message", "metadata", "name", "status", "tags"}
)
"""Keys of answers that are keys of Kubernetes objects as well."""
KINDS: Final = frozenset(kinds.KINDS)
"""Arguments of ``CloudView.get``, no keys."""
EXTENSION: Final = re.compile(r"[Oo][Ss]-[A-Za-z-]+:\w+")
"""A key that a service spells with the name of its extension."""


def viewed() -> set[str]:
    """Return the first keys of all fields that views have."""
    for module in pkgutil.iter_modules(openstack.__path__, "capo.openstack."):
        if not module.ispkg:
            importlib.import_module(module.name)
    found = (each for each in View.__subclasses__() if ".tests." not in each.__module__)
    return {field.path[0] for each in found for field in vars(each).values() if isinstance(field, Field)} - SHARED


def raw_keys(source: str, known: set[str]) -> Iterator[tuple[int, str]]:
    """Yield line and key of each read by a key that only OpenStack has."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Subscript(slice=ast.Constant(value=str(key)), ctx=ast.Load()) if key in known or "_" in key:
                yield node.lineno, key
            case ast.Call(func=ast.Attribute(attr="get"), args=[ast.Constant(value=str(key)), *_]) if key in known or (
                "_" in key and key not in KINDS
            ):
                yield node.lineno, key
            case ast.Constant(value=str(key)) if EXTENSION.fullmatch(key):
                yield node.lineno, key


def files() -> list[Path]:
    return [path for path in sorted(ROOT.rglob("*.py")) if "tests" not in path.parts]


@pytest.mark.parametrize("path", files(), ids=lambda path: str(path.relative_to(ROOT)))
def test_a_controller_reads_no_resource_by_the_key_of_an_answer(path: Path) -> None:
    assert list(raw_keys(path.read_text(encoding="utf-8"), viewed())) == [], "read it through a view of capo/openstack"


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("server.get('hostId')", [(1, "hostId")]),
        ("server['hostId']", [(1, "hostId")]),
        ("changes['hostId'] = host", []),
        ("body['created_at'], body.get('server_id')", [(1, "created_at"), (1, "server_id")]),
        ("view.get('floating_ip', known)", []),
        ("x = 'OS-EXT-STS:task_state'", [(1, "OS-EXT-STS:task_state")]),
        ("server.host_id, obj['metadata'], obj.get('status')", []),
    ],
)
def test_reads_by_key_are_found_however_they_are_written(source: str, found: list[tuple[int, str]]) -> None:
    assert list(raw_keys(source, viewed())) == found
