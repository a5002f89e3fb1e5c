"""The objects of the scenarios: one cluster, one machine."""

from __future__ import annotations

from typing import Any, Final

from capo.json_types import Json
from environments import objects

CLUSTER: Final = "kube"


def cluster(**spec: Any) -> tuple[Json, Json]:
    """Return the Cluster and its OpenStackCluster."""
    return objects.cluster_objects(CLUSTER, **spec)


def cluster_on(network_id: str, *, name: str = CLUSTER) -> tuple[Json, Json]:
    """Return a cluster on an existing network, without an external network: it creates no resource of its own."""
    api_server = {"enableFloatingIP": False, "fixedIP": "10.9.0.10"}
    return objects.cluster_objects(name, network={"id": network_id}, enableExternalNetwork=False, apiServer=api_server)


def machine(name: str = "machine", **spec: Any) -> tuple[Json, Json, Json]:
    """Return bootstrap data, an OpenStackMachine and its Machine."""
    return objects.machine_objects(name, CLUSTER, **spec)


def server(name: str, network_id: str, *, identity: str = "cloud") -> Json:
    """Return an OpenStackServer written by hand."""
    return objects.openstack_server(name, network_id, identityRef={"name": identity, "cloudName": "sim"})
