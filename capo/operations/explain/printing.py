"""Prints a story, as text for people or as data for programs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from capo.engine import conditions
from capo.json_types import Json
from capo.operations.console import Cell, Console
from capo.operations.explain.cloud_state import CloudState, Resource
from capo.operations.explain.events import Happening
from capo.operations.explain.related import Part, Related
from capo.operations.explain.story import REQUEST, State, Story

MAX_EVENTS: Final = 5
"""Events of the text; ``-o wide`` shows all that were read."""
MAX_REQUESTS: Final = 3
_STYLES: Final = {State.READY: "good", State.WAITING: "warning", State.DELETING: "warning"}
_UNITS: Final = ((86400, "d"), (3600, "h"), (60, "m"), (1, "s"))


@dataclass(frozen=True)
class Report:
    """All that was read about an object.

    Args:
        cloud: None if it was not read.
        unread: what could not be read, and why, in sentences.
        now_s: seconds since 1970.
    """

    story: Story
    related: Related
    events: Sequence[Happening]
    cloud: CloudState | None
    now_s: float
    unread: Sequence[str] = field(default_factory=tuple)

    @property
    def request_ids(self) -> list[str]:
        """Ids of requests to OpenStack, by which the logs of its services are searched."""
        texts = [self.story.cause.message if self.story.cause else "", *(each.message for each in self.events)]
        shown = [each.request_id for each in (self.cloud.resources if self.cloud else ()) if each.request_id]
        return list(dict.fromkeys([*shown, *(found for text in texts for found in REQUEST.findall(text))]))

    def data(self) -> Json:
        """Return it for programs; the keys do not change in a release."""
        story, cause = self.story, self.story.cause
        return {
            "object": _reference(story.subject),
            "state": str(story.state),
            "summary": story.summary,
            "cause": cause
            and {
                "object": _reference(cause.part),
                "condition": cause.condition,
                "reason": cause.reason,
                "message": cause.message,
                "since": cause.since,
                "meaning": cause.explanation.meaning if cause.explanation else "",
            },
            "heldBy": list(story.held_by),
            "nextSteps": list(story.next_steps),
            "objects": [_object(each) for each in self.related.parts],
            "cloud": None if self.cloud is None else _cloud(self.cloud),
            "events": [_event(each) for each in self.events],
            "requestIDs": self.request_ids,
            "unread": list(self.unread),
        }


def show(console: Console, report: Report) -> None:
    """Print a report."""
    if console.wants_data:
        console.data(report.data())
        return
    story = report.story
    console.line(f"{story.summary}{_for(report, story.cause.since if story.cause else '')}", _style(story.state))
    _show_cause(console, report)
    _show_objects(console, report)
    if report.cloud:
        _show_cloud(console, report.cloud)
    _show_events(console, report)
    if report.request_ids:
        _heading(console, "Requests, to be searched in the logs of the services")
        console.line(f"  {' '.join(report.request_ids[:MAX_REQUESTS])}")


def _style(state: State) -> str:
    return _STYLES.get(state, "bad")


def _show_cause(console: Console, report: Report) -> None:
    story, cause = report.story, report.story.cause
    rows = []
    if cause:
        what = f"{cause.part} {cause.condition}".rstrip()
        rows += [("cause", f"{what}: {cause.message}" if cause.message else what)]
        rows += [("meaning", cause.explanation.meaning)] if cause.explanation else []
    rows += [("held by", each) for each in story.held_by]
    rows += [("next step", each) for each in story.next_steps]
    for name, text in rows:
        console.line(f"  {name + ':':<11}{text}")


def _show_objects(console: Console, report: Report) -> None:
    _heading(console, "Kubernetes")
    rows = [row for part in report.related.parts for row in _rows(part, report, is_wide=console.is_wide)]
    console.table(["OBJECT", "CONDITION", "STATUS", "REASON", "SINCE"], rows)
    ready = report.related.count - len(report.related.machines)
    if report.related.count:
        console.line(f"{ready} of {report.related.count} Machines are ready")


def _rows(part: Part, report: Report, *, is_wide: bool) -> Iterator[Sequence[str | Cell]]:
    if part.obj is None:
        yield [str(part), "", Cell("missing", "bad" if part.is_missing else "dim")]
        return
    shown = [each for each in part.conditions if is_wide or _matters(each)] or [{}]
    for index, each in enumerate(shown):
        status = str(each.get("status") or "")
        style = "good" if status == "True" else "bad"
        since = _age(str(each.get("lastTransitionTime") or ""), report.now_s)
        yield [
            "" if index else str(part),
            str(each.get("type") or ""),
            Cell(status, style),
            each.get("reason") or "",
            since,
        ]


def _matters(condition: Json) -> bool:
    return condition.get("type") in ("Ready", "Available") or condition.get("status") != _usual(condition)


def _usual(condition: Json) -> str:
    negative = ("Deleting", "Paused", "Remediating", "RollingOut", "ScalingDown", "ScalingUp", "Updating")
    return "False" if condition.get("type") in negative else "True"


def _show_cloud(console: Console, cloud: CloudState) -> None:
    _heading(console, "OpenStack")
    if cloud.resources:
        columns = (
            ["RESOURCE", "ID", "STATE", "DETAIL"]
            if any(each.detail for each in cloud.resources)
            else ["RESOURCE", "ID", "STATE"]
        )
        console.table(columns, [_cells(each) for each in cloud.resources])
    for each in cloud.pending:
        console.line(f"  create of {each} was sent, and its answer is not known yet", "warning")
    if cloud.error:
        console.line(f"  {cloud.error.sentence}", "bad")
    if not (cloud.resources or cloud.pending or cloud.error):
        console.line("  nothing is recorded for the object")


def _cells(resource: Resource) -> Sequence[str | Cell]:
    name = f"{resource.kind} {resource.name or resource.role}"
    return [name, resource.id, Cell(resource.state, "bad" if resource.is_bad else ""), resource.detail]


def _show_events(console: Console, report: Report) -> None:
    if not report.events:
        return
    _heading(console, "Events")
    shown = report.events if console.is_wide else report.events[:MAX_EVENTS]
    rows: list[list[str | Cell]] = [
        [
            _age(each.at, report.now_s),
            Cell(each.reason, "" if each.type == "Normal" else "warning"),
            each.object,
            each.message,
        ]
        for each in shown
    ]
    console.table(["AGE", "REASON", "OBJECT", "MESSAGE"], rows)


def _heading(console: Console, text: str) -> None:
    console.line()
    console.line(text, "dim")


def _for(report: Report, since: str) -> str:
    age = _age(since, report.now_s)
    return f" (for {age})" if age else ""


def _age(at: str, now_s: float) -> str:
    seconds = now_s - conditions.seconds(at) if at else -1
    if seconds < 0:
        return "0s" if at else ""
    length, unit = next((pair for pair in _UNITS if seconds >= pair[0]), _UNITS[-1])
    return f"{int(seconds // length)}{unit}"


def _reference(part: Part) -> Json:
    return {"kind": part.kind.kind, "namespace": part.namespace, "name": part.name}


def _object(part: Part) -> Json:
    return _reference(part) | {
        "exists": part.obj is not None,
        "deletionTimestamp": part.metadata.get("deletionTimestamp"),
        "finalizers": list(part.metadata.get("finalizers") or ()),
        "conditions": part.conditions,
    }


def _cloud(cloud: CloudState) -> Json:
    return {
        "resources": [_resource(each) for each in cloud.resources],
        "pending": list(cloud.pending),
        "error": cloud.error.sentence if cloud.error else None,
    }


def _resource(each: Resource) -> Json:
    shown: dict[str, Any] = {
        "kind": each.kind,
        "role": each.role,
        "id": each.id,
        "owner": each.owner,
        "name": each.name,
    }
    return shown | {"state": each.state, "detail": each.detail, "requestID": each.request_id}


def _event(each: Happening) -> Json:
    return {
        "time": each.at,
        "type": each.type,
        "reason": each.reason,
        "message": each.message,
        "count": each.count,
        "object": each.object,
    }
