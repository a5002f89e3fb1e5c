"""What a service's answers say: their bodies, pages and times; what is not the service's is an error of the cloud."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import requests

from capo.errors import AmbiguousAnswerError, CapoError, CloudUnavailableError, IdentityError
from capo.openstack import faults, foreign, resource_shapes

Body = dict[str, Any]


class Answer(dict[str, Any]):
    """The body of an answer; to read a field that it lacks is an error of the cloud, not of the program.

    A proxy or a gateway may answer 200 with a body of its own: nothing is concluded from it, and nothing of it quoted.
    """

    def __init__(self, fields: Mapping[str, Any], response: requests.Response) -> None:
        super().__init__(fields)
        self.response = response

    def __missing__(self, key: str) -> Any:
        raise _misunderstood(self.response, f"the answer has no {key!r}")

    def page_of(self, key: str) -> list[Body]:
        """Return the items of one page of a list.

        Raises:
            CloudUnavailableError: the body is none of such a list.
        """
        items = self[key]
        if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
            raise _misunderstood(self.response, f"the answer has no list of {key}")
        return items

    def next_page(self, key: str) -> dict[str, str] | None:
        """Return the query of the next page: links of Nova, Neutron, Cinder, Octavia; Glance's ``next``."""
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
    """Return the body of an answer; an empty one has no fields.

    Raises:
        CloudUnavailableError: the answer of a read is not JSON, or has resources that are not the service's.
        AmbiguousAnswerError: that of a write is so, and it may or may not have taken effect.
    """
    if not response.content:
        return Answer({}, response)
    try:
        body = response.json()
    except (ValueError, RecursionError):
        # Without its cause, which quotes the answer.
        raise _misunderstood(response, "the answer is not JSON") from None
    fields = body if isinstance(body, dict) else {"items": body}
    if strange := resource_shapes.strange_field(fields):
        raise _misunderstood(response, f"the answer has a field {strange!r} that is not the service's")
    return Answer(fields, response)


def date_s(response: requests.Response) -> float | None:
    """Return the service's own time when it answered, seconds since 1970; None if it told none."""
    return faults.date_s(response.headers.get("Date", ""))


def misplaced(service: str, method: str, response: requests.Response) -> CapoError:
    """Return the error of a redirection: the end point is not the service's."""
    foreign.note(service, response)
    message = f"{service}: {foreign.origin(response.url)} answered a {method} with HTTP {response.status_code}"
    step = "Redirections are not followed: correct the end point in the cloud's catalogue, or auth_url."
    return IdentityError(message, next_step=step)


def _misunderstood(response: requests.Response, text: str) -> CapoError:
    """Return the error of an answer that is not the service's: a proxy's page, or a body cut short."""
    foreign.note("OpenStack", response)
    kind = CloudUnavailableError if response.request.method == "GET" else AmbiguousAnswerError
    where = f"{foreign.origin(response.url)}, {foreign.kind(response)}"
    return kind(f"{text} (HTTP {response.status_code} of {where})", status=response.status_code)
