"""Rules of Cluster API's InfraCluster contract that no other test covers (C-1 to C-13)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from capo import names
from capo.crdgen import files
from capo.kube.kinds import CLUSTER, OPENSTACK_CLUSTER, OPENSTACK_SERVER, Kind
from controllers.openstackcluster.tests.environment import (
    BALANCER,
    BASTION,
    BASTION_NAME,
    GROUPS,
    MANAGED,
    ClusterEnvironment,
)
from controllers.openstackcluster.tests.objects import CLUSTER_NAME

MANAGED_BY: dict[str, Any] = {"metadata": {"annotations": {names.MANAGED_BY_ANNOTATION: "terraform"}}}
NOBODY: dict[str, Any] = {"metadata": {"annotations": {names.MANAGED_BY_ANNOTATION: None}}}


def test_the_schema_of_the_endpoint_is_that_of_the_contract_c_1() -> None:
    (crd,) = (crd for crd in files.load() if crd["spec"]["names"]["kind"] == "OpenStackCluster")
    (version,) = (v for v in crd["spec"]["versions"] if v["name"] == "v1beta2")
    spec = version["schema"]["openAPIV3Schema"]["properties"]["spec"]
    endpoint = spec["properties"]["controlPlaneEndpoint"]

    assert "controlPlaneEndpoint" not in spec.get("required", ())
    assert endpoint["minProperties"] == 1
    assert {k: endpoint["properties"]["host"][k] for k in ("type", "minLength", "maxLength")} == {
        "type": "string",
        "minLength": 1,
        "maxLength": 512,
    }
    assert {k: endpoint["properties"]["port"][k] for k in ("type", "minimum", "maximum")} == {
        "type": "integer",
        "minimum": 1,
        "maximum": 65535,
    }


def test_the_endpoint_is_there_whenever_provisioned_is_c_3(world: ClusterEnvironment) -> None:
    seen: list[bool] = []

    def look() -> None:
        if world.exists(OPENSTACK_CLUSTER, CLUSTER_NAME) and world.is_provisioned():
            endpoint = world.osc()["spec"].get("controlPlaneEndpoint") or {}
            seen.append(bool(endpoint.get("host") and endpoint.get("port")))

    world.place(**MANAGED, **GROUPS)
    world.settle(for_s=120, until=look)

    assert seen
    assert all(seen)


def test_ready_is_told_from_the_first_pass_to_the_last_c_9_c_33(world: ClusterEnvironment) -> None:
    told: list[tuple[str, bool]] = []

    def look() -> None:
        if world.exists(OPENSTACK_CLUSTER, CLUSTER_NAME) and "conditions" in world.status():
            told.append((world.shown("Ready")[0], world.is_provisioned()))

    world.place(**MANAGED, **GROUPS, **BALANCER)
    world.settle(for_s=120, until=look)
    assert world.is_ready()
    world.remove()
    world.settle(for_s=120, until=look)

    assert world.is_gone()
    assert {status for status, _ in told} == {"True", "False"}
    assert ("True", False) not in told


def test_external_management_that_comes_later_stops_us_and_its_end_starts_us_c_11(world: ClusterEnvironment) -> None:
    world.up(**MANAGED)
    world.patch(OPENSTACK_CLUSTER, CLUSTER_NAME, MANAGED_BY)
    world.settle(for_s=5)
    before = world.osc()
    world.cloud.counter.reset()

    world.change(managedSecurityGroups={})
    world.settle(for_s=1200)
    assert world.osc()["status"] == before["status"]
    assert world.requests() == []

    world.patch(OPENSTACK_CLUSTER, CLUSTER_NAME, NOBODY)
    world.settle(for_s=60)
    assert world.counts()["security_groups"] == 2
    assert world.is_ready()


def test_an_externally_managed_cluster_is_not_even_deleted_c_10(world: ClusterEnvironment) -> None:
    world.up(**MANAGED)
    world.patch(OPENSTACK_CLUSTER, CLUSTER_NAME, MANAGED_BY)
    world.settle(for_s=5)
    made = world.counts()

    world.remove()
    world.settle(for_s=600)

    assert not world.is_gone()
    assert world.counts() == made


PAUSES = [
    pytest.param(CLUSTER, lambda is_on: {"spec": {"paused": is_on}}, id="Cluster"),
    pytest.param(
        OPENSTACK_CLUSTER,
        lambda is_on: {"metadata": {"annotations": {names.PAUSED_ANNOTATION: "" if is_on else None}}},
        id="annotation",
    ),
]


@pytest.mark.parametrize(("kind", "pausing"), PAUSES)
def test_pausing_stops_an_edit_of_the_bastion_until_it_is_taken_back_c_38_c_43(
    world: ClusterEnvironment, kind: Kind, pausing: Callable[[bool], dict[str, Any]]
) -> None:
    world.up(**MANAGED, **GROUPS, **BASTION)
    world.patch(kind, CLUSTER_NAME, pausing(True))
    world.settle(for_s=5)

    world.change(bastion={"enabled": False})
    world.settle(for_s=1200)
    assert world.has_bastion()

    world.patch(kind, CLUSTER_NAME, pausing(False))
    world.settle(for_s=60)
    assert not world.has_bastion()


def test_nobody_is_made_controller_of_what_cluster_api_owns_c_44_c_47(world: ClusterEnvironment) -> None:
    world.up(**MANAGED, **GROUPS, **BASTION)

    (owner,) = world.osc()["metadata"]["ownerReferences"]
    (of_bastion,) = world.get(OPENSTACK_SERVER, BASTION_NAME)["metadata"]["ownerReferences"]

    assert owner["kind"] == "Cluster"
    assert (of_bastion["kind"], of_bastion["controller"]) == ("OpenStackCluster", True)


def test_a_reference_that_was_taken_away_comes_back_c_46(world: ClusterEnvironment) -> None:
    world.up(**MANAGED, **GROUPS, **BASTION)
    server = world.one("servers")["id"]
    world.patch(OPENSTACK_SERVER, BASTION_NAME, {"metadata": {"ownerReferences": None}})

    world.resync()
    world.settle(for_s=60)

    (owner,) = world.get(OPENSTACK_SERVER, BASTION_NAME)["metadata"]["ownerReferences"]
    assert owner["uid"] == world.osc()["metadata"]["uid"]
    assert world.one("servers")["id"] == server


def test_spec_is_written_in_one_field_alone_c_60(world: ClusterEnvironment) -> None:
    wanted = {**MANAGED, **GROUPS, **BASTION}
    world.up(**wanted)

    spec = world.osc()["spec"]

    assert spec.keys() - {"identityRef", *wanted} == {"controlPlaneEndpoint"}
    assert {name: spec[name] for name in wanted} == wanted
