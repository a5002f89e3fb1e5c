"""Which texts the check of the language refuses."""

from __future__ import annotations

import pytest

from tools.language.markers import texts_of_markdown, texts_of_python


def found(source: str) -> list[tuple[int, str, str | None]]:
    return [(text.line, text.kind, text.marker()) for text in texts_of_python("x.py", source)]


@pytest.mark.parametrize(
    ("text", "marker"),
    [
        ("Have the network created.", "Have"),
        ("Tell whether it is there.", "Tell"),
        ("Return what nobody else uses.", "nobody"),
        ("Create it anew.", "anew"),
        ("Return whether the network exists.", None),
        ("Return the value of ``told``.", None),
        ("Letters are allowed.", None),
    ],
)
def test_a_docstring_does_without_words_of_our_own(text: str, marker: str | None) -> None:
    assert found(f'def f():\n    """{text}"""\n') == [(2, "docstring", marker)]


def test_a_comment_and_the_docstring_of_an_attribute_are_read_and_a_string_in_code_is_not() -> None:
    source = 'x = "whoever"\n"""Nobody reads it."""\ny = 1  # told before\n'

    assert found(source) == [(2, "docstring", "Nobody"), (3, "comment", "told")]


def test_a_page_is_read_by_sentences_and_its_code_is_not() -> None:
    page = "# Title\n\nIt exists. Nobody deletes it.\n\n```\nanew\n```\n\nUse `tell` here.\n"

    texts = [(text.line, text.text, text.marker()) for text in texts_of_markdown("x.md", page)]

    assert [each for each in texts if each[2]] == [(3, "Nobody deletes it.", "Nobody")]
