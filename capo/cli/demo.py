"""``capo demo``: creates and deletes a whole cluster on this machine."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from capo.local.demo.environment import Options

_DESCRIPTION = """\
Creates a Cluster API cluster on OpenStack through this provider, watches, checks and counts it, scales it, edits its
bastion, replaces a machine, deletes it, and shows that nothing is left. Run it in the folder of the project.
"""


def add_parser(subparsers: Any) -> None:
    """Add the command to the parser of ``capo``."""
    parser = subparsers.add_parser("demo", help="a whole cluster up and down", description=_DESCRIPTION)
    parser.add_argument(
        "--cloud",
        default="simulator",
        metavar="NAME",
        help="simulator (default); lab: the real services of `make openstack-up`; else an entry of clouds.yaml",
    )
    parser.add_argument("--keep", action="store_true", help="leave the cluster up, and print what to try")
    parser.add_argument("--end", action="store_true", help="delete the cluster that was left up, and end everything")
    parser.add_argument("--more", type=int, default=2, metavar="N", help="workers to add and take away (default: 2)")
    parser.add_argument("--idle", type=float, default=0, metavar="S", help="measure an idle cluster for so long")
    parser.add_argument("--timeout", type=float, default=600, metavar="S", help="for each phase (default: 600)")
    parser.add_argument("--report", type=Path, metavar="FILE", help="write the measurements as Markdown")
    parser.add_argument("--state", type=Path, default=Path(".demo"), metavar="DIR", help="its folder (default: .demo)")
    parser.add_argument("--bin-dir", type=Path, metavar="DIR", help="folder of programs to use (CAPO_LOCAL_BIN)")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Run a demo and return the exit status; messages for the user are printed to standard error."""
    from capo.local.demo import environment
    from capo.local.demo.console import Screen
    from capo.local.errors import RigError

    screen = Screen()
    try:
        (environment.end if arguments.end else environment.run)(_options(arguments), screen)
    except RigError as error:
        print(f"capo demo: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("capo demo: interrupted", file=sys.stderr)
        return 130
    screen.say("done")
    return 0


def _options(arguments: argparse.Namespace) -> Options:
    from capo.local.demo.environment import Options
    from capo.local.demo.scenario import Plan

    plan = Plan(more_workers=arguments.more, idle_s=arguments.idle, limit_s=arguments.timeout, keeps=arguments.keep)
    return Options(
        state=arguments.state,
        cloud=arguments.cloud,
        bin_dir=arguments.bin_dir,
        report=arguments.report,
        plan=plan,
    )
