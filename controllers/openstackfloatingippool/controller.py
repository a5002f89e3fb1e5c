"""OpenStackFloatingIPPool for the engine: gate, credentials, scope, report."""

from __future__ import annotations

from api.v1alpha1 import OpenStackFloatingIPPool
from capo.contract import references
from capo.engine.context import Continue, Dependencies, Precondition, ReconcileContext, Report
from capo.engine.steps import Results
from capo.json_types import Object
from capo.kube.kinds import CLUSTER, OPENSTACK_FLOATING_IP_POOL
from controllers import credentials_condition, pause_conditions
from controllers.credentialed import OwnCredentials
from controllers.credentials import CredentialsCache
from controllers.openstackfloatingippool import status
from controllers.openstackfloatingippool.reservations import Reservations
from controllers.openstackfloatingippool.routes import ROUTES
from controllers.openstackfloatingippool.scope import PoolScope
from controllers.openstackfloatingippool.steps import PLAN


class FloatingIPPoolController:
    """The controller of OpenStackFloatingIPPools; it answers their claims, too."""

    name = "openstackfloatingippool"
    kind = OPENSTACK_FLOATING_IP_POOL
    plan = PLAN
    routes = ROUTES

    def __init__(self, identities: CredentialsCache, deps: Dependencies) -> None:
        self.credentials = OwnCredentials(identities)
        self.concurrency = deps.settings.machine_concurrency
        self._reservations = Reservations(deps.clock.now)

    def precondition(self, obj: Object, deps: Dependencies) -> Precondition:
        """Stop while the pool is paused, or the Cluster that its label names."""
        name = references.cluster_name(obj)
        cluster = deps.store.get(CLUSTER, obj["metadata"]["namespace"], name) if name else None
        return pause_conditions.stop(obj, cluster) or Continue([pause_conditions.NOT_PAUSED])

    def open(self, context: ReconcileContext) -> PoolScope:
        """Return the scope of a reconcile."""
        pool = OpenStackFloatingIPPool.model_validate(context.obj)
        cloud, cloud_view = self.credentials.open(context)
        attention = self.credentials.attention(context)
        return PoolScope(context, pool, cloud, cloud_view, self._reservations, attention)

    def is_recorded(self, scope: PoolScope, results: Results) -> bool:
        """Return whether all floating IPs that the Go provider created for the pool are recorded."""
        return scope.found.is_recorded

    def report(self, scope: PoolScope, results: Results) -> Report:
        """Return the addresses, and the conditions that no step shows."""
        attention, dropped = credentials_condition.split(scope.attention)
        conditions = [*status.shown(scope, results), *attention, pause_conditions.NOT_PAUSED]
        return Report(status=status.fields(scope, results), conditions=conditions, dropped=dropped)
