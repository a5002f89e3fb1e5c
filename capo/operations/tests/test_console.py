"""What operators' commands print, where it goes, and how they end."""

from __future__ import annotations

import argparse
import io
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from capo.errors import CloudUnavailableError
from capo.kube.errors import KubeError
from capo.operations import console
from capo.operations.console import Cell, Console, Node
from capo.operations.errors import ExitStatus, OperatorError
from environments.manager_process import wait_until


class Terminal(io.StringIO):
    encoding = "utf-8"

    def isatty(self) -> bool:
        return True


TREE = Node("cluster", ["ACTIVE"], [Node("network", ["ACTIVE"], [Node("port", [Cell("DOWN", "bad")])]), Node("router")])


def printed(draw: Callable[[Console], None], *, out: io.StringIO, output: str = "") -> str:
    draw(Console(output, out=out, err=out))
    return out.getvalue()


def test_a_pipe_gets_aligned_columns_without_colors() -> None:
    rows: list[list[str | Cell]] = [["server", Cell("ACTIVE", "good")], ["a-long-name", "BUILD"]]

    text = printed(lambda each: each.table(["NAME", "STATE"], rows), out=io.StringIO())

    assert text.splitlines() == ["NAME          STATE", "server        ACTIVE", "a-long-name   BUILD"]


def test_a_tree_shows_depth_with_characters_that_the_stream_has() -> None:
    class Utf8(io.StringIO):
        encoding = "utf-8"

    drawn = printed(lambda each: each.tree(["NAME", "STATE"], [TREE]), out=Utf8())
    plain = printed(lambda each: each.tree(["NAME", "STATE"], [TREE]), out=io.StringIO())

    assert [line.split("  ")[0].rstrip() for line in drawn.splitlines()][1:3] == ["cluster", "├─ network"]
    assert "|- network" in plain
    assert "|  `- port" in plain


def test_a_terminal_gets_colors_unless_no_color_is_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)

    def draw(each: Console) -> None:
        each.table(["NAME", "STATE"], [["server", Cell("ERROR", "bad")]])

    assert "\x1b[31mERROR" in printed(draw, out=Terminal())
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b[31m" not in printed(draw, out=Terminal())


def test_a_terminal_shows_on_stderr_what_takes_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    out, err = Terminal(), Terminal()

    with Console(out=out, err=err).progress("reading [bold]objects") as note:
        wait_until("the first text is shown", lambda: "reading [bold]objects" in err.getvalue())
        note("reading servers\x1b]0;owned\x07")
        wait_until("the next text is shown", lambda: "reading servers?]0;owned?" in err.getvalue())

    assert out.getvalue() == ""


def test_a_pipe_gets_no_progress() -> None:
    out, err = Terminal(), io.StringIO()

    with Console(out=io.StringIO(), err=err).progress("reading objects") as note:
        note("reading servers")

    assert (out.getvalue(), err.getvalue()) == ("", "")


def test_names_that_others_chose_do_not_command_the_terminal() -> None:
    text = printed(lambda each: each.table(["NAME"], [["evil\x1b]0;owned\x07\n\u202e"]]), out=io.StringIO())

    assert text == "NAME\nevil?]0;owned???\n"


@pytest.mark.parametrize(
    "hidden",
    ["\u202a", "\u202e", "\u2066", "\u2069", "\u200b", "\u200e", "\ufeff", "\u00ad", "\u034f", "\u3164", "\ufe0f"],
)
def test_names_that_others_chose_hide_and_reorder_nothing(hidden: str, capsys: pytest.CaptureFixture[str]) -> None:
    name, shown = f"web{hidden}-1", "web?-1"

    def command(_arguments: argparse.Namespace) -> int:
        raise OperatorError(name)

    assert printed(lambda each: each.table(["NAME"], [[name]]), out=io.StringIO()) == f"NAME\n{shown}\n"
    assert printed(lambda each: each.tree(["NAME"], [Node(name)]), out=io.StringIO()) == f"NAME\n{shown}\n"
    assert printed(lambda each: each.line(name), out=io.StringIO()) == f"{shown}\n"
    assert printed(lambda each: each.warn(name), out=io.StringIO()) == f"{shown}\n"
    for output in ("json", "yaml"):
        assert printed(lambda each: each.data([name]), out=io.StringIO(), output=output).isascii()
    console.run("x", command, argparse.Namespace())
    assert capsys.readouterr().err == f"capo x: {shown}\n"


@pytest.mark.parametrize(("output", "load"), [("json", json.loads), ("yaml", yaml.safe_load)])
def test_data_is_printed_for_programs(output: str, load: Callable[[str], object]) -> None:
    value = {"items": [{"name": "ü", "age": None}]}

    assert load(printed(lambda each: each.data(value), out=io.StringIO(), output=output)) == value


@pytest.mark.parametrize(
    ("error", "status", "text"),
    [
        (OperatorError("no\nsuch  cluster"), 1, "capo x: no such cluster\n"),
        (OperatorError("in part", status=ExitStatus.INCOMPLETE), 4, "capo x: in part\n"),
        (CloudUnavailableError("network: 503.", request_id="req-1"), 1, "capo x: network: 503 (request req-1)\n"),
        (KubeError("GET /x: no answer"), 1, "capo x: GET /x: no answer\n"),
        (KeyboardInterrupt(), 130, "capo x: interrupted\n"),
    ],
)
def test_a_failure_is_one_sentence_and_an_exit_status(
    error: BaseException, status: int, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    def command(_arguments: argparse.Namespace) -> int:
        raise error

    assert console.run("x", command, argparse.Namespace()) == status
    assert capsys.readouterr().err == text


def test_a_fault_of_the_program_keeps_its_traceback() -> None:
    def command(_arguments: argparse.Namespace) -> int:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        console.run("x", command, argparse.Namespace())


def test_a_reader_that_has_enough_is_no_failure(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        "import argparse, sys; from capo.operations import console\n"
        "def command(_): [print('x' * 1000) for _ in range(10000)]; return 0\n"
        "sys.exit(console.run('x', command, argparse.Namespace()))"
    )
    line = f"{sys.executable} {program} | head -1 >/dev/null; echo ${{PIPESTATUS[0]}}"

    ended = subprocess.run(["/bin/bash", "-c", line], capture_output=True, text=True, check=True)

    assert (ended.stdout, ended.stderr) == ("0\n", "")


def test_plain_output_needs_no_extra() -> None:
    code = (
        "import sys; sys.modules['rich'] = None\n"
        "from capo.operations.console import Console\n"
        "class Tty:\n  encoding='utf-8'\n  isatty=lambda s: True\n  write=sys.stdout.write\n  flush=sys.stdout.flush\n"
        "Console('', out=Tty()).table(['NAME'], [['a']])"
    )

    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert ended.stdout == "NAME\na\n"
