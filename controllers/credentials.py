"""Resolve an identityRef to an authenticated cloud; the only module that reads credentials.

A Secret is read only with ``get`` and cached until the next resync, until the cloud refuses its credentials, or until
an object that uses them is edited or annotated; nothing of it is logged. Whether an OpenStackClusterIdentity admits the
namespace is read every time, so revoked access takes effect in the next reconcile. Changed credentials of a Secret are
tried before the former ones are dropped. Source of the rules: docs/explanation/go-provider.md, G-2, and
docs/how-to/credentials.md.
"""

from __future__ import annotations

import base64
import binascii
import threading
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple

from prometheus_client import Gauge

from capo import caches, names
from capo.clock import Clock
from capo.engine.store import Store
from capo.errors import CapoError, IdentityError, NotAuthorizedError, without_frames
from capo.json_types import Object
from capo.kube.client import Kube
from capo.kube.errors import Conflict
from capo.kube.kinds import (
    NAMESPACE,
    OPENSTACK_CLUSTER,
    OPENSTACK_CLUSTER_IDENTITY,
    OPENSTACK_FLOATING_IP_POOL,
    OPENSTACK_MACHINE,
    OPENSTACK_MACHINE_TEMPLATE,
    OPENSTACK_SERVER,
    SECRET,
)
from capo.openstack import identity
from capo.openstack.cloud import Cloud
from capo.openstack.clouds import Clouds
from capo.openstack.identity import Credentials
from capo.openstack.poller_pool import Site
from capo.shares import CloudKey

Edit = tuple[int, int]
_Place = tuple[str, str, str, str, str | None]

USERS: Final = (OPENSTACK_CLUSTER, OPENSTACK_MACHINE, OPENSTACK_SERVER, OPENSTACK_FLOATING_IP_POOL)
CLOUDS_KEY: Final = "clouds.yaml"
CACERT_KEY: Final = "cacert"
EXPIRES: Final = Gauge(
    "capo_credentials_expiry_timestamp_seconds",
    "When application credentials of clusters expire, seconds since 1970.",
    ("type", "namespace", "name", "cloud", "region"),
)
RESYNCED: Final = 0.8
"""Part of the resync period after which a Secret is read again: an object's resyncs are at least 0.9 periods apart."""
FRESH_S: Final = 5.0
"""Credentials that were read within this time are not outdated when the cloud refuses them."""
MAX_EDITS: Final = 10_000
"""Objects whose last edit is remembered; beyond that an edit waits for the resync."""
MAX_SELECTOR: Final = 200
_OWN_ANNOTATIONS: Final = frozenset(
    (
        names.OWNER_ID_ANNOTATION,
        names.TAKEN_OVER_ANNOTATION,
        names.ADOPTED_ANNOTATION,
        names.BASTION_HASH_ANNOTATION,
    )
)


class _Source(NamedTuple):
    """The Secret that an identityRef refers to."""

    namespace: str
    name: str


@dataclass(frozen=True)
class NotAccepted:
    """Changed credentials of a Secret, with which no login succeeded; the former ones are in use.

    Args:
        error: why.
    """

    fingerprint: str
    error: CapoError


@dataclass(frozen=True)
class _Read:
    """What was read of a Secret.

    Args:
        read_s: when it was read.
        is_stale: it is read again at the next use.
        not_accepted: its present content, if ``credentials`` are the former ones.
    """

    credentials: Credentials
    source: _Source
    read_s: float
    is_stale: bool = False
    not_accepted: NotAccepted | None = None


def _site(credentials: Credentials) -> Site:
    return Site(credentials.site, credentials.host)


