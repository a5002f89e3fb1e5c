"""Management clusters and clouds, as an operator reaches them: read-only unless a command requests write access.

The user of the kubeconfig needs the rights; those of the manager are not used. A cloud is opened with the credentials
of an object's ``spec.identityRef``, by the rules of the manager.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Sequence
from dataclasses import replace
from enum import Enum
from pathlib import Path
from typing import Any, Final

import yaml

from capo import flag_values
from capo.clock import SystemClock
from capo.errors import IdentityError
from capo.json_types import Json, Object
from capo.kube import config
from capo.kube.client import Kube
from capo.kube.connection import Connection
from capo.kube.errors import Gone, KubeError
from capo.kube.kinds import NAMESPACE, Kind
from capo.openstack import identity
from capo.openstack.cloud import Cloud
from capo.openstack.connections import Limits
from capo.openstack.identity import Credentials
from capo.openstack.transport import HttpSession, HttpSessions, ReadOnlySession
from capo.operations.errors import NotServedError, OperatorError, of_request
from capo.settings import OPERATORS_DENIED_NETWORKS, Settings
from controllers.credential_secrets import Secrets, Unreadable

SYSTEM: Final = "kube-system"
SETTINGS: Final = Settings(openstack_denied_networks=flag_values.networks(",".join(OPERATORS_DENIED_NETWORKS)))
"""The settings of requests to clouds, unless arguments say otherwise."""
_CLOUDS_FILES: Final = ("clouds.yaml", "clouds.yml")


class Mode(Enum):
    """What a client may send."""

    READ = "read"
    WRITE = "write"


class CloudAccess:
    """Opens clouds; one for each set of credentials.

    Args:
        settings: of requests; None: :data:`SETTINGS`.
        session_kind: class of the HTTP sessions; the default sends nothing but reads and requests for tokens.
    """

    def __init__(self, settings: Settings | None = None, *, session_kind: type[HttpSession] = ReadOnlySession) -> None:
        self.clock = SystemClock()
        self.settings = settings or SETTINGS
        self._http = HttpSessions(
            Limits.of(self.settings),
            self.settings.ca_certs,
            uses_proxies=self.settings.openstack_uses_proxies,
            kind=session_kind,
        )
        self._clouds: dict[str, Cloud] = {}

    @classmethod
    def of(cls, mode: Mode, settings: Settings | None = None) -> CloudAccess:
        """Return the access of a mode."""
        return cls(settings, session_kind=HttpSession if mode is Mode.WRITE else ReadOnlySession)

    def open(self, credentials: Credentials) -> Cloud:
        """Return the cloud of these credentials; sends no request."""
        cloud = self._clouds.get(credentials.fingerprint)
        if cloud is None:
            cloud = Cloud(credentials, self._http.of(credentials), clock=self.clock, wake=_wake_nothing)
            self._clouds[credentials.fingerprint] = cloud
        return cloud


class Management:
    """One management cluster, as the user of a kubeconfig.

    Args:
        name: of the context or file, for messages.
        clouds: opens the clouds of its objects.
    """

    def __init__(self, kube: Kube, name: str, clouds: CloudAccess) -> None:
        self.kube = kube
        self.name = name
        self.clouds = clouds
        self._secrets = Secrets(_Reader(self), clouds.clock, itertools.count())
        self._served: dict[Kind, Kind] = {}
        self._uid: str | None = None

    @property
    def server(self) -> str:
        """URL of the API server."""
        return self.kube.connection.server

    @property
    def namespace(self) -> str:
        """The namespace of the context, ``default`` if it names none."""
        return self.kube.connection.namespace or "default"

    @property
    def uid(self) -> str:
        """The identity of the management cluster: the uid of its namespace ``kube-system``."""
        if self._uid is None:
            self._uid = str(self.get(NAMESPACE, "", SYSTEM)["metadata"]["uid"])
        return self._uid

    def list(
        self,
        kind: Kind,
        namespace: str | None = None,
        *,
        label_selector: str | None = None,
        field_selector: str | None = None,
    ) -> list[Json]:
        """Return all objects of a kind at one moment; never a part of them.

        Args:
            namespace: None means all of them.

        Raises:
            OperatorError: the user may not list them, the kind is not served, or the API server fails.
        """
        try:
            listing = self.kube.snapshot(
                self.served(kind), namespace, label_selector=label_selector, field_selector=field_selector
            )
            return [dict(item) for item in listing.items]
        except Gone as error:
            raise NotServedError(f"{self.name} does not serve {kind.kind} ({kind.api_version})") from error
        except KubeError as error:
            raise of_request(error, "list", kind, namespace) from error

    def find(self, kind: Kind, namespace: str, name: str) -> Json | None:
        """Return an object, None if it does not exist.

        Raises:
            OperatorError: the user may not get it, or the API server fails.
        """
        try:
            return self.kube.get(self.served(kind), namespace, name)
        except KubeError as error:
            raise of_request(error, "get", kind, namespace) from error

    def get(self, kind: Kind, namespace: str, name: str) -> Json:
        """Return an object that must exist.

        Raises:
            OperatorError: it does not, the user may not get it, or the API server fails.
        """
        found = self.find(kind, namespace, name)
        if found is None:
            where = f"{namespace}/" if kind.is_namespaced else ""
            raise OperatorError(f"{kind.kind} {where}{name} does not exist in {self.name}")
        return found

    def served(self, kind: Kind) -> Kind:
        """Return a kind in the version in which it is read here: its older one where the newer is not served."""
        if not kind.older:
            return kind
        if kind not in self._served:
            try:
                found = self.kube.served(kind.group, kind.kind)
            except KubeError as error:
                raise of_request(error, "get", kind, None) from error
            is_older = found is not None and found.version == kind.older
            self._served[kind] = replace(kind, version=kind.older) if is_older else kind
        return self._served[kind]

    def credentials_of(self, ref: Object, namespace: str) -> Credentials:
        """Return the credentials of an identityRef of an object in a namespace.

        Raises:
            IdentityError: Secret, key, cloud name or permission is missing.
            OperatorError: the user may not get the Secret or the OpenStackClusterIdentity, or the API server fails.
        """
        read = self._secrets.read(ref, self._secrets.source(ref, namespace))
        if isinstance(read, Unreadable):
            raise read.error
        return read.credentials

    def cloud_of(self, obj: Object) -> Cloud:
        """Return the cloud of an object with a ``spec.identityRef``; sends it no request.

        Raises:
            IdentityError: the object has no identityRef, or its credentials cannot be read.
            OperatorError: the user may not get the Secret or the OpenStackClusterIdentity.
        """
        ref = (obj.get("spec") or {}).get("identityRef")
        if not ref:
            raise IdentityError(f"{obj.get('kind')} {obj['metadata']['name']} has no spec.identityRef")
        return self.clouds.open(self.credentials_of(ref, obj["metadata"]["namespace"]))


class _Reader:
    """Reads Secrets and identities, with the failures of an operator's command."""

    def __init__(self, management: Management) -> None:
        self._management = management

    def get(self, kind: Kind, namespace: str, name: str) -> Json | None:
        """Return the object, None if it does not exist."""
        return self._management.find(kind, namespace, name)


