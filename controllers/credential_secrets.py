"""Read the Secret that an identityRef refers to, and whether it may be used in a namespace.

Only :mod:`controllers.credentials` uses this. A Secret is read with ``get`` alone; nothing of it is logged.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import threading
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple, Protocol, Self, TypeVar

from capo.clock import Clock
from capo.errors import CapoError, IdentityError
from capo.json_types import Json, Object
from capo.kube.kinds import NAMESPACE, OPENSTACK_CLUSTER_IDENTITY, SECRET, Kind
from capo.openstack import identity
from capo.openstack.identity import Credentials
from controllers import namespace_selector

CLOUDS_KEY: Final = "clouds.yaml"
CACERT_KEY: Final = "cacert"


def is_shared(ref: Object) -> bool:
    """Return whether an identityRef leads to credentials that other namespaces may share."""
    return ref.get("type") == "ClusterIdentity"


class Reader(Protocol):
    """Reads single objects: :class:`capo.kube.client.Kube`, or an operator's access."""

    def get(self, kind: Kind, namespace: str, name: str) -> Json | None:
        """Return the object, None if it does not exist."""


class Source(NamedTuple):
    """The Secret that an identityRef refers to."""

    namespace: str
    name: str

    @classmethod
    def named_by(cls, identity: Object) -> Self:
        """Return the Secret of an OpenStackClusterIdentity."""
        ref = identity["spec"]["secretRef"]
        return cls(ref["namespace"], ref["name"])


@dataclass(frozen=True)
class NotAccepted:
    """The changed content of a Secret, with which no login succeeded; the former credentials are in use.

    Args:
        fingerprint: that of its credentials; empty if it cannot be read.
        error: why.
    """

    fingerprint: str
    error: CapoError


@dataclass(frozen=True)
class Read:
    """What was read of a Secret.

    Args:
        read_s: when it was read.
        began: number of this read; reads and what outdates them are counted together.
        digest: of the content.
        outdated: number of what last outdated it: it is read again at the next use if that was later.
        not_accepted: its present content, if ``credentials`` are the former ones.
    """

    credentials: Credentials
    source: Source
    read_s: float
    began: int
    digest: bytes = b""
    outdated: int = -1
    not_accepted: NotAccepted | None = None

    def has_read(self, source: Source, digest: bytes) -> bool:
        """Return whether the credentials are those of a Secret with this content."""
        return (self.source, self.digest) == (source, digest) and self.not_accepted is None

    @property
    def is_stale(self) -> bool:
        """Whether it is read again at the next use."""
        return self.outdated >= self.began

    def over(self, known: Read | None) -> Read:
        """Return the later one of two reads of a Secret; what outdated it since it began outdates it still."""
        if known is None or known.source != self.source:
            return self
        if known.began > self.began:
            return known
        return replace(self, outdated=max(known.outdated, self.outdated))


class Unreadable(NamedTuple):
    """Content of a Secret that exists and makes no credentials, as after a slip."""

    source: Source
    read_s: float
    began: int
    error: IdentityError


T = TypeVar("T")


