"""External changes of a running server that leave its state alone: reported, never reverted, and it stays ready."""

from __future__ import annotations

from typing import Any

import pytest

from api.v1beta2.port import ResolvedPortSpec
from capo.openstack.port import Port
from controllers.openstackserver import drift
from controllers.openstackserver.tests.environment import KIND, place, port, server, status
from environments.in_memory import InMemoryEnvironment

NETWORK_PATH = "/network/v2.0"
MAC = "fa:16:3e:00:00:01"
SUBNET = "11111111-1111-4111-8111-111111111111"
OTHER = "22222222-2222-4222-8222-222222222222"
AS_MADE: dict[str, Any] = {
    "mac_address": MAC,
    "admin_state_up": True,
    "port_security_enabled": True,
    "security_groups": [OTHER],
    "fixed_ips": [{"subnet_id": SUBNET, "ip_address": "10.0.0.7"}, {"subnet_id": OTHER, "ip_address": "2001:db8::7"}],
    "allowed_address_pairs": [{"ip_address": "10.1.0.0/24", "mac_address": MAC}],
    "device_id": "",
}
ASKED: dict[str, Any] = {
    "allowedAddressPairs": [{"ipAddress": "10.1.0.0/24"}],
    "fixedIPs": [{"subnet": SUBNET}, {"ipAddress": "2001:DB8:0::7"}],
    "securityGroups": [OTHER],
}


def told(wanted: dict[str, Any], found: dict[str, Any]) -> str:
    spec = ResolvedPortSpec.model_validate({"name": "s-0", "networkID": "n", **wanted})
    return drift.port_drift("port-0", spec, Port(AS_MADE | found), server_id="mine")


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        pytest.param({}, {"allowed_address_pairs": []}, id="nothing asked for"),
        pytest.param(ASKED, {}, id="all as asked for, in other spellings"),
        pytest.param(
            ASKED | {"allowedAddressPairs": [{"ipAddress": "10.1.0.9", "macAddress": "FA-16-3E-00-00-02"}]},
            {"allowed_address_pairs": [{"ip_address": "10.1.0.9/32", "mac_address": "fa:16:3e:00:00:02"}]},
            id="a bare address and a MAC address in capitals",
        ),
        pytest.param(ASKED, {"device_id": "mine"}, id="used by the server"),
        pytest.param(
            {"enablePortSecurity": False, "allowedAddressPairs": [{"ipAddress": "10.1.0.9"}]},
            {"port_security_enabled": False, "security_groups": [], "allowed_address_pairs": []},
            id="without port security nothing of it is asked for",
        ),
    ],
)
def test_what_is_as_it_was_asked_for_is_no_change_w_34(wanted: dict[str, Any], found: dict[str, Any]) -> None:
    assert told(wanted, found) == ""


@pytest.mark.parametrize(
    ("found", "words"),
    [
        pytest.param({"security_groups": []}, "security groups", id="groups"),
        pytest.param({"allowed_address_pairs": []}, "allowed address pairs", id="pairs"),
        pytest.param({"fixed_ips": AS_MADE["fixed_ips"][:1]}, "fixed IPs", id="address"),
        pytest.param({"fixed_ips": AS_MADE["fixed_ips"][1:]}, "fixed IPs", id="address in a subnet"),
        pytest.param({"admin_state_up": False}, "admin state", id="admin state"),
        pytest.param({"device_id": "theirs"}, "who uses it (theirs)", id="another server"),
    ],
)
def test_a_change_of_a_port_is_named_w_34(found: dict[str, Any], words: str) -> None:
    assert told(ASKED, found) == f"port-0 was changed externally: {words}"


def test_port_security_that_was_asked_for_and_is_off_is_named_w_34() -> None:
    assert told({"enablePortSecurity": True}, {"port_security_enabled": False, "allowed_address_pairs": []}) == (
        "port-0 was changed externally: port security"
    )


def again(stage: InMemoryEnvironment) -> None:
    """Expire every list, then reconcile."""
    stage.settle(for_s=3700)
    stage.patch(KIND, "s", {"metadata": {"labels": {"resync": str(stage.clock.now())}}})
    stage.settle(for_s=60)


def settled(stage: InMemoryEnvironment, **spec: Any) -> None:
    place(stage, **spec)
    again(stage)
    assert status(stage)["ready"] is True
    for type_ in ("PortsReady", "InstanceReady"):
        assert stage.condition(KIND, "s", type_).get("message", "") == ""


def test_a_port_that_somebody_changed_is_told_of_until_it_is_as_before_w_34(stage: InMemoryEnvironment) -> None:
    group = stage.member.make(f"{NETWORK_PATH}/security-groups", "security_group", name="own")
    network = stage.network("10.7.0.0/24")
    settled(stage, ports=[{"network": {"id": network["id"]}, "securityGroups": [{"id": group["id"]}]}])
    path = f"{NETWORK_PATH}/ports/{port(stage)['id']}"

    stage.member.ask("PUT", path, {"port": {"security_groups": []}})
    stage.cloud.counter.reset()
    again(stage)
    assert "port-0 was changed externally: security groups" in stage.condition(KIND, "s", "PortsReady")["message"]
    assert status(stage)["ready"] is True
    assert not [asked for asked in stage.requests() if not asked.startswith("GET") and "tokens" not in asked]

    stage.member.ask("PUT", path, {"port": {"security_groups": [group["id"]]}})
    again(stage)
    assert stage.condition(KIND, "s", "PortsReady").get("message", "") == ""


def test_metadata_tags_and_volumes_that_somebody_took_away_are_told_of_w_34(stage: InMemoryEnvironment) -> None:
    device = {"name": "etcd", "sizeGiB": 1, "storage": {"type": "Volume"}}
    settled(stage, serverMetadata=[{"key": "a", "value": "b"}], tags=["blue", "red"], additionalBlockDevices=[device])
    server_id = server(stage)["id"]
    path = f"/compute/v2.1/servers/{server_id}"
    (volume,) = stage.inventory()["volumes"]

    stage.member.ask("PUT", f"{path}/metadata", {"metadata": {"a": "c"}})
    stage.simulator.call(lambda: stage.cloud.table("compute", "servers")[server_id]["tags"].remove("red"))
    stage.member.ask("DELETE", f"{path}/os-volume_attachments/{volume}")
    again(stage)

    message = stage.condition(KIND, "s", "InstanceReady")["message"]
    assert message == f"metadata changed: a; tags removed: red; volumes detached: {volume}"
    assert status(stage)["ready"] is True
