"""``capo plan``: what the next reconciles of a cluster would create, update and delete."""

from __future__ import annotations

import argparse
from typing import Any, Final

from capo.cli import common, completers

SUMMARY: Final = "show what the next reconciles would create, update and delete, without doing it"
EXAMPLES: Final = (
    "# what the manager would change now",
    "capo plan demo",
    "# what an edit would change",
    "capo plan -f cluster.yaml",
    "# for scripts: 0 no change, 3 changes, 4 not all of it can be done",
    "capo plan -f cluster.yaml -o json >plan.json",
)


def add_parser(subparsers: Any) -> None:
    """Add the command to the parser of ``capo``."""
    parser = common.add_command(subparsers, "plan", run, summary=SUMMARY, examples=EXAMPLES)
    what = parser.add_mutually_exclusive_group(required=True)
    cluster = what.add_argument(
        "cluster", nargs="?", metavar="CLUSTER", help="name of a Cluster, or of an OpenStackCluster"
    )
    completers.attach(cluster, completers.clusters)
    what.add_argument(
        "-f",
        "--filename",
        action="append",
        metavar="FILE",
        help="objects as `kubectl apply` takes them, `-` for stdin; may be repeated",
    )
    common.add_management(parser)
    common.add_namespace(parser, has_all=False)
    common.add_output(parser)


def run(arguments: argparse.Namespace) -> int:
    """Print the plan; return the exit status."""
    from capo.operations.plan import report
    from capo.operations.plan.planning import Planner

    console, management = common.console_of(arguments), common.management_of(arguments)
    namespace = common.namespace_of(arguments, management)
    planner = Planner(management, str(namespace))
    with console.progress("reading the management cluster and the cloud"):
        found = planner.of_files(arguments.filename) if arguments.filename else planner.of_cluster(arguments.cluster)
    return report.show(console, found)
