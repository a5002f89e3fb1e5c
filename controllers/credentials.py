"""Resolve an identityRef to an authenticated cloud; all use of credentials begins here.

A Secret is cached until the next resync, until the cloud refuses its credentials, or until an object or identity that
uses them is edited or annotated. Whether an OpenStackClusterIdentity admits the namespace is read every time, so
revoked access takes effect in the next reconcile. The former credentials of a Secret are dropped when the changed ones
open the cloud. Source of the rules: docs/explanation/go-provider.md, G-2, and docs/how-to/credentials.md.
"""

from __future__ import annotations

import itertools
import operator
import threading
import weakref
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from typing import Final

from capo import caches, gauges, names
from capo.clock import Clock
from capo.engine.store import Index, Store
from capo.errors import CapoError, IdentityError, NotAuthorizedError, without_frames
from capo.json_types import Object
from capo.kube.client import Kube
from capo.kube.errors import Conflict
from capo.kube.kinds import (
    OPENSTACK_CLUSTER,
    OPENSTACK_FLOATING_IP_POOL,
    OPENSTACK_MACHINE,
    OPENSTACK_MACHINE_TEMPLATE,
    OPENSTACK_SERVER,
)
from capo.openstack.cloud import Cloud
from capo.openstack.clouds import Clouds
from capo.openstack.identity import Credentials
from capo.openstack.poller_pool import Site
from capo.shares import CloudKey
from controllers.credential_secrets import NotAccepted, Read, Secrets, Source, Unreadable, is_shared

Edit = tuple[int, int]
_Place = tuple[str, str, str, str, str | None]

USERS: Final = (OPENSTACK_CLUSTER, OPENSTACK_MACHINE, OPENSTACK_SERVER, OPENSTACK_FLOATING_IP_POOL)
EXPIRES: Final[gauges.NamespaceGauge[float]] = gauges.NamespaceGauge(
    "capo_credentials_expiry_timestamp_seconds",
    "When application credentials and trusts in use expire, seconds since 1970.",
    ("type", "namespace", "name", "cloud", "region"),
    rank=operator.neg,
    shown=float,
)
RESYNCED: Final = 0.8
"""Part of the resync period after which a Secret is read again: an object's resyncs are at least 0.9 periods apart."""
FRESH_S: Final = 5.0
"""Credentials that were read within this time are not outdated when the cloud refuses them."""
MAX_EDITS: Final = 10_000
"""Objects whose last edit is remembered; beyond that an edit waits for the resync."""
_OWN_ANNOTATIONS: Final = frozenset(
    (
        names.OWNER_ID_ANNOTATION,
        names.TAKEN_OVER_ANNOTATION,
        names.ADOPTED_ANNOTATION,
        names.BASTION_HASH_ANNOTATION,
    )
)


class _Taken(threading.local):
    """The credentials that the reconcile of this thread took last."""

    place: _Place | None = None
    fingerprint: str = ""


def _site(credentials: Credentials) -> Site:
    return Site(credentials.site, credentials.host)


