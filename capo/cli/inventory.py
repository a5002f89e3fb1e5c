"""``capo inventory``: what clusters have in the cloud, and what has no known owner."""

from __future__ import annotations

import argparse
import time
from typing import TYPE_CHECKING, Any, Final

from capo.cli import common, completers

if TYPE_CHECKING:
    from collections.abc import Collection

    from capo.operations.console import Console
    from capo.operations.inventory.gather import Request, Rounds
    from capo.operations.inventory.report import Inventory

EXAMPLES: Final = (
    "# all resources of a cluster, by owner",
    "capo inventory shop -n team-a",
    "# everything in the projects of all clusters, with what has no known owner",
    "capo inventory -A --kubeconfig one.yaml --kubeconfig two.yaml",
    "# without a management cluster, from stamps and names alone",
    "capo inventory --cloud prod -o json",
    "# what changes, until Ctrl-C",
    "capo inventory shop -n team-a --watch",
)
INTERVAL_S: Final = 10.0


def add_parser(subparsers: Any) -> None:
    """Add the command to the parser of ``capo``."""
    parser = common.add_command(
        subparsers, "inventory", run, summary="show what clusters have in the cloud", examples=EXAMPLES
    )
    cluster = parser.add_argument(
        "cluster", nargs="?", metavar="CLUSTER", help="name of a Cluster (default: all, and the rest)"
    )
    completers.attach(cluster, completers.clusters)
    common.add_management(parser, is_repeatable=True)
    common.add_namespace(parser)
    common.add_project(parser)
    common.add_output(parser)
    # A flag: an optional value would take the name of the cluster after it.
    parser.add_argument("-w", "--watch", action="store_true", help="then print what changes, until Ctrl-C")
    parser.add_argument(
        "--interval",
        type=float,
        default=INTERVAL_S,
        metavar="SECONDS",
        help=f"time between two rounds of --watch (default: {INTERVAL_S:g})",
    )


def run(arguments: argparse.Namespace) -> int:
    """Print an inventory, and what changes; return the exit status."""
    from capo.operations.errors import ExitStatus
    from capo.operations.inventory import report
    from capo.operations.inventory.gather import Rounds

    console, rounds = common.console_of(arguments), Rounds(_request(arguments))
    found = _taken(rounds, console)
    report.show(found, console)
    if arguments.watch:
        _watch(rounds, console, found, arguments.interval)
    return ExitStatus.INCOMPLETE if found.failures else ExitStatus.DONE


def _request(arguments: argparse.Namespace) -> Request:
    from capo.operations import access
    from capo.operations.inventory.gather import Request

    clouds = access.CloudAccess(common.settings_of(arguments))
    named = common.named_clouds(arguments, clouds)
    # With a named cloud a management cluster is read only if it was named, too: it may be lost.
    is_needed = not named or arguments.kubeconfig or arguments.context
    managements = access.connect_all(arguments.kubeconfig, arguments.context, clouds=clouds) if is_needed else []
    namespace = arguments.namespace or (managements[0].namespace if managements else None)
    return Request(managements, None if arguments.all_namespaces else namespace, arguments.cluster, named)


def _taken(rounds: Rounds, console: Console, known: Collection[str] = ()) -> Inventory:
    """Return an inventory; warn of its failures, but for those that are known."""
    with console.progress("reading objects") as note:
        found = rounds.take(note)
    for failure in found.failures:
        if failure not in known:
            console.warn(f"not complete: {failure}")
    return found


def _watch(rounds: Rounds, console: Console, found: Inventory, interval_s: float) -> None:
    from capo.errors import CapoError
    from capo.operations.errors import OperatorError
    from capo.operations.inventory import watch

    while True:
        time.sleep(max(1.0, interval_s))
        try:
            newer = _taken(rounds, console, found.failures)
        except (CapoError, OperatorError) as error:
            console.warn(f"a round failed: {error}")
            continue
        if not set(newer.failures) <= set(found.failures):
            continue  # a list that failed in this round proves no absence
        watch.show(list(watch.changes(found.shown, newer.shown)), console, at=time.strftime("%H:%M:%S"))
        found = newer
