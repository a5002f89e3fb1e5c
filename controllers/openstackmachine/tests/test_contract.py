"""Rules of Cluster API's InfraMachine contract that no other test covers (C-14 to C-29)."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from api.v1beta2 import OpenStackMachineSpec
from capo import names
from capo.engine.tests.fake_kube import merge_patch
from capo.kube.kinds import CLUSTER, MACHINE, OPENSTACK_CLUSTER, OPENSTACK_MACHINE, OPENSTACK_SERVER, Key, Kind
from controllers.openstackmachine.tests.control_plane_environment import ControlPlaneEnvironment
from controllers.openstackmachine.tests.environment import MachineEnvironment


def test_there_is_no_failure_domain_in_the_spec_that_would_override_cluster_apis_c_20() -> None:
    assert "failureDomain" not in OpenStackMachineSpec.model_json_schema(by_alias=True)["properties"]


def test_ready_is_told_from_the_first_pass_to_the_last_c_21_c_33(site: ControlPlaneEnvironment) -> None:
    told: list[tuple[str, bool]] = []

    def look() -> None:
        if site.stage.exists(OPENSTACK_MACHINE, "one"):
            status = site.stage.get(OPENSTACK_MACHINE, "one").get("status", {})
            if "conditions" in status:
                ready = site.stage.condition(OPENSTACK_MACHINE, "one", "Ready")["status"]
                told.append((ready, bool(status.get("initialization", {}).get("provisioned"))))

    site.add("one")
    site.stage.settle(for_s=120, until=look)
    site.delete("one")
    site.stage.settle(for_s=120, until=look)

    assert not site.stage.exists(OPENSTACK_MACHINE, "one")
    assert {status for status, _ in told} == {"True", "False"}
    assert ("True", False) not in told


def test_bootstrap_data_reaches_nova_unchanged_c_22(site: ControlPlaneEnvironment) -> None:
    site.add("one")
    site.stage.settle(for_s=120)

    (server,) = site.all("servers")
    assert base64.b64decode(server["user_data"]) == b"#cloud-config"


@pytest.mark.parametrize("wanted", ["az2", None], ids=["Cluster API's choice", "Nova's choice"])
def test_the_failure_domain_is_the_zone_of_the_server_c_18_c_19_w_35(
    site: ControlPlaneEnvironment, wanted: str | None
) -> None:
    site.add("one")
    site.stage.patch(MACHINE, "one", {"spec": {"failureDomain": wanted}})
    site.stage.settle(for_s=120)

    (server,) = site.all("servers")
    assert wanted in (server["availability_zone"], None)
    assert site.stage.get(OPENSTACK_MACHINE, "one")["status"]["failureDomain"] == server["availability_zone"]


def test_an_existing_server_is_found_again_after_a_crash_c_24(site: ControlPlaneEnvironment) -> None:
    site.add("one")
    site.stage.settle(for_s=120, until=lambda: site.all("servers"))
    site.stage.patch(OPENSTACK_SERVER, "one", {"status": None})
    site.stage.patch(OPENSTACK_MACHINE, "one", {"status": None})
    site.stage.start()

    site.stage.settle(for_s=300)

    assert len(site.all("servers")) == 1
    assert site.stage.condition(OPENSTACK_MACHINE, "one", "Ready")["status"] == "True"


def test_a_machine_need_not_have_the_name_of_its_machine_c_27() -> None:
    world = MachineEnvironment()
    old = world.kube.objects.pop(Key(MACHINE, "default", "worker"))
    world.kube.put(MACHINE, merge_patch(old, {"metadata": {"name": "by-hand"}}))
    owner = [{**world.obj()["metadata"]["ownerReferences"][0], "name": "by-hand"}]
    world.patch(OPENSTACK_MACHINE, "worker", {"metadata": {"ownerReferences": owner}})

    world.run()

    assert world.server()["spec"]["userDataRef"] == {"name": "worker-boot"}


def test_machines_of_an_externally_managed_cluster_are_made_c_12(site: ControlPlaneEnvironment) -> None:
    managed = {"metadata": {"annotations": {names.MANAGED_BY_ANNOTATION: ""}}}
    site.stage.patch(OPENSTACK_CLUSTER, "infra", managed)
    site.add("one")

    site.stage.settle(for_s=120)

    assert site.stage.condition(OPENSTACK_MACHINE, "one", "Ready")["status"] == "True"


@pytest.mark.parametrize("is_deleted", [False, True], ids=["lives", "is deleted"])
def test_a_paused_cluster_stops_machine_and_server_until_it_goes_on_c_38_c_39_c_40(
    site: ControlPlaneEnvironment, is_deleted: bool
) -> None:
    site.add("one")
    site.stage.settle(for_s=120)
    site.stage.patch(CLUSTER, "demo", {"spec": {"paused": True}})
    site.stage.settle(for_s=5)
    site.stage.cloud.counter.reset()
    if is_deleted:
        site.delete("one")

    site.stage.settle(for_s=1200)
    assert [r for r in site.stage.requests() if not r.startswith("GET")] == []
    assert len(site.all("servers")) == 1
    assert site.stage.condition(OPENSTACK_MACHINE, "one", "Paused")["status"] == "True"
    assert site.stage.condition(OPENSTACK_SERVER, "one", "Paused")["status"] == "True"

    site.stage.patch(CLUSTER, "demo", {"spec": {"paused": None}})
    site.stage.settle(for_s=60)
    assert site.stage.exists(OPENSTACK_MACHINE, "one") is not is_deleted


@pytest.mark.parametrize("kind", [MACHINE, CLUSTER])
def test_a_pause_that_is_over_is_told_although_an_owner_is_missing_c_41(
    site: ControlPlaneEnvironment, kind: Kind
) -> None:
    site.add("one")
    site.stage.settle(for_s=120)
    site.stage.patch(OPENSTACK_MACHINE, "one", {"metadata": {"annotations": {names.PAUSED_ANNOTATION: ""}}})
    site.stage.settle(for_s=5)
    assert site.stage.condition(OPENSTACK_MACHINE, "one", "Paused")["status"] == "True"
    site.vanish(kind, "one" if kind == MACHINE else "demo")

    site.stage.patch(OPENSTACK_MACHINE, "one", {"metadata": {"annotations": {names.PAUSED_ANNOTATION: None}}})
    site.stage.settle(for_s=5)

    assert site.stage.condition(OPENSTACK_MACHINE, "one", "Paused")["status"] == "False"


def test_owners_form_a_chain_to_the_machine_c_44_c_45_c_47(site: ControlPlaneEnvironment) -> None:
    site.add("one")
    site.stage.settle(for_s=120)

    (owner,) = site.stage.get(OPENSTACK_MACHINE, "one")["metadata"]["ownerReferences"]
    server = site.stage.get(OPENSTACK_SERVER, "one")["metadata"]

    assert owner["kind"] == "Machine"
    (of_server,) = server["ownerReferences"]
    assert (of_server["kind"], of_server["controller"]) == ("OpenStackMachine", True)
    assert server["labels"][names.CLUSTER_NAME_LABEL] == "demo"


def test_spec_is_written_in_one_field_alone_c_60(site: ControlPlaneEnvironment) -> None:
    site.add("one")
    before: dict[str, Any] = site.stage.get(OPENSTACK_MACHINE, "one")["spec"]

    site.stage.settle(for_s=120)

    after = site.stage.get(OPENSTACK_MACHINE, "one")["spec"]
    assert after.keys() - before.keys() == {"providerID"}
    assert {name: after[name] for name in before} == before
