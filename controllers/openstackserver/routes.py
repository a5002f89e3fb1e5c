"""Which objects of other kinds wake an OpenStackServer; pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from capo import names
from capo.engine.store import Route, Store
from capo.kube.kinds import CLUSTER, OPENSTACK_SERVER


def of_cluster(cluster: dict[str, Any], store: Store) -> Iterable[tuple[str, str]]:
    """A Cluster was paused or unpaused: all servers that carry its label."""
    metadata = cluster["metadata"]
    label = names.CLUSTER_NAME_LABEL
    for server in store.by_label(OPENSTACK_SERVER, metadata["namespace"], label, metadata["name"]):
        if _paused(server) != bool(cluster.get("spec", {}).get("paused")):
            yield server["metadata"]["namespace"], server["metadata"]["name"]


def _paused(server: dict[str, Any]) -> bool:
    """Tell what the object shows: the only change of a Cluster that matters here is that of its pause."""
    conditions = server.get("status", {}).get("conditions") or ()
    return any(c["type"] == "Paused" and c["status"] == "True" for c in conditions)


ROUTES: Final = (Route(CLUSTER, of_cluster),)
