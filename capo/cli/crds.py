"""``capo crds``: prints, writes or checks the CustomResourceDefinitions."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any


def add_parser(subparsers: Any) -> None:
    """Add the command to the parser of ``capo``."""
    parser = subparsers.add_parser("crds", help="print the CustomResourceDefinitions")
    choice = parser.add_mutually_exclusive_group()
    choice.add_argument(
        "--write", action="store_true", help="regenerate api/crds, the pages generated from api/, and charts/"
    )
    choice.add_argument("--check", action="store_true", help="fail when a generated file is stale")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Print, write or check, and return the exit status."""
    from capo.components import chart
    from capo.crdgen import files

    if arguments.write:
        for generated in (files.generated, chart.generated):  # the chart is generated from the files just written
            for path in files.write(generated()):
                print(f"wrote {path.name}")
        return 0
    if arguments.check:
        return _check([*files.stale(files.generated()), *files.stale(chart.generated())])
    print("---\n".join(files.crds().values()), end="")
    return 0


def _check(stale: Iterable[Path]) -> int:
    names = [path.name for path in stale]
    for name in names:
        print(f"{name} is stale: run `capo crds --write`", file=sys.stderr)
    return 1 if names else 0
