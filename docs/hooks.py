"""Hook of MkDocs: links from a page to files outside ``docs/``, which work on GitHub and have no page on the site."""

from __future__ import annotations

import logging
import os
import re
from pathlib import Path
from typing import Any, Final

# MkDocs counts warnings below this name; with `strict` they fail the build.
_log: Final = logging.getLogger("mkdocs.hooks.links")
_LINK: Final = re.compile(r"(?<!!)\[(?P<text>[^\]]*)\]\((?P<path>\.\./[^)#\s]*)(?P<anchor>#[^)\s]*)?\)")


def on_page_markdown(markdown: str, *, page: Any, config: Any, **_: Any) -> str:
    """Rewrite each link that leads out of ``docs/``; warn of one whose file does not exist."""
    docs = Path(config["docs_dir"])
    folder = (docs / page.file.src_uri).parent
    repository = str(config["extra"].get("repository") or "").rstrip("/")

    def rewrite(link: re.Match[str]) -> str:
        target = Path(os.path.normpath(folder / link["path"]))
        if target.is_relative_to(docs):
            return link[0]
        if not target.exists():
            _log.warning("%s: there is no file %s", page.file.src_uri, link["path"])
        if not repository:
            return link["text"]
        return f"[{link['text']}]({repository}/blob/HEAD/{target.relative_to(docs.parent)}{link['anchor'] or ''})"

    return _LINK.sub(rewrite, markdown)
