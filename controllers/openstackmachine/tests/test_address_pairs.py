"""Edits of allowed address pairs reach the ports of running machines, and nothing else does."""

from __future__ import annotations

import json
from typing import Any

import pytest

from capo import names
from capo.json_types import Body, Json
from capo.kube.kinds import MACHINE, OPENSTACK_MACHINE, OPENSTACK_MACHINE_TEMPLATE, OPENSTACK_SERVER, Key, Kind
from capo.openstack import port as openstack_port
from capo.openstack.cloud import Cloud
from controllers import address_pairs
from controllers.openstackmachine.tests.control_plane_environment import ControlPlaneEnvironment
from environments.in_memory import killed_at_write

A, B, C, MINE = ({"ipAddress": f"192.0.2.{number}"} for number in (1, 2, 3, 99))
KIND = f"OpenStackMachineTemplate.{names.GROUP}"
APPLIED = address_pairs.CONDITION


def template(*pairs: Json, name: str = "big", **port: Any) -> Json:
    """Return a template with two ports, the first of which has pairs."""
    ports = [{"allowedAddressPairs": list(pairs), **port}, {"nameSuffix": "second"}]
    return {"metadata": {"name": name}, "spec": {"template": {"spec": {"ports": ports}}}}


def edit_template(site: ControlPlaneEnvironment, *pairs: Json, **port: Any) -> None:
    site.stage.patch(OPENSTACK_MACHINE_TEMPLATE, "big", {"spec": template(*pairs, **port)["spec"]})


def edit_machine(site: ControlPlaneEnvironment, *pairs: Json, name: str = "one") -> None:
    ports = site.stage.get(OPENSTACK_MACHINE, name)["spec"]["ports"]
    site.stage.patch(
        OPENSTACK_MACHINE, name, {"spec": {"ports": [{**ports[0], "allowedAddressPairs": list(pairs)}, *ports[1:]]}}
    )


def clone(site: ControlPlaneEnvironment, name: str = "one", *, kind: str = KIND, source: str = "big") -> None:
    """Create a machine as Cluster API clones it from the template."""
    site.add(name)
    spec = site.stage.get(OPENSTACK_MACHINE_TEMPLATE, "big")["spec"]["template"]["spec"]
    annotations = {names.CLONED_FROM_NAME_ANNOTATION: source, names.CLONED_FROM_KIND_ANNOTATION: kind}
    site.stage.patch(OPENSTACK_MACHINE, name, {"metadata": {"annotations": annotations}, "spec": spec})


def start(site: ControlPlaneEnvironment, *pairs: Json, settle_s: float = 120, **port: Any) -> None:
    """Create a template with pairs and a running machine of it; later requests are counted."""
    site.stage.apply(OPENSTACK_MACHINE_TEMPLATE, template(*pairs, **port))
    clone(site)
    site.stage.settle(for_s=settle_s)
    forget_requests(site)


def forget_requests(site: ControlPlaneEnvironment) -> None:
    site.stage.cloud.counter.reset()
    site.stage.kube.writes.clear()


def pairs_of(site: ControlPlaneEnvironment, name: str = "one", port: str = "0") -> list[str]:
    """Return the addresses that a port may use, in order."""
    (found,) = (each for each in site.all("ports") if each["name"] == f"{name}-{port}")
    return sorted(pair["ip_address"] for pair in found["allowed_address_pairs"])


def put_pairs(site: ControlPlaneEnvironment, *addresses: str) -> None:
    """Replace the pairs of the first port as an operator does in OpenStack."""
    (found,) = (each for each in site.all("ports") if each["name"] == "one-0")
    body = {"port": {"allowed_address_pairs": [{"ip_address": each} for each in addresses]}}
    site.stage.member.ask("PUT", f"/network/v2.0/ports/{found['id']}", body)
    forget_requests(site)


def forget_records(site: ControlPlaneEnvironment) -> None:
    """Remove what was recorded, as if an older version had created the machine."""
    for kind, name in (
        (OPENSTACK_MACHINE, names.TEMPLATE_PAIRS_ANNOTATION),
        (OPENSTACK_SERVER, names.ADDRESS_PAIRS_ANNOTATION),
    ):
        site.stage.patch(kind, "one", {"metadata": {"annotations": {name: None}}})


