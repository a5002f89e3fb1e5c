"""Edits of allowed address pairs as differences: they add up, whatever lies between them."""

from __future__ import annotations

import itertools

import pytest

from capo import names
from capo.json_types import Json
from controllers.address_pairs import Change, Pairs, Record, of_ports, record_of, template_annotation

ONE, TWO, OWN = ("192.0.2.1", None), ("192.0.2.2", None), ("192.0.2.9", "fa:16:3e:00:00:09")
LISTS: list[Pairs] = [(), (ONE,), (TWO,), (ONE, TWO)]


@pytest.mark.parametrize(("first", "second", "third"), list(itertools.product(LISTS, repeat=3)))
def test_two_edits_are_one_wherever_the_first_one_ended(first: Pairs, second: Pairs, third: Pairs) -> None:
    both = Change.between(first, second).then(Change.between(second, third))

    for present in (first, second):
        assert set(both.apply((*present, OWN))) == {*third, OWN}


def test_an_edit_before_the_former_was_applied_keeps_what_the_former_does() -> None:
    record = Record([(ONE,), (ONE,)]).edited([(TWO,), (ONE,)]).edited([(OWN,), (ONE, OWN)])

    assert record.pairs == [(OWN,), (ONE, OWN)]
    assert set(record.changes[0].apply((ONE,))) == set(record.changes[0].apply((TWO,))) == {OWN}
    assert record.changes[1] == Change(added=(OWN,))


def test_spellings_of_a_pair_are_no_edit() -> None:
    old = (("10.0.0.1", "FA-16-3E-00-00-01"), ("2001:DB8:0::7", None), ("10.0.0.0/24", None))
    new = (("10.0.0.0/24", None), ("2001:db8::7/128", None), ("10.0.0.1/32", "fa:16:3e:00:00:01"))

    assert not Change.between(old, new)


def test_a_record_is_read_as_it_was_written() -> None:
    record = Record([(ONE,), ()]).edited([(TWO,), (OWN,)])

    found = record_of({"metadata": {"annotations": {names.ADDRESS_PAIRS_ANNOTATION: record.encoded()}}})

    assert found == record
    assert found is not None
    assert found.changes == {0: Change(added=(TWO,), removed=(ONE,)), 1: Change(added=(OWN,))}


def test_a_port_without_pairs_is_null_in_the_record_of_a_template() -> None:
    ports: list[Json] = [
        {},
        {"allowedAddressPairs": []},
        {"allowedAddressPairs": [{"ipAddress": "10.0.0.1", "macAddress": ""}]},
    ]

    assert template_annotation(ports) == {names.TEMPLATE_PAIRS_ANNOTATION: '[null,null,[{"ipAddress":"10.0.0.1"}]]'}
    assert of_ports(ports) == [(), (), (("10.0.0.1", None),)]
