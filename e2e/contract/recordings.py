"""Recorded answers of the real services: shapes by route, refusals by test.

``shapes/<service>.json`` has the shape of every good answer by method, route and status. ``refusals/<module>.json`` has
whole bodies of refusals, in the order in which a test received them; ids, addresses and times are replaced by names.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from e2e.contract import shapes
from e2e.contract.shapes import Shape
from environments.wire import Exchange

FOLDER: Final = Path(__file__).parent / "recordings"
_STRIPPED: Final = (
    (r"req-[0-9a-f-]{36}", "<request>"),
    (r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "<id>"),
    (r"\b[0-9a-f]{32}\b", "<id>"),
    (r"capo:[a-z2-7]{13}:", "capo:<owner>:"),
    (r"contract-[0-9a-f]{6}(-\d+)?", "contract"),
    (r"\n+Failed validating .*", ""),
    (r"https?://127\.0\.0\.1:\d+(/(identity|compute|image|network|volume|load-balancer)(?=/))?", "<root>"),
    (r"([0-9a-f]{2}:){5}[0-9a-f]{2}", "<mac>"),
    (r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?Z?", "<time>"),
    (r"\b(\d{1,3}\.){3}\d{1,3}\b(?!/)", "<address>"),
    (r"([A-Za-z0-9+=]{2,8}?)\1{100,}", r"<\1, many times>"),
)

Refusals = dict[str, list[dict[str, Any]]]


def stripped(body: Any) -> Any:
    """Return a body without the parts that differ from run to run."""
    if isinstance(body, dict):
        return {key: stripped(value) for key, value in body.items()}
    if isinstance(body, list):
        return [stripped(value) for value in body]
    if not isinstance(body, str):
        return body
    for pattern, name in _STRIPPED:
        body = re.sub(pattern, name, body, flags=re.DOTALL)
    return re.sub(r"(?<=one of: )[A-Z0-9_, -]+$", _in_order, body)


def _in_order(match: re.Match[str]) -> str:
    """Return a list of words sorted: Octavia's come from a set, so their order differs between its processes."""
    return ", ".join(sorted(match[0].split(", ")))


class Recorder:
    """Records the answers of one cloud and compares them with the recordings.

    Args:
        is_recording: compare nothing, write all answers at the end.
        is_whole: every test runs, so that a recording without an answer is out of date.
    """

    def __init__(self, *, is_recording: bool, is_whole: bool) -> None:
        self.is_recording = is_recording
        self.is_whole = is_whole
        self.has_run_whole = False
        self.seen: dict[str, dict[str, Shape]] = {}
        self.refusals: dict[str, Refusals] = {}
        self._shapes = shapes_by_route()
        self._refusals: dict[str, Refusals] = _read("refusals")
        if is_recording and not is_whole:
            self._keep()
        self._complaints: list[str] = []

    def _keep(self) -> None:
        """Start with the existing recordings."""
        self.seen = {
            service: {key: Shape.read(written) for key, written in routes.items()}
            for service, routes in self._shapes.items()
        }
        self.refusals = {module: dict(tests) for module, tests in self._refusals.items()}

    def begin(self, module: str, test: str) -> None:
        """Clear the refusals that were recorded for a test."""
        self.refusals.get(module, {}).pop(test, None)

    def note(self, exchange: Exchange) -> None:
        """Record a good answer's shape and compare it."""
        if exchange.status >= 400:
            return
        routes = self.seen.setdefault(exchange.service, {})
        routes.setdefault(exchange.key, Shape()).add(exchange.body)
        if self.is_recording:
            return
        recorded = self._shapes.get(exchange.service, {}).get(exchange.key)
        if recorded is None:
            self._complaints.append(f"{exchange.service}: {exchange.key} is not in the recordings")
        else:
            found = shapes.complaints(recorded, exchange.body)
            self._complaints += [f"{exchange.service}: {exchange.key}: {each}" for each in found]

    def refuse(self, module: str, test: str, exchange: Exchange) -> None:
        """Record a refusal and compare it."""
        refusal = {
            "request": f"{exchange.service} {exchange.method} {exchange.route}",
            "status": exchange.status,
            "body": stripped(exchange.body),
        }
        met = self.refusals.setdefault(module, {}).setdefault(test, [])
        met.append(refusal)
        if self.is_recording:
            return
        recorded = self._refusals.get(module, {}).get(test, [])
        expected = recorded[len(met) - 1] if len(met) <= len(recorded) else None
        if refusal != expected:
            self._complaints.append(f"refused with {json.dumps(refusal)}\n  recorded is {json.dumps(expected)}")

    def take_complaints(self) -> list[str]:
        """Return the differences since the last call, each once."""
        found, self._complaints = list(dict.fromkeys(self._complaints)), []
        return found

    def look_back(self) -> list[str]:
        """Return the recordings that no test of this run received; call it after all tests."""
        self.has_run_whole = True
        return [] if self.is_recording else list(self._unseen())

    def _unseen(self) -> Iterator[str]:
        for service, routes in self._shapes.items():
            for key, recorded in routes.items():
                shape = self.seen.get(service, {}).get(key)
                if shape is None:
                    yield f"{service}: {key} was never answered"
                else:
                    yield from (f"{service}: {key}: {each}" for each in shapes.unseen(recorded, shape.written()))
        for module, tests in self._refusals.items():
            for test, recorded in tests.items():
                met = self.refusals.get(module, {}).get(test, [])
                if len(met) < len(recorded):
                    yield f"{module}.{test}: {len(met)} refusals, recorded are {len(recorded)}"

    def write(self) -> None:
        """Replace the recordings, unless a run that was to be whole was aborted."""
        if self.is_whole and not self.has_run_whole:
            return
        written = {name: {key: s.written() for key, s in routes.items()} for name, routes in self.seen.items()}
        _write("shapes", written)
        _write("refusals", self.refusals)


def shapes_by_route() -> dict[str, dict[str, Any]]:
    """Return the recorded shapes of good answers, by service and by method, route and status."""
    return _read("shapes")


def _read(kind: str) -> dict[str, Any]:
    return {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in (FOLDER / kind).glob("*.json")}


def _write(kind: str, documents: dict[str, Any]) -> None:
    folder = FOLDER / kind
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("*.json"):
        if old.stem not in documents:
            old.unlink()
    for name, document in documents.items():
        text = json.dumps(document, indent=1, sort_keys=True, ensure_ascii=False)
        (folder / f"{name}.json").write_text(f"{text}\n", encoding="utf-8")