def updates(site: ControlPlaneEnvironment) -> int:
    """Count the updates of ports."""
    return sum(request.startswith("PUT /v2.0/ports/") for request in site.stage.requests())


def shown(site: ControlPlaneEnvironment, kind: Kind) -> tuple[str, str]:
    """Return status and reason of the condition of a machine or its server."""
    found = site.stage.condition(kind, "one", APPLIED)
    return found.get("status", ""), found.get("reason", "")


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        pytest.param([A], [A, B], ["192.0.2.1", "192.0.2.2"], id="a pair is added"),
        pytest.param([A, B], [B], ["192.0.2.2"], id="a pair is removed"),
        pytest.param([A, B], [], [], id="the list is emptied"),
        pytest.param([], [A], ["192.0.2.1"], id="there was none"),
        pytest.param([A], [B], ["192.0.2.2"], id="a pair is replaced"),
    ],
)
def test_an_edit_of_the_template_reaches_the_port_in_one_update(
    site: ControlPlaneEnvironment, before: list[Json], after: list[Json], expected: list[str]
) -> None:
    start(site, *before)

    edit_template(site, *after)
    site.stage.settle(for_s=60)

    assert pairs_of(site) == expected
    assert updates(site) == 1
    assert site.stage.get(OPENSTACK_MACHINE, "one")["spec"]["ports"][0].get("allowedAddressPairs", []) == after
    assert site.stage.condition(OPENSTACK_MACHINE, "one", "Ready")["status"] == "True"
    assert not site.stage.condition(OPENSTACK_SERVER, "one", "PortsReady").get("message")


def test_an_edit_of_the_machine_reaches_the_port(site: ControlPlaneEnvironment) -> None:
    start(site, A)

    edit_machine(site, B)
    site.stage.settle(for_s=60)

    assert pairs_of(site) == ["192.0.2.2"]
    assert updates(site) == 1


def test_creation_costs_no_write_more_and_nothing_is_asked_when_nothing_changed(site: ControlPlaneEnvironment) -> None:
    site.stage.apply(OPENSTACK_MACHINE_TEMPLATE, template())
    clone(site, "plain", source="")
    site.stage.settle(for_s=120)
    writes = [each for each in site.stage.kube.writes if each[2] == "plain"]
    site.stage.patch(OPENSTACK_MACHINE_TEMPLATE, "big", {"spec": template(A)["spec"]})
    forget_requests(site)

    clone(site)
    site.stage.settle(for_s=120)

    assert sorted(each[:2] for each in site.stage.kube.writes if each[2] == "one") == sorted(w[:2] for w in writes)
    forget_requests(site)
    site.stage.settle(for_s=600)
    assert not [write for write in site.stage.kube.writes if write[0] != "get"]
    assert updates(site) == 0


def test_a_pair_that_was_added_by_hand_is_kept(site: ControlPlaneEnvironment) -> None:
    start(site, A)
    put_pairs(site, "192.0.2.1", MINE["ipAddress"])

    edit_template(site, B)
    site.stage.settle(for_s=60)

    assert pairs_of(site) == ["192.0.2.2", MINE["ipAddress"]]


def test_a_pair_that_was_removed_by_hand_is_not_added_again_by_an_edit_of_others(site: ControlPlaneEnvironment) -> None:
    start(site, A, B)
    put_pairs(site, "192.0.2.2")

    edit_template(site, A, B, C)
    site.stage.settle(for_s=60)

    assert pairs_of(site) == ["192.0.2.2", "192.0.2.3"]


def test_a_port_that_has_the_edit_already_gets_no_update(site: ControlPlaneEnvironment) -> None:
    start(site, A)
    put_pairs(site, "192.0.2.2/32")

    edit_template(site, B)
    site.stage.settle(for_s=60)

    assert updates(site) == 0
    assert not _record(site).changes


