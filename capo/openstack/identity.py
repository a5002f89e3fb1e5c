"""clouds.yaml -> credentials; the file is untrusted text from a tenant.

The SDK's own reader is not used: it follows file paths, environment variables and URLs, which a tenant could point at
what the manager can read (ADR 0007). Only the fields below are used. Source:
docs/explanation/go-provider.md, G-2.
"""

from __future__ import annotations

import hashlib
import json
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final
from urllib.parse import urlsplit

import yaml

from capo.errors import IdentityError
from capo.openstack import addresses

_PROJECT: Final = ("project_id", "project_name", "project_domain_id", "project_domain_name")
_USER: Final = ("user_id", "username", "user_domain_id", "user_domain_name")
_PASSWORD: Final = (*_USER, "password", *_PROJECT, "trust_id")
_TOKEN: Final = ("token", *_PROJECT, "trust_id")
_APPLICATION: Final = (
    *_USER,
    "application_credential_id",
    "application_credential_name",
    "application_credential_secret",
)
_FIELDS: Final[Mapping[str, tuple[str, ...]]] = {
    "password": _PASSWORD,
    "v3password": _PASSWORD,
    "token": _TOKEN,
    "v3token": _TOKEN,
    "v3applicationcredential": _APPLICATION,
}
_OLD_NAMES: Final[Mapping[str, str]] = {
    "tenant_id": "project_id",
    "tenant_name": "project_name",
    "user_name": "username",
}
_FILES: Final[Mapping[str, str]] = {
    "cacert": "put the bundle into the Secret's key cacert, beside which the path is ignored",
    "cert": "client files are not read",
    "key": "client files are not read",
}
MAX_CLOUDS_YAML: Final = 128 * 2**10
"""Bytes that are parsed, which takes a second; one entry has some 500."""
_INTERFACES: Final = ("public", "internal", "admin")
_MAX_NAMED: Final = 20
_TRUE: Final = ("true", "yes", "on", "y", "1")
_FALSE: Final = ("false", "no", "off", "n", "0")


@dataclass(frozen=True)
class Credentials:
    """Login data of one project of one cloud; contains secrets, never prints them.

    Args:
        cloud: the entry of clouds.yaml, reduced to the fields in use, as canonical JSON.
        cacert: PEM bundle of the certificates to trust; None means the system's.
        region: overrides the entry's ``region_name``.
    """

    cloud: str = field(repr=False)
    cacert: str | None = field(repr=False)
    region: str | None

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 over all fields."""
        return hashlib.sha256(json.dumps([self.cloud, self.cacert, self.region]).encode()).hexdigest()

    @cached_property
    def entry(self) -> Mapping[str, Any]:
        """The entry as data: ``auth_type``, ``auth``, ``interface``, ``region_name``, ``verify``."""
        entry: Mapping[str, Any] = json.loads(self.cloud)
        return entry

    @property
    def region_name(self) -> str | None:
        """The region whose endpoints are used; None takes the first in the catalogue."""
        return self.region or self.entry["region_name"]

    @cached_property
    def site(self) -> str:
        """Name of the cloud: all credentials of one site share its budget."""
        return addresses.site_of(self.entry["auth"]["auth_url"], self.region_name)

    @cached_property
    def host(self) -> str:
        """Host of the Identity service in one spelling."""
        return addresses.host_of(self.entry["auth"]["auth_url"])

    @property
    def auth_host(self) -> str:
        """Host of the Identity service; the port is omitted if it is the scheme's default."""
        url = urlsplit(self.entry["auth"]["auth_url"])
        host: str = url.netloc.rpartition("@")[2].lower()
        return host.removesuffix(":443" if url.scheme == "https" else ":80")

    @property
    def interface(self) -> str:
        """``public``, ``internal`` or ``admin``."""
        return str(self.entry["interface"])

    @property
    def verifies(self) -> bool:
        """Whether servers' certificates are verified."""
        return bool(self.entry["verify"])