class Secrets:
    """Reads the Secrets of identityRefs; thread safe.

    Args:
        numbers: counts reads, and what outdates them.
    """

    def __init__(self, kube: Reader, clock: Clock, numbers: Iterator[int]) -> None:
        self._kube = kube
        self._clock = clock
        self._numbers = numbers
        self._lock = threading.Lock()
        self._unreadable: dict[str, str] = {}

    def unreadable(self, identity_name: str) -> str | None:
        """Return why the Secret of an OpenStackClusterIdentity could not be read when it was read last."""
        with self._lock:
            return self._unreadable.get(identity_name)

    def tidy(self, identity_names: Collection[str]) -> None:
        """Forget the other identities."""
        with self._lock:
            self._unreadable = {name: why for name, why in self._unreadable.items() if name in identity_names}

    def source(self, ref: Object, namespace: str) -> Source:
        """Return the Secret that an identityRef refers to.

        Raises:
            IdentityError: the OpenStackClusterIdentity does not exist, or does not admit the namespace.
        """
        kind = ref.get("type") or "Secret"
        if kind == "Secret":
            return Source(namespace, ref["name"])
        if kind == "ClusterIdentity":
            return self._source_of_cluster_identity(ref, namespace)
        raise IdentityError(f"identityRef.type {kind!r} is neither Secret nor ClusterIdentity")

    def _source_of_cluster_identity(self, ref: Object, namespace: str) -> Source:
        found = self._kube.get(OPENSTACK_CLUSTER_IDENTITY, "", ref["name"])
        if found is None:
            raise IdentityError(f"OpenStackClusterIdentity {ref['name']} does not exist")
        selector = found["spec"].get("namespaceSelector")
        if selector and not namespace_selector.selects(selector, self._labels(namespace)):
            # Nothing of the selector: it says which namespaces there are, and who may label one could satisfy it.
            raise IdentityError(
                f"OpenStackClusterIdentity {ref['name']} does not admit namespace {namespace}: its"
                " spec.namespaceSelector does not match the labels of the namespace; an administrator can change both"
            )
        return Source.named_by(found)

    def _labels(self, namespace: str) -> Mapping[str, str]:
        found = self._kube.get(NAMESPACE, "", namespace)
        return (found or {}).get("metadata", {}).get("labels") or {}

    def read(self, ref: Object, source: Source, known: Read | None = None) -> Read | Unreadable:
        """Return what a Secret contains at present.

        Args:
            known: an earlier read for the same reference: unchanged content is not parsed again, since that takes as
                long as the rest of a reconcile, and each new machine causes a read.

        Raises:
            IdentityError: the Secret, its key or the entry does not exist.
        """
        began, read_s = next(self._numbers), self._clock.now()
        clouds, cacert = self._noted(ref, lambda: self._content(source))
        digest = hashlib.sha256(clouds + b"\0" + (cacert or b"")).digest()
        if known is not None and known.has_read(source, digest):
            return Read(known.credentials, source, read_s, began, digest)
        try:
            entries = identity.entries(clouds)
        except IdentityError as error:
            return Unreadable(source, read_s, began, error)
        entry = identity.entry(entries, ref["cloudName"])
        try:
            found = identity.parse_entry(entry, ref["cloudName"], cacert, ref.get("region"))
        except IdentityError as error:
            return Unreadable(source, read_s, began, error)
        return Read(found, source, read_s, began, digest)

    def _noted(self, ref: Object, read: Callable[[], T]) -> T:
        """Return the result of a read, and note whether the Secret of an OpenStackClusterIdentity can be read."""
        try:
            found = read()
        except IdentityError as error:
            if is_shared(ref):
                with self._lock:
                    self._unreadable[ref["name"]] = error.message
            raise
        if is_shared(ref):
            with self._lock:
                self._unreadable.pop(ref["name"], None)
        return found

    def _content(self, source: Source) -> tuple[bytes, bytes | None]:
        """Return clouds.yaml and the CA bundle of a Secret."""
        secret = self._kube.get(SECRET, source.namespace, source.name)
        if secret is None:
            raise _unusable(source, "does not exist")
        clouds = _decoded(secret, CLOUDS_KEY)
        if clouds is None:
            raise _unusable(source, f"has no key {CLOUDS_KEY}")
        return clouds, _decoded(secret, CACERT_KEY)


def _unusable(source: Source, why: str) -> IdentityError:
    """Return the error about a Secret, which may be in another namespace than the object that uses it."""
    return IdentityError(f"Secret {source.namespace}/{source.name} {why}", if_shared=f"the Secret {why}")


def _decoded(secret: Mapping[str, Any], key: str) -> bytes | None:
    value = (secret.get("data") or {}).get(key)
    if value is None:
        return None
    try:
        return base64.b64decode(value, validate=True)
    except binascii.Error as error:
        source = Source(secret["metadata"]["namespace"], secret["metadata"]["name"])
        raise _unusable(source, f"has a key {key} that is not base64") from error
