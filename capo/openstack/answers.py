"""Answers of services: bodies, pages and times. An answer that the service did not write is an error of the cloud."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import requests

from capo.errors import AmbiguousAnswerError, CapoError, CloudUnavailableError, IdentityError
from capo.json_types import Body
from capo.openstack import faults, foreign, resource_shapes


class Answer(dict[str, Any]):
    """Body of an answer; reading a missing field raises an error of the cloud, not a ``KeyError``.

    A proxy or a gateway may answer 200 with its own body: no conclusion is drawn from it, and none of it is quoted.
    """

    def __init__(self, fields: Mapping[str, Any], response: requests.Response) -> None:
        super().__init__(fields)
        self.response = response

    def __missing__(self, key: str) -> Any:
        raise _misunderstood(self.response, f"the answer has no {key!r}")

    def page_of(self, key: str) -> list[Body]:
        """Return the items of one page of a list.

        Raises:
            CloudUnavailableError: the body is not a page of such a list.
        """
        items = self[key]
        if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
            raise _misunderstood(self.response, f"the answer has no list of {key}")
        return items

    def next_page(self, key: str) -> dict[str, str] | None:
        """Return the query of the next page, from the links of a list; Glance sends ``next``."""
        links = self.get(f"{key}_links") or self.get("links")
        links = links if isinstance(links, list) else []
        hrefs = [link.get("href") for link in links if isinstance(link, dict) and link.get("rel") == "next"]
        href = hrefs[0] if hrefs else self.get("next")
        if not href:
            return None
        try:
            return dict(parse_qsl(urlsplit(str(href)).query))
        except ValueError as error:
            raise _misunderstood(self.response, "the link to the next page is no URL") from error


def read(response: requests.Response) -> Answer:
    """Return the body of an answer; an empty body has no fields.

    Raises:
        CloudUnavailableError: the answer to a read is not JSON, or contains resources that the service did not write.
        AmbiguousAnswerError: the same for a write, which may or may not have taken effect.
    """
    if not response.content:
        return Answer({}, response)
    try:
        body = response.json()
    except (ValueError, RecursionError):
        # Not chained: the cause quotes the answer.
        raise _misunderstood(response, "the answer is not JSON") from None
    fields = body if isinstance(body, dict) else {"items": body}
    if strange := resource_shapes.strange_field(fields):
        raise _misunderstood(response, f"the answer has a field {strange!r} that is not the service's")
    return Answer(fields, response)


def date_s(response: requests.Response) -> float | None:
    """Return the service's own time when it answered, seconds since 1970; None if the answer has no date."""
    return faults.date_s(response.headers.get("Date", ""))


def misplaced(service: str, method: str, response: requests.Response) -> CapoError:
    """Return the error of a redirection: the endpoint does not belong to the service."""
    foreign.note(service, response)
    message = f"{service}: {foreign.origin(response.url)} answered a {method} with HTTP {response.status_code}"
    step = "Redirections are not followed: correct the end point in the cloud's catalogue, or auth_url."
    return IdentityError(message, next_step=step)


def _misunderstood(response: requests.Response, text: str) -> CapoError:
    """Return the error of an answer that the service did not write (a proxy's page) or that was truncated."""
    foreign.note("OpenStack", response)
    kind = CloudUnavailableError if response.request.method == "GET" else AmbiguousAnswerError
    where = f"{foreign.origin(response.url)}, {foreign.kind(response)}"
    return kind(f"{text} (HTTP {response.status_code} of {where})", status=response.status_code)