class CredentialsCache:
    """Resolves identity references to clouds; shared by all controllers, thread safe.

    Args:
        max_age_s: the resync period.
    """

    def __init__(self, kube: Kube, clouds: Clouds, clock: Clock, *, max_age_s: float) -> None:
        self._kube = kube
        self._clouds = clouds
        self._clock = clock
        self._max_age_s = RESYNCED * max_age_s
        self._edits: caches.Bounded[str, Edit] = caches.Bounded.by_number(MAX_EDITS, name="edits")
        self._lock = threading.Lock()
        self._known: dict[_Place, _Read] = {}
        self._sites: dict[_Place, Site] = {}
        """Kept after the credentials are evicted: the budget of a reconcile is known without them."""
        self._unused: set[_Place] = set()
        self._unreadable: dict[str, str] = {}
        """Why the Secret of an OpenStackClusterIdentity cannot be read, by the name of the identity."""
        caches.register("credentials", self, lambda identities: len(identities._known))

    def cloud(self, ref: Object, namespace: str) -> Cloud:
        """Return the cloud of an identityRef of an object in a namespace.

        Raises:
            IdentityError: Secret, key, cloud name or permission is missing; the message says which.
            Conflict: the Secret refers to another cloud than before, whose budget the reconcile does not use.
        """
        place, source = _place(ref, namespace), self._source(ref, namespace)
        with self._lock:
            known = self._known.get(place)
        if known is None or known.source != source or self._is_old(known):
            try:
                read = self._read(ref, source)
            except IdentityError:
                self._drop([place])  # the Secret or its content was deleted
                raise
            known = self._renewed(place, known, self._tried(known, read, namespace))
        return self._clouds.get(known.credentials, namespace)

    def _is_old(self, known: _Read) -> bool:
        return known.is_stale or self._clock.now() - known.read_s > self._max_age_s

    def _tried(self, old: _Read | None, new: _Read, namespace: str) -> _Read:
        """Return new credentials if they open the cloud or the old ones do not; else the old ones, with the reason.

        Another Secret, or another address in it, is taken as it is: the former is the decision of who may change the
        identity, and the latter would be tried in the budget of the old cloud.
        """
        if old is None or old.source != new.source or _site(old.credentials) != _site(new.credentials):
            return new
        if old.credentials.fingerprint == new.credentials.fingerprint:
            return new
        former = self._clouds.get(old.credentials, namespace)
        if former.known_project_id is None or former.refusal:
            return new
        try:
            self._clouds.get(new.credentials, namespace).authenticate()
        except CapoError as error:
            refused = NotAccepted(new.credentials.fingerprint, without_frames(error))
            is_answered = isinstance(error, IdentityError | NotAuthorizedError)
            return replace(new, credentials=old.credentials, is_stale=not is_answered, not_accepted=refused)
        return new

    def _renewed(self, place: _Place, old: _Read | None, new: _Read) -> _Read:
        """Cache new credentials; replaced ones end their cloud and requeue the objects that wait for its poller."""
        site = _site(new.credentials)
        with self._lock:
            self._known[place] = new
            former, self._sites[place] = self._sites.get(place), site
        if old and old.credentials.fingerprint != new.credentials.fingerprint:
            self._clouds.drop(old.credentials.fingerprint)
        if former not in (None, site):
            # Otherwise a tenant could block reconciles in another's budget, with a Secret that changes its cloud.
            raise Conflict("the credentials lead to another cloud than before; reconciled again in its budget")
        return new

    def forget(self, ref: Object, namespace: str) -> bool:
        """Read the Secret again at the next use, because the cloud refused it or it could not be read.

        Returns:
            Whether the credentials may be outdated: they were read a while ago, and a retry need not wait.
        """
        place = _place(ref, namespace)
        with self._lock:
            known = self._known.get(place)
            if known is None:
                return False
            self._known[place] = replace(known, is_stale=True)
        return not known.is_stale and self._clock.now() - known.read_s > FRESH_S

    def note_edit(self, obj: Object) -> None:
        """Read the Secret of an object again at its next use if the object was edited or annotated."""
        metadata = obj["metadata"]
        uid, edit = str(metadata.get("uid")), _edit(obj)
        before = self._edits.get(uid)
        if before != edit:
            self._edits.put(uid, edit)
            if before is not None:
                self.forget(obj["spec"]["identityRef"], metadata["namespace"])

    def login(self, identity_name: str) -> str | None:
        """Return why an OpenStackClusterIdentity's Secret does not work; empty if it does, None if it was not tried.

        Mistakes in the references of objects do not count: these name the entry of the Secret, and may name any.
        """
        with self._lock:
            if (unreadable := self._unreadable.get(identity_name)) is not None:
                return unreadable
            places = [(place, known) for place, known in self._known.items() if _is_shared(place, identity_name)]
        tried = [(place, cloud) for place, known in places if (cloud := self._clouds.peek(known.credentials))]
        refused = [(place, error) for place, cloud in tried if (error := cloud.refusal)]
        # The former credentials may work while the Secret's present content does not.
        refused += [(place, known.not_accepted.error) for place, known in places if known.not_accepted]
        if refused:
            return min(f"cloud {place[3]!r}: {error.message}" for place, error in refused)
        return "" if any(cloud.known_project_id for _, cloud in tried) else None

    def expires_s(self, ref: Object, namespace: str) -> float | None:
        """Return when credentials expire, seconds since 1970; None if they do not, or if that is unknown.

        The metric has the same.
        """
        place = _place(ref, namespace)
        with self._lock:
            known = self._known.get(place)
        cloud = self._clouds.peek(known.credentials) if known else None
        found = cloud.expires_s if cloud else None
        if found is not None:
            EXPIRES.labels(*_labels_of(place)).set(found)
        elif cloud is not None and cloud.known_project_id:  # replaced by credentials that do not expire
            EXPIRES.remove(*_labels_of(place))
        return found

    def not_accepted(self, ref: Object, namespace: str) -> NotAccepted | None:
        """Return the changed credentials of a Secret that are not used, because no login with them succeeded."""
        with self._lock:
            known = self._known.get(_place(ref, namespace))
        return known.not_accepted if known else None

    @staticmethod
    def describe(ref: Object, namespace: str) -> str:
        """Return a description of an identityRef's credentials, for messages."""
        is_shared = ref.get("type") == "ClusterIdentity"
        where = f"OpenStackClusterIdentity {ref['name']}" if is_shared else f"Secret {namespace}/{ref['name']}"
        return f"{where}, cloud {ref['cloudName']!r}"

    def cloud_key(self, ref: Object | None, namespace: str) -> CloudKey | None:
        """Return the cloud whose budgets requests of an identityRef use; None if its credentials were never read."""
        with self._lock:
            site = self._sites.get(_place(ref or {}, namespace))
        return self._clouds.key_of(site, namespace) if site else None

    def resolve_cloud(self, ref: Object, namespace: str) -> None:
        """Read the credentials of an identityRef, unless they were read before; makes no request to the cloud.

        Raises:
            IdentityError: Secret, key, cloud name or permission is missing; the message says which.
        """
        if self.cloud_key(ref, namespace) is None:
            read = self._read(ref, self._source(ref, namespace))
            with self._lock:
                known = self._known.setdefault(_place(ref, namespace), read)
                self._sites.setdefault(_place(ref, namespace), _site(known.credentials))

    def tidy(self, used: Collection[_Place]) -> None:
        """Evict credentials, with their clouds, that no object used at this and at the previous call.

        Args:
            used: the credentials of all objects, as :func:`used` returns them.
        """
        with self._lock:
            unused = self._sites.keys() - set(used)
            over, self._unused = unused & self._unused, unused
            for place in over:
                del self._sites[place]
                EXPIRES.remove(*_labels_of(place))
            shared = {place[2] for place in used if place[0] == "ClusterIdentity"}
            self._unreadable = {name: why for name, why in self._unreadable.items() if name in shared}
        caches.evicted("credentials", len(over))
        self._drop(over)

    def _drop(self, places: Iterable[_Place]) -> None:
        with self._lock:
            for place in places:
                self._known.pop(place, None)
            kept = {known.credentials.fingerprint for known in self._known.values()}
            # Refused credentials keep their cloud, which knows when they may be tried again.
            kept |= {known.not_accepted.fingerprint for known in self._known.values() if known.not_accepted}
        self._clouds.retain(kept)

    def _source(self, ref: Object, namespace: str) -> _Source:
        kind = ref.get("type") or "Secret"
        if kind == "Secret":
            return _Source(namespace, ref["name"])
        if kind == "ClusterIdentity":
            return self._source_of_cluster_identity(ref, namespace)
        raise IdentityError(f"identityRef.type {kind!r} is neither Secret nor ClusterIdentity")

    def _source_of_cluster_identity(self, ref: Object, namespace: str) -> _Source:
        found = self._kube.get(OPENSTACK_CLUSTER_IDENTITY, "", ref["name"])
        if found is None:
            raise IdentityError(f"OpenStackClusterIdentity {ref['name']} does not exist")
        selector = found["spec"].get("namespaceSelector")
        if selector and not _selects(selector, self._labels(namespace)):
            raise IdentityError(
                f"OpenStackClusterIdentity {ref['name']} does not admit namespace {namespace}:"
                f" its spec.namespaceSelector ({_selector_text(selector)}) does not match the labels of the namespace"
            )
        secret = found["spec"]["secretRef"]
        return _Source(secret["namespace"], secret["name"])

    def _labels(self, namespace: str) -> Mapping[str, str]:
        found = self._kube.get(NAMESPACE, "", namespace)
        return (found or {}).get("metadata", {}).get("labels") or {}

    def _read(self, ref: Object, source: _Source) -> _Read:
        is_shared = ref.get("type") == "ClusterIdentity"
        try:
            clouds, cacert = self._content(source)
        except IdentityError as error:
            if is_shared:
                with self._lock:
                    self._unreadable[ref["name"]] = error.message
            raise
        if is_shared:
            with self._lock:
                self._unreadable.pop(ref["name"], None)
        found = identity.parse(clouds, ref["cloudName"], cacert, ref.get("region"))
        return _Read(found, source, self._clock.now())

    def _content(self, source: _Source) -> tuple[bytes, bytes | None]:
        """Return clouds.yaml and the CA bundle of a Secret."""
        secret = self._kube.get(SECRET, source.namespace, source.name)
        if secret is None:
            raise IdentityError(f"Secret {source.namespace}/{source.name} does not exist")
        clouds = _decoded(secret, CLOUDS_KEY)
        if clouds is None:
            raise IdentityError(f"Secret {source.namespace}/{source.name} has no key {CLOUDS_KEY}")
        return clouds, _decoded(secret, CACERT_KEY)


