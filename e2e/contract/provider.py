"""The routes that the provider uses, read from its source: the suite must cover all of them.

Every call of a :class:`capo.openstack.cloud.Cloud` is found in the syntax trees of :data:`PACKAGES`. A
call whose service or path cannot be read is an error, so that none is omitted silently.
"""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from capo.openstack.kinds import KINDS, ResourceKind

ROOT: Final = Path(__file__).parents[2]
PACKAGES: Final = (
    "capo/openstack",
    "capo/operations/inventory",
    "capo/operations/orphans",
    "capo/operations/plan",
    "controllers",
)
"""Adoptions stamp kinds by one call, whose routes cannot be read; ``test_stamps.py`` has them."""
METHODS: Final[Mapping[str, tuple[str, ...]]] = {
    "delete": ("DELETE",),
    "get": ("GET",),
    "list_all": ("GET",),
    "listing": ("GET",),
    "patch": ("PATCH",),
    "post": ("POST",),
    "put": ("PUT",),
    "remove": ("DELETE", "GET"),
}
"""The HTTP methods that each method of a cloud sends."""
VERSIONS: Final[Mapping[str, str]] = {
    "compute": "/v2.1",
    "identity": "/v3",
    "image": "/v2",
    "load-balancer": "/v2",
    "network": "/v2.0",
    "volume": "/v3",
}
"""The ends of the lab's end points."""
_CLOUDS: Final = frozenset({"cloud", "source"})
_KINDS: Final = frozenset({"kind", "what"})
_ANY: Final = "{}"


@dataclass(frozen=True, order=True)
class Use:
    """One route as the provider uses it.

    Args:
        key: of the answer that the provider reads; empty when it reads none, or it is not statically known.
        where: file and line of the call.
    """

    service: str
    route: str
    key: str
    where: str

    def is_covered(self, recorded: Mapping[str, Mapping[str, Any]]) -> bool:
        """Return whether recordings have a good answer of the route, with the key that the provider reads."""
        answers = [shape for name, shape in recorded.get(self.service, {}).items() if _route(name) == self.route]
        return any(not self.key or self.key in _names(shape) for shape in answers)


def uses() -> list[Use]:
    """Return the provider's routes; the SDK logs in, so no call of the provider does."""
    found = [Use("identity", "POST /v3/auth/tokens", "token", "keystoneauth")]
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            if "tests" not in path.parts:
                found += uses_in(path.read_text(encoding="utf-8"), str(path.relative_to(ROOT)))
    return found


def uses_in(source: str, name: str) -> list[Use]:
    """Return the routes of one module.

    Raises:
        ValueError: a call's service or path cannot be read.
    """
    tree = ast.parse(source)
    parents = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
    found: list[Use] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and (methods := _methods(node.func)):
            where = f"{name}:{node.lineno}"
            try:
                found += [use for method in methods for use in _Call(node, parents, method, where).uses()]
            except ValueError as error:
                raise ValueError(f"{where}: {ast.unparse(node)}: {error}") from error
    return found


def _methods(function: ast.expr) -> tuple[str, ...]:
    """Return the HTTP methods of a call of a cloud, none for any other call."""
    if not isinstance(function, ast.Attribute):
        return ()
    owner = ast.unparse(function.value).rpartition(".")[2].lstrip("_")
    return METHODS.get(function.attr, ()) if owner in _CLOUDS else ()


@dataclass(frozen=True)
class _Call:
    """A call of a cloud with its place in the tree."""

    node: ast.Call
    parents: Mapping[ast.AST, ast.AST]
    method: str
    where: str

    def uses(self) -> Iterator[Use]:
        service, path = self.node.args[:2]
        if isinstance(service, ast.Constant):
            for each in _paths(self._value(path)):
                yield self._use(str(service.value), each, self._key())
        elif _is_of_a_kind(service, "service"):
            for kind in KINDS.values():
                yield self._use(kind.service, _path_of(kind, path), self._key_of(kind))
        else:
            raise ValueError(f"no service: {ast.unparse(service)}")

    def _use(self, service: str, path: str, key: str) -> Use:
        return Use(service, f"{self.method} {VERSIONS[service]}{path}", key, self.where)

    def _key(self) -> str:
        """Return the key that the caller reads of the answer: a list's third argument, or the subscript of the call."""
        if len(self.node.args) > 2:
            return str(ast.literal_eval(self.node.args[2]))
        parent = self.parents[self.node]
        if isinstance(parent, ast.Subscript) and isinstance(parent.slice, ast.Constant):
            return str(parent.slice.value)
        return ""

    def _key_of(self, kind: ResourceKind) -> str:
        if self.method != "GET":
            return ""
        return kind.key if len(self.node.args) > 2 else kind.body_key

    def _value(self, path: ast.expr) -> ast.expr:
        """Return the value assigned to a local variable in the function around the call."""
        if not isinstance(path, ast.Name):
            return path
        node: ast.AST = self.node
        while not isinstance(node, ast.FunctionDef):
            node = self.parents[node]
        values = [
            each.value
            for each in ast.walk(node)
            if isinstance(each, ast.Assign) and [ast.unparse(target) for target in each.targets] == [path.id]
        ]
        if len(values) != 1:
            raise ValueError(f"{path.id} is set {len(values)} times")
        return values[0]


def _is_of_a_kind(value: ast.expr, attribute: str) -> bool:
    if not isinstance(value, ast.Attribute) or value.attr != attribute:
        return False
    return ast.unparse(value.value).rpartition(".")[2] in _KINDS


def _path_of(kind: ResourceKind, path: ast.expr) -> str:
    if isinstance(path, ast.Call) and _is_of_a_kind(path.func, "path"):
        return kind.path(_ANY)
    if _is_of_a_kind(path, "list_path"):
        return kind.list_path
    raise ValueError(f"no path of a kind: {ast.unparse(path)}")


def _paths(path: ast.expr) -> list[str]:
    """Return the paths that an expression can have; a variable collection is any of Neutron's."""
    if isinstance(path, ast.Constant):
        return [str(path.value)]
    if not isinstance(path, ast.JoinedStr):
        raise ValueError(f"no path: {ast.unparse(path)}")
    collections = [kind.collection.strip("/") for kind in KINDS.values() if kind.service == "network"]
    choices = [_choices(part, collections) for part in path.values]
    return ["".join(parts) for parts in itertools.product(*choices)]


def _choices(part: ast.expr, collections: list[str]) -> list[str]:
    if isinstance(part, ast.Constant):
        return [str(part.value)]
    is_collection = isinstance(part, ast.FormattedValue) and ast.unparse(part.value) == "collection"
    return collections if is_collection else [_ANY]


def _route(name: str) -> str:
    """Return method and route of a recording's name, which ends in the status."""
    return re.sub(r"{\w+}", _ANY, name.rpartition(" ")[0])


def _names(shape: Any) -> set[str]:
    return {re.split(r"[|?]", key)[0] for key in shape} if isinstance(shape, dict) else set()
