"""The external network of new floating IPs: resolved once for each spec, then known by its id. Source: G-37."""

from __future__ import annotations

from typing import Final

from api.v1beta2.network import NetworkParam
from api.v1beta2.openstackclusterstatus import NetworkStatus
from capo.engine import conditions
from capo.engine.steps import Done, Outcome
from capo.errors import AmbiguousMatchError, NetworkNotFoundError
from capo.json_types import Body
from capo.openstack import network
from controllers.openstackfloatingippool.scope import PoolScope

CONDITION: Final = "FloatingIPNetworkReady"
FIELD: Final = "spec.floatingIPNetwork"


def ensure_network(scope: PoolScope) -> Outcome:
    """Resolve the external network; again after an edit, unless the spec names none."""
    known, wanted = scope.pool.status.floating_ip_network, scope.pool.spec.floating_ip_network
    is_settled = _is_settled(scope) or wanted is None
    scope.found.network = known if known and is_settled else _status(_resolved(scope, wanted))
    return Done()


def _is_settled(scope: PoolScope) -> bool:
    """Return whether the network was resolved from the present spec."""
    shown = conditions.find((scope.obj.get("status") or {}).get("conditions") or (), CONDITION)
    generation = scope.obj["metadata"].get("generation", 0)
    return shown is not None and shown["status"] == "True" and shown.get("observedGeneration", 0) == generation


def _resolved(scope: PoolScope, wanted: NetworkParam | None) -> Body:
    try:
        found = network.external(scope.cloud, wanted)
    except AmbiguousMatchError as error:
        raise AmbiguousMatchError(error.message, next_step=f"Name the one in {FIELD}.") from error
    except NetworkNotFoundError as error:
        raise NetworkNotFoundError(error.message, next_step=f"Name an external network in {FIELD}.") from error
    if found is None:
        raise NetworkNotFoundError(
            "the project sees no external network", next_step=f"Share one with it, or name one in {FIELD}."
        )
    return found


def _status(body: Body) -> NetworkStatus:
    return NetworkStatus(name=body.get("name") or body["id"], id=body["id"], tags=tuple(body.get("tags") or ()))
