"""Reads all about an object, and prints it; a part that cannot be read does not keep the rest from being shown."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from capo.kube.kinds import Kind
from capo.operations.access import Management
from capo.operations.console import Console
from capo.operations.errors import ExitStatus, OperatorError
from capo.operations.explain import cloud_cause, cloud_state, events, printing, related, story
from capo.operations.explain.printing import Report

T = TypeVar("T")


def kind_and_name(text: str) -> tuple[Kind, str]:
    """Return the object that ``kind/name`` names.

    Raises:
        OperatorError: the text does not name an object that can be explained.
    """
    word, _, name = text.partition("/")
    word = word.lower().partition(".")[0]
    kinds = {name: kind for kind in related.KINDS for name in (kind.plural, kind.kind.lower())} | related.SHORT
    if word not in kinds or not name:
        known = ", ".join(f"{kind.kind.lower()}/NAME" for kind in related.KINDS)
        raise OperatorError(f"{text!r} does not name an object: {known}", status=ExitStatus.USAGE)
    return kinds[word], name


def read(management: Management, kind: Kind, namespace: str, name: str, *, reads_cloud: bool = True) -> Report:
    """Return the report about an object.

    Raises:
        OperatorError: the object does not exist, or the user may not read it or those around it.
    """
    unread: list[str] = []
    found = related.find(management, kind, namespace, name)
    happened = _attempt(lambda: events.read(management, found.parts), unread, "Events") or []
    cloud = None
    if reads_cloud:
        cloud = _attempt(lambda: cloud_state.read(management, found), unread, "the cloud")
    if cloud and cloud.error:
        unread.append(f"the cloud: {cloud.error.sentence}")
    resources = cloud.resources if cloud else []
    unread += [f"{each.kind.replace('_', ' ')} {each.id}: {each.detail}" for each in resources if each.is_unread]
    now_s = management.clouds.clock.wall()
    told = cloud_cause.add(story.of(found, happened, now_s), found, resources)
    return Report(told, found, happened, cloud, now_s, unread)


def _attempt(read_part: Callable[[], T], unread: list[str], what: str) -> T | None:
    try:
        return read_part()
    except OperatorError as error:
        unread.append(f"{what}: {error}")
        return None


def explain(console: Console, report: Report) -> ExitStatus:
    """Print the report; return the exit status."""
    printing.show(console, report)
    for each in report.unread:
        console.warn(f"capo explain: not read: {each}")
    if report.unread:
        return ExitStatus.INCOMPLETE
    return ExitStatus.FOUND if report.story.state.needs_decision else ExitStatus.DONE
