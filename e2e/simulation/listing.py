"""Lists in pages, all pages at one version."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from typing import Any, Final

from capo.kube.kinds import Kind
from e2e.simulation import refusals, selectors
from e2e.simulation.kinds import traits
from e2e.simulation.storage import Storage, Stored

_NEWEST: Final = -1
"""Version in a token that continues with the objects as they are now."""


def page(storage: Storage, kind: Kind, namespace: str, query: Mapping[str, str]) -> bytes:
    """Return one page of a list as JSON.

    Raises:
        Refusal: the continue token or a selector is invalid.
    """
    _check_version(storage, query)
    version, after = storage.version, ""
    if token := query.get("continue"):
        version, after = _decoded(token)
        kept = storage.listing(kind) if version == _NEWEST else storage.page(kind, version)
        if kept is None:
            raise refusals.expired_page(_encoded(_NEWEST, after))
        items, version = kept, storage.version if version == _NEWEST else version
    else:
        items = storage.listing(kind)
    selected = _selected(items, namespace, query)
    left = [each for each in selected if _path(each) > after] if after else selected
    limit = int(query.get("limit") or 0)
    shown = left[:limit] if limit else left
    metadata: dict[str, Any] = {"resourceVersion": str(version)}
    if len(shown) < len(left):
        metadata["continue"] = _encoded(version, _path(shown[-1]))
        if not (query.get("labelSelector") or query.get("fieldSelector")):
            metadata["remainingItemCount"] = len(left) - len(shown)
        if not token or version == storage.version:
            storage.keep_page(kind, items)
    return body(kind, metadata, shown)


def matching(storage: Storage, kind: Kind, namespace: str, query: Mapping[str, str]) -> list[Stored]:
    """Return all objects that a query selects, without pages."""
    return _selected(storage.listing(kind), namespace, query)


def _selected(items: list[Stored], namespace: str, query: Mapping[str, str]) -> list[Stored]:
    if namespace:
        items = [each for each in items if each.metadata.get("namespace") == namespace]
    if labels := query.get("labelSelector"):
        matches = selectors.label_test(labels)
        items = [each for each in items if matches(each.obj)]
    if fields := query.get("fieldSelector"):
        matches = selectors.field_test(fields)
        items = [each for each in items if matches(each.obj)]
    return items


def body(kind: Kind, metadata: Mapping[str, Any], items: list[Stored]) -> bytes:
    """Return a list of objects as JSON."""
    if traits(kind).is_custom:
        metadata = {"continue": "", **metadata}
    head = {"kind": f"{kind.kind}List", "apiVersion": kind.api_version, "metadata": metadata}
    bodies = [each.body for each in items]
    if not traits(kind).is_custom:
        # Lists of built-in kinds omit these.
        skipped = len(json.dumps({"apiVersion": kind.api_version, "kind": kind.kind}, separators=(",", ":")))
        bodies = [b"{" + each[skipped:] for each in bodies]
    start = json.dumps(head, separators=(",", ":"))[:-1]
    return b"".join((start.encode(), b',"items":[', b",".join(bodies), b"]}"))


def _check_version(storage: Storage, query: Mapping[str, str]) -> None:
    asked = int(query.get("resourceVersion") or 0)
    if asked > storage.version:
        raise refusals.too_large(asked, storage.version)


def _path(stored: Stored) -> str:
    metadata = stored.metadata
    return f"{metadata.get('namespace', '')}/{metadata['name']}"


def _encoded(version: int, after: str) -> str:
    token = json.dumps({"v": "meta.k8s.io/v1", "rv": version, "start": after}, separators=(",", ":"))
    return base64.urlsafe_b64encode(token.encode()).decode().rstrip("=")


def _decoded(token: str) -> tuple[int, str]:
    try:
        found = json.loads(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)))
        return int(found["rv"]), str(found["start"])
    except (ValueError, KeyError, TypeError):
        raise refusals.bad_request("invalid continue token: continue key is not valid") from None