def test_a_machine_without_records_is_recorded_and_not_changed(site: ControlPlaneEnvironment) -> None:
    start(site, A)
    site.stage.settle(for_s=10, until=lambda: True)
    forget_records(site)
    put_pairs(site, MINE["ipAddress"])
    edit_template(site, B)
    edit_machine(site, C)

    site.stage.settle(for_s=600)

    assert pairs_of(site) == [MINE["ipAddress"]]
    assert updates(site) == 0
    assert site.stage.get(OPENSTACK_MACHINE, "one")["spec"]["ports"][0]["allowedAddressPairs"] == [C]
    edit_template(site, A, B)
    site.stage.settle(for_s=60)
    assert pairs_of(site) == ["192.0.2.1", MINE["ipAddress"]]


@pytest.mark.parametrize("text", ["", "{", "[1]", '{"pairs": 1}', '[[{"ipAddress": {}}], null]', "null"])
def test_a_damaged_record_is_replaced_and_changes_nothing(site: ControlPlaneEnvironment, text: str) -> None:
    start(site, A)
    for kind, name in (
        (OPENSTACK_MACHINE, names.TEMPLATE_PAIRS_ANNOTATION),
        (OPENSTACK_SERVER, names.ADDRESS_PAIRS_ANNOTATION),
    ):
        site.stage.patch(kind, "one", {"metadata": {"annotations": {name: text}}})
    edit_template(site, B)

    site.stage.settle(for_s=60)

    assert pairs_of(site) == ["192.0.2.1"]
    assert _record(site).pairs == [(("192.0.2.1", None),), ()]


def test_an_edit_while_the_manager_is_down_is_applied(site: ControlPlaneEnvironment) -> None:
    start(site, A)

    edit_template(site, B)
    site.stage.start()
    site.stage.settle(for_s=60)

    assert pairs_of(site) == ["192.0.2.2"]


def test_an_edit_after_a_move_without_status_is_applied(site: ControlPlaneEnvironment) -> None:
    start(site, A)
    for kind in (OPENSTACK_MACHINE, OPENSTACK_SERVER):
        site.stage.patch(kind, "one", {"status": None})
    site.stage.start()
    site.stage.settle(for_s=300)
    assert pairs_of(site) == ["192.0.2.1"]

    edit_template(site, B)
    site.stage.settle(for_s=60)

    assert pairs_of(site) == ["192.0.2.2"]


@pytest.mark.parametrize("number", range(1, 5))
def test_two_edits_and_a_crash_between_them_leave_only_the_last_one(site: ControlPlaneEnvironment, number: int) -> None:
    start(site, A)
    edit_template(site, B)
    with killed_at_write(site.stage, number):
        site.stage.settle(for_s=60)

    edit_template(site, C)
    site.stage.start()
    site.stage.settle(for_s=60)

    assert pairs_of(site) == ["192.0.2.3"]
    assert not _record(site).changes


def test_an_edit_during_the_creation_of_the_server_is_applied(site: ControlPlaneEnvironment) -> None:
    site.stage.apply(OPENSTACK_MACHINE_TEMPLATE, template(A))
    clone(site)
    site.stage.settle(for_s=120, until=lambda: site.stage.exists(OPENSTACK_SERVER, "one"))

    edit_template(site, B)
    site.stage.settle(for_s=120)

    assert pairs_of(site) == ["192.0.2.2"]
    assert site.stage.condition(OPENSTACK_MACHINE, "one", "Ready")["status"] == "True"


def test_an_edit_before_the_bootstrap_data_exist_is_applied(site: ControlPlaneEnvironment) -> None:
    site.stage.apply(OPENSTACK_MACHINE_TEMPLATE, template(A))
    clone(site)
    site.stage.patch(MACHINE, "one", {"spec": {"bootstrap": {"dataSecretName": None}}})
    site.stage.settle(for_s=60)

    edit_template(site, B)
    site.stage.settle(for_s=60)
    site.stage.patch(MACHINE, "one", {"spec": {"bootstrap": {"dataSecretName": "one-boot"}}})
    site.stage.settle(for_s=120)

    assert pairs_of(site) == ["192.0.2.2"]


