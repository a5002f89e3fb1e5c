"""Runs the kind test on a node that is built here: everything it needs, the test, and the machine as it was.

State is in the user's cache folder; what is there already is used again. ``--build`` ends before the test, ``--down``
deletes the cluster of a run that was killed.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from capo.local.binaries import cache_folder
from capo.local.errors import RigError
from e2e.kind.local import host, node, programs, providers
from tools.image import archive, debian, engines

CLUSTER: Final = "capo-local"
LOCAL: Final = "CAPO_KIND_LOCAL"
"""Names the folder of providers to the test: where it is set, nothing is fetched."""
PROVIDERS: Final = "providers"
_RECIPES: Final = (node, providers, archive)


class Clock:
    """Prints lines with the seconds since the start."""

    def __init__(self) -> None:
        self._began_s = time.monotonic()

    def __call__(self, line: str) -> None:
        """Print a line."""
        print(f"[{time.monotonic() - self._began_s:5.0f} s] {line}", flush=True)


def state_folder() -> Path:
    """Return the folder of node and providers: another program or recipe is another folder."""
    digest = hashlib.sha256()
    for module in (*programs.CLIENTS, *programs.NODE, *programs.PROVIDERS):
        digest.update(module.key().encode())
    for recipe in _RECIPES:
        digest.update(Path(str(recipe.__file__)).read_bytes())
    return cache_folder().parent / "kind" / digest.hexdigest()[:12]


def build(folder: Path, say: Clock) -> Mapping[str, Path]:
    """Build what is missing and load the node's image into podman; return the programs by name."""
    host.prepare(say=say)
    say("building programs")
    found = programs.everything(say=say)
    archived = folder / "node.tar"
    if not archived.exists():
        node.build(found, archived, say=say)
    if not (folder / PROVIDERS / providers.CONFIGURATION).exists():
        providers.lay_out(found, folder / PROVIDERS, say=say)
    say(f"loading {node.NAME}")
    engines.load("podman", archived)
    return found


def test(found: Mapping[str, Path], folder: Path, arguments: Sequence[str]) -> int:
    """Run the test; return pytest's exit code."""
    os.environ[LOCAL] = str(folder / PROVIDERS)
    options = [f"--kind-image={node.NAME}", f"--kind-bin={found['kind']}", f"--kind-kubectl-bin={found['kubectl']}"]
    command = [sys.executable, "-m", "pytest", "-m", "kind", "e2e/kind", f"--cluster-name={CLUSTER}", *options]
    return subprocess.run([*command, *arguments], check=False).returncode


def delete_cluster(kind: Path) -> None:
    """Delete the cluster of the test, if it is still there."""
    subprocess.run([kind, "delete", "cluster", f"--name={CLUSTER}"], check=False, capture_output=True)


def main(arguments: Sequence[str]) -> int:
    """Run it all; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m e2e.kind.local", description=__doc__)
    parser.add_argument("--build", action="store_true", help="end before the test")
    parser.add_argument("--down", action="store_true", help="delete the cluster of a run that was killed")
    parser.add_argument("--keep", action="store_true", help="leave the cluster up")
    parser.add_argument("pytest", nargs="*", help="arguments for pytest")
    options = parser.parse_args(arguments)
    os.environ.update(host.environment())
    folder, say = state_folder(), Clock()
    folder.mkdir(parents=True, exist_ok=True)
    sysctls = folder.parent / "sysctl"
    try:
        if options.down:
            delete_cluster(programs.clients(say=say)["kind"])
            host.restore(sysctls)
            return 0
        found = build(folder, say)
        if options.build:
            return 0
        with host.kernel_kept(sysctls):
            try:
                return test(found, folder, [*options.pytest, *(["--keep-cluster"] if options.keep else [])])
            finally:
                if not options.keep:
                    delete_cluster(found["kind"])
                say("the test has ended")
    except (RigError, debian.MissingToolError, subprocess.CalledProcessError) as error:
        print(f"kind: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
