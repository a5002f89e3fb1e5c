"""What the controllers have in common whose objects name their credentials themselves, in ``spec.identityRef``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from capo.controllers import ownership
from capo.controllers.identity import Identities
from capo.engine.turn import Tools, Turn
from capo.ledger import Ledger
from capo.openstack.cloud import Cloud
from capo.openstack.observed import Observed

Object = Mapping[str, Any]


class IdentifiedSubject:
    """The part of a :class:`capo.engine.turn.Subject` that has to do with credentials and the cloud they lead to."""

    def __init__(self, identities: Identities, *, concurrency: int = 10) -> None:
        self._identities = identities
        self.concurrency = concurrency

    def authenticate(self, obj: Object, tools: Tools) -> None:
        """Make sure that the credentials work."""
        self._cloud(obj).authenticate()

    def recorded_owner(self, obj: Object, ledger: Ledger) -> str | None:
        """Return the owner whose stamps the recorded resources carry."""
        return ownership.recorded_owner(self._cloud(obj), ledger)

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

    def _cloud(self, obj: Object) -> Cloud:
        return self._identities.cloud(obj["spec"]["identityRef"], obj["metadata"]["namespace"])


def observed_of(turn: Turn, cloud: Cloud) -> Observed:
    """Return what one pass sees of a cloud."""
    return Observed(
        cloud,
        turn.ledger,
        owner_id=turn.owner,
        key=turn.key,
        clock=turn.tools.clock,
        is_taken_over=turn.is_taken_over,
        is_newborn=turn.is_newborn,
        started_s=turn.started_s,
        window_s=turn.tools.ambiguous_window_s,
        max_age_s=turn.tools.sync_period_s,
    )
