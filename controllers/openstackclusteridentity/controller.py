"""OpenStackClusterIdentity for the engine: how many objects use an identity, and since when its Secret works.

Nothing is created for an identity, and no request is sent to its cloud: logins are those of the objects that use it. A
manager of one namespace, or with a watch filter that the identity does not pass, does not see all objects and writes
nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from capo import caches
from capo.engine import conditions
from capo.engine.conditions import Condition
from capo.engine.context import Dependencies
from capo.engine.overall import AUTHENTICATED, AUTHENTICATION_FAILED
from capo.engine.store import Index, Route, Store
from capo.engine.worker import Result
from capo.json_types import Object
from capo.kube.errors import Conflict, Gone
from capo.kube.kinds import OPENSTACK_CLUSTER_IDENTITY, OPENSTACK_MACHINE_TEMPLATE, Key, Kind
from capo.shares import CloudKey
from controllers.credentials import USERS, CredentialsCache, Edit, edit_of

LOOK_S: Final = 60.0
"""Pause between two writes of a status, and between two checks of the logins."""
FIRST_LOOK_S: Final = 10.0
"""Pause between two checks until the first login, which the first condition does not keep waiting."""
MAX_IDENTITIES: Final = 10_000
_GONE: Final = ("", (-1, 0))


def users_of(name: str, store: Store) -> list[Key]:
    """Return the objects whose identityRef names an OpenStackClusterIdentity."""
    return [
        Key(kind, obj["metadata"]["namespace"], obj["metadata"]["name"])
        for kind, index in _BY_IDENTITY.items()
        for obj in store.find(index, name)
    ]


def _identity(obj: Object) -> list[str]:
    spec = obj.get("spec") or {}
    if "template" in spec:
        spec = spec["template"].get("spec") or {}
    ref = spec.get("identityRef") or {}
    return [ref["name"]] if ref.get("type") == "ClusterIdentity" and ref.get("name") else []


_BY_IDENTITY: Final = {kind: Index(kind, _identity) for kind in (*USERS, OPENSTACK_MACHINE_TEMPLATE)}


class ClusterIdentityController:
    """The controller of OpenStackClusterIdentities.

    Args:
        wake: requeues an object.
    """

    name = "openstackclusteridentity"
    kind: Kind = OPENSTACK_CLUSTER_IDENTITY
    concurrency = 1
    routes: Sequence[Route] = ()

    def __init__(self, identities: CredentialsCache, deps: Dependencies, wake: Callable[[Key], None]) -> None:
        self._identities = identities
        self._deps = deps
        self._wake = wake
        self._written = caches.Bounded[str, float].by_age(LOOK_S, deps.clock.now)
        self._edits = caches.Bounded[str, tuple[str, Edit]].by_number(MAX_IDENTITIES)

    def cloud_key(self, key: Key) -> CloudKey:
        """Return an empty key: no cloud is called."""
        return CloudKey()

    def resolve_cloud(self, key: Key) -> bool:
        """Return True: no cloud is called."""
        return True

    def reconcile(self, key: Key) -> Result:
        """Requeue the objects that use an edited or annotated identity; write its status if it changed."""
        identity = self._deps.store.get(*key)
        users = users_of(key.name, self._deps.store)
        self._wake_users(key.name, identity, users)
        is_left = identity is None or not self._deps.is_selected(identity)
        if identity is None or is_left or identity["metadata"].get("deletionTimestamp"):
            return Result()
        body = self._difference(identity, len(users))
        is_first = bool(body.get("conditions")) and not (identity.get("status") or {}).get("conditions")
        if body and (is_first or key.name not in self._written):
            self._write(key, body)
        is_unknown = bool(users) and self._identities.login(identity) is None
        return Result(requeue_after_s=FIRST_LOOK_S if is_unknown else LOOK_S)

    def _wake_users(self, name: str, identity: Object | None, users: Sequence[Key]) -> None:
        edit = (str(identity["metadata"].get("uid")), edit_of(identity)) if identity else _GONE
        before = self._edits.get(name)
        self._edits.put(name, edit)
        if before not in (None, edit):
            self._identities.note_identity_edit(name)
            for user in users:
                self._wake(user)

    def _difference(self, identity: Object, users: int) -> dict[str, Any]:
        """Return the fields of the status that changed."""
        status = identity.get("status") or {}
        shown = list(status.get("conditions") or ())
        login = self._identities.login(identity)
        found = {"usedBy": users, "conditions": shown}
        if login is not None:
            condition = _condition(login)
            generation = identity["metadata"].get("generation", 0)
            found["conditions"] = conditions.merged(
                shown, [condition], dropped=(), now_s=self._deps.clock.wall(), generation=generation
            )
        return {name: value for name, value in found.items() if value != status.get(name, [] if value == [] else None)}

    def _write(self, key: Key, body: dict[str, Any]) -> None:
        self._written.put(key.name, self._deps.clock.now())
        try:
            answer = self._deps.kube.patch(*key, {"status": body}, subresource="status")
        except (Conflict, Gone):
            return  # deleted, or its CRD, which is the Go provider's, has no status
        self._deps.store.apply_own(key.kind, answer)


def _condition(refusal: str) -> Condition:
    """Return the condition of the logins with an identity's Secret.

    Args:
        refusal: why one failed; empty if none did.
    """
    if refusal:
        return Condition(AUTHENTICATED, "False", AUTHENTICATION_FAILED, refusal)
    return Condition(AUTHENTICATED, "True", "Ready")