def parse(clouds_yaml: bytes, cloud_name: str, cacert: bytes | None = None, region: str | None = None) -> Credentials:
    """Return the credentials of one entry.

    Args:
        cacert: PEM bundle beside the entry, used instead of a path in it; None if there is none.
        region: overrides the entry's own.

    Raises:
        IdentityError: a field is missing, unknown or not allowed; the message names it and contains no secret.
    """
    return parse_entry(entry(entries(clouds_yaml), cloud_name), cloud_name, cacert, region)


def parse_entry(entry: object, cloud_name: str, cacert: bytes | None = None, region: str | None = None) -> Credentials:
    """Return the credentials of an entry that was read already; else as :func:`parse`."""
    where = f"clouds.yaml: cloud {cloud_name!r}"
    if not isinstance(entry, dict):
        raise IdentityError(f"{where} is not a mapping")
    bundle = _bundle(cacert)
    _refuse_files(entry, where, has_bundle=bundle is not None)
    # A profile that is not a string is not quoted: with aliases, a kilobyte of YAML expands without limit.
    if isinstance(profile := entry.get("profile"), str) and "://" in profile:
        raise IdentityError(f"{where}: profile is a URL, which is not fetched; write its values into the entry")
    reduced = {
        "auth_type": _auth_type(entry, where),
        "auth": _auth(entry, where),
        "interface": _interface(entry, where),
        "region_name": _text(entry, "region_name", where) or None,
        "verify": _boolean(entry, "verify", where),
    }
    return Credentials(json.dumps(reduced, sort_keys=True), bundle, region or None)


def _refuse_files(entry: Mapping[str, Any], where: str, *, has_bundle: bool) -> None:
    """Refuse file paths: a tenant could point them at what the manager can read.

    ``cacert`` is ignored where the Secret has the bundle itself: the Go provider's script writes both.
    """
    for name, hint in _FILES.items():
        if name == "cacert" and has_bundle:
            continue
        if _text(entry, name, where).lower() not in ("", "null"):
            raise IdentityError(f"{where}: {name} is a path of a file, which is not allowed; {hint}")


def entries(clouds_yaml: bytes) -> Mapping[str, object]:
    """Return the entries of clouds.yaml by name.

    Raises:
        IdentityError: it is not such a file.
    """
    if len(clouds_yaml) > MAX_CLOUDS_YAML:
        # Parsing a Secret of 1 MiB takes ten seconds of CPU time, which all reconciles share.
        raise IdentityError(f"clouds.yaml has more than {MAX_CLOUDS_YAML >> 10} KiB; keep the entries that are used")
    try:
        # BaseLoader returns strings for all scalars: a password of digits stays as written.
        document = yaml.load(clouds_yaml, Loader=yaml.BaseLoader)  # noqa: S506 - it constructs no objects
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        line = f" in line {mark.line + 1}" if mark else ""
        raise IdentityError(f"clouds.yaml is not YAML{line}") from None
    clouds = document.get("clouds") if isinstance(document, dict) else None
    if not isinstance(clouds, dict):
        raise IdentityError("clouds.yaml has no mapping `clouds`")
    return clouds


def entry(entries: Mapping[str, object], cloud_name: str) -> object:
    """Return an entry.

    Raises:
        IdentityError: there is none of this name.
    """
    if cloud_name not in entries:
        known = ", ".join(sorted(map(_shown, entries))[:_MAX_NAMED]) or "none"
        text = f"clouds.yaml has no cloud {cloud_name!r}"
        raise IdentityError(f"{text}; it has: {known}", if_shared=text)
    return entries[cloud_name]


def _shown(name: object) -> str:
    return str(name)[:253] if isinstance(name, str) else "?"


def _text(values: Mapping[str, Any], name: str, where: str) -> str:
    value = values.get(name, "")
    if not isinstance(value, str):
        raise IdentityError(f"{where}: {name} is not text")
    return "" if value in ("null", "~") else value


