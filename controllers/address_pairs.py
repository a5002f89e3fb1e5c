"""Edits of allowed address pairs on their way from a template to the ports of its machines; pure.

An edit is the difference between two states of one object: of the template, then of the OpenStackMachine. Each object
on the way records in an annotation the state that it has passed on, so an edit is passed on once, also if the manager
was down, and nothing is passed on for an object that is seen for the first time. The annotations survive a move.
Source: docs/reference/openstackmachine.md, "Edits of allowed address pairs".
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Self

from capo import names
from capo.json_types import Json, Object
from capo.openstack.port import pair_key

CONDITION: Final = "AddressPairsApplied"
Pair = tuple[str, str | None]
"""IP address or CIDR, and MAC address; None is that of the port."""
Pairs = tuple[Pair, ...]


@dataclass(frozen=True)
class Change:
    """What an edit adds to the pairs of a port and removes from them."""

    added: Pairs = ()
    removed: Pairs = ()

    @classmethod
    def between(cls, old: Pairs, new: Pairs) -> Self:
        """Return the difference between two lists; neither order nor spelling matters."""
        return cls(added=_without(new, old), removed=_without(old, new))

    def then(self, later: Change) -> Change:
        """Return this change followed by another one."""
        return Change(
            added=(*_without(self.added, (*later.removed, *later.added)), *later.added),
            removed=(*_without(self.removed, (*later.added, *later.removed)), *later.removed),
        )

    def apply(self, pairs: Pairs) -> Pairs:
        """Return a list after the change; pairs that the change does not name are kept."""
        kept = _without(pairs, self.removed)
        return (*kept, *_without(self.added, kept))

    def __bool__(self) -> bool:
        """Return whether anything changes."""
        return bool(self.added or self.removed)


@dataclass(frozen=True)
class Record:
    """The annotation of an OpenStackServer: the pairs of its machine, and which edits its ports do not have yet.

    Args:
        pairs: those of each port in the spec of the OpenStackMachine, as last passed on.
        changes: edits that are not applied yet, by index of the port.
    """

    pairs: Sequence[Pairs]
    changes: Mapping[int, Change] = field(default_factory=dict)

    def edited(self, pairs: Sequence[Pairs]) -> Record:
        """Return the record after an edit of the machine."""
        changes = dict(self.changes)
        for index, (old, new) in enumerate(zip(self.pairs, pairs, strict=False)):
            if change := Change.between(old, new):
                changes[index] = changes.get(index, Change()).then(change)
        return Record(pairs, changes)

    def encoded(self) -> str:
        """Return the value of the annotation."""
        changes = {
            str(index): {"added": _to_json(change.added), "removed": _to_json(change.removed)}
            for index, change in self.changes.items()
        }
        document = {"pairs": [_to_json(each) for each in self.pairs], **({"changes": changes} if changes else {})}
        return json.dumps(document, separators=(",", ":"))


def record_of(server: Object) -> Record | None:
    """Return the record of an OpenStackServer; None if it has none that can be read."""
    text = _annotation(server, names.ADDRESS_PAIRS_ANNOTATION)
    try:
        document = json.loads(text)
        changes = {
            int(index): Change(_from_json(change["added"]), _from_json(change["removed"]))
            for index, change in document.get("changes", {}).items()
        }
        return Record([_from_json(each) for each in document["pairs"]], changes)
    except (ValueError, TypeError, KeyError, AttributeError):
        return None


def of_template(machine: Object) -> Sequence[Pairs] | None:
    """Return the pairs of the template that were last passed on to a machine; None if no record can be read."""
    try:
        return [_from_json(each) for each in json.loads(_annotation(machine, names.TEMPLATE_PAIRS_ANNOTATION))]
    except (ValueError, TypeError, KeyError, AttributeError):
        return None


def template_annotation(ports: Iterable[Object]) -> dict[str, str]:
    """Return the annotation that records a template's pairs: the Go provider's, in its format."""
    text = json.dumps([_to_json(each) or None for each in of_ports(ports)], separators=(",", ":"))
    return {names.TEMPLATE_PAIRS_ANNOTATION: text}


def server_annotation(ports: Iterable[Object]) -> dict[str, str]:
    """Return the annotation of an OpenStackServer with these ports in its machine; empty if there are none."""
    pairs = of_ports(ports)
    return {names.ADDRESS_PAIRS_ANNOTATION: Record(pairs).encoded()} if pairs else {}


def of_ports(ports: Iterable[Object]) -> list[Pairs]:
    """Return the pairs of each port in a spec."""
    return [_from_json(port.get("allowedAddressPairs")) for port in ports]


def with_pairs(port: Object, pairs: Pairs) -> Json:
    """Return a port of a spec with other pairs."""
    others = {name: value for name, value in port.items() if name != "allowedAddressPairs"}
    return {**others, **({"allowedAddressPairs": _to_json(pairs)} if pairs else {})}


def is_same(some: Sequence[Pairs], others: Sequence[Pairs]) -> bool:
    """Return whether the pairs of all ports are the same; neither order nor spelling matters."""
    return len(some) == len(others) and not any(map(Change.between, some, others))


def _without(pairs: Pairs, others: Pairs) -> Pairs:
    keys = {pair_key(*each) for each in others}
    return tuple(each for each in pairs if pair_key(*each) not in keys)


def _to_json(pairs: Pairs) -> list[Json]:
    return [{"ipAddress": address, **({"macAddress": mac} if mac else {})} for address, mac in pairs]


def _from_json(pairs: Any) -> Pairs:
    """Return the pairs of a list in a spec or an annotation.

    Raises:
        TypeError, KeyError, AttributeError: it is no such list.
    """
    return tuple((_text(each["ipAddress"]), _text(each.get("macAddress") or "") or None) for each in pairs or ())


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError("neither an address nor a MAC address")
    return value


def _annotation(obj: Object, name: str) -> str:
    return str((obj["metadata"].get("annotations") or {}).get(name, ""))
