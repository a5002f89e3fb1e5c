from __future__ import annotations

import pydantic
import pytest

from api import v1alpha1, v1beta1, v1beta2
from api.meta import KubernetesObject
from api.model import json_name

KINDS = [getattr(version, name) for version in (v1beta2, v1beta1, v1alpha1) for name in version.__all__]
ROOTS = [kind for kind in KINDS if issubclass(kind, KubernetesObject)]
MACHINE = {
    "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2",
    "kind": "OpenStackMachine",
    "metadata": {"name": "one", "labels": {"a": "b"}},
    "spec": {
        "flavor": {"id": "1"},
        "image": {"filter": {"name": "ubuntu"}},
        "ports": [],
        "trunk": False,
        "rootVolume": {"sizeGiB": 10, "availabilityZone": {"from": "Machine"}},
    },
}


@pytest.mark.parametrize(
    ("attribute", "name"),
    [
        ("identity_ref", "identityRef"),
        ("provider_id", "providerID"),
        ("fixed_ips", "fixedIPs"),
        ("disable_api_server_floating_ip", "disableAPIServerFloatingIP"),
        ("api_server", "apiServer"),
        ("network_mtu", "networkMTU"),
        ("ip_address", "ipAddress"),
        ("allowed_cidrs", "allowedCIDRs"),
        ("size_gib", "sizeGiB"),
        ("ovs_hw_offload", "ovsHWOffload"),
        ("ipv6_ra_mode", "ipv6RAMode"),
        ("from_", "from"),
    ],
)
def test_attributes_are_spelled_in_json_as_the_api_spells_them(attribute: str, name: str) -> None:
    assert json_name(attribute) == name


def test_reading_and_writing_lose_nothing_and_add_nothing() -> None:
    assert v1beta2.OpenStackMachine.model_validate(MACHINE).to_dict() == MACHINE


def test_models_are_frozen() -> None:
    machine = v1beta2.OpenStackMachine.model_validate(MACHINE)

    with pytest.raises(pydantic.ValidationError, match="frozen"):
        machine.spec.trunk = True  # type: ignore[misc]


@pytest.mark.parametrize("kind", ROOTS, ids=lambda kind: kind.__name__)
def test_an_object_without_spec_and_status_is_readable(kind: type[KubernetesObject]) -> None:
    read = kind.model_validate({"metadata": {"name": "bare"}})

    assert read.to_dict() == {"apiVersion": read.api_version, "kind": read.kind, "metadata": {"name": "bare"}}


def test_an_object_of_another_version_is_refused() -> None:
    with pytest.raises(pydantic.ValidationError, match="v1beta2"):
        v1beta2.OpenStackMachine.model_validate(MACHINE | {"apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1"})


def test_a_field_that_no_model_knows_is_ignored() -> None:
    spec = {**MACHINE["spec"], "cloudsFromTheFuture": 3}  # type: ignore[dict-item]

    assert v1beta2.OpenStackMachine.model_validate(MACHINE | {"spec": spec}).spec.flavor.id == "1"


@pytest.mark.parametrize(
    "status",
    [
        pytest.param({"conditions": [{"type": "Ready", "status": "Maybe"}]}, id="condition without reason"),
        pytest.param({"network": {"id": "", "name": ""}}, id="empty names"),
        pytest.param({"network": {}}, id="network being looked up"),
        pytest.param({"apiServerManagedLoadBalancer": {"loadBalancerNetwork": {"id": "n"}}}, id="unfinished balancer"),
        pytest.param({"bastion": {"state": "NEVER_HEARD_OF"}}, id="unknown state"),
    ],
)
def test_status_that_the_schema_would_refuse_is_readable(status: dict[str, object]) -> None:
    cluster = v1beta2.OpenStackCluster.model_validate({"metadata": {"name": "c"}, "status": status})

    assert cluster.to_dict()["status"] == status


def test_a_block_device_of_unknown_type_is_readable() -> None:
    device = {"name": "etcd", "sizeGiB": 1, "storage": {"type": "Tape"}}
    spec = {**MACHINE["spec"], "additionalBlockDevices": [device]}  # type: ignore[dict-item]

    machine = v1beta2.OpenStackMachine.model_validate(MACHINE | {"spec": spec})

    assert machine.spec.additional_block_devices[0].storage.type == "Tape"


def test_defaults_are_those_that_the_api_server_fills_in() -> None:
    spec = {
        "identityRef": {"name": "a", "cloudName": "b"},
        "apiServer": {"managedLoadBalancer": {}},
        "managedSecurityGroups": {},
    }

    read = v1beta2.OpenStackCluster.model_validate({"spec": spec}).spec

    assert read.identity_ref.type == "Secret"
    assert read.api_server is not None
    assert read.api_server.managed_load_balancer is not None
    assert read.api_server.managed_load_balancer.enabled
    assert read.managed_security_groups is not None
    assert not read.managed_security_groups.allow_all_in_cluster_traffic
