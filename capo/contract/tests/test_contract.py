"""Each rule of the contract that is a pure function, cited by its id."""

from __future__ import annotations

from typing import Any

import pytest

from capo.contract import clusters, machines, references, rules


def obj(kind: str = "OpenStackMachine", **metadata: Any) -> dict[str, Any]:
    return {
        "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2",
        "kind": kind,
        "metadata": {"name": "one", "namespace": "ns", "uid": "u1", **metadata},
        "spec": {},
    }


def ref(kind: str, name: str, api_version: str = "cluster.x-k8s.io/v1beta2", uid: str = "u9") -> dict[str, Any]:
    return {"apiVersion": api_version, "kind": kind, "name": name, "uid": uid}


@pytest.mark.parametrize(
    ("owner_references", "cluster", "machine"),
    [
        pytest.param(None, None, None, id="no references yet"),
        pytest.param([ref("Cluster", "c")], "c", None, id="a Cluster"),
        pytest.param([ref("Cluster", "c", "cluster.x-k8s.io/v1beta1")], "c", None, id="any version"),
        pytest.param([ref("Cluster", "c", "example.org/v1")], None, None, id="another group's Cluster"),
        pytest.param([ref("MachineSet", "s"), ref("Machine", "m")], None, "m", id="a Machine beside its MachineSet"),
    ],
)
def test_owner_is_found_by_group_and_kind(owner_references: Any, cluster: str | None, machine: str | None) -> None:
    owned = obj(ownerReferences=owner_references)

    assert references.owner_cluster_name(owned) == cluster
    assert references.owner_machine_name(owned) == machine


def test_owner_is_recognised_by_its_uid_and_not_by_its_name() -> None:
    owned = obj(ownerReferences=[ref("OpenStackMachine", "one", uid="u1")])

    assert references.is_owned_by(owned, obj(uid="u1"))
    assert not references.is_owned_by(owned, obj(uid="u2"))


@pytest.mark.parametrize(
    ("infrastructure_ref", "name"),
    [
        pytest.param(
            {"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "OpenStackMachine", "name": "m"}, "m", id="v1beta2"
        ),
        pytest.param(
            {"apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1", "kind": "OpenStackMachine", "name": "m"},
            "m",
            id="v1beta1",
        ),
        pytest.param(
            {"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "OtherMachine", "name": "m"}, None, id="other kind"
        ),
        pytest.param({"apiGroup": "example.org", "kind": "OpenStackMachine", "name": "m"}, None, id="other group"),
        pytest.param(None, None, id="none"),
    ],
)
def test_infrastructure_ref_is_read_in_both_shapes_c_56(infrastructure_ref: Any, name: str | None) -> None:
    machine = {**obj("Machine"), "spec": {"infrastructureRef": infrastructure_ref}}

    assert references.infrastructure_name(machine, "OpenStackMachine") == name


def test_controller_reference_has_the_uid_and_the_very_api_version_c_46() -> None:
    assert references.controller_reference(obj()) == {
        "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2",
        "kind": "OpenStackMachine",
        "name": "one",
        "uid": "u1",
        "controller": True,
        "blockOwnerDeletion": True,
    }


@pytest.mark.parametrize(
    ("cluster_spec", "annotations", "cause"),
    [
        pytest.param({}, {}, None, id="neither"),
        pytest.param({"paused": False}, None, None, id="spec.paused false"),
        pytest.param({"paused": True}, {}, "Cluster one has spec.paused", id="spec.paused"),
        pytest.param({}, {"cluster.x-k8s.io/paused": ""}, "annotation", id="annotation without value"),
        pytest.param({}, {"cluster.x-k8s.io/paused": "false"}, "annotation", id="presence decides, not the value"),
    ],
)
def test_pause_has_two_causes_c_38_c_41(cluster_spec: Any, annotations: Any, cause: str | None) -> None:
    found = rules.pause_cause(obj(annotations=annotations), {**obj("Cluster"), "spec": cluster_spec})

    assert (cause is None and found is None) or (cause is not None and found is not None and cause in found)


def test_annotation_pauses_without_a_cluster() -> None:
    assert rules.pause_cause(obj(annotations={"cluster.x-k8s.io/paused": ""}), None)


def test_managed_by_annotation_without_value_means_externally_managed_c_10() -> None:
    assert rules.is_externally_managed(obj(annotations={"cluster.x-k8s.io/managed-by": ""}))
    assert not rules.is_externally_managed(obj())


@pytest.mark.parametrize(
    ("labels", "watch_filter", "passes"),
    [
        pytest.param(None, "", True, id="no filter takes all"),
        pytest.param({"cluster.x-k8s.io/watch-filter": "a"}, "", True, id="no filter takes labelled ones too"),
        pytest.param({"cluster.x-k8s.io/watch-filter": "a"}, "a", True, id="same"),
        pytest.param({"cluster.x-k8s.io/watch-filter": "b"}, "a", False, id="other"),
        pytest.param(None, "a", False, id="unlabelled"),
    ],
)
def test_watch_filter_c_58(labels: Any, watch_filter: str, passes: bool) -> None:
    assert rules.passes_filter(obj(labels=labels), watch_filter) is passes


def test_control_plane_is_known_by_the_presence_of_the_label_c_29() -> None:
    assert machines.is_control_plane(obj("Machine", labels={"cluster.x-k8s.io/control-plane": ""}))
    assert not machines.is_control_plane(obj("Machine", labels={"cluster.x-k8s.io/cluster-name": "c"}))


@pytest.mark.parametrize(
    ("spec", "secret", "zone"),
    [
        pytest.param({}, None, None, id="nothing"),
        pytest.param({"bootstrap": {"configRef": {}}}, None, None, id="bootstrap data not ready"),
        pytest.param({"bootstrap": {"dataSecretName": "s"}, "failureDomain": "az1"}, "s", "az1", id="both"),
        pytest.param({"bootstrap": {"dataSecretName": ""}, "failureDomain": ""}, None, None, id="empty is unset"),
    ],
)
def test_machine_tells_bootstrap_data_and_zone_c_18_c_22(spec: Any, secret: str | None, zone: str | None) -> None:
    machine = {**obj("Machine"), "spec": spec}

    assert machines.bootstrap_secret_name(machine) == secret
    assert machines.failure_domain(machine) == zone


def test_addresses_are_ordered_by_network_then_by_version_c_17() -> None:
    nova = {
        "net-b": [
            {"addr": "fd00::b", "version": 6, "OS-EXT-IPS:type": "fixed"},
            {"addr": "10.0.0.2", "version": 4, "OS-EXT-IPS:type": "fixed"},
            {"addr": "198.51.100.2", "version": 4, "OS-EXT-IPS:type": "floating"},
        ],
        "net-a": [
            {"addr": "10.1.0.2", "version": 4, "OS-EXT-IPS:type": "fixed"},
            {"addr": "10.1.0.3", "version": 4, "OS-EXT-IPS:type": "something"},
        ],
    }

    assert machines.addresses(nova, "server-1") == [
        {"type": "InternalIP", "address": "10.1.0.2"},
        {"type": "InternalIP", "address": "10.0.0.2"},
        {"type": "ExternalIP", "address": "198.51.100.2"},
        {"type": "InternalIP", "address": "fd00::b"},
        {"type": "InternalDNS", "address": "server-1"},
    ]


def test_addresses_never_exceed_256_and_keep_the_name_c_17() -> None:
    nova = {"n": [{"addr": f"10.0.{i}.1", "version": 4, "OS-EXT-IPS:type": "fixed"} for i in range(300)]}

    found = machines.addresses(nova, "server-1")

    assert len(found) == 256
    assert found[-1] == {"type": "InternalDNS", "address": "server-1"}


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param({}, None, id="absent"),
        pytest.param({"controlPlaneEndpoint": {"host": "a"}}, None, id="no port"),
        pytest.param({"controlPlaneEndpoint": {"host": "", "port": 0}}, None, id="emptied by the topology controller"),
        pytest.param({"controlPlaneEndpoint": {"host": "a", "port": 6443}}, ("a", 6443), id="complete"),
    ],
)
def test_endpoint_counts_only_when_complete_c_3(spec: Any, expected: Any) -> None:
    assert clusters.endpoint({**obj("OpenStackCluster"), "spec": spec}) == expected


