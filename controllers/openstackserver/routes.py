"""Which OpenStackServers are requeued when an object of another kind changes; pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from capo import names
from capo.contract import references
from capo.engine.store import Index, Route, Store
from capo.json_types import Object
from capo.kube.kinds import CLUSTER, IP_ADDRESS, IP_ADDRESS_CLAIM, OPENSTACK_SERVER, ORC_IMAGE

Idents = Iterable[tuple[str, str]]


def keys_for_cluster(cluster: Object, store: Store) -> Idents:
    """Requeue all servers with the label of a Cluster that was paused or unpaused."""
    metadata = cluster["metadata"]
    label = names.CLUSTER_NAME_LABEL
    for server in store.by_label(OPENSTACK_SERVER, metadata["namespace"], label, metadata["name"]):
        if _paused(server) != bool(cluster.get("spec", {}).get("paused")):
            yield server["metadata"]["namespace"], server["metadata"]["name"]


def _paused(server: Object) -> bool:
    """Return whether the object shows the pause; no other change of a Cluster is relevant here."""
    conditions = server.get("status", {}).get("conditions") or ()
    return any(c["type"] == "Paused" and c["status"] == "True" for c in conditions)


def keys_for_image(image: Object, store: Store) -> Idents:
    """Requeue the servers in the namespace of an ORC Image that wait for it, whatever its state (W-21)."""
    namespace = image["metadata"]["namespace"]
    for server in store.find(_WAITING_FOR_IMAGE, (namespace, image["metadata"]["name"])):
        yield namespace, server["metadata"]["name"]


def _image_waited_for(server: Object) -> Idents:
    name = ((server.get("spec", {}).get("image") or {}).get("imageRef") or {}).get("name")
    is_resolved = (server.get("status", {}).get("resolved") or {}).get("imageID")
    return [(server["metadata"]["namespace"], name)] if name and not is_resolved else []


_WAITING_FOR_IMAGE: Final = Index(OPENSTACK_SERVER, _image_waited_for)


def keys_for_claim(claim: Object, _store: Store) -> Idents:
    """Requeue the server that an IPAddressClaim was created for."""
    return [
        (claim["metadata"]["namespace"], owner.name)
        for owner in references.owners(claim)
        if owner.group == names.GROUP and owner.kind == OPENSTACK_SERVER.kind
    ]


def keys_for_address(address: Object, store: Store) -> Idents:
    """Requeue the server whose claim an IPAddress fulfils."""
    name = (address.get("spec", {}).get("claimRef") or {}).get("name") or ""
    claim = store.get(IP_ADDRESS_CLAIM, address["metadata"]["namespace"], name)
    return keys_for_claim(claim, store) if claim else ()


ROUTES: Final = (
    Route(CLUSTER, keys_for_cluster),
    Route(ORC_IMAGE, keys_for_image),
    Route(IP_ADDRESS_CLAIM, keys_for_claim),
    Route(IP_ADDRESS, keys_for_address),
)