class CredentialsCache:
    """Resolves identity references to clouds; shared by all controllers, thread safe.

    Args:
        max_age_s: the resync period.
    """

    def __init__(self, kube: Kube, clouds: Clouds, clock: Clock, *, max_age_s: float) -> None:
        self._clouds = clouds
        self._clock = clock
        self._max_age_s = RESYNCED * max_age_s
        self._edits: caches.Bounded[str, Edit] = caches.Bounded.by_number(MAX_EDITS, name="edits")
        self._lock = threading.Lock()
        self._numbers = itertools.count()
        self._secrets = Secrets(kube, clock, self._numbers)
        self._taken = _Taken()
        self._known: dict[_Place, Read] = {}
        """Changed by :meth:`_put` and :meth:`_remove`."""
        self._by_fingerprint: dict[str, dict[_Place, None]] = {}
        """By the fingerprint of credentials that are in use or were not accepted."""
        self._by_identity: dict[str, dict[_Place, None]] = {}
        """By the name of the OpenStackClusterIdentity."""
        self._sites: dict[_Place, Site] = {}
        """Kept after the credentials are evicted: the budget of a reconcile is known without them."""
        self._expiry: dict[_Place, float] = {}
        self._unused: set[_Place] = set()
        caches.register("credentials", self, lambda identities: len(identities._known))
        known = weakref.ref(self)
        EXPIRES.set_function(lambda: _expiry(known()))

    def cloud(self, ref: Object, namespace: str) -> Cloud:
        """Return the cloud of an identityRef of an object in a namespace.

        Raises:
            IdentityError: Secret, key, cloud name or permission is missing; the message says which.
            IdentityError, NotAuthorizedError: the cloud refuses credentials that lists of others would still serve.
            Conflict: the Secret refers to another cloud than before, whose budget the reconcile does not use.
        """
        self._taken.place = None
        place, source = _place(ref, namespace), self._secrets.source(ref, namespace)
        with self._lock:
            known = self._known.get(place)
        if known is None or known.source != source or self._is_old(known):
            try:
                read = self._secrets.read(ref, source, known)
                found = self._tried(known, read, namespace) if isinstance(read, Read) else self._kept(known, read)
            except IdentityError:
                self._drop(place)  # the Secret or the entry was deleted, or nothing else is known
                raise
            known = self._renewed(place, known, found)
        self._taken.place, self._taken.fingerprint = place, known.credentials.fingerprint
        cloud = self._clouds.get(known.credentials, namespace)
        if known.not_accepted is not None:
            self._check_former(cloud, known.not_accepted.error.about(self.describe(ref, namespace)))
        cloud.confirm()
        return cloud

    @staticmethod
    def _check_former(cloud: Cloud, error: CapoError) -> None:
        """Raise why the present content of the Secret opens nothing if the former credentials do not either.

        No request is sent while there is a token of the former ones.
        """
        try:
            cloud.authenticate()
        except (IdentityError, NotAuthorizedError):
            raise error from None

    def access(self, ref: Object, namespace: str) -> Source | str:
        """Return the Secret that an identityRef leads to at present, or why it may not be used."""
        try:
            return self._secrets.source(ref, namespace)
        except IdentityError as error:
            return error.message

    def _is_old(self, known: Read) -> bool:
        return known.is_stale or self._clock.now() - known.read_s > self._max_age_s

    def _tried(self, old: Read | None, new: Read, namespace: str) -> Read:
        """Return new credentials if they open the cloud, or if no old ones ever did; else the old ones with the reason.

        That the old ones are refused at present is no reason to drop them: a cloud may refuse all for a moment. Another
        Secret, or another address in it, is taken as it is: the former is the decision of who may change the identity,
        and the latter would be tried in the budget of the old cloud.
        """
        if old is None or not self._has_opened(old, new.source) or _site(old.credentials) != _site(new.credentials):
            return new
        if old.credentials.fingerprint == new.credentials.fingerprint:
            return new
        try:
            self._clouds.get(new.credentials, namespace).authenticate()
        except CapoError as error:
            refused = NotAccepted(new.credentials.fingerprint, without_frames(error))
            is_answered = isinstance(error, IdentityError | NotAuthorizedError)
            outdated = -1 if is_answered else new.began  # what was not answered is tried again at the next use
            return replace(new, credentials=old.credentials, outdated=outdated, not_accepted=refused)
        return new

    def _kept(self, old: Read | None, unreadable: Unreadable) -> Read:
        """Return the old credentials in place of content that cannot be read, if they ever opened the cloud.

        Raises:
            IdentityError: they did not; why the content cannot be read.
        """
        if old is None or not self._has_opened(old, unreadable.source):
            raise unreadable.error
        refused = NotAccepted("", without_frames(unreadable.error))
        return Read(old.credentials, old.source, unreadable.read_s, unreadable.began, not_accepted=refused)

    def _has_opened(self, old: Read, source: Source) -> bool:
        cloud = self._clouds.peek(old.credentials)
        return old.source == source and cloud is not None and cloud.known_project_id is not None

    def _renewed(self, place: _Place, old: Read | None, new: Read) -> Read:
        """Cache what was read, for all objects that use the same entry of the Secret.

        Replaced credentials end their cloud and requeue the objects that wait for its poller, unless another Secret has
        them.
        """
        with self._lock:
            new = self._put(place, new.over(self._known.get(place)))
            site = _site(new.credentials)
            former, self._sites[place] = self._sites.get(place), site
            is_dropped = old is not None and self._share(place, old, new)
        if old and is_dropped:
            self._clouds.drop(old.credentials.fingerprint)
        if former not in (None, site):
            # Otherwise a tenant could block reconciles in another's budget, with a Secret that changes its cloud.
            raise Conflict("the credentials lead to another cloud than before; reconciled again in its budget")
        return new

    def _share(self, place: _Place, old: Read, new: Read) -> bool:
        """Cache what was read for the other users of an entry; return whether nothing uses the old credentials.

        The others would log in again with credentials that were replaced, and try again what was not accepted.
        """
        replaced = old.credentials.fingerprint
        if _site(old.credentials) == _site(new.credentials):
            for other in tuple(self._by_fingerprint.get(replaced, ())):
                known = self._known[other]
                is_same = known.source == new.source and _entry(other) == _entry(place)
                if is_same and known.credentials.fingerprint == replaced:
                    self._put(other, new.over(known))
        return replaced not in self._by_fingerprint

    def _put(self, place: _Place, read: Read) -> Read:
        """Cache what was read, and return it; the lock is held."""
        self._remove(place)
        self._known[place] = read
        for fingerprint in _fingerprints(read):
            self._by_fingerprint.setdefault(fingerprint, {})[place] = None
        if _is_shared(place):
            self._by_identity.setdefault(place[2], {})[place] = None
        return read

    def _remove(self, place: _Place) -> set[str]:
        """Remove what was read; return the credentials that no place has any more. The lock is held."""
        if (known := self._known.pop(place, None)) is None:
            return set()
        for fingerprint in _fingerprints(known):
            _discard(self._by_fingerprint, fingerprint, place)
        if _is_shared(place):
            _discard(self._by_identity, place[2], place)
        return _fingerprints(known) - self._by_fingerprint.keys()

    def forget(self, ref: Object, namespace: str) -> bool:
        """Read the Secret again at the next use, because the cloud refused it or it could not be read.

        Returns:
            Whether the credentials that this thread's reconcile took may be outdated, so that a retry need not wait:
            others took their place, or they were read a while ago.
        """
        place = _place(ref, namespace)
        with self._lock:
            known = self._known.get(place)
            if known is None:
                return False
            is_taken, self._taken.place = self._taken.place == place, None
            if is_taken and self._taken.fingerprint != known.credentials.fingerprint:
                return True
            self._put(place, replace(known, outdated=next(self._numbers)))
        # One that took credentials reads them at the next use. Else the same failure may end that before the read.
        return (is_taken or not known.is_stale) and self._clock.now() - known.read_s > FRESH_S

    def note_edit(self, obj: Object, ref: Object | None = None) -> None:
        """Read the Secret of an object again at its next use if the object was edited or annotated.

        Args:
            ref: its identityRef; None: that of its spec.
        """
        metadata = obj["metadata"]
        uid, edit = str(metadata.get("uid")), edit_of(obj)
        before = self._edits.get(uid)
        if before != edit:
            self._edits.put(uid, edit)
            if before is not None:
                self._outdate([_place(ref or obj["spec"]["identityRef"], metadata["namespace"])])

    def note_identity_edit(self, identity_name: str) -> None:
        """Read the Secret of an OpenStackClusterIdentity again at its next use."""
        with self._lock:
            meant = tuple(self._by_identity.get(identity_name, ()))
        self._outdate(meant)

    def _outdate(self, places: Iterable[_Place]) -> None:
        with self._lock:
            for place in places:
                if (known := self._known.get(place)) is not None:
                    self._put(place, replace(known, outdated=next(self._numbers)))

    def login(self, identity: Object) -> str | None:
        """Return why an OpenStackClusterIdentity's Secret does not work; empty if it does, None if it was not tried.

        Mistakes in the references of objects do not count: these name the entry of the Secret, and may name any.
        """
        name, secret = identity["metadata"]["name"], Source.named_by(identity)
        if (unreadable := self._secrets.unreadable(name)) is not None:
            return unreadable
        with self._lock:
            # A namespace that is not admitted any more keeps what was read for it, perhaps of another Secret.
            found = [(place, self._known[place]) for place in self._by_identity.get(name, ())]
            places = [(place, known) for place, known in found if known.source == secret]
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
        with self._lock:
            if found is not None:
                self._expiry[place] = found
            elif cloud is not None and cloud.known_project_id:  # replaced by credentials that do not expire
                self._expiry.pop(place, None)
        return found

    def not_accepted(self, ref: Object, namespace: str) -> NotAccepted | None:
        """Return the changed credentials of a Secret that are not used, because no login with them succeeded."""
        with self._lock:
            known = self._known.get(_place(ref, namespace))
        return known.not_accepted if known else None

    def describe_in_use(self, ref: Object, namespace: str) -> str:
        """Return a description of the credentials in use, for messages of what the cloud says to them."""
        described = self.describe(ref, namespace)
        return f"{described}, its former content" if self.not_accepted(ref, namespace) else described

    @staticmethod
    def describe(ref: Object, namespace: str) -> str:
        """Return a description of an identityRef's credentials, for messages."""
        where = f"OpenStackClusterIdentity {ref['name']}" if is_shared(ref) else f"Secret {namespace}/{ref['name']}"
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
            read = self._secrets.read(ref, self._secrets.source(ref, namespace))
            if isinstance(read, Unreadable):
                raise read.error
            with self._lock:
                place = _place(ref, namespace)
                known = self._known.get(place) or self._put(place, read)
                self._sites.setdefault(place, _site(known.credentials))

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
                self._expiry.pop(place, None)
        self._secrets.tidy({place[2] for place in used if _is_shared(place)})
        caches.evicted("credentials", len(over))
        for place in over:
            self._drop(place)
        with self._lock:
            # Refused credentials keep their cloud, which knows when they may be tried again.
            kept = set(self._by_fingerprint)
        self._clouds.retain(kept)

    def _drop(self, place: _Place) -> None:
        with self._lock:
            unused = self._remove(place)
        for fingerprint in unused:
            self._clouds.drop(fingerprint)