@pytest.mark.parametrize(
    ("status", "provisioned"),
    [
        pytest.param({}, False, id="nothing"),
        pytest.param({"initialization": {}}, False, id="empty"),
        pytest.param({"initialization": {"infrastructureProvisioned": True, "provisioned": True}}, True, id="true"),
        pytest.param({"initialization": {"infrastructureProvisioned": "true"}}, False, id="a string is no boolean"),
    ],
)
def test_provisioned_is_a_boolean_c_6_c_23(status: Any, provisioned: bool) -> None:
    both = {**obj(), "status": status}

    assert clusters.is_infrastructure_provisioned(both) is provisioned
    assert clusters.is_provisioned(both) is provisioned


@pytest.mark.parametrize(
    ("status", "provisioned"),
    [
        pytest.param({"infrastructureReady": True}, True, id="ready"),
        pytest.param({"infrastructureReady": False}, False, id="not ready"),
        pytest.param({"infrastructureReady": "true"}, False, id="a string is no boolean"),
    ],
)
def test_infrastructure_of_a_cluster_of_the_core_api_v1beta1_is_read_c_23(status: Any, provisioned: bool) -> None:
    assert clusters.is_infrastructure_provisioned({**obj(), "status": status}) is provisioned


@pytest.mark.parametrize(
    ("omits", "listed", "expected"),
    [
        pytest.param(False, (), [True, True], id="all by default"),
        pytest.param(True, (), [False, False], id="none when omitted"),
        pytest.param(True, ("az2",), [False, True], id="the list decides alone"),
        pytest.param(False, ("az9",), [False, False], id="a zone that Nova does not have is ignored"),
    ],
)
def test_failure_domains_c_7_c_8(omits: bool, listed: tuple[str, ...], expected: list[bool]) -> None:
    found = clusters.failure_domains(["az2", "az1", "az2"], omits_control_plane=omits, control_plane_zones=listed)

    assert found == [{"name": "az1", "controlPlane": expected[0]}, {"name": "az2", "controlPlane": expected[1]}]
