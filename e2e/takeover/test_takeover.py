"""A cluster of the Go provider is taken over: nothing is created again, and its deletion deletes everything.

The tests of this file follow one another on one cluster. On the real services the project has a second one
of the same name, created by the Go provider as well, of another management cluster: it is not changed.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from capo.local import installed
from capo.local.testing import in_etcd
from capo.simulator.testing import Inventory
from capo.version import VERSION
from e2e.takeover import go_provider
from e2e.takeover.cloud import CloudUnderTest
from e2e.takeover.environment import CLUSTER, NAMESPACE, RECORDED, TakeoverEnvironment, is_known, takeover_environment

pytestmark = [pytest.mark.integration, pytest.mark.incremental]


CRN = f"{NAMESPACE}-{CLUSTER}"
CREATED_BY = f"Created by cluster-api-provider-openstack cluster {CRN}"
BALANCER = f"k8s-clusterapi-cluster-{CRN}-kubeapi"
OLD_KINDS = ("openstackmachines", "openstackmachinetemplates")
"""Kinds whose objects are stored in v1beta1 when they are taken over."""
WRITERS: Final = ("core", "controlplane")
"""Managers of Cluster API that write to our objects, which would store them in another version."""


@pytest.fixture(scope="module")
def place(rigs_folder: Path, cloud: CloudUnderTest) -> Iterator[TakeoverEnvironment]:
    """Yield a management cluster whose cluster was created by the Go provider, which has just ended.

    It takes more than a minute: Cluster API connects to a new cluster only after 30 s, and every object is written
    until the API server stores it as the Go provider's definitions say.
    """
    with takeover_environment(rigs_folder, "takeover", cloud) as made:
        made.install(go_provider.VERSION)
        if cloud.has_second_cluster:
            made.create_second_cluster()
        made.create_cluster()
        hand_to_the_go_provider(made)
        yield made


def hand_to_the_go_provider(place: TakeoverEnvironment) -> None:
    """Change kinds, objects and cloud to the state that it leaves."""
    rig = place.rig
    rig.stop(installed.MANAGER)
    go_provider.lead(rig)
    installed.start(rig)  # for conversion: it waits for the lease
    if place.cloud.has_second_cluster:
        place.forget_second_cluster()
    for name in WRITERS:
        rig.stop(name)
    go_provider.install_definitions(rig, storage=go_provider.OLD)
    for path in place.ours():
        if path.split("/")[6] in OLD_KINDS:
            go_provider.wait_stored_as(rig, path.replace("/v1beta2/", f"/{go_provider.OLD}/"), go_provider.OLD)
    go_provider.install_definitions(rig)
    for path in place.ours():
        if path.split("/")[6] not in OLD_KINDS:
            go_provider.wait_stored_as(rig, path, path.split("/")[3])
    place.cloud.unstamp()
    place.accept_strangers()
    go_provider.end(rig)
    rig.stop(installed.MANAGER)


@pytest.fixture(scope="module")
def ids(place: TakeoverEnvironment) -> dict[str, set[str]]:
    """Return the ids of the Go provider's resources."""
    return place.ids()


@pytest.fixture(scope="module")
def taken(place: TakeoverEnvironment, ids: dict[str, set[str]]) -> TakeoverEnvironment:
    """Return the management cluster after clusterctl upgraded it to this provider and all objects are recorded."""
    assert ids
    for name in WRITERS:
        place.rig.restart(name)
    with place.counted("takeover"):
        installed.upgrade(place.clusterctl)
        installed.start(place.rig)
        place.wait_until("every object is taken over", lambda: all(map(is_known, place.reconciled().values())))
    return place


def described(made: Inventory, kind: str) -> dict[str, str]:
    """Return the descriptions of the created resources of a kind, by name."""
    return {body.get("name") or body["id"]: body.get("description") or "" for body in made[kind].values()}


def test_nothing_of_ours_is_left_in_the_cloud_or_in_kubernetes(place: TakeoverEnvironment) -> None:
    cloud = json.dumps([place.created(), place.strangers()], default=str)
    objects = json.dumps([{**o, "metadata": {**o["metadata"], "managedFields": []}} for o in place.ours().values()])

    assert "capo:" not in cloud
    assert "owner-id" not in objects
    assert '"records"' not in objects


