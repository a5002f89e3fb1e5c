"""``docs/reference/annotations.md`` lists every key of metadata and every name in the cloud that is in the program."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import pytest

from capo import names
from capo.openstack import cloud_provider
from controllers.credentials import USERS

pytestmark = pytest.mark.lint

ROOT: Final = Path(__file__).parents[2]
TEXT: Final = (ROOT / "docs/reference/annotations.md").read_text(encoding="utf-8")
KEY: Final = re.compile(r"[a-z0-9-]+(\.[a-z0-9-]+)+/[A-Za-z][A-Za-z0-9._/-]*")
API_VERSION: Final = re.compile(r".*/v\d+((alpha|beta)\d+)?")
OTHERS: Final = {"tests", "simulator", "local"}
"""Folders of what does not reconcile: tests, their cloud and their management cluster."""
NO_METADATA: Final = {"client.authentication.k8s.io/exec"}
"""An extension of kubeconfigs."""
HELPERS: Final = {
    "finalizer",
    "new_owner_id",
    "owner_of",
    "owner_in",
    "restored_owner_id",
    "stamped",
    "stamp_in",
    "cluster_resource_name",
    "may_name_workloads",
}
"""Functions of ``names`` that build no whole name of a resource."""
CLUSTER: Final = "<namespace>-<cluster>"
IN_THE_CLOUD: Final[Mapping[str, tuple[Any, ...]]] = {
    "created_by": ("<cluster>",),
    "network": (CLUSTER,),
    "security_group": (CLUSTER, "<group>"),
    "additional_subnet": (CLUSTER,),
    "load_balancer": (CLUSTER,),
    "load_balancer_child": (CLUSTER, 6443),
    "member": (CLUSTER, 6443, "<machine>"),
    "server_group": (CLUSTER, "<template>", names.Stamp("<owner id>", "<role>")),
    "bastion": ("<cluster>",),
    "port": ("<server>", 0, None),
    "volume": ("<server>", "root"),
    "volume_description": ("<server>", "root"),
    "floating_ip_claim": ("<server>",),
    "floating_ip_description": ("<pool>",),
    "floating_ip_tag": ("<pool>",),
    "provider_id": ("<server id>", "<region>"),
}
"""Functions of ``names``, with arguments that yield the name as the page has it."""


def sources() -> Iterator[tuple[ModuleType, ast.Module]]:
    for folder in ("api", "capo", "controllers"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            if OTHERS & set(path.parts) or path.name in ("__main__.py", "testing.py"):
                continue
            module = ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
            yield importlib.import_module(module), ast.parse(path.read_text(encoding="utf-8"))


def texts_in(value: Any) -> Iterator[str]:
    """Return the texts of a constant, such as the keys of a dictionary of labels."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for pair in value.items():
            yield from texts_in(pair)
    elif isinstance(value, list | tuple | set | frozenset):
        for each in value:
            yield from texts_in(each)


def formatted(node: ast.JoinedStr, module: ModuleType) -> str:
    """Return the text of an f-string that has only constants of its module; empty for others."""
    parts = [value.value if isinstance(value, ast.FormattedValue) else value for value in node.values]
    texts = [str(part.value) if isinstance(part, ast.Constant) else constant(part, module) for part in parts]
    return "" if None in texts else "".join(map(str, texts))


def constant(node: ast.expr, module: ModuleType) -> str | None:
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        value = getattr(getattr(module, node.value.id, None), node.attr, None)
    else:
        value = getattr(module, node.id, None) if isinstance(node, ast.Name) else None
    return value if isinstance(value, str) else None


def texts(module: ModuleType, tree: ast.Module) -> Iterator[str]:
    for value in vars(module).values():
        yield from texts_in(value)
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value
        elif isinstance(node, ast.JoinedStr):
            yield formatted(node, module)


def is_key(text: str) -> bool:
    return bool(KEY.fullmatch(text)) and not API_VERSION.fullmatch(text) and text not in NO_METADATA


def in_the_program() -> set[str]:
    return {text for module, tree in sources() for text in texts(module, tree) if is_key(text)}


def rows() -> list[list[str]]:
    return [
        [cell.strip() for cell in line.strip("|").split("|")] for line in TEXT.splitlines() if line.startswith("| ")
    ]


def keys_of_the_page() -> set[str]:
    """Return the keys in the first column of a table."""
    return {key for row in rows() for key in re.findall(r"`([^`]+)`", row[0]) if KEY.fullmatch(key)}


def test_every_key_of_metadata_in_the_program_is_on_the_page() -> None:
    assert in_the_program() - keys_of_the_page() == set()


def test_every_key_on_the_page_is_in_the_program() -> None:
    # Its last part is a parameter there.
    made = {"pod-security.kubernetes.io/enforce"}

    assert keys_of_the_page() - made - in_the_program() == set()


def test_the_finalizer_of_every_kind_with_resources_is_on_the_page() -> None:
    found = {row[0].strip("`") for row in rows()}

    assert {names.finalizer(kind.kind) for kind in USERS} <= found


def test_every_function_of_names_is_on_the_page_or_a_helper() -> None:
    functions = {
        name
        for name, function in inspect.getmembers(names, inspect.isfunction)
        if not name.startswith("_") and function.__module__ == names.__name__
    }

    assert functions == HELPERS | IN_THE_CLOUD.keys()


@pytest.mark.parametrize("function", IN_THE_CLOUD)
def test_a_name_in_the_cloud_is_on_the_page(function: str) -> None:
    made = getattr(names, function)(*IN_THE_CLOUD[function])

    assert f"`{made}`" in TEXT


@pytest.mark.parametrize(
    "mark",
    [
        names.SECURITY_GROUP_DESCRIPTION,
        names.VOLUME_STAMP_KEY,
        names.FIELD_MANAGER,
        names.BY_NAME,
        names.REVIEW,
        str(names.Stamp("<owner id>", "<role>")),
        f"{cloud_provider.PREFIX}<cluster>_<namespace>_<service>",
    ],
)
def test_a_mark_without_a_prefix_is_on_the_page(mark: str) -> None:
    assert f"`{mark}`" in TEXT


def test_every_row_says_since_when() -> None:
    known = {"1.0", "Go provider", "Cluster API", "Kubernetes", "cloud-provider-openstack", "Since", "---"}

    assert {row[-1] for row in rows()} == known
