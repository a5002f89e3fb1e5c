"""Neutron's extensions, and collections of theirs that are empty here."""

from __future__ import annotations

import functools
from importlib import resources
from typing import Final

import yaml

from capo.simulator.cloud import Json
from capo.simulator.error_page import NOT_FOUND, error_page
from capo.simulator.neutron.service import service
from capo.simulator.routing import Request, Response

# Clients list these to search for hints; none are offered.
EMPTY: Final = (
    "availability_zones",
    "agents",
    "address-scopes",
    "address-groups",
    "rbac-policies",
    "flavors",
)


@functools.cache
def offered() -> tuple[Json, ...]:
    """Return the extensions as the API shows them."""
    text = resources.files(__package__ or "").joinpath("extensions.yaml").read_text(encoding="utf-8")
    return tuple({**entry, "links": []} for entry in yaml.safe_load(text))


@service.route("GET", "/v2.0/extensions")
async def list_extensions(_: Request) -> Response:
    return Response(200, {"extensions": list(offered())})


@service.route("GET", "/v2.0/extensions/{alias}")
async def get_extension(request: Request) -> Response:
    alias = request.match["alias"]
    for extension in offered():
        if extension["alias"] == alias:
            return Response(200, {"extension": extension})
    return error_page(request, 404, NOT_FOUND, f"Extension with alias {alias} does not exist")


def _serve_empty(path: str) -> None:
    @service.route("GET", f"/v2.0/{path}")
    async def list_nothing(_: Request) -> Response:
        return Response(200, {path.replace("-", "_"): []})


for _path in EMPTY:
    _serve_empty(_path)
