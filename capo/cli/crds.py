"""``capo crds``: the CustomResourceDefinitions, printed, written or checked."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from capo.crdgen import files


def register(subparsers: Any) -> None:
    """Add the command to the parser of ``capo``."""
    parser = subparsers.add_parser("crds", help="print the CustomResourceDefinitions")
    choice = parser.add_mutually_exclusive_group()
    choice.add_argument("--write", action="store_true", help="regenerate the files in api/crds")
    choice.add_argument("--check", action="store_true", help="fail when the files in api/crds are stale")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Print, write or check, and return the exit status."""
    wanted = files.rendered()
    if arguments.write:
        for name in files.write(wanted):
            print(f"wrote {name}")
        return 0
    if arguments.check:
        return _check(files.stale(wanted))
    print("---\n".join(wanted.values()), end="")
    return 0


def _check(stale: list[str]) -> int:
    for name in stale:
        print(f"{name} is stale: run `capo crds --write`", file=sys.stderr)
    return 1 if stale else 0
