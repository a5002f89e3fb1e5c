"""Draws docs/architecture.svg from the imports: `python -m tools.architecture`; with `--check` it only compares."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from tools.architecture import drawing, imports

ROOT: Final = Path(__file__).parents[2]
PICTURE: Final = ROOT / "docs" / "architecture.svg"


def picture() -> str:
    """Return the picture of the present code."""
    parts = imports.read(ROOT)
    return drawing.svg(parts, imports.rows(parts), imports.essential(parts))


def main(arguments: Sequence[str] | None = None) -> int:
    """Write or check the picture; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="change nothing; fail when the picture is out of date")
    drawn = picture()
    if not parser.parse_args(arguments).check:
        PICTURE.write_text(drawn, encoding="utf-8")
        return 0
    if PICTURE.exists() and PICTURE.read_text(encoding="utf-8") == drawn:
        return 0
    print(f"docs/{PICTURE.name} does not show the present imports: run `python -m tools.architecture`")
    return 1


if __name__ == "__main__":
    sys.exit(main())