def used(store: Store) -> set[_Place]:
    """Return the identity references of all objects. A machine without its own uses those of its cluster."""
    objects = (obj for kind in USERS for obj in store.list(kind))
    refs = [((obj.get("spec") or {}).get("identityRef"), obj["metadata"]["namespace"]) for obj in objects]
    refs += [
        (template["spec"]["template"]["spec"].get("identityRef"), template["metadata"]["namespace"])
        for template in store.list(OPENSTACK_MACHINE_TEMPLATE)
    ]
    return {_place(ref, namespace) for ref, namespace in refs if ref}


def _place(ref: Object, namespace: str) -> _Place:
    kind = ref.get("type") or "Secret"
    return (kind, namespace, ref.get("name", ""), ref.get("cloudName", ""), ref.get("region"))


def _labels_of(place: _Place) -> tuple[str, ...]:
    return *place[:4], place[4] or ""


def _is_shared(place: _Place, identity_name: str) -> bool:
    return place[0] == "ClusterIdentity" and place[2] == identity_name


def _decoded(secret: Mapping[str, Any], key: str) -> bytes | None:
    value = (secret.get("data") or {}).get(key)
    if value is None:
        return None
    try:
        return base64.b64decode(value, validate=True)
    except binascii.Error as error:
        metadata = secret["metadata"]
        raise IdentityError(f"Secret {metadata['namespace']}/{metadata['name']}: key {key} is not base64") from error


