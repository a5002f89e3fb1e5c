"""What shells and kubectl complete."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from capo import cli
from capo.__main__ import main
from capo.cli import completers, completion
from capo.kube.kinds import OPENSTACK_CLUSTER
from capo.kube.tests.fake_apiserver import FakeApiServer
from capo.local.binaries import Binaries

BIN = Path(sys.executable).parent


@pytest.fixture
def kubeconfig(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Yield a kubeconfig of an API server with two clusters in two namespaces."""
    with FakeApiServer().running() as api:
        for namespace, name in (("team-a", "shop"), ("team-b", "site")):
            api.put(OPENSTACK_CLUSTER, {"metadata": {"namespace": namespace, "name": name}, "spec": {}})
        config = {
            "current-context": "here",
            "contexts": [{"name": "here", "context": {"cluster": "it", "user": "it", "namespace": "team-a"}}],
            "clusters": [{"name": "it", "cluster": {"server": api.connection().server}}],
            "users": [{"name": "it", "user": {"token": "t"}}],
        }
        path = tmp_path / "kubeconfig"
        path.write_text(yaml.safe_dump(config))
        monkeypatch.setenv("KUBECONFIG", str(path))
        monkeypatch.setattr(completers, "LIMIT_S", 60.0)
        yield str(path)


def completed(*words: str) -> list[str]:
    """Return what kubectl gets for the last word, without the directive."""
    out = io.StringIO()
    completion.answer_kubectl(words, out)
    *found, directive = out.getvalue().splitlines()
    assert directive in (":4", ":6")
    return found


def test_commands_are_completed() -> None:
    assert {"inventory", "orphans", "completion"} <= set(completed(""))
    assert completed("inv") == ["inventory"]


def test_options_and_their_choices_are_completed() -> None:
    assert {"--kubeconfig", "--watch"} <= set(completed("inventory", "--"))
    assert completed("inventory", "-o", "") == ["json", "wide", "yaml"]


def test_clusters_of_the_namespace_are_completed(kubeconfig: str) -> None:
    assert "shop" in completed("inventory", "s")
    assert "site" not in completed("inventory", "s")
    assert completed("inventory", "-n", "team-b", "s") == ["site"]
    assert completed("inventory", "-A", "--kubeconfig", kubeconfig, "s") == ["shop", "site"]


def test_namespaces_contexts_and_clouds_are_completed(
    kubeconfig: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "clouds.yaml").write_text(yaml.safe_dump({"clouds": {"prod": {}, "test": {}}}))
    monkeypatch.chdir(tmp_path)

    assert completed("inventory", "-n", "team") == ["team-a", "team-b"]
    assert completed("orphans", "--kubeconfig", kubeconfig, "--context", "") == ["here"]
    assert completed("inventory", "--cloud", "p") == ["prod"]


def test_what_cannot_be_read_completes_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)

    assert completed("inventory", "--cloud", "") == []
    assert completed("inventory", "-n", "") == []


def test_an_api_server_that_does_not_answer_is_not_waited_for(kubeconfig: str, monkeypatch: pytest.MonkeyPatch) -> None:
    never = threading.Event()
    monkeypatch.setattr(completers, "LIMIT_S", 0.01)
    monkeypatch.setattr(completers, "_management", lambda _arguments: never.wait())

    assert completed("inventory", "s") == []
    never.set()


@pytest.mark.parametrize("shell", completion.SHELLS)
def test_each_shell_has_a_script(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", shell]) == 0
    assert "_ARGCOMPLETE" in capsys.readouterr().out


def test_bash_completes_by_the_script(tmp_path: Path) -> None:
    script = f"""
        PATH={BIN}:$PATH
        source <(capo completion bash)
        COMP_WORDS=(capo inv) COMP_CWORD=1 COMP_LINE="capo inv" COMP_POINT=8 COMP_TYPE=9
        compopt() {{ return 1; }}
        _python_argcomplete capo
        echo "${{COMPREPLY[@]}}"
    """

    ended = subprocess.run(["/bin/bash", "-c", script], capture_output=True, text=True, check=True, cwd=tmp_path)

    assert ended.stdout.strip() == "inventory"


@pytest.mark.parametrize(("shell", "line"), [("fish", "inventory\t"), ("zsh", "inventory:")])
def test_zsh_and_fish_get_what_their_scripts_parse(shell: str, line: str, tmp_path: Path) -> None:
    answer = tmp_path / "answer"
    given = {
        **os.environ,
        "_ARGCOMPLETE": "1",
        "_ARGCOMPLETE_SHELL": shell,
        "_ARGCOMPLETE_IFS": "\n",
        "_ARGCOMPLETE_SUPPRESS_SPACE": "1",
        "_ARGCOMPLETE_STDOUT_FILENAME": str(answer),
        "COMP_LINE": "capo inv",
        "COMP_POINT": "8",
        **({"_ARGCOMPLETE_DFS": "\t"} if shell == "fish" else {}),
    }

    subprocess.run([BIN / "capo"], env=given, check=True, stdin=subprocess.DEVNULL, capture_output=True)

    assert answer.read_text().startswith(line)


def test_help_of_the_plugin_names_it_as_kubectl_does(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        cli.build_parser(["inventory"], cli.program("/usr/bin/kubectl-capo")).parse_args(["inventory", "--help"])

    assert capsys.readouterr().out.startswith("usage: kubectl capo inventory ")


@pytest.mark.integration
def test_the_real_kubectl_finds_the_plugin_and_completes_its_arguments(tmp_path: Path) -> None:
    kubectl = Binaries.from_environment().require(["kubectl"], say=print)["kubectl"]
    given = {**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}", "KUBECONFIG": str(tmp_path / "none")}

    def run(*words: str) -> str:
        return subprocess.run([kubectl, *words], env=given, capture_output=True, text=True, check=True).stdout

    assert run("capo", "--version").startswith("capo ")
    assert run("__complete", "capo", "inv").splitlines() == ["inventory", ":4"]
