"""Writes the facts about the Go provider, or compares them with its files; exits with 1 if they differ."""

from __future__ import annotations

import argparse
from pathlib import Path

from capo.crdgen.tests import go_provider


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.compat", description=__doc__)
    parser.add_argument("folder", type=Path, help="its files: crds, templates, wild; spec/api.md is beside the folder")
    parser.add_argument(
        "--write", type=Path, metavar="PATH", nargs="?", const=go_provider.FILE, help="write them there"
    )
    chosen = parser.parse_args()
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
