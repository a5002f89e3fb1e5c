"""Control planes without machines of ours: Kamaji, k0smotron and others (C-78 to C-80)."""

from __future__ import annotations

from typing import Any, Final

import pytest

from api.conversion import convert
from capo.kube.errors import Denied, KubeError
from capo.kube.kinds import CLUSTER, KUBEADM_CONTROL_PLANE, OPENSTACK_CLUSTER, Kind
from controllers.openstackcluster.tests.environment import MANAGED, ClusterEnvironment
from controllers.openstackcluster.tests.objects import CLUSTER_NAME

GROUP: Final = "controlplane.cluster.x-k8s.io"
KAMAJI: Final = Kind(GROUP, "v1alpha2", "kamajicontrolplanes", "KamajiControlPlane")
K0SMOTRON: Final = Kind(GROUP, "v1beta2", "k0smotroncontrolplanes", "K0smotronControlPlane")
K0S: Final = Kind(GROUP, "v1beta2", "k0scontrolplanes", "K0sControlPlane")
ENDPOINT: Final = {"host": "203.0.113.77", "port": 6443}
TEMPLATE: Final = {"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "OpenStackMachineTemplate", "name": "cp"}


def ref(kind: Kind, name: str = "cp") -> dict[str, Any]:
    return {"controlPlaneRef": {"apiGroup": kind.group, "kind": kind.kind, "name": name}}


def versioned_ref(kind: Kind) -> dict[str, Any]:
    return {"controlPlaneRef": {"apiVersion": kind.api_version, "kind": kind.kind, "name": "cp"}}


def put(world: ClusterEnvironment, kind: Kind, *, status: dict[str, Any] | None = None, **spec: Any) -> None:
    world.apply(kind, {"metadata": {"name": "cp"}, "spec": spec, "status": status or {}})


def endpoint(world: ClusterEnvironment) -> Any:
    return world.osc()["spec"].get("controlPlaneEndpoint")


@pytest.mark.parametrize("owner", [ref(KAMAJI), versioned_ref(KAMAJI)], ids=["without version", "with version"])
@pytest.mark.parametrize(
    "spec",
    [
        pytest.param({}, id="as by default"),
        pytest.param(
            {"apiServer": {"enableFloatingIP": False}, "enableExternalNetwork": False}, id="as its documentation says"
        ),
        pytest.param({"controlPlaneEndpoint": {"port": 6443}}, id="the same port is given"),
    ],
)
@pytest.mark.parametrize("is_first", [True, False], ids=["at once", "late"])
def test_the_endpoint_of_a_hosted_control_plane_is_taken_w_95(
    world: ClusterEnvironment, owner: dict[str, Any], spec: dict[str, Any], *, is_first: bool
) -> None:
    flag = {"externalManagedControlPlane": True}
    if is_first:
        put(world, KAMAJI, status=flag, controlPlaneEndpoint=ENDPOINT)
    world.place(owner=owner, **MANAGED, **spec)
    world.settle(for_s=60)
    if not is_first:
        assert world.shown("APIEndpointReady") == ("False", "WaitingForControlPlane")
        put(world, KAMAJI, status=flag)
        world.settle(for_s=60)
        assert world.shown("APIEndpointReady") == ("False", "WaitingForControlPlaneEndpoint")
        world.patch(KAMAJI, "cp", {"spec": {"controlPlaneEndpoint": ENDPOINT}})
        world.settle(for_s=60)

    assert world.is_ready(), world.message("Ready")
    assert world.is_provisioned()
    assert endpoint(world) == ENDPOINT
    assert "floatingips" not in world.created()
    assert "loadbalancers" not in world.created()


def test_the_cluster_of_kamajis_documentation_converges_in_v1beta1(world: ClusterEnvironment) -> None:
    network = world.network()
    written = {
        "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1",
        "kind": "OpenStackCluster",
        "metadata": {"name": CLUSTER_NAME},
        "spec": {
            "apiServerLoadBalancer": {"enabled": False},
            "disableAPIServerFloatingIP": True,
            "disableExternalNetwork": True,
            "apiServerFixedIP": "",
            "network": {"id": network["id"]},
            "identityRef": {"name": "cloud", "cloudName": "sim"},
            "managedSecurityGroups": {"allowAllInClusterTraffic": False},
        },
    }
    put(world, KAMAJI, controlPlaneEndpoint=ENDPOINT)

    world.place(owner=versioned_ref(KAMAJI), **convert(written, OPENSTACK_CLUSTER.api_version)["spec"])
    world.settle(for_s=60)

    assert world.is_ready(), world.message("Ready")
    assert endpoint(world) == ENDPOINT
    assert {"floatingips", "loadbalancers"}.isdisjoint(world.created())


@pytest.mark.parametrize("place", ["OpenStackCluster", "Cluster"])
def test_an_endpoint_that_the_provider_writes_elsewhere_is_taken(world: ClusterEnvironment, place: str) -> None:
    put(world, K0SMOTRON)
    world.place(owner=ref(K0SMOTRON), **MANAGED)
    world.settle(for_s=120)
    assert "floatingips" not in world.created()
    assert "K0smotronControlPlane cp has no machines here" in world.message("APIEndpointReady")

    if place == "Cluster":
        world.patch(CLUSTER, CLUSTER_NAME, {"spec": {"controlPlaneEndpoint": ENDPOINT}})
    else:
        world.change(controlPlaneEndpoint=ENDPOINT)
    world.settle(for_s=60)

    assert world.is_ready()
    assert endpoint(world) == ENDPOINT
    assert "floatingips" not in world.created()


@pytest.mark.parametrize(
    ("kind", "owner", "spec"),
    [
        pytest.param(
            K0S,
            ref(K0S),
            {"machineTemplate": {"spec": {"infrastructureRef": TEMPLATE}}},
            id="a template, although the flag is set",
        ),
        pytest.param(K0S, ref(K0S), {"infrastructureTemplate": [TEMPLATE]}, id="a template in any place"),
        pytest.param(None, ref(KUBEADM_CONTROL_PLANE), {}, id="Cluster API's own, which need not exist yet"),
        pytest.param(None, {}, {}, id="no control plane object"),
    ],
)
def test_a_control_plane_of_machines_gets_its_floating_ip_c_78(
    world: ClusterEnvironment, kind: Kind | None, owner: dict[str, Any], spec: dict[str, Any]
) -> None:
    if kind:
        put(world, kind, status={"externalManagedControlPlane": True}, **spec)

    world.place(owner=owner, **MANAGED)
    world.settle(for_s=60)

    assert world.is_ready(), world.message("Ready")
    assert endpoint(world)["host"] == world.one("floatingips")["floating_ip_address"]


@pytest.mark.parametrize(
    "server",
    [{"enableFloatingIP": True}, {"managedLoadBalancer": {"enabled": True}}],
    ids=["floating IP", "load balancer"],
)
def test_a_hosted_control_plane_gets_what_the_spec_asks_for(world: ClusterEnvironment, server: dict[str, Any]) -> None:
    put(world, KAMAJI, controlPlaneEndpoint=ENDPOINT)

    world.place(owner=ref(KAMAJI), **MANAGED, apiServer=server)
    world.settle(for_s=120)

    assert world.is_ready(), world.message("Ready")
    assert endpoint(world)["host"] == world.one("floatingips")["floating_ip_address"]


@pytest.mark.parametrize(
    "wrong",
    [
        pytest.param({"host": "203.0.113.77"}, id="no port"),
        pytest.param({"host": "203.0.113.77", "port": "6443"}, id="port is a text"),
        pytest.param({"host": "203.0.113.77", "port": 70000}, id="no such port"),
        pytest.param({"host": "", "port": 6443}, id="no host"),
        pytest.param({"host": ["x"], "port": 6443}, id="host is a list"),
        pytest.param("203.0.113.77:6443", id="a text"),
    ],
)
def test_an_endpoint_that_is_none_is_not_taken(world: ClusterEnvironment, wrong: Any) -> None:
    put(world, KAMAJI, controlPlaneEndpoint=wrong)

    world.place(owner=ref(KAMAJI), **MANAGED)
    world.settle(for_s=60)

    assert world.shown("APIEndpointReady") == ("False", "WaitingForControlPlaneEndpoint")
    assert endpoint(world) is None


def test_another_port_than_the_given_one_is_not_taken(world: ClusterEnvironment) -> None:
    put(world, KAMAJI, controlPlaneEndpoint=ENDPOINT)

    world.place(owner=ref(KAMAJI), **MANAGED, controlPlaneEndpoint={"port": 443})
    world.settle(for_s=60)

    assert world.shown("APIEndpointReady") == ("False", "WaitingForControlPlaneEndpoint")
    assert endpoint(world) == {"port": 443}


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        pytest.param(
            Denied("forbidden: 7f3a", status=403),
            "let its role get kamajicontrolplanes.controlplane.cluster.x-k8s.io",
            id="no right",
        ),
        pytest.param(KubeError("timed out after 3.07 s"), "cannot be read (no answer)", id="no answer"),
        pytest.param(KubeError("leader changed", status=500), "cannot be read (status 500)", id="an error"),
    ],
)
def test_nothing_is_created_while_the_control_plane_cannot_be_read(
    world: ClusterEnvironment, monkeypatch: pytest.MonkeyPatch, error: KubeError, sentence: str
) -> None:
    put(world, KAMAJI, controlPlaneEndpoint=ENDPOINT)

    def fail(*_: object) -> None:
        raise error

    with monkeypatch.context() as patched:
        patched.setattr(world.kube, "served", fail)
        world.place(owner=ref(KAMAJI), **MANAGED)
        world.settle(for_s=120)

    assert world.shown("APIEndpointReady") == ("False", "WaitingForControlPlane")
    assert sentence in world.message("APIEndpointReady")
    assert str(error) not in world.message("APIEndpointReady")
    assert "floatingips" not in world.created()
    world.settle(for_s=60)
    assert endpoint(world) == ENDPOINT


def test_a_topology_is_waited_for_until_it_has_a_control_plane(world: ClusterEnvironment) -> None:
    world.place(owner={"topology": {"classRef": {"name": "c"}}}, **MANAGED)
    world.settle(for_s=60)
    assert world.shown("APIEndpointReady") == ("False", "WaitingForControlPlane")

    world.patch(CLUSTER, CLUSTER_NAME, {"spec": ref(KUBEADM_CONTROL_PLANE)})
    world.settle(for_s=60)

    assert endpoint(world)["host"] == world.one("floatingips")["floating_ip_address"]


def test_a_cluster_that_has_an_endpoint_reads_no_control_plane(
    world: ClusterEnvironment, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[object] = []
    monkeypatch.setattr(world.kube, "served", lambda *names: asked.append(names))

    world.place(owner=ref(KAMAJI), **MANAGED, controlPlaneEndpoint=ENDPOINT)
    world.settle(for_s=120)

    assert world.is_ready()
    assert asked == []
