"""``capo explain``: what is the matter with an object, and the next step."""

from __future__ import annotations

import argparse
from typing import Any

from capo.cli import common, completers

EXAMPLES = (
    "# why a cluster is not ready",
    "capo explain cluster/demo -n team-a",
    "# a machine with all conditions and Events",
    "capo explain machine/demo-md-0-x7k2p-9zqwl -o wide",
    "# without rights on Secrets: only what Kubernetes has",
    "capo explain openstackserver/jump-host --no-cloud",
)


def add_parser(subparsers: Any) -> None:
    """Add the command to the parser of ``capo``."""
    parser = common.add_command(
        subparsers,
        "explain",
        run,
        summary="explain the state of an object: cause and next step, conditions, Events, and what the cloud has",
        examples=EXAMPLES,
    )
    named = parser.add_argument(
        "object",
        metavar="KIND/NAME",
        help="cluster, machine, openstackcluster, openstackmachine or openstackserver, and its name",
    )
    completers.attach(named, _names)
    parser.add_argument("--no-cloud", action="store_true", help="read nothing from OpenStack, and no Secret")
    common.add_management(parser)
    common.add_namespace(parser, has_all=False)
    common.add_output(parser)


def _names(arguments: argparse.Namespace) -> list[str]:
    return [f"cluster/{each}" for each in completers.clusters(arguments)]


def run(arguments: argparse.Namespace) -> int:
    """Print the story of the object; return the exit status."""
    from capo.operations.explain import command

    console, management = common.console_of(arguments), common.management_of(arguments)
    kind, name = command.kind_and_name(arguments.object)
    namespace = common.namespace_of(arguments, management) or management.namespace
    with console.progress(f"reading {arguments.object}"):
        report = command.read(management, kind, namespace, name, reads_cloud=not arguments.no_cloud)
    return command.explain(console, report)
