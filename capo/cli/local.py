"""``capo local``: a management cluster on this machine."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from capo.local.rig import Rig

_DESCRIPTION = """\
A management cluster on this machine: etcd, kube-apiserver, kube-controller-manager and Cluster API's managers as
processes that listen on 127.0.0.1, and a stand-in for workload clusters. Programs come from --bin-dir (CAPO_LOCAL_BIN),
KUBEBUILDER_ASSETS, the user's cache folder, or a build from pinned Go modules: about ten minutes, once.
"""


def add_parser(subparsers: Any) -> None:
    """Add the command and its subcommands to the parser of ``capo``."""
    parser = subparsers.add_parser("local", help="a management cluster on this machine", description=_DESCRIPTION)
    verbs = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    up = _add_verb(verbs, "up", _up, "start it; what runs already is left alone")
    up.add_argument("--only", choices=("api", "all"), default="all", help="api: etcd and kube-apiserver alone")
    up.add_argument(
        "--timeout", type=float, default=180, metavar="S", help="for each stage of the start (default: 180)"
    )
    down = _add_verb(verbs, "down", _down, "stop it")
    down.add_argument("--wipe", action="store_true", help="remove its folder with all data as well")
    _add_verb(verbs, "status", _status, "show its processes; exit status 1 unless all that were started are alive")
    _add_verb(verbs, "env", _env, "print shell lines: eval them to use it with kubectl and clusterctl")
    build = _add_verb(verbs, "build", _build, "have all its programs, without starting any")
    build.add_argument("--without", nargs="*", default=(), metavar="PROGRAM", help="programs that are not needed yet")


def _add_verb(verbs: Any, name: str, run: Callable[[argparse.Namespace], int], text: str) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = verbs.add_parser(name, help=text, description=text)
    folder = os.environ.get("CAPO_LOCAL_STATE", ".rig")
    parser.add_argument(
        "--state", type=Path, default=Path(folder), metavar="DIR", help="its folder (default: CAPO_LOCAL_STATE or .rig)"
    )
    parser.add_argument(
        "--bin-dir", type=Path, metavar="DIR", help="folder of programs to use (default: CAPO_LOCAL_BIN)"
    )
    parser.set_defaults(run=lambda arguments: _reporting_errors(run, arguments))
    return parser


def _reporting_errors(run: Callable[[argparse.Namespace], int], arguments: argparse.Namespace) -> int:
    """Run; print errors for the user to standard error, without a traceback."""
    from capo.local.errors import RigError

    try:
        return run(arguments)
    except RigError as error:
        print(f"capo local: {error}", file=sys.stderr)
        return 1


def _rig(arguments: argparse.Namespace) -> Rig:
    from capo.local.rig import Rig

    return Rig(arguments.state, bin_dir=arguments.bin_dir, say=lambda line: print(line, flush=True))


def _up(arguments: argparse.Namespace) -> int:
    rig = _rig(arguments)
    rig.up(arguments.only, limit_s=arguments.timeout)
    print(f"KUBECONFIG={rig.kubeconfig}")
    return 0


def _down(arguments: argparse.Namespace) -> int:
    _rig(arguments).down(wipe=arguments.wipe)
    return 0


def _status(arguments: argparse.Namespace) -> int:
    states = _rig(arguments).status()
    for state in states:
        memory = "" if state.memory_mib is None else f"{state.memory_mib:7.1f} MiB"
        print(f"{state.name:24} {state.condition:10} {state.pid or '':>8} {memory}")
    for state in states:
        if state.condition == "died":
            print(f"\n{state.name} died; the end of its log:\n{state.tail}")
    if not states:
        print(f"nothing of {arguments.state} is running")
    return 0 if states and all(state.condition != "died" for state in states) else 1


def _env(arguments: argparse.Namespace) -> int:
    import shlex

    rig = _rig(arguments)
    print(f"export KUBECONFIG={shlex.quote(str(rig.kubeconfig))}")
    folders = dict.fromkeys(str(path.parent) for path in rig.client_programs())
    if folders:
        print(f"export PATH={shlex.quote(':'.join(folders))}:$PATH")
    for name, port in rig.ports.items():
        print(f"# {name}: 127.0.0.1:{port}")
    return 0


def _build(arguments: argparse.Namespace) -> int:
    for name, path in _rig(arguments).build(without=arguments.without).items():
        print(f"{name}: {path}")
    return 0
