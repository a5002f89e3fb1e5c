"""The real ``helm``, with folders of its own, for one cluster or none."""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import yaml

from capo.components import NAMESPACE, chart
from capo.json_types import Json
from capo.local.binaries import Binaries
from capo.local.errors import RigError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from capo.local.rig import Rig


LIMIT_S: Final = 180
RELEASE: Final = "capo"
_LOADER: Final[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # five times as fast where libyaml is there


class HelmError(RigError):
    """helm failed; the message is what it printed."""


@dataclass(frozen=True)
class Helm:
    """The program and our chart.

    Args:
        folder: of its configuration, caches and data.
        rig: where it installs; None for commands that need no cluster.
    """

    folder: Path
    rig: Rig | None = None
    chart: Path = field(default=chart.FOLDER)

    def __call__(self, *arguments: str, values: Mapping[str, Any] | None = None) -> str:
        """Return what it prints to standard output.

        Args:
            arguments: its command and flags.
            values: those of ``--values``.

        Raises:
            HelmError: it failed.
        """
        given = ["--values=-"] if values is not None else []
        where = [f"--kubeconfig={self.rig.kubeconfig}"] if self.rig else []
        argv = [str(program()), *arguments, *given, *where]
        done = subprocess.run(
            argv,
            input=json.dumps(values or {}),
            env=environment(self.folder),
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
            check=False,
        )
        if done.returncode != 0:
            raise HelmError(f"helm {' '.join(arguments[:2])}: {done.stdout.strip()}{done.stderr.strip()}")
        return done.stdout

    def template(self, *, namespace: str = NAMESPACE, values: Mapping[str, Any] | None = None) -> list[Json]:
        """Return the objects that the chart yields with these values over its own.

        Raises:
            HelmError: the values do not match the schema.
        """
        text = self("template", RELEASE, str(self.chart), f"--namespace={namespace}", values=values or {})
        return [obj for obj in yaml.load_all(text, _LOADER) if obj]


def program() -> Path:
    """Return the path of helm, built if need be."""
    return Binaries.from_environment().require(["helm"], say=print)["helm"]


def environment(folder: Path) -> dict[str, str]:
    """Return the variables that keep helm to a folder."""
    own = {f"HELM_{kind}_HOME": str(folder / kind.lower()) for kind in ("CACHE", "CONFIG", "DATA")}
    return {**own, "HOME": str(folder), "PATH": os.environ.get("PATH", "")}
