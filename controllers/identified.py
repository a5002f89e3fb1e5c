"""What the controllers have in common whose objects name their credentials themselves, in ``spec.identityRef``."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from capo.controllers import ownership
from capo.controllers.identity import Identities
from capo.engine.turn import Tools, Turn
from capo.errors import IdentityError
from capo.ledger import Ledger
from capo.openstack.cloud import Cloud
from capo.openstack.observed import Observed

Object = Mapping[str, Any]

FORGOTTEN_S: Final = 86400.0
"""An object that had no pass for so long does not exist any more."""


@dataclass(frozen=True)
class _Place:
    """Where an object's resources are.

    Args:
        fingerprint: of the credentials of its last pass.
        project_id: None before anything was asked with them.
        seen_s: time of that pass, seconds since 1970.
    """

    fingerprint: str
    project_id: str | None
    seen_s: float


class IdentifiedSubject:
    """The part of a :class:`capo.engine.turn.Subject` that has to do with credentials and the cloud they lead to."""

    def __init__(self, identities: Identities, *, concurrency: int = 10) -> None:
        self._identities = identities
        self._lock = threading.Lock()
        self._places: dict[str, _Place] = {}
        """By the object's uid."""
        self.concurrency = concurrency

    def authenticate(self, obj: Object, tools: Tools) -> None:
        """Make sure that the credentials work."""
        self._cloud(obj).authenticate()

    def recorded_owner(self, obj: Object, ledger: Ledger) -> str | None:
        """Return the owner whose stamps the recorded resources carry."""
        return ownership.recorded_owner(self._cloud(obj), ledger, self.common_name(obj))

    def common_name(self, obj: Object) -> str:
        """Return a part of the name or description of all that is created for an object."""
        return str(obj["metadata"]["name"])

    def credentials(self, obj: Object, tools: Tools) -> str:
        """Return where the object's credentials are."""
        return self._identities.describe(obj["spec"]["identityRef"], obj["metadata"]["namespace"])

    def forget_credentials(self, obj: Object) -> None:
        """Read the Secret anew at the next pass."""
        self._identities.forget(obj["spec"]["identityRef"], obj["metadata"]["namespace"])

    def slot(self, obj: Object, tools: Tools) -> str | None:
        """Return the budget of the object's cloud."""
        return self._identities.slot(obj["spec"].get("identityRef"), obj["metadata"]["namespace"])

    def locate(self, obj: Object, tools: Tools) -> None:
        """Read the object's credentials."""
        self._identities.locate(obj["spec"]["identityRef"], obj["metadata"]["namespace"])

    def _cloud_of(self, turn: Turn) -> Cloud:
        """Return the cloud of a pass; other credentials are fine as long as they lead to the same project.

        Raises:
            IdentityError: they lead to another one, where all that was made for the object would seem to be gone.
        """
        cloud, uid = self._cloud(turn.obj), turn.obj["metadata"]["uid"]
        place = self._places.get(uid, _Place(cloud.fingerprint, None, 0.0))
        is_another = place.fingerprint != cloud.fingerprint
        has_any = bool(turn.ledger.records or turn.ledger.pending)
        if is_another and has_any and place.project_id and cloud.project_id != place.project_id:
            self._note(uid, replace(place, seen_s=turn.started_s))
            raise IdentityError(
                f"the credentials lead to project {cloud.project_id}, "
                f"what was made for the object is in {place.project_id}",
                next_step="Put back credentials of that project, or delete the object before you change them.",
            )
        project_id = cloud.known_project_id or (None if is_another else place.project_id)
        self._note(uid, _Place(cloud.fingerprint, project_id, turn.started_s))
        return cloud

    def _note(self, uid: str, place: _Place) -> None:
        """Note where an object's resources are; forget objects that are long gone whenever one is new."""
        with self._lock:
            if uid not in self._places:
                since_s = place.seen_s - FORGOTTEN_S
                self._places = {known: each for known, each in self._places.items() if each.seen_s > since_s}
            self._places[uid] = place

    def _cloud(self, obj: Object) -> Cloud:
        return self._identities.cloud(obj["spec"]["identityRef"], obj["metadata"]["namespace"])


def observed_of(turn: Turn, cloud: Cloud, *, common_name: str = "") -> Observed:
    """Return what one pass sees of a cloud.

    Args:
        common_name: part of the name or description of all that is created for the object.
    """
    return Observed(
        cloud,
        turn.ledger,
        owner_id=turn.owner,
        key=turn.key,
        uid=turn.obj["metadata"]["uid"],
        common_name=common_name,
        clock=turn.tools.clock,
        is_taken_over=turn.is_taken_over,
        is_newborn=turn.is_newborn,
        is_history_lost=turn.is_history_lost,
        started_s=turn.started_s,
        window_s=turn.tools.ambiguous_window_s,
        max_age_s=turn.tools.sync_period_s,
    )