def test_a_store_that_lags_behind_the_template_reverts_no_edit(site: ControlPlaneEnvironment) -> None:
    start(site, A)
    site.stage.unwatched.add(OPENSTACK_MACHINE_TEMPLATE)
    edit_template(site, B)
    ports = template(B)["spec"]["template"]["spec"]["ports"]
    annotations = address_pairs.template_annotation(ports)

    site.stage.patch(OPENSTACK_MACHINE, "one", {"metadata": {"annotations": annotations}, "spec": {"ports": ports}})
    site.stage.settle(for_s=60)

    assert pairs_of(site) == ["192.0.2.2"]
    assert site.stage.get(OPENSTACK_MACHINE, "one")["metadata"]["annotations"].items() >= annotations.items()


def test_a_store_that_lags_behind_the_machine_reverts_no_edit(site: ControlPlaneEnvironment) -> None:
    start(site, A)
    site.stage.unwatched.add(OPENSTACK_MACHINE)
    edit_machine(site, B)
    applied = address_pairs.Record([(("192.0.2.2", None),), ()]).encoded()

    site.stage.patch(OPENSTACK_SERVER, "one", {"metadata": {"annotations": {names.ADDRESS_PAIRS_ANNOTATION: applied}}})
    site.stage.settle(for_s=60)

    assert _record(site).pairs[0] == (("192.0.2.2", None),)
    assert updates(site) == 0


def test_a_store_that_lags_behind_the_server_applies_no_edit_that_is_outdated(site: ControlPlaneEnvironment) -> None:
    start(site, A)
    site.stage.unwatched |= {OPENSTACK_MACHINE, OPENSTACK_SERVER}
    outdated = address_pairs.Record([(("192.0.2.1", None),), ()]).edited([(("192.0.2.2", None),), ()])
    seen = json.loads(json.dumps(site.stage.get(OPENSTACK_SERVER, "one")))
    seen["metadata"]["annotations"][names.ADDRESS_PAIRS_ANNOTATION] = outdated.encoded()

    site.stage.store.apply(OPENSTACK_SERVER, "MODIFIED", seen)
    site.stage.settle(for_s=60)

    assert pairs_of(site) == ["192.0.2.1"]
    assert updates(site) == 0


def test_a_machine_that_is_deleted_gets_no_update(site: ControlPlaneEnvironment) -> None:
    start(site, A)

    edit_template(site, B)
    site.delete("one")
    site.stage.settle(for_s=300)

    assert updates(site) == 0
    assert not site.stage.exists(OPENSTACK_MACHINE, "one")


@pytest.mark.parametrize("kind", [OPENSTACK_MACHINE, OPENSTACK_SERVER], ids=["machine", "server"])
def test_a_paused_object_passes_the_edit_on_when_the_pause_ends(site: ControlPlaneEnvironment, kind: Kind) -> None:
    start(site, A)
    site.stage.patch(kind, "one", {"metadata": {"annotations": {names.PAUSED_ANNOTATION: ""}}})

    edit_template(site, B)
    site.stage.settle(for_s=60)
    assert updates(site) == 0

    site.stage.patch(kind, "one", {"metadata": {"annotations": {names.PAUSED_ANNOTATION: None}}})
    site.stage.settle(for_s=60)
    assert pairs_of(site) == ["192.0.2.2"]


def test_a_pause_of_the_server_while_an_applied_edit_is_recorded_is_noticed(site: ControlPlaneEnvironment) -> None:
    start(site, A)

    def pause_once(verb: str, key: Key, _body: Any) -> None:
        if (verb, key.kind) == ("patch", OPENSTACK_SERVER) and updates(site):
            site.stage.kube.before_write = None
            site.stage.patch(OPENSTACK_SERVER, "one", {"metadata": {"annotations": {names.PAUSED_ANNOTATION: ""}}})

    site.stage.kube.before_write = pause_once
    edit_template(site, A, B)
    site.stage.settle(for_s=60)

    assert site.stage.kube.before_write is None
    assert site.stage.condition(OPENSTACK_SERVER, "one", "Paused")["status"] == "True"


