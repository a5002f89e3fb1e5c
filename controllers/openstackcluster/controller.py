"""OpenStackCluster for the engine: gate, credentials, scope, report."""

from __future__ import annotations

from collections.abc import Sequence

from api.v1beta2 import OpenStackCluster
from capo import names
from capo.contract import clusters, references, rules
from capo.engine.context import Continue, Dependencies, Precondition, ReconcileContext, Report, Skip
from capo.engine.steps import Results, is_done
from capo.engine.store import Route
from capo.errors import CapoError, NotYetObserved
from capo.flag_values import SCALE_FROM_ZERO
from capo.json_types import Object
from capo.kube.kinds import CLUSTER, OPENSTACK_CLUSTER
from capo.ledger import Ledger
from controllers import credentials_condition, name_conflicts, pause_conditions
from controllers.credentialed import OwnCredentials
from controllers.credentials import CredentialsCache
from controllers.drift import Repairs
from controllers.openstackcluster import (
    api_endpoint,
    bastion,
    endpoint_policy,
    status,
    takeover,
    template_references,
    workload_leftovers,
)
from controllers.openstackcluster.dns import Resolver
from controllers.openstackcluster.memory import Memory
from controllers.openstackcluster.routes import ROUTES
from controllers.openstackcluster.scope import ClusterScope, cluster_name_of
from controllers.openstackcluster.steps import PLAN
from controllers.roles import BASTION_FLOATING_IP


class ClusterController:
    """The controller of OpenStackClusters."""

    name = "openstackcluster"
    kind = OPENSTACK_CLUSTER
    plan = PLAN
    routes: Sequence[Route] = ROUTES

    def __init__(self, identities: CredentialsCache, deps: Dependencies) -> None:
        if deps.settings.feature_gates[SCALE_FROM_ZERO]:
            self.routes = (*ROUTES, template_references.ROUTE)
        self.credentials = OwnCredentials(identities, _common_name)
        self.concurrency = deps.settings.cluster_concurrency
        self._zones, self._balancers = Memory(deps.clock), Memory(deps.clock)
        self._refusals, self._looks = Memory(deps.clock), Memory(deps.clock)
        self._resolver = Resolver()
        self._repairs = Repairs(deps.clock)

    def precondition(self, obj: Object, deps: Dependencies) -> Precondition:
        """Stop without a write if externally managed; stop if paused or, unless deleting, without owner.

        A deleted Cluster does not block a deletion (C-49).
        """
        is_deleting = bool(obj["metadata"].get("deletionTimestamp"))
        owner = owner_of(obj, deps)
        if rules.is_externally_managed(obj):
            return Skip()
        if not (owner or is_deleting):
            return pause_conditions.ownerless(obj)
        return pause_conditions.stop(obj, owner) or Continue([pause_conditions.NOT_PAUSED])

    def open(self, context: ReconcileContext) -> ClusterScope:
        """Return the scope of a reconcile."""
        cloud, cache_writer = self.credentials.open(context, named=lambda: _named_by_another_provider(context))
        owner = owner_of(context.obj, context.deps)
        cluster = _with_endpoint(OpenStackCluster.model_validate(context.obj), owner)
        return ClusterScope(
            context,
            cluster,
            owner,
            cloud,
            cache_writer,
            zones=self._zones,
            balancers=self._balancers,
            refusals=self._refusals,
            resolver=self._resolver,
            looks=self._looks,
            repairs=self._repairs,
            attention=self.credentials.attention(context),
        )

    def is_recorded(self, scope: ClusterScope, results: Results) -> bool:
        """Return whether all resources that the Go provider created for the cluster are recorded, ready or not.

        The OpenStackServer records the bastion's server; the cluster records its floating IP.
        """
        if scope.context.is_deleting or not all(is_done(results[step]) for step in status.BEFORE_PROVISIONED):
            return False
        try:
            scope.find("floating_ip", BASTION_FLOATING_IP)
        except (NotYetObserved, CapoError):
            return False
        return True

    def report(self, scope: ClusterScope, results: Results) -> Report:
        """Return status, endpoint, and conditions that differ from those of the steps."""
        attention, calm = credentials_condition.split(scope.attention)
        left = workload_leftovers.condition(scope, results)
        general = [pause_conditions.NOT_PAUSED, *attention, *([left] if left else [])]
        kept = {each.type for each in general}
        dropped = [each for each in (*status.dropped(results), *calm) if each not in kept]
        if scope.context.is_deleting:
            return Report(conditions=general, dropped=[*dropped, template_references.TYPE])
        deps = scope.context.deps
        # Without the controller of templates, what they show is never corrected.
        is_current = deps.settings.feature_gates[SCALE_FROM_ZERO]
        if is_current and (templates := template_references.condition(scope.owner, deps.store)):
            general.append(templates)
        else:
            dropped = [*dropped, template_references.TYPE]
        found, cluster = scope.found, scope.cluster
        taken, unique = (
            ([], [])
            if scope.context.is_taken_over
            else name_conflicts.condition(scope.cloud_view, scope.namesakes(), is_shared=scope.is_shared)
        )
        shown = [*status.lacking(found, results), *status.shown(cluster, scope.context.ledger, results), *taken]
        return Report(
            status=status.after_reconcile(found, cluster, results),
            spec=status.spec(found, results),
            spec_step=api_endpoint.CONDITION,
            conditions=[*shown, *general],
            dropped=[*dropped, *unique],
            after_s=_soonest(
                bastion.requeue_s(scope, results) or found.look_again_s,
                found.server_groups.again_s if found.server_groups else None,
            ),
        )


def _soonest(*pauses_s: float | None) -> float | None:
    return min((pause_s for pause_s in pauses_s if pause_s is not None), default=None)


def _common_name(obj: Object) -> str:
    """Return ``<namespace>-<Cluster name>``."""
    return names.cluster_resource_name(obj["metadata"]["namespace"], cluster_name_of(obj))


def _named_by_another_provider(context: ReconcileContext) -> Ledger:
    """Return the resources in the Go provider's status."""
    return takeover.named(OpenStackCluster.model_validate(context.obj)) if context.is_taken_over else Ledger()


def _with_endpoint(cluster: OpenStackCluster, owner: Object | None) -> OpenStackCluster:
    """Return an OpenStackCluster with the endpoint of its Cluster."""
    of_cluster = clusters.endpoint(owner) if owner else None
    return cluster.model_copy(update={"spec": endpoint_policy.with_cluster(cluster.spec, of_cluster)})


def owner_of(obj: Object, deps: Dependencies) -> Object | None:
    """Return Cluster API's Cluster that owns an object, None without owner or when it was deleted."""
    name = references.owner_cluster_name(obj)
    return deps.store.get(CLUSTER, obj["metadata"]["namespace"], name) if name else None
