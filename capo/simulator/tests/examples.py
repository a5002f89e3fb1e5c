"""The examples of the page about the simulator, as its readers send them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from capo.simulator.testing import Client

PAGE = (Path(__file__).parents[3] / "docs/reference/simulator.md").read_text(encoding="utf-8")
_COMMAND = re.compile(
    r"```shell\ncurl -X (\w+) http://127\.0\.0\.1:8100(/_simulator/\S+)(?: -d '(.*?)')?\n```", re.DOTALL
)


@dataclass(frozen=True)
class Example:
    """A request to the simulator's admin API.

    Args:
        heading: the example's heading.
        number: of the examples under it, from 1.
    """

    heading: str
    number: int
    method: str
    path: str
    body: str


def _read() -> Iterator[Example]:
    parts = re.split(r"^### (.+)$", PAGE, flags=re.MULTILINE)
    for heading, text in zip(parts[1::2], parts[2::2], strict=True):
        for number, (method, path, body) in enumerate(_COMMAND.findall(text), start=1):
            yield Example(heading, number, method, path, body)


ALL = tuple(_read())


def order(client: Client, heading: str, number: int = 1, **ids: object) -> None:
    """Send an example of the page, with real ids instead of those in capitals."""
    (example,) = (each for each in ALL if (each.heading, each.number) == (heading, number))
    path, body = example.path, example.body
    for name, value in ids.items():
        assert name in f"{path} {body}", f"{heading} says nothing of {name}"
        path, body = path.replace(name, str(value)), body.replace(name, str(value))
    answer = client.request(example.method, path, data=body)
    assert answer.status_code < 400, answer.text
