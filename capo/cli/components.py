"""``capo components``: everything that is installed, as one file for clusterctl and kubectl."""

from __future__ import annotations

import argparse
import sys
from typing import Any


def add_parser(subparsers: Any) -> None:
    """Add the command to the parser of ``capo``."""
    parser = subparsers.add_parser("components", help="print infrastructure-components.yaml")
    parser.add_argument("--image", help="of the manager; without a tag it gets the version's (default: localhost/capo)")
    parser.add_argument("--version", help="tag of the image (default: this version)")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Print the components and return the exit status."""
    from capo.components import manifest
    from capo.components.deployment import Pod
    from capo.version import VERSION

    try:
        image = manifest.image(arguments.image or manifest.REPOSITORY, arguments.version or VERSION)
    except manifest.BadImageError as error:
        print(f"capo components: {error}", file=sys.stderr)
        return 2
    print(manifest.text(Pod(image)), end="")
    return 0
