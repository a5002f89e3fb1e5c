"""Files of operators' commands: written for their user alone, and read within limits, for others may have sent them."""

from __future__ import annotations

import os
import re
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, cast

import yaml

from capo.operations.errors import OperatorError

MAX_BYTES: Final = 16 * 2**20
MAX_DEPTH: Final = 100
MAX_VALUES: Final = 500_000
"""Values of a file, aliases expanded; a plan has some forty for each resource."""
ID: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:-]{0,254}")
"""An id of a resource that may be a part of a URL."""
_MAX_DIGITS: Final = 64
_PREFIX: Final = "tag:yaml.org,2002:"
_JSON: Final = frozenset(f"{_PREFIX}{name}" for name in ("null", "bool", "int", "float", "str", "seq", "map"))


def to_yaml(value: Any) -> str:
    """Return a value as YAML; all but ASCII is escaped, for other characters can hide or reorder what a reader sees."""
    return yaml.safe_dump(value, sort_keys=False, width=120, allow_unicode=False)


def write_new(path: Path, text: str) -> None:
    """Write a new file that its user alone may read; one that someone may be reviewing is not replaced.

    Raises:
        OperatorError: the file exists, or cannot be written.
    """
    try:
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError as error:
        raise OperatorError(f"{path} exists, and is not replaced") from error
    except OSError as error:
        raise OperatorError(f"{path} cannot be written: {error.strerror}") from error


def replace(path: Path, text: str) -> None:
    """Write a file that its user alone may read, in place of one that may have been open to others.

    Raises:
        OperatorError: it cannot be written, or the path is that of something else than a file.
    """
    if path.exists() and not path.is_file():
        raise OperatorError(f"{path} is no file")
    try:
        with tempfile.NamedTemporaryFile(  # its mode is 0600
            "w", encoding="utf-8", dir=path.parent, prefix=f".{path.name}.", delete=False
        ) as draft:
            try:
                draft.write(text)
                draft.close()
                Path(draft.name).replace(path)
            except BaseException:
                Path(draft.name).unlink(missing_ok=True)
                raise
    except OSError as error:
        raise OperatorError(f"{path} cannot be written: {error.strerror}") from error


def document(path: Path) -> Any:
    """Return the only document of a file; None if it is empty.

    Raises:
        OperatorError: as :func:`documents`, or there are several.
    """
    found = documents(str(path))
    if len(found) > 1:
        raise OperatorError(f"{path} has {len(found)} documents, not one")
    return found[0] if found else None


def documents(path: str) -> list[Any]:
    """Return the documents of a file of YAML or JSON, as values of JSON; ``-`` is stdin.

    Raises:
        OperatorError: it cannot be read, is not YAML, or exceeds a limit.
    """
    text = _text(path)
    try:
        return list(yaml.load_all(text, _Loader))
    except _LimitError as error:
        raise OperatorError(f"{path} cannot be read: {error}") from None
    except (yaml.YAMLError, ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        where = f" (line {mark.line + 1})" if mark else ""
        raise OperatorError(f"{path} is not YAML{where} and cannot be read") from None  # the cause may quote a Secret


def _text(path: str) -> str:
    try:
        if path == "-":
            found = sys.stdin.read(MAX_BYTES + 1)
        else:
            with Path(path).open("rb") as file:
                found = file.read(MAX_BYTES + 1).decode()
    except UnicodeDecodeError as error:
        raise OperatorError(f"{path} cannot be read: it is not UTF-8") from error
    except OSError as error:
        raise OperatorError(f"{path} cannot be read: {error.strerror}") from error
    if len(found) > MAX_BYTES:
        raise OperatorError(f"{path} cannot be read: it is larger than {MAX_BYTES // 2**20} MiB")
    return found


class _LimitError(Exception):
    """A document exceeds a limit."""


class _Loader(yaml.SafeLoader):
    """Reads values of JSON, as kubectl does: a time is text."""

    yaml_implicit_resolvers = {
        first: [(tag, pattern) for tag, pattern in known if tag in _JSON or tag == f"{_PREFIX}merge"]
        for first, known in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }
    yaml_constructors = {
        tag: construct for tag, construct in yaml.SafeLoader.yaml_constructors.items() if tag is None or tag in _JSON
    }

    def __init__(self, stream: str) -> None:
        super().__init__(stream)
        self._depth = self._values = 0
        self._sizes: dict[str, int] = {}
        """Values of what has an anchor, by its name."""

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        """Return the next value; it counts as often as aliases repeat it."""
        event = cast(Any, self).peek_event()
        anchor = event.anchor
        if isinstance(event, yaml.AliasEvent):
            if anchor in self.anchors and anchor not in self._sizes:
                raise _LimitError("an alias is a part of what it stands for")
            self._count(self._sizes.get(anchor, 1))
            return super().compose_node(parent, index)
        before = self._values
        self._count(1)
        self._sizes.pop(anchor, None)
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise _LimitError(f"it is nested deeper than {MAX_DEPTH} levels")
        node = super().compose_node(parent, index)
        self._depth -= 1
        if isinstance(parent, yaml.MappingNode) and index is None and node is not None and node.tag in _JSON:
            node.tag = f"{_PREFIX}str"  # of a key; a list or a mapping as key fails when it is constructed
        if anchor is not None:
            self._sizes[anchor] = self._values - before
        return node

    def _count(self, values: int) -> None:
        self._values += values
        if self._values > MAX_VALUES:
            raise _LimitError(f"it has more than {MAX_VALUES} values")


def _number(construct: Callable[[_Loader, Any], Any]) -> Callable[[_Loader, Any], Any]:
    """Return the constructor of numbers that are not long enough to take long."""

    def checked(loader: _Loader, node: Any) -> Any:
        if len(node.value) > _MAX_DIGITS:
            raise _LimitError(f"a number is longer than {_MAX_DIGITS} digits")
        return construct(loader, node)

    return checked


_Loader.add_constructor(f"{_PREFIX}int", _number(_Loader.construct_yaml_int))
_Loader.add_constructor(f"{_PREFIX}float", _number(_Loader.construct_yaml_float))
