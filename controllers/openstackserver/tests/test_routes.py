"""Which OpenStackServers are requeued, and which belong to others."""

from __future__ import annotations

from typing import Any

import pytest

from capo import names
from capo.engine.router import object_filter
from capo.engine.store import Store
from capo.kube.kinds import CLUSTER, IP_ADDRESS_CLAIM, OPENSTACK_SERVER
from controllers.openstackserver import routes

POOL = {"apiGroup": names.GROUP, "kind": "OpenStackFloatingIPPool", "name": "pool"}


def obj(name: str, **more: Any) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "ns", "uid": f"uid-{name}", "resourceVersion": "1", **more.pop("meta", {})}
    return {"metadata": metadata, **more}


def store_of(*servers: dict[str, Any]) -> Store:
    store = Store()
    for server in servers:
        store.apply(OPENSTACK_SERVER, None, server)
    return store


@pytest.mark.parametrize(
    ("labels", "is_ours"),
    [
        pytest.param({names.WATCH_FILTER_LABEL: "mine"}, True, id="ours"),
        pytest.param({names.WATCH_FILTER_LABEL: "theirs"}, False, id="another manager's"),
        pytest.param({}, False, id="nobody's"),
    ],
)
def test_the_watch_filter_holds_for_servers_too_w_07(labels: dict[str, str], is_ours: bool) -> None:
    accepts = object_filter("", "mine")

    assert accepts(obj("s", meta={"labels": labels})) is is_ours


def test_an_image_wakes_the_servers_that_wait_for_it() -> None:
    def server(name: str, image: str, **status: Any) -> dict[str, Any]:
        return obj(name, spec={"image": {"imageRef": {"name": image}}}, status=status)

    store = store_of(
        server("waits", "wanted"),
        server("has it", "wanted", resolved={"imageID": "id"}),
        server("waits for another", "other"),
        obj("by name", spec={"image": {"filter": {"name": "wanted"}}}),
    )

    assert list(routes.keys_for_image(obj("wanted"), store)) == [("ns", "waits")]


def test_a_claim_and_its_address_wake_the_server_they_are_for() -> None:
    owner = {"apiVersion": f"{names.GROUP}/v1alpha1", "kind": "OpenStackServer", "name": "s", "uid": "uid-s"}
    claim = obj("s-floating-ip-address", meta={"ownerReferences": [owner]}, spec={"poolRef": POOL})
    store = store_of(obj("s"))
    store.apply(IP_ADDRESS_CLAIM, None, claim)
    address = obj("any", spec={"claimRef": {"name": "s-floating-ip-address"}})

    assert list(routes.keys_for_claim(claim, store)) == [("ns", "s")]
    assert list(routes.keys_for_address(address, store)) == [("ns", "s")]


@pytest.mark.parametrize("spec", [{}, {"claimRef": {"name": "of somebody else"}}])
def test_addresses_and_claims_of_others_wake_nobody(spec: dict[str, Any]) -> None:
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "s", "uid": "uid-pod"}

    assert list(routes.keys_for_address(obj("any", spec=spec), store_of(obj("s")))) == []
    assert list(routes.keys_for_claim(obj("any", meta={"ownerReferences": [owner]}), store_of(obj("s")))) == []


def test_a_cluster_wakes_its_servers_when_its_pause_changes_alone() -> None:
    meta = {"labels": {names.CLUSTER_NAME_LABEL: "c"}}
    store = store_of(obj("s", meta=meta, status={"conditions": [{"type": "Paused", "status": "False"}]}))
    store.apply(CLUSTER, None, obj("c"))

    assert list(routes.keys_for_cluster(obj("c", spec={"paused": True}), store)) == [("ns", "s")]
    assert list(routes.keys_for_cluster(obj("c", spec={"paused": False}), store)) == []
