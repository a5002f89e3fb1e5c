"""OpenStackFloatingIPPool as the engine sees it: every pool is told that this version does not serve it, never silence.

Nothing is made for a pool, so nothing holds up its deletion: it carries no finalizer of ours.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NoReturn

from capo.engine.conditions import Condition
from capo.engine.steps import Plan, Results
from capo.engine.turn import Gate, Report, Scope, Stop, Tools, Turn
from capo.errors import UnsupportedFieldError
from capo.kube.kinds import OPENSTACK_FLOATING_IP_POOL
from capo.ledger import Ledger

Object = Mapping[str, Any]

READY: Final = "OpenstackFloatingIPPoolReadyCondition"
_REASON: Final = UnsupportedFieldError(
    "OpenStackFloatingIPPool is not served by this version; claims on it stay open",
    next_step="Use fixed floating IPs, or keep pools with the provider that serves them.",
)


class FloatingIPPoolSubject:
    """The controller of OpenStackFloatingIPPools."""

    name = "openstackfloatingippool"
    kind = OPENSTACK_FLOATING_IP_POOL
    plan: Plan[Scope] = Plan(())
    routes = ()
    concurrency = 1

    def gate(self, obj: Object, tools: Tools) -> Gate:
        """Say that pools are not served."""
        if obj["metadata"].get("deletionTimestamp"):
            return Stop()
        return Stop([Condition(READY, "False", UnsupportedFieldError.reason, _REASON.sentence)])

    def authenticate(self, obj: Object, tools: Tools) -> None:
        """Nothing: no pass gets past the gate."""

    def open(self, turn: Turn) -> NoReturn:
        """Never called: no pass gets past the gate."""
        raise AssertionError("a pool's pass ends at the gate")

    def recorded_owner(self, obj: Object, ledger: Ledger) -> str | None:
        """Return None: no pass gets past the gate."""

    def is_recorded(self, scope: Scope, results: Results) -> bool:
        """Return True: no pass gets past the gate."""
        return True

    def report(self, scope: Scope, results: Results) -> Report:
        """Return nothing: no pass gets past the gate."""
        return Report()

    def credentials(self, obj: Object, tools: Tools) -> str:
        """Return nothing: none are read."""
        return ""

    def forget_credentials(self, obj: Object) -> None:
        """Nothing: none are kept."""

    def slot(self, obj: Object, tools: Tools) -> str | None:
        """Return no budget: the cloud is not asked."""
        return ""

    def locate(self, obj: Object, tools: Tools) -> None:
        """Nothing: the cloud is not asked."""
