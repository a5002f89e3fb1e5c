"""How a simulated service declares its routes, and the requests and answers of its handlers.

A service is a module-level `Service`; its handlers are registered with `@service.route(method, template)`. Handlers
never await between reading and changing the cloud, so each request is atomic. Nothing here depends on a particular
service: wording is in each service's `render_fault`. Read `server` next to see the order in which a request is handled.
"""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from multidict import CIMultiDict, CIMultiDictProxy, MultiDict, MultiDictProxy, MultiMapping

from capo.simulator.cloud import Cloud, Json

Version: TypeAlias = tuple[int, int]

UNAUTHORIZED_MESSAGE: Final = "The request you have made requires authentication."
ROUTE_NOT_FOUND: Final = "RouteNotFound"
METHOD_NOT_ALLOWED: Final = "MethodNotAllowed"
MALFORMED_BODY: Final = "MalformedBody"
MICROVERSION: Final = "Microversion"
INTERNAL: Final = "Internal"


class Fault(Exception):  # noqa: N818 - the services' own word for an error answer
    """A refusal; the service's `render_fault` puts it into that service's wording.

    Args:
        kind: The service's own error type (Neutron's `type`, Nova's `itemNotFound`), or one of the constants of this
            module for refusals by the framework itself.
        extra: Further fields beside code and message.
    """

    def __init__(
        self,
        status: int,
        message: str,
        kind: str = "",
        *,
        headers: Mapping[str, str] | None = None,
        extra: Json | None = None,
    ) -> None:
        super().__init__(message)
        self.extra = extra or {}
        self.status = status
        self.message = message
        self.kind = kind
        self.headers = dict(headers or {})


@dataclass(slots=True)
class Response:
    """An answer: a JSON body, or `text` where a service answers something else.

    `headers` may be a dict; the same name twice needs a `CIMultiDict`.
    """

    status: int
    body: Any = None
    headers: CIMultiDict[str] | dict[str, str] = field(default_factory=dict)
    text: str | None = None
    content_type: str = "application/json"

    def payload(self) -> bytes:
        """Return the bytes of the body."""
        if self.text is not None:
            return self.text.encode()
        return b"" if self.body is None else json.dumps(self.body).encode()


@dataclass(frozen=True, slots=True)
class Microversions:
    """The microversions of a service and the headers that carry them."""

    service_type: str
    minimum: Version
    maximum: Version
    legacy_header: str | None = None

    def negotiate(self, headers: Mapping[str, str]) -> Version:
        """Return the requested version, the minimum if none is requested.

        Raises:
            Fault: 400 for what is not a version, 406 for one outside of the range.
        """
        text = self._asked(headers)
        if text is None:
            return self.minimum
        if text == "latest":
            return self.maximum
        match = re.fullmatch(r"(\d+)\.(\d+)", text)
        if match is None:
            raise Fault(
                400,
                f"API Version String {text} is of invalid format. Must be of format MajorNum.MinorNum.",
                MICROVERSION,
            )
        version = (int(match[1]), int(match[2]))
        if not self.minimum <= version <= self.maximum:
            low, high = (".".join(map(str, v)) for v in (self.minimum, self.maximum))
            raise Fault(
                406,
                f"Version {text} is not supported by the API. Minimum is {low} and maximum is {high}.",
                MICROVERSION,
            )
        return version

    def _asked(self, headers: Mapping[str, str]) -> str | None:
        for entry in headers.get("OpenStack-API-Version", "").split(","):
            name, _, version = entry.strip().partition(" ")
            if name.lower() == self.service_type:
                return version.strip()
        return headers.get(self.legacy_header) if self.legacy_header else None


@dataclass(slots=True)
class Request:
    """One request, routed and authenticated, as a handler sees it."""

    cloud: Cloud
    service: Service
    method: str
    path: str
    base_url: str
    project_id: str = ""
    user_id: str = ""
    roles: frozenset[str] = frozenset()
    token_id: str = ""
    match: dict[str, str] = field(default_factory=dict)
    query: MultiMapping[str] = field(default_factory=lambda: MultiDictProxy(MultiDict()))
    headers: Mapping[str, str] = field(default_factory=lambda: CIMultiDictProxy(CIMultiDict()))
    raw: bytes = b""
    microversion: Version = (0, 0)
    request_id: str = field(default_factory=lambda: f"req-{uuid.uuid4()}")

    @property
    def is_admin(self) -> bool:
        """Whether the token carries the role admin."""
        return "admin" in self.roles

    @property
    def json(self) -> Json:
        """The body as an object.

        Raises:
            Fault: 400 if the body is not a JSON object.
        """
        try:
            value = json.loads(self.raw)
        except ValueError as error:
            raise self.service.malformed_body() from error
        if not isinstance(value, dict):
            raise self.service.malformed_body()
        return value

    @property
    def service_url(self) -> str:
        """The service's root as the client sees it, without a trailing slash."""
        return self.base_url + self.service.prefix


