"""Terminal for the commands of a page: a checkout, the real programs on the path, a kubeconfig."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from capo.components import release
from capo.local.binaries import Binaries
from capo.local.rig import Rig
from e2e.install.page import SHELL, Section
from environments.manager_process import NotReachedError

PROGRAMS: Final = ("clusterctl", "helm", "kubectl")
_LIMIT_S: Final = 300
_ENDED_BY_TIMEOUT: Final = 124
"""Exit status of timeout(1) when time is over."""
_FILES: Final = ("Makefile", "metadata.yaml", "pyproject.toml")
_FOLDERS: Final = ("image", "api", "capo", "charts", "controllers", "templates")


class CommandError(AssertionError):
    """A block of a page failed; the message has the block and its output."""


@dataclass(frozen=True)
class Terminal:
    """A shell in a copy of the checkout, with a home folder of its own.

    Args:
        rig: target of its kubeconfig.
        folder: parent of the copy and the home.
        variables: additional environment variables.
        programs: those on its path, which are built if they do not exist yet.
    """

    rig: Rig
    folder: Path
    variables: Mapping[str, str] = field(default_factory=dict)
    programs: Sequence[str] = PROGRAMS

    @property
    def checkout(self) -> Path:
        """Return the folder in which commands are typed."""
        return self.folder / "checkout"

    @property
    def config(self) -> Path:
        """Return the default path of clusterctl's configuration."""
        return self.folder / "config" / "cluster-api" / "clusterctl.yaml"

    def prepare(self) -> None:
        """Create the checkout, with `capo` installed as by `make venv`."""
        ignored = shutil.ignore_patterns("tests", "__pycache__")
        for name in _FOLDERS:
            shutil.copytree(release.CHECKOUT / name, self.checkout / name, symlinks=True, ignore=ignored)
        for name in _FILES:
            shutil.copyfile(release.CHECKOUT / name, self.checkout / name)
        bin_folder = self.checkout / ".venv" / "bin"
        bin_folder.mkdir(parents=True)
        # No second environment is installed: the interpreter of this one runs the copy.
        (bin_folder / "capo").write_text(
            f'#!/bin/sh\nPYTHONPATH="{self.checkout}" exec {sys.executable} -m capo "$@"\n'
        )
        # Advisories, and what builds the wheel, depend on the day and the network: both parts of a release pass here.
        (bin_folder / "python").write_text(
            '#!/bin/sh\ncase "$*" in "-m tools.audit" | "-m tools.image wheel") exit ;; esac\n'
            f'exec {sys.executable} "$@"\n'
        )
        for name in ("capo", "python"):
            (bin_folder / name).chmod(0o755)
        (self.checkout / ".venv" / ".installed").touch()
        self.config.parent.mkdir(parents=True)

    def link(self, name: str) -> None:
        """Add a program of this Python environment to that of the checkout."""
        (self.checkout / ".venv" / "bin" / name).symlink_to(Path(sys.executable).parent / name)

    def follow(self, section: Section, placeholders: Mapping[str, str] | None = None) -> str:
        """Type all commands of a section in their order; return their output.

        Args:
            section: contains only commands.
            placeholders: placeholders of the page, and their values here.

        Raises:
            CommandError: a command failed, or a block does not contain commands.
        """
        printed = ""
        for block in section.blocks:
            if block.language != SHELL:
                raise CommandError(f"nobody says what to do with this block of {section.title!r}:\n{block.text}")
            printed += self.type(block.text, placeholders)
        return printed

    def type(self, text: str, placeholders: Mapping[str, str] | None = None, *, limit_s: int = _LIMIT_S) -> str:
        """Type commands; return their standard output.

        Args:
            text: contains only commands.
            placeholders: placeholders of the page, and their values here.
            limit_s: after which the commands are ended, with what they started in the background.

        Raises:
            CommandError: one of them failed.
            NotReachedError: they were ended.
        """
        for placeholder, value in (placeholders or {}).items():
            text = text.replace(placeholder, value)
        done = subprocess.run(
            ["timeout", "--kill-after=10", str(limit_s), "bash", "-eu", "-c", text],
            cwd=self.checkout,
            env=self._environment(),
            capture_output=True,
            text=True,
            timeout=limit_s + 30,
            check=False,
        )
        if done.returncode == _ENDED_BY_TIMEOUT:
            raise NotReachedError(f"not within {limit_s} s: {text}\n{done.stdout}{done.stderr}")
        if done.returncode != 0:
            raise CommandError(f"exit status {done.returncode}: {text}\n{done.stdout}{done.stderr}")
        return done.stdout

    def _environment(self) -> dict[str, str]:
        paths = Binaries.from_environment().require(self.programs, say=print)
        folders = [str(self.checkout / ".venv" / "bin"), *(str(path.parent) for path in paths.values())]
        return {
            "HOME": str(self.folder / "home"),
            "XDG_CONFIG_HOME": str(self.folder / "config"),
            "PATH": ":".join([*folders, os.environ["PATH"]]),
            "KUBECONFIG": str(self.rig.kubeconfig),
            # Not available on the machine of a test: GitHub and the module proxy's list of versions.
            "CLUSTERCTL_DISABLE_VERSIONCHECK": "true",
            "GOPROXY": "off",
            **self.variables,
        }