def used(store: Store) -> set[_Place]:
    """Return the identity references of all objects. A machine without its own uses those of its cluster."""
    return {place for index in _BY_PLACE for place in store.values(index)}


def _fingerprints(read: Read) -> set[str]:
    """Return the credentials whose clouds are kept for what was read; content that cannot be read has none."""
    refused = read.not_accepted.fingerprint if read.not_accepted else ""
    return {read.credentials.fingerprint} | ({refused} if refused else set())


def _places(spec: Object, obj: Object) -> list[_Place]:
    ref = spec.get("identityRef")
    return [_place(ref, obj["metadata"]["namespace"])] if ref else []


_BY_PLACE: Final[Sequence[Index[_Place]]] = (
    *(Index(kind, lambda obj: _places(obj.get("spec") or {}, obj)) for kind in USERS),
    Index(OPENSTACK_MACHINE_TEMPLATE, lambda template: _places(template["spec"]["template"]["spec"], template)),
)


def _place(ref: Object, namespace: str) -> _Place:
    kind = ref.get("type") or "Secret"
    return (kind, namespace, ref.get("name", ""), ref.get("cloudName", ""), ref.get("region"))


def _entry(place: _Place) -> tuple[str, str | None]:
    """Return the cloud's name and the region, which select an entry of a Secret."""
    return place[3], place[4]


def _expiry(identities: CredentialsCache | None) -> dict[gauges.Labels, float]:
    if identities is None:
        return {}
    with identities._lock:
        return {(*place[:4], place[4] or ""): expires_s for place, expires_s in identities._expiry.items()}


def _is_shared(place: _Place) -> bool:
    """Return whether the credentials are those of an OpenStackClusterIdentity."""
    return place[0] == "ClusterIdentity"


def _discard(index: dict[str, dict[_Place, None]], value: str, place: _Place) -> None:
    del index[value][place]
    if not index[value]:
        del index[value]


def edit_of(obj: Object) -> Edit:
    """Return what changes with each edit of an object by its users."""
    annotations = obj["metadata"].get("annotations") or {}
    others = {name: value for name, value in annotations.items() if name not in _OWN_ANNOTATIONS}
    return obj["metadata"].get("generation", 0), hash(frozenset(others.items()))