def test_port_security_that_is_off_is_reported_until_the_pairs_are_removed(site: ControlPlaneEnvironment) -> None:
    start(site, enablePortSecurity=False)

    edit_template(site, A, enablePortSecurity=False)
    site.stage.settle(for_s=60)

    assert shown(site, OPENSTACK_SERVER) == shown(site, OPENSTACK_MACHINE) == ("False", "InvalidMachineSpec")
    assert "its port security is off" in site.stage.condition(OPENSTACK_MACHINE, "one", APPLIED)["message"]
    assert site.stage.condition(OPENSTACK_MACHINE, "one", "Ready")["status"] == "True"
    assert site.stage.condition(OPENSTACK_SERVER, "one", "Ready")["status"] == "True"
    assert updates(site) == 0
    edit_template(site, enablePortSecurity=False)
    site.stage.settle(for_s=300)
    assert shown(site, OPENSTACK_SERVER) == shown(site, OPENSTACK_MACHINE) == ("", "")


def test_a_failure_is_reported_and_retried_and_does_not_stop_other_machines(site: ControlPlaneEnvironment) -> None:
    start(site, A)
    clone(site, "two")
    site.stage.settle(for_s=120)
    (failing,) = (port["id"] for port in site.all("ports") if port["name"] == "one-0")
    route = {"service": "network", "method": "PUT", "path": f"/v2.0/ports/{failing}"}
    site.stage.add_fault(match=route, effect={"status": 403})

    edit_template(site, B)
    site.stage.settle(for_s=30)

    assert shown(site, OPENSTACK_SERVER) == shown(site, OPENSTACK_MACHINE) == ("False", "Forbidden")
    assert site.stage.condition(OPENSTACK_MACHINE, "one", "InstanceReady")["status"] == "True"
    assert (pairs_of(site), pairs_of(site, "two")) == (["192.0.2.1"], ["192.0.2.2"])
    site.stage.clear_faults()
    site.stage.settle(for_s=300)
    assert pairs_of(site) == ["192.0.2.2"]
    assert shown(site, OPENSTACK_SERVER) == shown(site, OPENSTACK_MACHINE) == ("", "")


def test_a_failing_port_does_not_stop_the_other_port(site: ControlPlaneEnvironment) -> None:
    start(site, A, enablePortSecurity=False)
    ports = [
        {"allowedAddressPairs": [B], "enablePortSecurity": False},
        {"nameSuffix": "second", "allowedAddressPairs": [C]},
    ]

    site.stage.patch(OPENSTACK_MACHINE_TEMPLATE, "big", {"spec": {"template": {"spec": {"ports": ports}}}})
    site.stage.settle(for_s=60)

    assert pairs_of(site, port="second") == ["192.0.2.3"]
    assert _record(site).changes.keys() == {0}
    assert shown(site, OPENSTACK_MACHINE) == ("False", "InvalidMachineSpec")


@pytest.mark.parametrize(
    ("kind", "source"),
    [
        pytest.param("OpenStackMachineTemplate.example.org", "big", id="another kind"),
        pytest.param(KIND, "other", id="another template"),
        pytest.param("", "", id="no template"),
    ],
)
def test_only_machines_that_cluster_api_cloned_from_the_template_are_edited(
    site: ControlPlaneEnvironment, kind: str, source: str
) -> None:
    site.stage.apply(OPENSTACK_MACHINE_TEMPLATE, template(A))
    clone(site, kind=kind, source=source)
    site.stage.settle(for_s=120)
    forget_requests(site)

    edit_template(site, B)
    site.stage.settle(for_s=60)

    assert pairs_of(site) == ["192.0.2.1"]
    assert not site.stage.kube.writes


