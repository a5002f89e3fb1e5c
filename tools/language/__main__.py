"""Refuses words of our own where the field has a term, and citations of what no page has: `python -m tools.language`.

`--measure` prints shares of texts.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from tools.language import citations
from tools.language.markers import Text, texts_of_markdown, texts_of_python

LEFT: Final = ("tools/language/", "docs/changelog.md", "docs/reference/api.md")
"""The list itself, what was released, and what is generated from docstrings."""
CITING: Final = (".py", ".md", ".yaml", ".yml", ".toml", ".tpl", ".sh", "Makefile")
"""Ends of the names of files whose citations are checked."""
UNCITED: Final = (*LEFT, "capo/tests/test_parity_doc.py", "docs/benchmarks/")
"""Former numbers as examples, and data."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Print what is found; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("paths", nargs="*", type=Path, help="files and folders (default: all that git tracks)")
    parser.add_argument("--measure", action="store_true", help="print the share of texts with a marker, by folder")
    wanted = parser.parse_args(arguments)
    texts = list(_texts(wanted.paths))
    if wanted.measure:
        _measure(texts)
        return 0
    lost = _lost_citations(wanted.paths)
    found = [(text, marker) for text in texts if (marker := text.marker())]
    for text, marker in found:
        print(f"{text.path}:{text.line}: {text.kind} with {marker!r}: {' '.join(text.text.split())[:110]}")
    if found:
        print(f"{len(found)} of {len(texts)} texts use words that tools/language/markers.py has plain terms for")
    return int(bool(found) or lost > 0)


def _lost_citations(paths: Sequence[Path]) -> int:
    """Print the citations that cannot be opened, and the numbers that a page has twice; return how many there are."""
    numbers = Counter(
        number
        for page in citations.PAGES.values()
        for number in citations.definitions(Path(page).read_text(encoding="utf-8"))
    )
    lost = [f"{citations.PAGES[number[0]]}: {number} is defined twice" for number, n in numbers.items() if n > 1]
    for path in _files(paths, UNCITED):
        if path.name.endswith(CITING):
            for line, cited in citations.unknown(path.read_text(encoding="utf-8"), numbers.keys()):
                lost.append(f"{path}:{line}: {cited!r} is on none of {', '.join(citations.PAGES.values())}")
    print(*lost, sep="\n", end="\n" if lost else "")
    return len(lost)


def _files(paths: Sequence[Path], left_out: tuple[str, ...]) -> Iterator[Path]:
    """Yield the files that git tracks, without links."""
    listed = subprocess.run(["git", "ls-files", "-z", *map(str, paths)], capture_output=True, text=True, check=True)
    for name in sorted(filter(None, listed.stdout.split("\0"))):
        path = Path(name)
        if not path.is_symlink() and path.exists() and not name.startswith(left_out):
            yield path


def _texts(paths: Sequence[Path]) -> Iterator[Text]:
    for path in _files(paths, LEFT):
        name = str(path)
        if path.suffix == ".py":
            yield from texts_of_python(name, path.read_text(encoding="utf-8"))
        elif path.suffix == ".md":
            yield from texts_of_markdown(name, path.read_text(encoding="utf-8"))


def _measure(texts: Sequence[Text]) -> None:
    """Print the number of texts and the share of those with a marker for each folder and kind."""
    every: Counter[tuple[str, str]] = Counter()
    marked: Counter[tuple[str, str]] = Counter()
    for text in texts:
        place = ("/".join(text.path.split("/")[:2]), text.kind)
        every[place] += 1
        marked[place] += bool(text.marker())
    for (folder, kind), count in sorted(every.items()):
        print(f"{folder:40} {kind:10} {count:6} {100 * marked[folder, kind] / count:5.1f} %")
    print(f"{'all':40} {'':10} {every.total():6} {100 * marked.total() / every.total():5.1f} %")


if __name__ == "__main__":
    sys.exit(main())
