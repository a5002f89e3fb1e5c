"""The generated files: names, writing, and whether they are current."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

import yaml

from capo.crdgen import definitions, reference
from capo.crdgen.definitions import DEFINITIONS, Definition
from capo.json_types import Json

FOLDER: Final = Path(str(files("api"))).resolve() / "crds"
PAGES: Final = FOLDER.parents[1] / "docs" / "reference"
"""The folder of the pages in a checkout; an installed package has none."""
_LOADER: Final[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""The C parser, if libyaml is installed, is much faster, which matters to commands that install all CRDs."""
HEADER: Final = "# Generated from the models in api/ by `capo crds --write`; do not edit.\n"


def crds() -> dict[Path, str]:
    """Return the text of each CustomResourceDefinition by its file."""
    return {FOLDER / f"{definition.name}.yaml": _text(definition) for definition in DEFINITIONS}


def generated() -> dict[Path, str]:
    """Return the text of every generated file, with the pages if the checkout has them."""
    pages = {PAGES / "conditions.md": reference.conditions_page()} if PAGES.is_dir() else {}
    return crds() | pages


def _text(definition: Definition) -> str:
    return HEADER + yaml.safe_dump(definitions.manifest(definition), width=120, sort_keys=True)


def stale(wanted: Mapping[Path, str]) -> list[Path]:
    """Return the files that differ or are missing, and CRDs that are not generated any more."""
    different = [path for path, text in wanted.items() if not path.is_file() or path.read_text() != text]
    stray = [path for folder in {path.parent for path in wanted} for path in folder.glob("*.yaml")]
    return sorted({*different, *(path for path in stray if path not in wanted)})


def write(wanted: Mapping[Path, str]) -> list[Path]:
    """Write the files that differ and return them."""
    changed = stale(wanted)
    for path in changed:
        if path in wanted:
            path.write_text(wanted[path])
        else:
            path.unlink()
    return changed


def load() -> list[Json]:
    """Return the CustomResourceDefinitions as they are installed: the generated files, in the order of their names."""
    return [yaml.load(path.read_text(), _LOADER) for path in sorted(FOLDER.glob("*.yaml"))]  # noqa: S506 - a safe one
