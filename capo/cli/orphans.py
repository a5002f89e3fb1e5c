"""``capo orphans``: resources whose owner's object is gone, and their deletion by a reviewed plan."""

from __future__ import annotations

import argparse
import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from capo.cli import common

if TYPE_CHECKING:
    from collections.abc import Sequence

    from capo.openstack.cloud import Cloud
    from capo.operations.access import CloudAccess, Management
    from capo.operations.console import Console
    from capo.operations.orphans.deletion import Report

EXAMPLES: Final = (
    "# orphans in the projects of all clusters of two management clusters, and a plan to review",
    "capo orphans --kubeconfig one.yaml --kubeconfig two.yaml --plan-file orphans.yaml",
    "# what the reviewed plan would delete",
    "capo orphans --kubeconfig one.yaml --kubeconfig two.yaml --delete orphans.yaml --dry-run",
    "# delete it",
    "capo orphans --kubeconfig one.yaml --kubeconfig two.yaml --delete orphans.yaml",
)


def add_parser(subparsers: Any) -> None:
    """Add the command to the parser of ``capo``."""
    parser = common.add_command(
        subparsers,
        "orphans",
        run,
        summary="find resources whose owner's object is gone, and delete them by a reviewed plan",
        examples=EXAMPLES,
    )
    common.add_management(parser, is_repeatable=True)
    common.add_project(parser)
    common.add_output(parser)
    what = parser.add_mutually_exclusive_group()
    what.add_argument(
        "--plan-file", type=Path, metavar="FILE", help="write a plan to review; it deletes nothing as it is"
    )
    what.add_argument(
        "--delete", type=Path, metavar="PLAN", help="delete what a reviewed plan approves (writes to the cloud)"
    )
    parser.add_argument("--dry-run", action="store_true", help="with --delete: show what would be deleted")


def run(arguments: argparse.Namespace) -> int:
    """Find orphans, or delete what a plan approves; return the exit status."""
    console = common.console_of(arguments)
    return _delete(arguments, console) if arguments.delete else _find(arguments, console)


def _find(arguments: argparse.Namespace, console: Console) -> int:
    from capo.operations import access
    from capo.operations.errors import ExitStatus
    from capo.operations.inventory import gather
    from capo.operations.orphans import evidence, findings, plan, report

    clouds = access.CloudAccess(common.settings_of(arguments))
    failures: list[str] = []
    with console.progress("reading objects") as note:
        managements = _managements(arguments, clouds)
        opened = gather.clouds_of(gather.Request(managements, clouds=common.named_clouds(arguments, clouds)), failures)
        projects = gather.projects_of(opened, note, failures)
        known = evidence.read(managements)
    failures += [failure for each in projects for failure in each.failures]
    # A list that is missing may be the one that shows a use.
    found = [orphan for each in projects if not each.failures for orphan in findings.find(each, known)]
    for failure in failures:
        console.warn(f"not complete: {failure}")
    document = plan.document(found, known, now=datetime.datetime.now(datetime.UTC))
    report.show(found, document, console)
    if arguments.plan_file and found:
        plan.write(arguments.plan_file, document)
        console.warn(f"plan written to {arguments.plan_file}: review it; as it is, it deletes nothing")
    if failures:
        return ExitStatus.INCOMPLETE
    return ExitStatus.FOUND if found else ExitStatus.DONE


def _managements(arguments: argparse.Namespace, clouds: CloudAccess) -> list[Management]:
    from capo.operations import access
    from capo.operations.orphans import evidence

    return evidence.distinct(access.connect_all(arguments.kubeconfig, arguments.context, clouds=clouds))


def _delete(arguments: argparse.Namespace, console: Console) -> int:
    from capo.clock import SystemClock
    from capo.operations import access
    from capo.operations.access import Mode
    from capo.operations.errors import ExitStatus
    from capo.operations.orphans import plan, report
    from capo.operations.orphans.deletion import Outcome, Prover, Run

    reviewed = plan.read(arguments.delete, now=datetime.datetime.now(datetime.UTC))
    clouds = access.CloudAccess.of(Mode.READ if arguments.dry_run else Mode.WRITE, common.settings_of(arguments))
    managements, clock = _managements(arguments, clouds), SystemClock()
    reviewed.expect(managements)
    results: list[Report] = []
    failures: list[str] = []
    try:
        with console.progress("reading objects") as note:
            opened = _by_location(arguments, clouds, managements, failures)
            prover = Prover(managements, clock)
            run = Run(reviewed, opened, prover, clock, note, arguments.dry_run, failures=failures)
            # One by one: what was deleted is printed also if the run fails.
            for each in run.reports():
                results.append(each)
    finally:
        for failure in failures:
            console.warn(f"not complete: {failure}")
        report.show_results(results, console, is_rehearsal=arguments.dry_run)
    is_done = all(each.outcome in (Outcome.DELETED, Outcome.GONE) for each in results)
    return ExitStatus.DONE if is_done else ExitStatus.INCOMPLETE


def _by_location(
    arguments: argparse.Namespace, clouds: CloudAccess, managements: Sequence[Management], failures: list[str]
) -> dict[str, Cloud]:
    """Return the clouds that can be opened; what is planned in others is kept.

    Args:
        failures: gets a sentence for each set of credentials that cannot be used.
    """
    from capo.operations.inventory import gather

    request = gather.Request(managements, clouds=common.named_clouds(arguments, clouds))
    return gather.by_location(gather.clouds_of(request, failures), failures)
