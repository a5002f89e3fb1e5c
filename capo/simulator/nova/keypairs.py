"""Nova: keypairs, which belong to users."""

from __future__ import annotations

import base64
import binascii
import hashlib
from typing import Final

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from capo.simulator.cloud import Cloud, Json
from capo.simulator.error_page import empty
from capo.simulator.nova.quota import limit
from capo.simulator.nova.schema import NAME, body_of
from capo.simulator.nova.service import bad_request, conflict, not_found, over_quota, service, since
from capo.simulator.nova.state import long_time_of
from capo.simulator.routing import Request, Response
from capo.simulator.validation import check_body

SEEDED_KEY: Final = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAINbeEFI1k/aQms0lSknRQjtaxjy2SWWMvLzjmvzbs2GI lab"


@service.seed
def seed(cloud: Cloud) -> None:
    """Create the member's initial keypair."""
    user = next(user for user in cloud.table("identity", "users").values() if user["name"] == "capi")
    _add(cloud, user["id"], "lab", SEEDED_KEY)


def _add(cloud: Cloud, user_id: str, name: str, public_key: str) -> Json:
    table = cloud.table("compute", "keypairs")
    pair: Json = {
        "name": name,
        "public_key": public_key,
        "fingerprint": fingerprint(public_key),
        "user_id": user_id,
        "created_at": long_time_of(cloud),
        "deleted": False,
        "deleted_at": None,
        "id": max((item["id"] for item in table.values()), default=0) + 1,
        "updated_at": None,
        "type": "ssh",
    }
    table[f"{user_id}/{name}"] = pair
    return pair


def fingerprint(public_key: str) -> str:
    """Return the MD5 fingerprint of an SSH key.

    Raises:
        Fault: 400 for an invalid key.
    """
    try:
        data = base64.b64decode(public_key.split()[1], validate=True)
    except (IndexError, binascii.Error) as error:
        raise bad_request("Keypair data is invalid: failed to generate fingerprint") from error
    return hashlib.md5(data, usedforsecurity=False).digest().hex(":")


def _shown(request: Request, pair: Json, keys: tuple[str, ...]) -> Json:
    shown = {key: pair[key] for key in keys}
    if since(request, 2):
        shown["type"] = pair["type"]
    return shown


@service.route("GET", "/v2.1/os-keypairs")
async def list_pairs(request: Request) -> Response:
    owned = [p for p in request.cloud.table("compute", "keypairs").values() if p["user_id"] == request.user_id]
    owned.sort(key=lambda pair: str(pair["name"]))
    shown = [{"keypair": _shown(request, pair, ("name", "public_key", "fingerprint"))} for pair in owned]
    return Response(200, {"keypairs": shown})


@service.route("GET", "/v2.1/os-keypairs/{name}")
async def get_pair(request: Request) -> Response:
    pair = _find(request)
    keys = tuple(key for key in pair if key != "type")
    return Response(200, {"keypair": _shown(request, pair, keys)})


@service.route("POST", "/v2.1/os-keypairs")
async def create_pair(request: Request) -> Response:
    body = request.json
    characters = r"^[_\-\@\. a-zA-Z0-9]+$" if since(request, 92) else r"^[_\- a-zA-Z0-9]+$"
    name = {"allOf": [NAME, {"type": "string", "pattern": characters, "minLength": 1, "maxLength": 255}]}
    properties: Json = {"name": name, "public_key": {"type": "string"}}
    if since(request, 2):
        properties["type"] = {"type": "string", "enum": ["ssh", "x509"]}
    if since(request, 10):
        properties["user_id"] = {"type": "string"}
    required = ("name", "public_key") if since(request, 92) else ("name",)
    check_body(body_of("keypair", properties, required), body)
    wanted = body["keypair"]
    public_key, private_key = wanted.get("public_key"), None
    if public_key is None:
        public_key, private_key = _new_key()
    fingerprint(public_key)
    cloud, user_id = request.cloud, request.user_id
    allowed = limit(cloud, request.project_id, "key_pairs")
    owned = [p for p in cloud.table("compute", "keypairs").values() if p["user_id"] == user_id]
    if 0 <= allowed < len(owned) + 1:
        raise over_quota("Quota exceeded, too many key pairs.")
    if f"{user_id}/{wanted['name']}" in cloud.table("compute", "keypairs"):
        raise conflict(f"Key pair '{wanted['name']}' already exists.")
    pair = _add(cloud, user_id, wanted["name"], public_key)
    shown = _shown(request, pair, ("name", "public_key", "fingerprint", "user_id"))
    if private_key is not None:
        shown["private_key"] = private_key
    return Response(201 if since(request, 2) else 200, {"keypair": shown})


def _new_key() -> tuple[str, str]:
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
    )
    public = key.public_key().public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH)
    return f"{public.decode()} Generated-by-Nova", private.decode()


@service.route("DELETE", "/v2.1/os-keypairs/{name}")
async def delete_pair(request: Request) -> Response:
    _find(request)
    del request.cloud.table("compute", "keypairs")[f"{request.user_id}/{request.match['name']}"]
    return empty(204 if since(request, 2) else 202, "application/json")


def _find(request: Request) -> Json:
    name = request.match["name"]
    pair = request.cloud.table("compute", "keypairs").get(f"{request.user_id}/{name}")
    if pair is None:
        raise not_found(f"Keypair {name} not found for user {request.user_id}")
    return pair
