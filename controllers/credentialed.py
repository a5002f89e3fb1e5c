"""Credentials of objects that have their own, in ``spec.identityRef``, and the cloud that these lead to."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from typing import Final

from capo.contract import rules
from capo.engine.conditions import Condition
from capo.engine.context import Dependencies, ReconcileContext
from capo.engine.store import Index
from capo.errors import QuotaExceededError
from capo.json_types import Object
from capo.kube.kinds import OPENSTACK_CLUSTER
from capo.ledger import Ledger
from capo.openstack import recorded_owner
from capo.openstack.cloud import Cloud
from capo.openstack.cloud_view import CloudView
from capo.shares import CloudKey
from controllers import credentials_condition, location, ownership, replacements
from controllers.credential_secrets import is_shared
from controllers.credentials import CredentialsCache

log = logging.getLogger(__name__)


def name_of(obj: Object) -> str:
    """Return an object's name."""
    return str(obj["metadata"]["name"])


class OwnCredentials:
    """The :class:`capo.engine.context.CredentialsSource` of objects with credentials in ``spec.identityRef``.

    Args:
        common_name: returns a string that is part of the name or description of every resource of an object.
    """

    def __init__(self, cache: CredentialsCache, common_name: Callable[[Object], str] = name_of) -> None:
        self._cache = cache
        self._common_name = common_name

    def authenticate(self, obj: Object) -> None:
        """Verify that the credentials work."""
        self._cloud(obj).authenticate()

    def recorded_owner(self, obj: Object, ledger: Ledger) -> str | None:
        """Return the owner id in the stamps of the recorded resources."""
        cloud = self._cloud(obj)
        stored, present = ledger.location, cloud.location
        location.refuse_elsewhere(stored, present, location.accepted(obj))
        owner = recorded_owner.find(cloud, ledger, self._common_name(obj))
        if owner is None and stored not in (None, present) and location.accepted(obj) != str(present):
            raise location.unproven(stored, present)
        return owner

    def describe(self, obj: Object, deps: Dependencies) -> str:
        """Return a description of the object's credentials."""
        return self._cache.describe_in_use(obj["spec"]["identityRef"], obj["metadata"]["namespace"])

    def is_shared(self, obj: Object, deps: Dependencies) -> bool:
        """Return whether other namespaces share the object's credentials."""
        return is_shared(obj["spec"]["identityRef"])

    def forget(self, obj: Object) -> bool:
        """Read the Secret again at the next reconcile; return whether the credentials may be outdated."""
        return self._cache.forget(obj["spec"]["identityRef"], obj["metadata"]["namespace"])

    def cloud_key(self, obj: Object, deps: Dependencies) -> CloudKey | None:
        """Return the object's cloud, whose budgets apply; None until it is located."""
        return self._cache.cloud_key(obj["spec"].get("identityRef"), obj["metadata"]["namespace"])

    def resolve_cloud(self, obj: Object, deps: Dependencies) -> None:
        """Read the object's credentials, to locate its cloud."""
        self._cache.resolve_cloud(obj["spec"]["identityRef"], obj["metadata"]["namespace"])

    def open(self, context: ReconcileContext, *, named: Callable[[], Ledger] = Ledger) -> tuple[Cloud, CloudView]:
        """Return the cloud of a reconcile and its view of it, after a check that the object's resources are there.

        Args:
            named: returns resources in the status of an object being taken over that the ledger does not have yet.

        Raises:
            IdentityError: the credentials are for another location, where all resources would seem to be deleted.
            NotYetObserved: the location is not known yet.
        """
        self._cache.note_edit(context.obj)
        cloud = self._cloud(context.obj)
        cloud_view = cloud_view_of(context, cloud, common_name=self._common_name(context.obj))
        self._settle(context, cloud, cloud_view, named)
        return cloud, cloud_view

    def attention(self, context: ReconcileContext) -> Condition | None:
        """Return the condition of credentials that work and need attention; emit an Event when it is new.

        Objects with the credentials of an OpenStackCluster leave that to it.
        """
        if context.key.kind != OPENSTACK_CLUSTER and _has_reporter(context):
            return None
        ref, namespace = context.obj["spec"]["identityRef"], context.key.namespace
        not_accepted = self._cache.not_accepted(ref, namespace)
        found = credentials_condition.of(
            self._cache.describe(ref, namespace),
            not_accepted,
            expires_s=self._cache.expires_s(ref, namespace),
            now_s=context.deps.clock.wall(),
        )
        if found and credentials_condition.is_new(found, context.obj):
            context.deps.events.emit(context.obj, "Warning", found.reason, found.message)
        return found

    def _settle(
        self, context: ReconcileContext, cloud: Cloud, cloud_view: CloudView, named: Callable[[], Ledger]
    ) -> None:
        ledger, present = context.ledger, cloud.location
        known = ledger if ledger.has_entries else named()
        if not known.has_entries:
            ledger.location = present  # the location of everything that this reconcile creates or finds
            return
        stored = ledger.location
        ledger.location = location.settle(
            stored,
            present,
            accepted=location.accepted(context.obj),
            is_proven=lambda: location.is_anything_seen(cloud_view, known, context.owner),
            may_lack=not known.records or (context.is_deleting and not context.is_taken_over),
        )
        if stored not in (None, present):
            extra = {"key": str(context.key), "was": str(stored), "location": str(present)}
            log.warning("The resources of an object have another location", extra=extra)

    def _cloud(self, obj: Object) -> Cloud:
        return self._cache.cloud(obj["spec"]["identityRef"], obj["metadata"]["namespace"])


def _has_reporter(context: ReconcileContext) -> bool:
    """Return whether an OpenStackCluster of the namespace has the same identityRef, and is reconciled here."""
    return context.deps.store.has(_REPORTERS, _identity(context.obj))


def _identity(obj: Object) -> tuple[str, str]:
    return obj["metadata"]["namespace"], json.dumps(obj["spec"].get("identityRef"), sort_keys=True)


def _reported_identity(cluster: Object) -> list[tuple[str, str]]:
    return [] if rules.is_externally_managed(cluster) else [_identity(cluster)]


_REPORTERS: Final = Index(OPENSTACK_CLUSTER, _reported_identity)


def cloud_view_of(context: ReconcileContext, cloud: Cloud, *, common_name: str = "") -> CloudView:
    """Return one reconcile's view of a cloud.

    Args:
        common_name: part of the name or description of every resource of the object.
    """
    replacements.restore(cloud, context)
    return CloudView(
        cloud,
        context.ledger,
        owner_id=context.owner,
        key=context.key,
        uid=context.obj["metadata"]["uid"],
        common_name=common_name,
        is_recorded_elsewhere=lambda kind, id_: ownership.is_recorded_elsewhere(context, kind, id_),
        clock=context.deps.clock,
        is_taken_over=context.is_taken_over,
        is_newborn=context.is_newborn,
        is_history_lost=context.is_history_lost,
        started_s=context.started_s,
        window_s=context.deps.ambiguous_window_s,
        max_age_s=context.deps.sync_period_s,
        was_held=_was_held(context.obj),
    )


def _was_held(obj: Object) -> bool:
    """Return whether an object's status says that it waits for a quota."""
    shown = (obj.get("status") or {}).get("conditions") or ()
    return any(each.get("reason") == QuotaExceededError.reason and each.get("status") == "False" for each in shown)
