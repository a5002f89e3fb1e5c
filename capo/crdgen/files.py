"""The generated files: how they are named and written, and whether they are current."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Final

import yaml

from capo.crdgen import definitions
from capo.crdgen.definitions import DEFINITIONS
from capo.crdgen.schema import Json

FOLDER: Final = Path(str(files("capo.api"))) / "crds"
HEADER: Final = "# Generated from the models in api/ by `capo crds --write`; do not edit.\n"


def rendered() -> dict[str, str]:
    """Return the text of every file by its name."""
    return {f"{definition.name}.yaml": _text(definition) for definition in DEFINITIONS}


def _text(definition: definitions.Definition) -> str:
    return HEADER + yaml.safe_dump(definitions.manifest(definition), width=120, sort_keys=True)


def stale(wanted: Mapping[str, str], folder: Path = FOLDER) -> list[str]:
    """Return the names of the files that differ, are missing, or should not be there."""
    present = {path.name: path.read_text() for path in folder.glob("*.yaml")}
    return sorted(name for name in wanted.keys() | present.keys() if wanted.get(name) != present.get(name))


def write(wanted: Mapping[str, str], folder: Path = FOLDER) -> list[str]:
    """Bring the folder into line and return the names of the files that changed."""
    changed = stale(wanted, folder)
    for name in changed:
        if name in wanted:
            (folder / name).write_text(wanted[name])
        else:
            (folder / name).unlink()
    return changed


def load() -> list[Json]:
    """Return the CustomResourceDefinitions as they are installed: the generated files, in the order of their names."""
    return [yaml.safe_load(path.read_text()) for path in sorted(FOLDER.glob("*.yaml"))]
