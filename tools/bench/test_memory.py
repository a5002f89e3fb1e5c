"""What is kept of a machine stays small; counted in bytes of objects, which is the same on every computer."""

from __future__ import annotations

from tools.bench import memory

MOST: int = 24 * 1024
"""Bytes that a machine may hold beyond the first hundred: its objects, resources and entries in indices."""


def test_a_machine_holds_no_more_than_its_share() -> None:
    few, many = (memory.held(memory.filled(count)) for count in (memory.FEW, 3 * memory.FEW))

    assert (many - few) / (2 * memory.FEW) <= MOST


def test_each_machine_has_values_of_its_own() -> None:
    first, second = (memory.placeholders(number) for number in (0, 1))

    same = {name for name, value in first.items() if second[name] == value}
    assert same == {"@set-uid", "@cluster", "@project", "@user"}
