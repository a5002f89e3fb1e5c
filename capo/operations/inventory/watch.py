"""What changes between two inventories."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from capo.json_types import Json
from capo.operations.console import Console
from capo.operations.inventory import report
from capo.operations.inventory.attribution import Attribution

ADDED: Final = "added"
CHANGED: Final = "changed"
REMOVED: Final = "removed"
_SIGNS: Final = {ADDED: ("+", "good"), CHANGED: ("~", "warning"), REMOVED: ("-", "bad")}
_Key = tuple[str, str, str]


@dataclass(frozen=True)
class Change:
    """One resource that differs.

    Args:
        what: added, changed or removed.
        before: its former state, address and size, if it changed.
    """

    what: str
    each: Attribution
    before: str = ""

    def to_json(self) -> Json:
        """Return the change for programs."""
        return {"change": self.what, **report.resource_json(self.each)}

    def __str__(self) -> str:
        """Return the change as a line."""
        resource = self.each.resource
        known = self.each.owner or self.each.cluster or self.each.owner_id
        of = f"of {known}" if known else "without known owner"
        was = f"{self.before} -> " if self.before else ""
        return f"{_SIGNS[self.what][0]} {resource.word} {resource.name or resource.id} {of}: {was}{_shown(self.each)}"


def changes(before: Sequence[Attribution], after: Sequence[Attribution]) -> Iterator[Change]:
    """Yield what differs, in the order of the newer inventory; what is gone comes last."""
    old, new = _by_key(before), _by_key(after)
    for key, each in new.items():
        if key not in old:
            yield Change(ADDED, each)
        elif _shown(old[key]) != _shown(each) or old[key].owner_id != each.owner_id:
            yield Change(CHANGED, each, _shown(old[key]))
    yield from (Change(REMOVED, each) for key, each in old.items() if key not in new)


def show(found: Sequence[Change], console: Console, *, at: str) -> None:
    """Print changes: a line for each, for people or for programs.

    Args:
        at: the time to print.
    """
    for each in found:
        if console.wants_data:
            if console.output == "yaml":
                console.line("---")
            console.data({"time": at, **each.to_json()})
        else:
            console.line(f"{at} {each}", _SIGNS[each.what][1])


def _by_key(found: Sequence[Attribution]) -> Mapping[_Key, Attribution]:
    return {each.resource.key: each for each in found}


def _shown(each: Attribution) -> str:
    resource = each.resource
    return " ".join(filter(None, [resource.state, ",".join(resource.addresses), str(resource.size)])) or "there"
