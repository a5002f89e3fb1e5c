"""Writes the facts about the Go provider, or compares them with its files; exits with 1 if they differ.

The files are not part of the project. ``GO_PROVIDER_FILES`` names their folder, here and for the tests with the mark
``compare``, which are deselected without it. See ``go_provider.read`` for what the folder has.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from capo.crdgen.tests import go_provider


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.compat", description=__doc__)
    parser.add_argument(
        "folder",
        type=Path,
        nargs="?",
        default=go_provider.FOLDER,
        help=f"its files: crds, templates, wild; spec/api.md is beside the folder (default: {go_provider.VARIABLE})",
    )
    parser.add_argument(
        "--write", type=Path, metavar="PATH", nargs="?", const=go_provider.FILE, help="write them there"
    )
    chosen = parser.parse_args()
    if not chosen.folder.is_dir():
        parser.error(f"name the folder of its files, or set {go_provider.VARIABLE}")
    text = go_provider.written(go_provider.read(chosen.folder))
    if chosen.write:
        chosen.write.write_text(text, encoding="utf-8")
        return 0
    if text == go_provider.FILE.read_text(encoding="utf-8"):
        return 0
    print(f"{go_provider.FILE.name} differs: run this with --write")
    return 1


if __name__ == "__main__":
    raise SystemExit(main())
