"""What credentials that see the same share: lists, lookups and holds of quotas; each keeps a token of its own.

One of them reads for all. A refusal of one is not taken for a refusal of the others: another one reads in its place.
What sees the same is decided in :mod:`capo.openstack.token_scope`.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, Protocol

from capo.errors import CapoError, CloudUnavailableError, ForbiddenError, IdentityError, NotAuthorizedError
from capo.openstack import quota
from capo.openstack.identity_outage import IdentityOutage
from capo.openstack.list_poller import ListPoller
from capo.openstack.quota_holds import QuotaHolds
from capo.openstack.quota_places import QuotaPlaces
from capo.openstack.reference_cache import ReferenceCache
from capo.openstack.registrations import Registrations
from capo.openstack.token_scope import TokenScope

if TYPE_CHECKING:
    from capo.openstack.cloud import Cloud
    from capo.openstack.pages import Listing

MAX_READERS: Final = 3
"""Credentials that one list is tried with: each refused login takes a request, and may take long."""


class SharedState:
    """State of all clouds with tokens of one scope; thread safe.

    Args:
        now: monotonic seconds.
        wake: called with a key whose resources changed or were listed.
        registrations: of this state and of those that its owners may change to.
        places: what replacements free in the project, also those with tokens of another scope.
    """

    def __init__(
        self,
        scope: TokenScope,
        now: Callable[[], float],
        wake: Callable[[Any], None],
        registrations: Registrations | None = None,
        places: QuotaPlaces | None = None,
    ) -> None:
        self.scope = scope
        self.poller = ListPoller(self, now, wake, registrations)
        self.lookups = ReferenceCache(now)
        self.outage = IdentityOutage(now)
        self.quota_holds = QuotaHolds(self._limits, now, wake, places)
        self._wake = wake
        self._lock = threading.Lock()
        self._members: dict[Cloud, None] = {}
        """By the cloud, in order: another one of the same credentials may follow before it leaves."""
        self._refused: set[Cloud] = set()

    @property
    def project_id(self) -> str:
        """The id of the project."""
        return self.scope.project_id

    @property
    def auth_host(self) -> str:
        """Host of the Identity service, empty without credentials."""
        with self._lock:
            return next((cloud.credentials.auth_host for cloud in self._members), "")

    @property
    def is_alone(self) -> bool:
        """Whether at most one set of credentials uses this state, so that its own reads are all that is shown to it."""
        return len(self._members) < 2

    def join(self, cloud: Cloud) -> bool:
        """Add a cloud whose token has this scope, unless it is closed; return False if the state is closed."""
        with self._lock:
            if self.poller.is_closed:
                return False
            if cloud.is_closed:
                return True
            self._members[cloud] = None
        self.poller.forget_refusals()  # those of the credentials that these replace
        return True

    def leave(self, cloud: Cloud) -> None:
        """Remove a cloud, close the state with the last one; wake the keys that use it, for they need another one."""
        with self._lock:
            if cloud not in self._members and (self._members or self.poller.is_closed):
                return
            self._members.pop(cloud, None)
            self._refused.discard(cloud)
            is_over = not self._members
            if is_over:
                self.poller.mark_closed()
        keys = self.poller.owners.keys() if is_over else self.poller.owners.keys_of(cloud.fingerprint)
        for key in keys:
            self._wake(key)
        self.poller.due_changed()

    def listing(self, service: str, path: str, key: str, **more: Any) -> Listing:
        """Return all pages of a list, read with credentials that are accepted.

        Args:
            more: as :meth:`capo.openstack.cloud.Cloud.listing` takes them.

        Raises:
            CapoError: the list failed, or it was refused to several credentials.
        """
        refusal: CapoError = CloudUnavailableError("the project has no credentials any more")
        for reader in self._readers():
            try:
                found = reader.listing(service, path, key, **more)
                if reader.authenticate() != self.scope:  # with such a token the list may have shown less
                    continue
            except ForbiddenError as error:
                refusal = error
            except (IdentityError, NotAuthorizedError) as error:
                refusal = error
                self._set_aside(reader)
            except CapoError:
                if self._is_member(reader):
                    raise
            else:
                self._readmit(reader)
                return found
        raise self._verdict(refusal)

    def _readers(self) -> list[Cloud]:
        """Return the clouds to read with, those first that were not refused, or not for the longest time.

        Of those the credentials come first that were accepted last: after a rotation they are the new ones, and
        hundreds of older ones may be revoked. Those whose other requests were refused come last.
        """
        with self._lock:
            first = list(itertools.islice(filter(self._is_accepted, self._members), MAX_READERS))
            if len(first) == MAX_READERS:  # no need to examine the others, which may be hundreds
                newest = filter(self._is_accepted, itertools.islice(reversed(self._members), 1))
                return sorted(dict.fromkeys([*first, *newest]), key=lambda cloud: -cloud.accepted_s)[:MAX_READERS]
            accepted = [cloud for cloud in self._members if cloud not in self._refused]
            if not accepted:
                return sorted(self._members, key=lambda cloud: cloud.refusal is not None)[:MAX_READERS]
            return sorted(accepted, key=lambda cloud: (cloud.refusal is not None, -cloud.accepted_s))[:MAX_READERS]

    def _is_accepted(self, cloud: Cloud) -> bool:
        return cloud not in self._refused and cloud.refusal is None

    def _is_member(self, cloud: Cloud) -> bool:
        with self._lock:
            return cloud in self._members

    def _set_aside(self, cloud: Cloud) -> None:
        with self._lock:
            if cloud in self._members:
                del self._members[cloud]
                self._members[cloud] = None  # to the end of the row
                self._refused.add(cloud)

    def _readmit(self, cloud: Cloud) -> None:
        with self._lock:
            self._refused.discard(cloud)

    def _verdict(self, refusal: CapoError) -> CapoError:
        """Return a refusal of some credentials as an error of all: only if there are no others is it theirs."""
        with self._lock:
            others = len(self._members) - len(self._refused)
        if others < 1 or isinstance(refusal, ForbiddenError | CloudUnavailableError):
            return refusal
        text = f"{refusal.message}; the list is repeated with {others} other credentials of the project"
        return CloudUnavailableError(text, request_id=refusal.request_id)

    def _limits(self, service: str) -> quota.Left:
        readers = self._readers()
        if not readers:
            raise CloudUnavailableError("the project has no credentials any more")
        return quota.read(readers[0], service)


class Sharing(Protocol):
    """Where clouds find the state that they share: :class:`capo.openstack.clouds.Clouds`."""

    def join(self, cloud: Cloud, scope: TokenScope) -> SharedState:
        """Return the state of a scope, with the cloud among its members."""

    def end(self, cloud: Cloud) -> None:
        """Close a cloud, such as one whose token has another scope than before; its credentials open a new one."""


class Unshared:
    """Gives each cloud a state of its own.

    Args:
        now: monotonic seconds.
        wake: called with a key whose resources changed or were listed.
    """

    def __init__(self, now: Callable[[], float], wake: Callable[[Any], None]) -> None:
        self._now, self._wake = now, wake

    def join(self, cloud: Cloud, scope: TokenScope) -> SharedState:
        """Return a new state."""
        state = SharedState(scope, self._now, self._wake)
        state.join(cloud)
        return state

    def end(self, cloud: Cloud) -> None:
        """Close the cloud."""
        cloud.close()
