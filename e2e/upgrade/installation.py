"""Two installations of the provider: the present version and the last released one, each with its own interpreter.

The released version is built from the repository's own history into the user's cache folder, once for each commit,
Python version and set of dependencies.
"""

from __future__ import annotations

import copy
import hashlib
import io
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from importlib import metadata
from pathlib import Path
from typing import Any, Final, Literal

import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from capo.json_types import Json
from capo.local import layout
from capo.local.binaries import cache_folder

Version = Literal["released", "present"]

RELEASED_COMMIT: Final = "40ca150705f01ed9b6094e8ca34319ea18ee8f2b"
"""The last released version. Change it with each release, see the README."""
REPOSITORY: Final = Path(__file__).parents[2]
LIMIT_S: Final = 900
INJECT_CA: Final = "cert-manager.io/inject-ca-from"
_LOADER: Final[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class InstallationError(Exception):
    """The released version cannot be installed; the message says what to do."""


@dataclass(frozen=True)
class Installation:
    """One version of the provider.

    Args:
        python: interpreter of its environment.
        source: its checkout or export, with templates and metadata.
    """

    version: Version
    python: Path
    source: Path

    def command(self, *arguments: str) -> list[str]:
        """Return the command line of ``capo``; ``-P`` keeps modules of the working directory out."""
        return [str(self.python), "-P", "-m", "capo", *arguments]

    def output(self, *arguments: str) -> str:
        """Return the standard output of a ``capo`` command."""
        return _run(self.command(*arguments))

    @cached_property
    def package(self) -> Path:
        """Return the folder from which ``capo`` is imported."""
        code = "import capo; print(capo.__path__[0])"
        return Path(_run([str(self.python), "-P", "-c", code]).strip())

    @cached_property
    def number(self) -> str:
        """Return its version number."""
        return self.output("run", "--version").split()[-1]

    def lay_out_release(self, repository: Path) -> None:
        """Write its release into a provider repository; templates and metadata are those of its source."""
        command = [str(self.python), "-m", "capo", "release", f"--output={repository}"]
        _run(command, folder=self.source)

    @cached_property
    def components(self) -> list[Json]:
        """Return the objects of ``infrastructure-components.yaml``."""
        return [each for each in yaml.load_all(self.output("components"), _LOADER) if each]

    @property
    def definitions(self) -> list[Json]:
        """Return the CustomResourceDefinitions without cert-manager's annotation for the CA."""
        found = [each for each in copy.deepcopy(self.components) if each["kind"] == "CustomResourceDefinition"]
        for each in found:
            each["metadata"].get("annotations", {}).pop(INJECT_CA, None)
        return found

    @cached_property
    def status_schemas(self) -> dict[str, Json]:
        """Return the schema of the status of each kind in its stored version, by plural."""
        return {
            each["spec"]["names"]["plural"]: version["schema"]["openAPIV3Schema"]["properties"].get("status", {})
            for each in self.definitions
            for version in each["spec"]["versions"]
            if version["storage"]
        }

    @property
    def accounts(self) -> list[Json]:
        """Return the ServiceAccount, the roles and their bindings."""
        return [
            each
            for each in self.components
            if each["kind"] == "ServiceAccount" or each["apiVersion"].startswith("rbac.")
        ]


def present() -> Installation:
    """Return the installation that runs the tests."""
    return Installation("present", Path(sys.executable), REPOSITORY)


def released(commit: str = RELEASED_COMMIT, *, say: Callable[[str], None] = print) -> Installation:
    """Return the installation of a commit, built on first use; concurrent callers wait for one build.

    Raises:
        InstallationError: the commit is not in this repository, or pip failed.
    """
    constraints = _installed_packages()
    folder = cache_folder().parent / "released" / _key(commit, constraints)
    made = Installation("released", folder / "venv" / "bin" / "python", folder / "source")
    folder.parent.mkdir(parents=True, exist_ok=True)
    with layout.file_lock(folder.parent / f"{folder.name}.lock"):
        # Scripts of a virtual environment have absolute paths, so it is not renamed: a marker is written last.
        complete = folder / ".complete"
        if not complete.exists():
            shutil.rmtree(folder, ignore_errors=True)
            _build(made, commit, constraints, say)
            complete.touch()
    return made


def _key(commit: str, constraints: str) -> str:
    digest = hashlib.sha256(constraints.encode()).hexdigest()[:12]
    return f"{commit[:12]}-py{sys.version_info.major}.{sys.version_info.minor}-{digest}"


def _build(wanted: Installation, commit: str, constraints: str, say: Callable[[str], None]) -> None:
    say(f"installing the released version {commit[:12]} into {wanted.source.parent} (about a minute, once)")
    packed_source = archive(commit)
    wanted.source.mkdir(parents=True)
    with tarfile.open(fileobj=io.BytesIO(packed_source)) as packed:
        packed.extractall(wanted.source, filter="data")
    pins = wanted.source.parent / "constraints.txt"
    pins.write_text(constraints, encoding="utf-8")
    _run([sys.executable, "-m", "venv", str(wanted.python.parents[1])])
    install = [str(wanted.python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    try:
        _run([*install, f"--constraint={pins}", str(wanted.source)])
    except InstallationError as error:
        say(f"not with the present dependencies, so with the newest that it accepts: {error}")
        _run([*install, str(wanted.source)])


def archive(commit: str) -> bytes:
    """Return a tar archive of a commit.

    Raises:
        InstallationError: this is no repository, or it lacks the commit.
    """
    git = ["git", "-C", str(REPOSITORY)]
    top = subprocess.run([*git, "rev-parse", "--show-toplevel"], capture_output=True, text=True, check=False)
    if top.returncode:
        raise InstallationError(
            f"the released version {commit} is installed from the repository's history, and {REPOSITORY} "
            f"is no git checkout: {top.stderr.strip()}"
        )
    archive = [*git[:2], top.stdout.strip(), "archive", commit]
    found = subprocess.run(archive, capture_output=True, check=False)
    if found.returncode:  # maybe a shallow clone, whose origin has the rest
        subprocess.run([*git, "fetch", "--quiet", "--unshallow"], capture_output=True, check=False, timeout=LIMIT_S)
        found = subprocess.run(archive, capture_output=True, check=False)
    if found.returncode:
        raise InstallationError(
            f"the released version {commit} is not in the history of {top.stdout.strip()}; in a shallow clone run "
            f"`git fetch --unshallow`, in others `git fetch origin {commit}`: {found.stderr.decode().strip()}"
        )
    return found.stdout


def _installed_packages() -> str:
    """Return the dependencies of this project in the present environment, as pip constraints, without tools."""
    found: dict[str, str] = {}
    waiting = ["capi-provider-openstack"]
    while waiting:
        for requirement in map(Requirement, metadata.requires(waiting.pop()) or ()):
            name = canonicalize_name(requirement.name)
            if name not in found and (not requirement.marker or requirement.marker.evaluate({"extra": ""})):
                found[name] = metadata.version(name)
                waiting.append(name)
    return "".join(f"{name}=={version}\n" for name, version in sorted(found.items()))


def _run(command: list[str], *, folder: Path | None = None) -> str:
    """Return the standard output of a command that runs in a folder."""
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    if done.returncode:
        raise InstallationError(f"{' '.join(command)} failed:\n{done.stdout}{done.stderr}")
    return done.stdout