def connect(
    kubeconfig: str | None = None,
    context: str | None = None,
    *,
    mode: Mode = Mode.READ,
    clouds: CloudAccess | None = None,
) -> Management:
    """Return the management cluster of a kubeconfig; sends no request.

    Args:
        kubeconfig: path; None: as kubectl finds it, from ``KUBECONFIG`` or ``~/.kube/config``.
        context: None: the current one.
        clouds: shared by several management clusters; the default only reads.

    Raises:
        OperatorError: there is none, or it cannot be used.
    """
    try:
        connection = config.find(kubeconfig=kubeconfig, context=context)
    except KubeError as error:
        raise OperatorError(str(error)) from error
    return of_connection(connection, name=context or kubeconfig, mode=mode, clouds=clouds)


def of_connection(
    connection: Connection, *, name: str | None = None, mode: Mode = Mode.READ, clouds: CloudAccess | None = None
) -> Management:
    """Return the management cluster of a connection; see :func:`connect`."""
    try:
        kube = Kube(connection, pool_size=8, is_read_only=mode is Mode.READ)
    except KubeError as error:
        raise OperatorError(str(error)) from error
    return Management(kube, name or connection.server, clouds or CloudAccess())


def connect_all(
    kubeconfigs: Sequence[str], context: str | None = None, *, clouds: CloudAccess | None = None
) -> list[Management]:
    """Return several management clusters, which share their clouds; without a path the one that kubectl uses."""
    shared = clouds or CloudAccess()
    return [connect(each, context, clouds=shared) for each in kubeconfigs or (None,)]


def clouds_file(given: str | None = None) -> Path:
    """Return the path of the user's clouds.yaml, found as the openstack client finds it unless it is given.

    Raises:
        OperatorError: there is none.
    """
    if named := given or os.environ.get("OS_CLIENT_CONFIG_FILE"):
        return Path(named)
    folders = (Path(), Path.home() / ".config" / "openstack", Path("/etc/openstack"))
    found = [path for folder in folders for name in _CLOUDS_FILES if (path := folder / name).is_file()]
    if not found:
        raise OperatorError("no clouds.yaml found; name one with --clouds")
    return found[0]


def credentials_in(path: Path, cloud: str) -> Credentials:
    """Return the credentials of an entry of the user's own clouds.yaml, whose ``cacert`` may name a file.

    Raises:
        OperatorError: the file cannot be read.
        IdentityError: the entry cannot be used.
    """
    try:
        content = path.read_bytes()
        entry = identity.entry(identity.entries(content), cloud)
        bundle = _bundle(entry, path)
        return identity.parse_entry(entry, cloud, bundle)
    except (OSError, yaml.YAMLError) as error:
        raise OperatorError(f"{path} cannot be read: {error}") from error


def _bundle(entry: Any, path: Path) -> bytes | None:
    named = entry.get("cacert") if isinstance(entry, dict) else None
    if not isinstance(named, str) or named in ("", "null"):
        return None
    return (path.parent / Path(named).expanduser()).read_bytes()


def _wake_nothing(_key: object) -> None:
    """Ignore that resources changed: nothing waits."""