def _edit(obj: Object) -> Edit:
    """Return what changes with each edit of an object by its users."""
    annotations = obj["metadata"].get("annotations") or {}
    others = {name: value for name, value in annotations.items() if name not in _OWN_ANNOTATIONS}
    return obj["metadata"].get("generation", 0), hash(frozenset(others.items()))


def _selector_text(selector: Mapping[str, Any]) -> str:
    """Return a label selector in the notation of kubectl."""
    parts = [f"{name}={value}" for name, value in (selector.get("matchLabels") or {}).items()]
    for rule in selector.get("matchExpressions") or ():
        values = f"({','.join(rule.get('values') or ())})"
        forms = {"In": f"{rule['key']} in {values}", "NotIn": f"{rule['key']} notin {values}"}
        forms |= {"Exists": rule["key"], "DoesNotExist": f"!{rule['key']}"}
        parts.append(forms.get(rule["operator"], f"{rule['key']} {rule['operator']}"))
    text = ",".join(parts)
    return text if len(text) <= MAX_SELECTOR else f"{text[:MAX_SELECTOR]}..."


def _selects(selector: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    wanted = selector.get("matchLabels") or {}
    if any(labels.get(name) != value for name, value in wanted.items()):
        return False
    return all(_matches(rule, labels) for rule in selector.get("matchExpressions") or ())


def _matches(rule: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    present = rule["key"] in labels
    match rule["operator"]:
        case "In":
            return labels.get(rule["key"]) in (rule.get("values") or ())
        case "NotIn":
            return labels.get(rule["key"]) not in (rule.get("values") or ())
        case "Exists":
            return present
        case "DoesNotExist":
            return not present
        case other:
            raise IdentityError(f"namespaceSelector: operator {other!r} is not known")