def _auth_type(entry: Mapping[str, Any], where: str) -> str:
    auth = entry.get("auth")
    has_application = isinstance(auth, dict) and "application_credential_secret" in auth
    kind = _text(entry, "auth_type", where) or ("v3applicationcredential" if has_application else "password")
    if kind not in _FIELDS:
        raise IdentityError(f"{where}: auth_type {kind!r} is not one of {', '.join(_FIELDS)}")
    return kind


def _auth(entry: Mapping[str, Any], where: str) -> dict[str, str]:
    given = entry.get("auth")
    if not isinstance(given, dict):
        raise IdentityError(f"{where} has no mapping `auth`")
    auth = {_OLD_NAMES.get(name, name): _text(given, name, f"{where}: auth") for name in given}
    auth_url = auth.get("auth_url", "").rstrip("/")
    if not auth_url.startswith(("https://", "http://")):
        raise IdentityError(f"{where}: auth.auth_url is missing or no http(s) URL")
    _check_host(auth_url, where)
    kind = _auth_type(entry, where)
    wanted = {name: auth[name] for name in _FIELDS[kind] if auth.get(name)}
    _default_domains(wanted, auth, kind)
    _complain(wanted, kind, where)
    return {"auth_url": auth_url, **wanted}


def _check_host(auth_url: str, where: str) -> None:
    try:
        url = urlsplit(auth_url)
        is_good = bool(url.hostname) and (url.port is None or url.port > 0)
    except ValueError:
        is_good = False
    if not is_good:
        raise IdentityError(f"{where}: auth.auth_url has no host, or one that cannot be read")


def _default_domains(wanted: dict[str, str], auth: Mapping[str, str], kind: str) -> None:
    """Fill in the domains that ``domain_id``, ``domain_name`` or ``default_domain`` provide."""
    for part, needed in (("user", "username"), ("project", "project_name")):
        if f"{part}_domain_id" in wanted or f"{part}_domain_name" in wanted:
            continue
        if needed not in wanted or (part == "project" and kind == "v3applicationcredential"):
            continue
        if by_id := auth.get("domain_id") or auth.get("default_domain_id"):
            wanted[f"{part}_domain_id"] = by_id
        elif by_name := auth.get("domain_name") or auth.get("default_domain_name") or auth.get("default_domain"):
            wanted[f"{part}_domain_name"] = by_name


def _complain(auth: Mapping[str, str], kind: str, where: str) -> None:
    def needs(*names: str) -> None:
        if not any(name in auth for name in names):
            raise IdentityError(f"{where}: auth.{' or auth.'.join(names)} is missing")

    if kind == "v3applicationcredential":
        needs("application_credential_secret")
        needs("application_credential_id", "application_credential_name")
        if "application_credential_id" not in auth:
            needs("user_id", "username")
        return
    if kind in ("password", "v3password"):
        needs("password")
        needs("user_id", "username")
    else:
        needs("token")
    if "trust_id" not in auth:
        needs("project_id", "project_name")


def _interface(entry: Mapping[str, Any], where: str) -> str:
    """Return which endpoints are used; ``endpoint_type`` is the older word, ``publicURL`` the older spelling."""
    given = _text(entry, "interface", where) or _text(entry, "endpoint_type", where) or "public"
    interface = given.removesuffix("URL")
    if interface not in _INTERFACES:
        raise IdentityError(f"{where}: interface {given!r} is not one of {', '.join(_INTERFACES)}")
    return interface


def _boolean(entry: Mapping[str, Any], name: str, where: str) -> bool:
    given = _text(entry, name, where).lower()
    if given not in ("", *_TRUE, *_FALSE):
        raise IdentityError(f"{where}: {name} {given!r} is neither true nor false")
    return given not in _FALSE


def _bundle(cacert: bytes | None) -> str | None:
    if not cacert or not cacert.strip():
        return None
    try:
        text = cacert.decode("ascii")
        ssl.create_default_context(cadata=text)
    except (UnicodeDecodeError, ssl.SSLError):
        raise IdentityError("cacert is not a PEM bundle of certificates") from None
    return text