def test_a_pair_that_a_user_adds_between_the_read_of_a_port_and_its_update_is_kept(
    site: ControlPlaneEnvironment, monkeypatch: pytest.MonkeyPatch
) -> None:
    start(site, A)
    read, users = openstack_port.get, iter([[A, MINE]])

    def get(cloud: Cloud, port_id: str) -> Body:
        found = read(cloud, port_id)
        for pairs in users:
            put_pairs(site, *(pair["ipAddress"] for pair in pairs))
        return found

    monkeypatch.setattr(openstack_port, "get", get)
    edit_template(site, B)
    site.stage.settle(for_s=180)

    assert pairs_of(site) == ["192.0.2.2", "192.0.2.99"]
    assert updates(site) == 2  # the first one is refused
    assert shown(site, OPENSTACK_SERVER)[0] != "False"


def test_a_port_that_differs_from_the_template_in_another_field_keeps_its_pairs(site: ControlPlaneEnvironment) -> None:
    start(site, A)
    ports = [{"allowedAddressPairs": [B], "description": "other"}, {"nameSuffix": "second", "allowedAddressPairs": [C]}]

    site.stage.patch(OPENSTACK_MACHINE_TEMPLATE, "big", {"spec": {"template": {"spec": {"ports": ports}}}})
    site.stage.settle(for_s=60)

    assert pairs_of(site) == ["192.0.2.1"]
    assert pairs_of(site, port="second") == ["192.0.2.3"]


def test_a_port_with_the_stamp_of_another_owner_is_left_alone(site: ControlPlaneEnvironment) -> None:
    start(site, A)
    (found,) = (each for each in site.all("ports") if each["name"] == "one-0")
    stamp = found["description"].rpartition("[capo:")[2].partition(":")[0]
    theirs = found["description"].replace(stamp, "a" * 13)
    site.stage.member.ask("PUT", f"/network/v2.0/ports/{found['id']}", {"port": {"description": theirs}})
    forget_requests(site)

    edit_template(site, B)
    site.stage.settle(for_s=60)

    assert pairs_of(site) == ["192.0.2.1"]
    assert shown(site, OPENSTACK_SERVER)[0] == "False"


def test_a_port_without_a_stamp_is_updated_because_its_server_uses_it(site: ControlPlaneEnvironment) -> None:
    start(site, A)
    (found,) = (each for each in site.all("ports") if each["name"] == "one-0")
    site.stage.member.ask("PUT", f"/network/v2.0/ports/{found['id']}", {"port": {"description": "of the Go provider"}})
    forget_requests(site)

    edit_template(site, B)
    site.stage.settle(for_s=60)

    assert pairs_of(site) == ["192.0.2.2"]


def test_a_port_that_was_deleted_is_left_out_and_the_other_one_is_updated(site: ControlPlaneEnvironment) -> None:
    start(site, A)
    (found,) = (each for each in site.all("ports") if each["name"] == "one-0")
    path = f"/compute/v2.1/servers/{found['device_id']}/os-interface/{found['id']}"
    site.stage.member.ask("DELETE", path)
    ports = [{"allowedAddressPairs": [B]}, {"nameSuffix": "second", "allowedAddressPairs": [C]}]

    site.stage.patch(OPENSTACK_MACHINE_TEMPLATE, "big", {"spec": {"template": {"spec": {"ports": ports}}}})
    site.stage.settle(for_s=120)

    assert pairs_of(site, port="second") == ["192.0.2.3"]
    assert not _record(site).changes


def test_the_record_of_the_template_has_the_go_providers_name_and_format(site: ControlPlaneEnvironment) -> None:
    start(site, {"ipAddress": "192.0.2.10", "macAddress": "fa:16:3e:00:00:01"})

    found = site.stage.get(OPENSTACK_MACHINE, "one")["metadata"]["annotations"]
    text = '[[{"ipAddress":"192.0.2.10","macAddress":"fa:16:3e:00:00:01"}],null]'
    assert found["infrastructure.cluster.x-k8s.io/osmt-allowed-address-pairs"] == text
    assert json.loads(text)


def _record(site: ControlPlaneEnvironment) -> address_pairs.Record:
    found = address_pairs.record_of(site.stage.get(OPENSTACK_SERVER, "one"))
    assert found is not None
    return found
