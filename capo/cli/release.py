"""``capo release``: a release on disk, from which clusterctl and the Cluster API Operator install."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any


def add_parser(subparsers: Any) -> None:
    """Add the command to the parser of ``capo``."""
    parser = subparsers.add_parser("release", help="lay out a release for clusterctl and the Cluster API Operator")
    parser.add_argument("--output", type=Path, default=Path("build/release"), help="the repository (%(default)s)")
    parser.add_argument(
        "--image",
        help="of the manager, best by its digest; without a tag it gets the version's (default: localhost/capo)",
    )
    parser.add_argument("--version", help="of the release (default: this version)")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Write the repository, say how to use it, and return the exit status."""
    from capo.components import manifest, release
    from capo.version import VERSION

    version = arguments.version or VERSION
    try:
        image = manifest.image(arguments.image or manifest.REPOSITORY, version)
        folder, digest = release.publish(arguments.output, version=version, image=image)
    except (manifest.BadImageError, release.ReleaseError) as error:
        print(f"capo release: {error}", file=sys.stderr)
        return 2
    for path in sorted(folder.iterdir()):
        print(path)
    print(f"{folder.parents[1] / release.ARTIFACTS}:{folder.name}@{digest}")
    print(f"in clusterctl.yaml: {{name: openstack, type: InfrastructureProvider, url: {folder / release.COMPONENTS}}}")
    return 0
