"""Commands of ``capo``: one module each, named like the command (with underscores), in the order of its help.

Each has ``add_parser(subparsers)``, which adds the command's parser and sets its default ``run`` to a function from
parsed arguments to exit status. A module imports heavy dependencies inside of ``run``, so that help is fast.
"""

from __future__ import annotations

import argparse
import importlib
from typing import Final

from capo.version import VERSION

COMMANDS: Final = (
    "run",
    "demo",
    "local",
    "simulate",
    "crds",
    "components",
    "explain",
    "release",
    "cloud-conf",
    "inventory",
    "adopt",
    "orphans",
    "completion",
    "plan",
)

EXTRAS: Final = {"argcomplete": "operator", "rich": "demo", "jsonschema": "simulator"}
"""Packages that the manager does not need, and the extra of this project that installs each.

Operators' commands print plain text without ``rich``, which their extra has, too.
"""


def missing_extra(error: ModuleNotFoundError) -> str | None:
    """Return the line that says which extra to install; None: no extra has the package that is missing."""
    extra = EXTRAS.get((error.name or "").partition(".")[0])
    return (
        extra
        and f"the package {error.name} is not installed; install capo with its extra {extra}, from its wheel or "
        f"checkout: pip install 'PATH[{extra}]'"
    )


def program(path: str) -> str:
    """Return how the user calls the program: as a plugin, kubectl calls it by a name of its own."""
    return "kubectl capo" if path.rpartition("/")[2] == "kubectl-capo" else "capo"


def build_parser(argv: list[str], prog: str = "capo") -> argparse.ArgumentParser:
    """Return the parser of ``capo``, with all commands, or with only the one that the arguments begin with.

    Args:
        prog: how help calls the program.
    """
    parser = argparse.ArgumentParser(prog=prog, description="Cluster API provider for OpenStack")
    parser.add_argument("--version", action="version", version=f"capo {VERSION}")
    subparsers = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    wanted = argv[:1] if argv[:1] and argv[0] in COMMANDS else COMMANDS
    for name in wanted:
        importlib.import_module(f"{__name__}.{name.replace('-', '_')}").add_parser(subparsers)
    return parser
