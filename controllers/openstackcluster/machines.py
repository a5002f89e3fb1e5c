"""The machines of a cluster, which must be deleted before its infrastructure (C-50)."""

from __future__ import annotations

from typing import Final

from capo import names
from capo.engine.steps import NotNeeded, Outcome, Wait
from capo.kube.kinds import MACHINE, OPENSTACK_MACHINE
from controllers.openstackcluster.scope import ClusterScope

_KINDS: Final = (MACHINE, OPENSTACK_MACHINE)


def leave_machines(_scope: ClusterScope) -> Outcome:
    """Do nothing: other controllers create machines."""
    return NotNeeded()


def await_machines_gone(scope: ClusterScope) -> Outcome:
    """Wait until no machine of the cluster is left; the watch event of the last deletion requeues the object."""
    store, label = scope.context.deps.store, names.CLUSTER_NAME_LABEL
    left = {kind.kind: len(store.by_label(kind, scope.namespace, label, scope.cluster_name)) for kind in _KINDS}
    if not any(left.values()):
        return NotNeeded()
    counted = " and ".join(f"{count} {kind}{'s' if count > 1 else ''}" for kind, count in left.items() if count)
    return Wait("Deleting", f"waiting for {counted} of the cluster to be deleted")
