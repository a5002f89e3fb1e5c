"""OpenStackServer for the engine: gate, credentials, scope, report."""

from __future__ import annotations

from typing import Final

from api.v1alpha1 import OpenStackServer
from capo import names
from capo.engine.context import Continue, Dependencies, Precondition, ReconcileContext, Report
from capo.engine.steps import Blocked, NotNeeded, Results
from capo.errors import CapoError, NotYetObserved
from capo.json_types import Object
from capo.kube.kinds import CLUSTER, OPENSTACK_SERVER
from capo.ledger import Ledger
from capo.openstack.resource_cache import Item
from capo.openstack.server import Server
from controllers import address_pairs, credentials_condition, name_conflicts, pause_conditions, roles
from controllers.credentialed import OwnCredentials
from controllers.credentials import CredentialsCache
from controllers.drift import Repairs
from controllers.openstackserver import desired, status, takeover
from controllers.openstackserver.field_history import Sightings
from controllers.openstackserver.routes import ROUTES
from controllers.openstackserver.scope import ServerScope
from controllers.openstackserver.steps import PLAN

SILENT_S: Final = 30.0
"""Nova may take this long for a deletion when many are requested at once; each report of progress is a write."""


class ServerController:
    """The controller of OpenStackServers: those of machines and bastions, and those that users create."""

    name = "openstackserver"
    kind = OPENSTACK_SERVER
    plan = PLAN
    routes = ROUTES

    def __init__(self, identities: CredentialsCache, deps: Dependencies) -> None:
        self.credentials = OwnCredentials(identities)
        self.concurrency = deps.settings.machine_concurrency
        self._sightings = Sightings()
        self._repairs = Repairs(deps.clock)

    def precondition(self, obj: Object, deps: Dependencies) -> Precondition:
        """Stop while the object or its Cluster is paused; a missing Cluster blocks nothing (W-15)."""
        cluster_name = (obj["metadata"].get("labels") or {}).get(names.CLUSTER_NAME_LABEL)
        cluster = deps.store.get(CLUSTER, obj["metadata"]["namespace"], cluster_name) if cluster_name else None
        return pause_conditions.stop(obj, cluster) or Continue([pause_conditions.NOT_PAUSED])

    def open(self, context: ReconcileContext) -> ServerScope:
        """Return the scope of a reconcile; records of another provider are copied into the ledger."""
        server = OpenStackServer.model_validate(context.obj)
        if context.is_taken_over and not context.ledger.records:
            _take_over(server, context.ledger)
        cloud, cloud_view = self.credentials.open(context)
        known_id = context.ledger.id_of(roles.SERVER) or _upstream_id(server)
        attention = self.credentials.attention(context)
        return ServerScope(context, server, cloud, cloud_view, known_id, self._sightings, self._repairs, attention)

    def is_recorded(self, scope: ServerScope, results: Results) -> bool:
        """Return whether all resources that the Go provider created for the server are recorded, whatever its state."""
        return takeover.is_recorded(scope)

    def report(self, scope: ServerScope, results: Results) -> Report:
        """Return status fields and the conditions that no step shows."""
        if scope.context.is_deleting:
            shown = [*status.conditions_of_removal(results), pause_conditions.NOT_PAUSED]
            return Report(status={"ready": False}, conditions=shown, silent_s=_silent_s(scope))
        is_shared = self.credentials.is_shared(scope.context.obj, scope.context.deps)
        taken, unique = (
            ([], [])
            if scope.context.is_taken_over
            else name_conflicts.condition(scope.cloud_view, _namesakes(scope), is_shared=is_shared)
        )
        attention, calm = credentials_condition.split(scope.attention)
        shown = [*status.conditions(scope, results), *taken, *attention, pause_conditions.NOT_PAUSED]
        fields = status.after_reconcile(_seen(scope, results), scope, results)
        dropped = [address_pairs.CONDITION] if isinstance(results[address_pairs.CONDITION], NotNeeded) else []
        return Report(status=fields, conditions=shown, dropped=[*unique, *dropped, *calm])


def _namesakes(scope: ServerScope) -> dict[str, list[Item]]:
    """Return by kind what has the name of one of the server's resources and is not this object's."""
    names = {"server": [scope.name], "volume": sorted(desired.volume_names(scope.server))}
    return {kind: scope.cloud_view.namesakes(kind, known) for kind, known in names.items() if known}


def _silent_s(scope: ServerScope) -> float:
    """Return for how many seconds a deletion need not be reported: most end before, and owners report them, too."""
    context = scope.context
    left_s = context.deletion_s + SILENT_S - context.deps.clock.now()
    return max(0.0, left_s, scope.cloud_view.end_in_s("server", scope.known_server_id or ""))


def _take_over(server: OpenStackServer, ledger: Ledger) -> None:
    """Record the resources in the Go provider's status."""
    if server_id := server.status.instance_id:
        ledger.record("server", roles.SERVER, server_id)
    for index, port in enumerate(server.status.resources.ports if server.status.resources else ()):
        ledger.record("port", roles.port(index), port.id)


def _upstream_id(server: OpenStackServer) -> str | None:
    """Return the server id in the status, else in the annotation of an object created for an existing server."""
    noted = server.metadata.annotations.get(names.TAKEN_OVER_ANNOTATION, "true")
    return server.status.instance_id or (noted if noted != "true" else None)


def _seen(scope: ServerScope, results: Results) -> Server | None:
    """Return the server as this reconcile observed it.

    One that was never created is not searched for. A found one is reported only after the step that compares its image.
    """
    if scope.server.status.instance_id is None and isinstance(results["InstanceReady"], Blocked):
        return None
    try:
        found = scope.cloud_view.find("server", roles.SERVER)
    except (NotYetObserved, CapoError):
        return None
    return Server(found) if found else None
