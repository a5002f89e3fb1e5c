"""The tables of a quota's holds: entries that are no longer seen are dropped, at a cost that others do not pay."""

from __future__ import annotations

from dataclasses import dataclass

from capo.openstack.quota_state import FORGOTTEN_S, Expiring

MANY = 1000


@dataclass
class Entry:
    seen_s: float


class Table(Expiring[Entry]):
    """A table that counts the entries it examines."""

    def __init__(self) -> None:
        self.looks = 0
        super().__init__(self._seen)

    def _seen(self, entry: Entry) -> float:
        self.looks += 1
        return entry.seen_s

    def looks_of(self, now_s: float, times: int = 1) -> int:
        """Expire entries some times at one moment; return how many entries that examined."""
        self.looks = 0
        for _ in range(times):
            self.expire(now_s)
        return self.looks


def full() -> Table:
    """Return a table whose entries arrive one after another within a minute."""
    table = Table()
    for number in range(MANY):
        table.put(f"owner-{number}", Entry(60 * number / MANY))
    return table


def test_no_entry_is_looked_at_before_one_may_be_old() -> None:
    table = full()

    assert table.looks_of(FORGOTTEN_S - 1, times=MANY) == 0

    assert len(table) == MANY


def test_a_call_looks_at_what_may_be_old_and_not_at_the_rest() -> None:
    table = full()

    looks = table.looks_of(FORGOTTEN_S + 3)

    assert MANY - len(table) == 51
    assert looks == 51


def test_entries_that_are_seen_again_cost_one_look_in_each_period() -> None:
    table = full()
    for entry in table.values():
        entry.seen_s = 200.0

    looks = [table.looks_of(second) for second in range(0, 700, 5)]

    assert sum(looks) <= 4 * MANY  # each was examined when it was first due, was scheduled again, and was dropped
    assert len(table) == 0


def test_an_entry_that_was_stored_again_keeps_its_place_and_its_time() -> None:
    table = Table()
    for owner in "abc":
        table.put(owner, Entry(0.0))

    table.put("a", Entry(100.0))
    table.expire(FORGOTTEN_S + 1)

    assert list(table) == ["a"]
    for _ in range(MANY):
        del table["a"]
        table.put("a", Entry(100.0))
    assert table.looks_of(FORGOTTEN_S + 101) == 1
    assert list(table) == []
