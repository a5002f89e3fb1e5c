from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest

from tools.architecture import __main__ as program
from tools.architecture import drawing, imports
from tools.architecture.imports import Part

pytestmark = pytest.mark.lint


def parts(**imported: str) -> dict[str, Part]:
    return {name: Part(name, 100, frozenset(filter(None, below.split(",")))) for name, below in imported.items()}


def test_the_picture_shows_the_present_imports(capsys: pytest.CaptureFixture[str]) -> None:
    assert program.main(["--check"]) == 0, capsys.readouterr().out


def test_a_picture_of_other_imports_is_out_of_date(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    picture = tmp_path / "architecture.svg"
    picture.write_text(drawing.svg(parts(a="b", b=""), [["a"], ["b"]], [("a", "b")]))
    monkeypatch.setattr(program, "PICTURE", picture)

    assert program.main(["--check"]) == 1
    assert "docs/architecture.svg does not show the present imports" in capsys.readouterr().out
    assert program.main([]) == 0
    assert program.main(["--check"]) == 0


def test_each_part_stands_above_all_that_it_imports() -> None:
    found = imports.rows(parts(cli="engine,base", engine="kube", kube="base", base="", alone=""))

    assert found == [["cli"], ["engine"], ["kube"], ["alone", "base"]]


def test_parts_that_import_each_other_are_refused() -> None:
    with pytest.raises(ValueError, match=r"circle: \['a', 'b'\]"):
        imports.rows(parts(a="b", b="a", c=""))


def test_an_import_that_follows_from_others_gets_no_arrow() -> None:
    assert imports.essential(parts(cli="engine,kube", engine="kube", kube="")) == [
        ("cli", "engine"),
        ("engine", "kube"),
    ]


def test_tests_and_fixtures_are_no_part() -> None:
    found = imports.read(program.ROOT)

    assert "capo/simulator" not in found["controllers"].imports
    assert "capo/tests" not in found
    assert "controllers" not in found["capo/engine"].imports


def test_the_picture_has_each_part_and_each_arrow_and_is_the_same_each_time() -> None:
    some = parts(top="middle,low", middle="low", low="")
    arrows = [("top", "middle"), ("top", "low"), ("middle", "low")]

    drawn = drawing.svg(some, imports.rows(some), arrows)

    assert drawn == drawing.svg(some, imports.rows(some), arrows)
    picture = ElementTree.fromstring(drawn)
    names = [each.text for each in picture.iter() if each.get("class") == "name"]
    assert sorted(filter(None, names)) == ["low", "middle", "top"]
    assert sum(each.get("class") == "arrow" for each in picture.iter()) == 3
