"""Which citations the check refuses."""

from __future__ import annotations

import pytest

from tools.language.citations import definitions, unknown

KNOWN = {"C-7", "G-13", "W-09", "W-51"}


def found(text: str) -> list[str]:
    return [cited for _, cited in unknown(text, KNOWN)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Source: docs/explanation/go-provider.md, G-13, W-09 and (C-7).", []),
        ("def test_it_is_kept_c_7_w_51(world: World) -> None:", []),
        ("Source: docs/explanation/go-provider.md, G-99.", ["G-99"]),
        ("W-9 and W-09", ["W-9"]),
        ("def test_it_is_kept_c_8() -> None:", ["C-8"]),
        ("def test_it_is_kept_c_7_w_52() -> None:", ["W-52"]),
    ],
)
def test_a_number_is_one_of_a_page(text: str, expected: list[str]) -> None:
    assert found(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Source: behaviour reference, cluster.md 2.10.", ["behaviour reference", "cluster.md"]),
        ("(machines.md 1.13)", ["machines.md"]),
        ("budgets of ``design.md``", ["design.md"]),
        ("see api.md 3 and contract.md, 1.4", ["api.md 3", "contract.md, 1"]),
        ("it waits for the machines (OWN-7)", ["OWN-7"]),
        ('id="W7: slow"', ["W7"]),
        ("def test_it_is_kept_own_7(world: World) -> None:", ["own_7"]),
        ("def test_it_is_kept_w7() -> None:", ["w7"]),
    ],
)
def test_a_citation_of_the_former_document_is_refused(text: str, expected: list[str]) -> None:
    assert found(text) == expected


@pytest.mark.parametrize(
    "text", ["UTF-8", "TEST-NET-1", "FA-16-3E-00", "[api.md](api.md), 2 pages", "W3C", "x_c_8 = 1", "PKCS-7 and EC-2"]
)
def test_what_only_resembles_a_citation_is_left_alone(text: str) -> None:
    assert found(text) == []


def test_a_line_is_counted_from_one() -> None:
    assert list(unknown("fine\n\nW-10\n", KNOWN)) == [(3, "W-10")]


def test_a_page_defines_what_has_a_row_or_a_heading() -> None:
    page = "# Title\n\nC-1 is explained.\n\n| C-2 | Rule (C-3). |\n\n### G-4 Names\n\n[C-5]: there\n"

    assert definitions(page) == ["C-2", "G-4"]