def test_what_is_in_the_cloud_is_named_as_the_go_provider_names_it(place: TakeoverEnvironment) -> None:
    made = place.created()
    machine = {path.split("/")[-1] for path in place.ours() if "/openstackmachines/" in path}
    worker = next(name for name in machine if "-md-0-" in name)
    control_plane = next(name for name in machine if "control-plane" in name)

    assert set(described(made, "network/networks")) == {f"k8s-clusterapi-cluster-{CRN}"}
    assert described(made, "network/subnets") == {f"k8s-clusterapi-cluster-{CRN}": CREATED_BY}
    assert described(made, "network/routers") == {f"k8s-clusterapi-cluster-{CRN}": CREATED_BY}
    groups = {name: text for name, text in described(made, "network/security_groups").items() if name[:3] != "lb-"}
    assert groups == {  # those of balancers are Octavia's own
        f"k8s-cluster-{CRN}-secgroup-{role}": "Cluster API managed group"
        for role in ("controlplane", "worker", "bastion")
    }
    assert described(made, "load-balancer/loadbalancers") == {BALANCER: CREATED_BY}
    for kind in ("load-balancer/listeners", "load-balancer/pools", "load-balancer/healthmonitors"):
        assert set(described(made, kind)) == {f"{BALANCER}-6443"}
    assert set(described(made, "load-balancer/members")) == {f"{BALANCER}-6443-{control_plane}"}
    assert set(described(made, "network/floatingips").values()) == {CREATED_BY}
    assert set(described(made, "compute/servers")) == {worker, control_plane, f"{CLUSTER}-bastion"}
    assert set(described(made, "volume/volumes")) == {f"{worker}-root", f"{worker}-data"}
    assert set(described(made, "network/trunks")) == {f"{worker}-storage"}
    names = {f"{worker}-0", f"{worker}-storage", f"{control_plane}-0", f"{CLUSTER}-bastion-0"}
    assert names <= set(described(made, "network/ports"))
    by_cluster = f"Created by cluster-api-provider-openstack cluster {CLUSTER}"
    assert {described(made, "network/ports")[name] for name in names} == {by_cluster}


def test_objects_are_stored_in_both_versions(place: TakeoverEnvironment) -> None:
    versions = {}
    for path in place.ours():
        _, _, group, _, _, _, plural, name = path.split("/")
        versions[plural] = in_etcd(place.rig, f"{group}/{plural}", NAMESPACE, name)["apiVersion"].rpartition("/")[2]

    assert versions == {
        "openstackclusters": "v1beta2",
        "openstackmachines": "v1beta1",
        "openstackmachinetemplates": "v1beta1",
        "openstackservers": "v1alpha1",
    }


def test_everything_is_known_and_nothing_is_built_or_changed(
    taken: TakeoverEnvironment, ids: dict[str, set[str]]
) -> None:
    assert taken.writes() == []
    assert taken.ids() == ids
    taken.wait_until_running(workers=1)
    taken.stay_idle()
    assert taken.writes() == []
    assert taken.changed_strangers() == []


def test_what_is_known_is_recorded_by_its_id(taken: TakeoverEnvironment, ids: dict[str, set[str]]) -> None:
    assert set().union(*(ids[kind] for kind in RECORDED)) <= taken.recorded()


def test_objects_move_to_the_stored_version(taken: TakeoverEnvironment) -> None:
    definitions = taken.rig.api.get("/apis/apiextensions.k8s.io/v1/customresourcedefinitions")["items"]
    machine = next(path for path in taken.ours() if "/openstackmachines/" in path)

    def stored() -> set[str]:
        ours = [crd for crd in definitions if crd["spec"]["group"] == "infrastructure.cluster.x-k8s.io"]
        paths = [f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{crd['metadata']['name']}" for crd in ours]
        return {version for path in paths for version in taken.rig.api.get(path)["status"]["storedVersions"]}

    taken.wait_until("only one version is stored", lambda: stored() == {"v1beta2", "v1alpha1"})
    resource = "infrastructure.cluster.x-k8s.io/openstackmachines"
    kept = in_etcd(taken.rig, resource, NAMESPACE, machine.rpartition("/")[2])
    assert kept["apiVersion"].endswith("/v1beta2")


def test_a_machine_that_is_added_is_made_beside_the_others(
    taken: TakeoverEnvironment, ids: dict[str, set[str]]
) -> None:
    taken.patch("machinedeployments", f"{CLUSTER}-md-0", {"spec": {"replicas": 2}})
    taken.wait_until_running(workers=2)

    now = taken.ids()
    assert len(now["compute/servers"] - ids["compute/servers"]) == 1
    assert all(ids[kind] <= now[kind] for kind in ids)


def test_an_edit_of_the_bastion_replaces_the_server_that_the_go_provider_made(
    taken: TakeoverEnvironment, ids: dict[str, set[str]]
) -> None:
    old = taken.get("openstackclusters", CLUSTER)["status"]["bastion"]
    patch = {"spec": {"bastion": {"spec": {"sshKeyName": None}}}}
    taken.patch("openstackclusters", CLUSTER, patch)

    def is_replaced() -> bool:
        bastion = taken.get("openstackclusters", CLUSTER)["status"].get("bastion") or {}
        return bastion.get("id") not in (None, old["id"]) and bastion.get("floatingIP") == old["floatingIP"]

    taken.wait_until("the bastion is another server with the same address", is_replaced)
    assert old["id"] in ids["compute/servers"] - taken.ids()["compute/servers"]


def test_deletion_leaves_nothing(taken: TakeoverEnvironment) -> None:
    with taken.counted("deletion after the takeover"):
        taken.delete("clusters", CLUSTER)
        taken.wait_until("everything is gone", taken.is_gone)
    taken.wait_until("nothing is left in the cloud", lambda: not taken.created())
    assert taken.changed_strangers() == []


def test_the_inventory_says_which_version_is_installed(taken: TakeoverEnvironment) -> None:
    path = "/apis/clusterctl.cluster.x-k8s.io/v1alpha3/namespaces/capo-system/providers/infrastructure-openstack"

    assert taken.rig.api.get(path)["version"] == f"v{VERSION}"
