"""Keystone v3: versions, tokens by password and application credential, catalogue."""

from __future__ import annotations

from capo.simulator.cloud import Cloud
from capo.simulator.routing import Fault, Request, Response, Service


def render_fault(fault: Fault, request: Request) -> Response:
    body = {"error": {"code": fault.status, "message": fault.message, "title": fault.kind}}
    return Response(fault.status, body, dict(fault.headers))


service = Service(name="identity", prefix="/identity", render_fault=render_fault)


def seeded_credential(cloud: Cloud) -> tuple[str, str]:
    """Return id and secret of the application credential that the member has from the start."""
    credential = next(iter(cloud.table("identity", "application_credentials").values()))
    return credential["id"], credential["_secret"]