Handler: TypeAlias = Callable[[Request], Awaitable[Response]]
Seeder: TypeAlias = Callable[[Cloud], None]
Tweak: TypeAlias = Callable[[Cloud, Json], Json]


@dataclass(frozen=True, slots=True)
class Route:
    """A method and a path template with the handler that answers them."""

    method: str
    template: str
    handler: Handler
    is_public: bool = False
    segments: list[str] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "segments", split(self.template))  # read for every request

    def matches(self, segments: list[str]) -> dict[str, str] | None:
        """Return the path variables, or None if the path is not this route's."""
        if len(self.segments) != len(segments):
            return None
        found: dict[str, str] = {}
        for want, have in zip(self.segments, segments, strict=True):
            if want.startswith("{"):
                found[want[1:-1]] = have
            elif want != have:
                return None
        return found


def split(path: str) -> list[str]:
    """Return the segments of a path, without leading and trailing slashes."""
    return [segment for segment in path.split("/") if segment]


def unauthorized(request: Request) -> Response:
    """Answer as keystonemiddleware does in front of most services."""
    body = {"error": {"code": 401, "title": "Unauthorized", "message": UNAUTHORIZED_MESSAGE}}
    return Response(401, body, {"WWW-Authenticate": challenge(request)})


def challenge(request: Request) -> str:
    """Return the value of WWW-Authenticate."""
    return f'Keystone uri="{request.base_url}/identity/v3"'


def plain_fault(fault: Fault, request: Request) -> Response:
    """Render a fault for a service without a wording of its own."""
    return Response(fault.status, {"error": {"code": fault.status, "message": fault.message, "title": fault.kind}})


def malformed_body() -> Fault:
    """Return the refusal of a body that is no JSON object, in the words of Nova and Cinder."""
    return Fault(400, "Malformed request body", MALFORMED_BODY)


def add_request_id(request: Request, headers: CIMultiDict[str]) -> None:
    """Add the request's id to the answer, as nearly every service does."""
    headers["x-openstack-request-id"] = request.request_id


@dataclass(slots=True, eq=False)
class Service:
    """The routes and the conventions of one OpenStack service.

    Args:
        name: Catalogue type, also the label in counters: identity, compute, network, image, volume, load-balancer.
        prefix: First part of the path on the simulator's one port, such as `/network`.
        render_fault: Puts a `Fault` into the service's wording.
        unauthorized: The answer to a missing or expired token.
        decorate: Adds the service's headers to every authenticated or refused answer.
    """

    name: str
    prefix: str
    microversions: Microversions | None = None
    render_fault: Callable[[Fault, Request], Response] = plain_fault
    unauthorized: Callable[[Request], Response] = unauthorized
    malformed_body: Callable[[], Fault] = malformed_body
    decorate: Callable[[Request, CIMultiDict[str]], None] = add_request_id
    routes: list[Route] = field(default_factory=list)
    seeders: list[Seeder] = field(default_factory=list)
    tweaks: dict[str, Tweak] = field(default_factory=dict)

    def route(self, method: str, template: str, *, public: bool = False) -> Callable[[Handler], Handler]:
        """Register the decorated handler; `public` routes need no token."""

        def register(handler: Handler) -> Handler:
            self.routes.append(Route(method, template, handler, public))
            self.routes.sort(key=_literal_first)
            return handler

        return register

    def seed(self, seeder: Seeder) -> Seeder:
        """Register a function that creates the service's initial resources in a new cloud."""
        self.seeders.append(seeder)
        return seeder

    def tweak(self, name: str) -> Callable[[Tweak], Tweak]:
        """Register an external change of state, made by `POST /_simulator/tweaks/<service>/<name>`."""

        def register(change: Tweak) -> Tweak:
            self.tweaks[name] = change
            return change

        return register

    def find(self, method: str, path: str) -> tuple[Route, dict[str, str]]:
        """Return the route of a path (without the prefix) and its variables.

        Raises:
            Fault: 404 if no route has the path, 405 if one with another method has it.
        """
        segments = split(path)
        is_known = False
        for route in self.routes:
            variables = route.matches(segments)
            if variables is None:
                continue
            if route.method == method:
                return route, variables
            is_known = True
        if is_known:
            raise Fault(405, "The method is not allowed for this resource.", METHOD_NOT_ALLOWED)
        raise Fault(404, "The resource could not be found.", ROUTE_NOT_FOUND)


def _literal_first(route: Route) -> tuple[int, list[bool]]:
    return len(route.segments), [segment.startswith("{") for segment in route.segments]
