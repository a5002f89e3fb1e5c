"""OpenStackMachine for the engine: gate, scope, report."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from api.v1beta2 import OpenStackIdentityReference
from capo.engine.conditions import Condition
from capo.engine.context import Continue, Dependencies, Precondition, ReconcileContext, Report
from capo.engine.steps import Done, Failed, NotNeeded, Results
from capo.json_types import Object
from capo.kube.kinds import OPENSTACK_MACHINE
from capo.ledger import Ledger
from capo.openstack.cloud import Cloud
from capo.shares import CloudKey
from controllers import address_pairs as edits
from controllers import pause_conditions
from controllers.credential_secrets import is_shared
from controllers.credentialed import cloud_view_of
from controllers.credentials import CredentialsCache
from controllers.openstackmachine import address_pairs, ingress, related_objects, silence, status
from controllers.openstackmachine.related_objects import Owners
from controllers.openstackmachine.routes import ROUTES
from controllers.openstackmachine.scope import MachineScope, Memory
from controllers.openstackmachine.steps import INGRESS, INSTANCE, PLAN


class MachineCredentials:
    """The credentials of OpenStackMachines: their own, else those of their cluster."""

    def __init__(self, cache: CredentialsCache) -> None:
        self._cache = cache

    def authenticate(self, obj: Object) -> None:
        """Do nothing: a worker's reconcile needs no credentials, its OpenStackServer checks them."""

    def recorded_owner(self, obj: Object, ledger: Ledger) -> str | None:
        """Return None: a machine only records members of pools, which are found by their names."""

    def describe(self, obj: Object, deps: Dependencies) -> str:
        """Return a description of the machine's credentials: its own, else those of its cluster."""
        ref = _identity_ref(obj, related_objects.find(obj, deps.store))
        return self._cache.describe_in_use(ref, obj["metadata"]["namespace"]) if ref else "no identityRef"

    def is_shared(self, obj: Object, deps: Dependencies) -> bool:
        """Return whether other namespaces share the machine's credentials."""
        ref = _identity_ref(obj, related_objects.find(obj, deps.store))
        return ref is not None and is_shared(ref)

    def forget(self, obj: Object) -> bool:
        """Read the Secret again at the next reconcile, if the machine has credentials of its own.

        Those of the cluster are read again by the reconciles of OpenStackCluster and OpenStackServer.
        """
        ref = obj["spec"].get("identityRef")
        return bool(ref) and self._cache.forget(ref, obj["metadata"]["namespace"])

    def cloud_key(self, obj: Object, deps: Dependencies) -> CloudKey | None:
        """Return the cloud whose budgets apply, None until it is located; an empty key if no cloud is called.

        Workers and machines without credentials call none.
        """
        known = related_objects.find(obj, deps.store)
        if not known.is_control_plane(obj):
            return CloudKey()
        ref = _identity_ref(obj, known)
        return self._cache.cloud_key(ref, obj["metadata"]["namespace"]) if ref else CloudKey()

    def resolve_cloud(self, obj: Object, deps: Dependencies) -> None:
        """Read the credentials of a control plane machine."""
        if ref := _identity_ref(obj, related_objects.find(obj, deps.store)):
            self._cache.resolve_cloud(ref, obj["metadata"]["namespace"])


class MachineController:
    """The controller of OpenStackMachines."""

    name = "openstackmachine"
    kind = OPENSTACK_MACHINE
    plan = PLAN
    routes = ROUTES

    def __init__(self, identities: CredentialsCache, deps: Dependencies) -> None:
        self._identities = identities
        self.credentials = MachineCredentials(identities)
        self._memory = Memory.of(deps)
        self.concurrency = deps.settings.machine_concurrency

    def precondition(self, obj: Object, deps: Dependencies) -> Precondition:
        """Stop while paused, and until Machine and Cluster are known; their absence does not block a deletion."""
        known = related_objects.find(obj, deps.store)
        if paused := pause_conditions.stop(obj, known.cluster):
            return paused
        go_on = Continue([pause_conditions.NOT_PAUSED], address_pairs.first_annotations(obj, deps.store))
        if obj["metadata"].get("deletionTimestamp"):
            return go_on
        # The watch event of the Machine or Cluster requeues the object.
        return go_on if known.machine and known.cluster else pause_conditions.ownerless(obj)

    def open(self, context: ReconcileContext) -> MachineScope:
        """Return the scope of a reconcile."""

        def cloud(ref: OpenStackIdentityReference) -> Cloud:
            if context.obj["spec"].get("identityRef"):
                self._identities.note_edit(context.obj)
            return self._identities.cloud(ref.to_dict(), context.key.namespace)

        known = related_objects.find(context.obj, context.deps.store)
        return MachineScope(context, known, open_cloud=cloud, watch=cloud_view_of, memory=self._memory)

    def is_recorded(self, scope: MachineScope, results: Results) -> bool:
        """Return whether the machine has its OpenStackServer, which records the resources, and its state."""
        server = scope.server
        return not scope.context.is_deleting and server is not None and bool(server.status.instance_state)

    def report(self, scope: MachineScope, results: Results) -> Report:
        """Return provider ID, addresses and the fields that Cluster API waits for, once the server is ACTIVE."""
        server = scope.server
        conditions = [pause_conditions.NOT_PAUSED, *_ingress_failure(scope, results)]
        dropped = [edits.CONDITION] if isinstance(results[edits.CONDITION], NotNeeded) else []
        if (
            scope.context.is_taken_over
            and not scope.context.is_deleting
            and not (server and server.status.instance_state)
        ):
            conditions += status.kept_at_takeover(scope.machine, results[INSTANCE])
        silent_s = silence.seconds(scope, results)
        if scope.context.is_deleting or server is None:
            return Report(conditions=conditions, dropped=dropped, silent_s=silent_s)
        if refused := status.refused_credentials(server.status.conditions):
            conditions, silent_s = [*conditions, *refused], 0.0
        if not isinstance(results[INSTANCE], Done):
            return Report(conditions=conditions, dropped=dropped, silent_s=silent_s)
        return Report(
            status=status.fields_from_server(scope.machine, server, scope.infra),
            spec=status.provider_id(scope.machine, server),
            spec_step=INSTANCE,
            conditions=[*status.kept_ready(scope.machine, results[INGRESS]), *conditions],
            dropped=dropped,
            after_s=scope.look_again_s,
        )


def _identity_ref(obj: Object, known: Owners) -> Mapping[str, Any] | None:
    """Return the machine's own identityRef, else that of its cluster."""
    infra = known.infra or {"spec": {}}
    ref: Mapping[str, Any] | None = obj["spec"].get("identityRef") or infra["spec"].get("identityRef")
    return ref


def _ingress_failure(scope: MachineScope, results: Results) -> list[Condition]:
    """Return the ingress condition of a failure with the Go provider's reason, which depends on the kind of ingress."""
    result = results.get(INGRESS)
    if not isinstance(result, Failed) or scope.infra is None:
        return []
    reason = "LoadBalancerMemberError" if ingress.has_load_balancer(scope.infra) else "FloatingIPError"
    return [Condition(INGRESS, "False", reason, result.error.sentence)]
