"""The pages of a list, by their links; some services have pages that do not link to each other."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import requests

from capo.errors import CloudUnavailableError
from capo.json_types import Body
from capo.openstack import answers
from capo.openstack.connections import MIB, values_in
from capo.openstack.kinds import UNLINKED_PAGES

MAX_PAGES: Final = 1000
LARGEST_ANSWERS: Final = 4
"""Answers of the maximum size that one list may take: some 19,000 servers or 26,000 ports with the default size."""
ITEM_BYTES: Final = 1024
"""What each resource of a list takes of its size, besides its JSON: about what one without content takes in memory."""
CACHED_VALUE_BYTES: Final = 64
"""What each value takes of the size of a list at least, an object twice that: small ones take up to 150 bytes."""


@dataclass(frozen=True)
class Listing:
    """All pages of a list.

    Args:
        cloud_s: the service's own time when it answered the first page, seconds since 1970; None if it sent none.
    """

    items: list[Body]
    cloud_s: float | None


@dataclass(frozen=True)
class Wanted:
    """A list to read.

    Args:
        key: of the resources in an answer.
        max_bytes: size of all its answers, with ``ITEM_BYTES`` and ``CACHED_VALUE_BYTES``.
        keep: returns what is kept of a resource; of the rest there is never more than one page.
    """

    service: str
    path: str
    key: str
    max_bytes: int
    keep: Callable[[Body], Body]


def read(get: Callable[[Mapping[str, Any]], requests.Response], wanted: Wanted, params: Mapping[str, Any]) -> Listing:
    """Return all pages of a list.

    Args:
        get: requests a page by its query.

    Raises:
        CloudUnavailableError: a page is missing or is not a page of such a list, or the list is too large.
    """
    service, path = wanted.service, wanted.path
    items: list[Body] = []
    cloud_s: float | None = None
    left_bytes, asked = wanted.max_bytes, dict(params)
    for page in range(MAX_PAGES):
        response = get(asked)
        # A tenant may name a server of their own as the cloud: what it sends must not fill the memory of all.
        left_bytes -= _size(response.content)
        if left_bytes < 0:
            raise _too_large(wanted)
        body = answers.read(response)
        cloud_s = answers.date_s(response) if page == 0 else cloud_s
        shown = body.page_of(wanted.key)
        left_bytes -= ITEM_BYTES * len(shown)
        if left_bytes < 0:
            raise _too_large(wanted)
        if page and (service, path) in UNLINKED_PAGES:
            shown = without_overlap(service, path, items, shown)
        items += map(wanted.keep, shown)
        following = body.next_page(wanted.key) or unlinked_page(service, path, shown, items)
        if following is None or not shown:
            return Listing(items, cloud_s)
        asked = {**asked, **following}
    raise CloudUnavailableError(f"{service}: the list of {path} does not end after {MAX_PAGES} pages")


def _size(content: bytes) -> int:
    """Return the size of an answer before it is parsed, which takes a multiple of small values."""
    return max(len(content), CACHED_VALUE_BYTES * values_in(content))


def _too_large(wanted: Wanted) -> CloudUnavailableError:
    text = f"the list of {wanted.path} is larger than {wanted.max_bytes // MIB} MiB"
    flag = f"{LARGEST_ANSWERS} times --openstack-max-response-size"
    counted = f"each resource counts {ITEM_BYTES} bytes more, and each value at least {CACHED_VALUE_BYTES}"
    step = "delete what is not needed, or raise the flag"
    return CloudUnavailableError(f"{wanted.service}: {text}, {flag} ({counted}); {step}")


def unlinked_page(service: str, path: str, shown: Sequence[Body], items: Sequence[Body]) -> dict[str, str] | None:
    """Return the query of the rest of a list whose pages have no links, None if there is no more.

    The page begins with the last item that is known.
    """
    is_full = len(shown) + 1 >= UNLINKED_PAGES.get((service, path), math.inf)  # without the one known before
    return {"offset": str(len(items) - 1)} if is_full else None


def without_overlap(service: str, path: str, items: Sequence[Body], shown: list[Body]) -> list[Body]:
    """Return the new items of a page that begins with the last known one.

    Raises:
        CloudUnavailableError: it begins with another one: the list changed, and items may be missing.
    """
    if [body.get("id") for body in shown[:1]] != [items[-1].get("id")]:
        raise CloudUnavailableError(f"{service}: the list of {path} changed while its pages were read")
    return shown[1:]
