from __future__ import annotations

import base64
import math
from typing import Any

import pytest

from capo.simulator.tests.environment import CINDER, NEUTRON, NOBODY, NOVA, SimulatorEnvironment, stage

__all__ = ["stage"]
BOOT = {"boot_index": 0, "source_type": "image", "destination_type": "volume", "volume_size": 3}


def test_a_server_is_built_in_stages_and_takes_its_port(stage: SimulatorEnvironment) -> None:
    port = stage.port(stage.network()[0])

    server = stage.server(networks=[{"port": port}], availability_zone="az2", tags=["mine"], key_name="lab")

    assert stage.server_of(server)["status"] == "BUILD"
    assert stage.port_of(port)["device_id"] == ""
    stage.clock.move(0.6)
    seen = stage.server_of(server)
    assert (seen["status"], seen["OS-EXT-STS:task_state"], seen["addresses"]) == ("BUILD", "spawning", {})
    stage.clock.move(1)
    seen, owned = stage.server_of(server), stage.port_of(port)
    assert (seen["status"], seen["OS-EXT-AZ:availability_zone"], seen["tags"]) == ("ACTIVE", "az2", ["mine"])
    assert seen["addresses"]["net"][0]["addr"] == owned["fixed_ips"][0]["ip_address"]
    assert (owned["device_id"], owned["device_owner"], owned["status"]) == (server, "compute:az2", "ACTIVE")


def test_the_answer_to_a_create_holds_little_more_than_the_id(stage: SimulatorEnvironment) -> None:
    made = stage.nova("POST", "/servers", stage.body())["server"]

    assert set(made) == {"id", "links", "OS-DCF:diskConfig", "security_groups", "adminPass"}


def test_a_build_that_never_ends_stays_in_build(stage: SimulatorEnvironment) -> None:
    stage.simulator.cloud.timings.server_build_s = math.inf

    server = stage.server()

    stage.clock.move(10_000)
    assert stage.server_of(server)["status"] == "BUILD"


def test_user_data_is_kept_and_shown_to_an_admin(stage: SimulatorEnvironment) -> None:
    data = base64.b64encode(b"#cloud-config").decode()

    server = stage.built(user_data=data)

    found = stage.admin.ask("GET", f"{NOVA}/servers/{server}", headers={"OpenStack-API-Version": "compute 2.3"})
    assert found["server"]["OS-EXT-SRV-ATTR:user_data"] == data
    assert "OS-EXT-SRV-ATTR:user_data" not in stage.server_of(server)


def test_deletion_takes_a_while_and_leaves_the_clients_port(stage: SimulatorEnvironment) -> None:
    port = stage.port(stage.network()[0])
    server = stage.built(networks=[{"port": port}])

    stage.nova("DELETE", f"/servers/{server}")

    assert stage.server_of(server)["OS-EXT-STS:task_state"] == "deleting"
    stage.nova("DELETE", f"/servers/{server}")
    stage.clock.move(1)
    status, body = stage.refused("GET", f"{NOVA}/servers/{server}")
    assert (status, body["itemNotFound"]["message"]) == (404, f"Instance {server} could not be found.")
    left = stage.port_of(port)
    assert (left["device_id"], left["device_owner"], left["status"]) == ("", "", "DOWN")


def test_a_port_that_nova_made_goes_with_the_server(stage: SimulatorEnvironment) -> None:
    network, _ = stage.network()
    server = stage.built(networks=[{"uuid": network}])
    ports = f"{NEUTRON}/ports?network_id={network}"
    assert [port["device_id"] for port in stage.member.ask("GET", ports)["ports"]] == [server]

    stage.nova("DELETE", f"/servers/{server}")
    stage.clock.move(1)

    assert stage.member.ask("GET", ports) == {"ports": []}


def test_changes_since_shows_deleted_servers_without_tags(stage: SimulatorEnvironment) -> None:
    gone, kept = stage.built(name="gone", tags=["mine"]), stage.built(name="kept", tags=["mine"])
    stage.nova("DELETE", f"/servers/{gone}")
    stage.clock.move(10)

    def found(query: str) -> list[tuple[str, str]]:
        servers = stage.nova("GET", f"/servers/detail?{query}")["servers"]
        return [(server["id"], server["status"]) for server in servers]

    since = "changes-since=2000-01-01T00:00:00Z"
    assert found("") == [(kept, "ACTIVE")]
    assert found(since) == [(kept, "ACTIVE"), (gone, "DELETED")]
    assert found(f"{since}&tags=mine") == [(kept, "ACTIVE")]
    assert found("changes-since=2999-01-01T00:00:00Z") == []


@pytest.mark.parametrize(
    ("query", "is_found"),
    [
        pytest.param("name=^worker-0$", True, id="name exactly"),
        pytest.param("name=ORKER", True, id="a part of the name in any case"),
        pytest.param("name=^orker", False, id="another beginning"),
        pytest.param("tags=a,b", True, id="all tags"),
        pytest.param("tags=a,c", False, id="not all tags"),
        pytest.param("tags-any=a,c", True, id="any tag"),
        pytest.param("not-tags=a", False, id="without a tag"),
        pytest.param("status=active", True, id="status"),
        pytest.param("status=ERROR", False, id="another status"),
        pytest.param("limit=0", False, id="no page"),
        pytest.param("locked=true", False, id="locked"),
    ],
)
def test_servers_are_filtered_as_nova_does(stage: SimulatorEnvironment, query: str, is_found: bool) -> None:
    server = stage.built(name="worker-0", tags=["a", "b"])

    found = stage.nova("GET", f"/servers?{query}")["servers"]

    assert [item["id"] for item in found] == ([server] if is_found else [])


def test_pages_of_servers_follow_their_links(stage: SimulatorEnvironment) -> None:
    servers = [stage.server(name=f"s{number}") for number in range(3)]

    first = stage.nova("GET", "/servers?limit=2")
    rest = stage.member.ask("GET", first["servers_links"][0]["href"].removeprefix(stage.simulator.url))

    assert [server["id"] for server in first["servers"] + rest["servers"]] == servers[::-1]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        pytest.param({"metadata": {"lab-spawn": "fail"}}, "Build of instance {id} aborted: lab-spawn=fail", id="spawn"),
        pytest.param({"flavorRef": "lab.too-big"}, "No valid host was found. ", id="too big"),
    ],
)
def test_a_build_that_fails_ends_in_error_with_a_fault(
    stage: SimulatorEnvironment, values: dict[str, Any], message: str
) -> None:
    port = stage.port(stage.network()[0])
    if "flavorRef" in values:
        values = {"flavorRef": stage.flavor(values["flavorRef"])}

    server = stage.built(networks=[{"port": port}], **values)

    seen = stage.server_of(server)
    assert (seen["status"], seen["fault"]["code"]) == ("ERROR", 500)
    assert seen["fault"]["message"] == message.format(id=server)
    assert stage.port_of(port)["device_id"] == ""
    stage.nova("DELETE", f"/servers/{server}")
    assert stage.refused("GET", f"{NOVA}/servers/{server}")[0] == 404


def test_builds_can_be_ordered_to_fail(stage: SimulatorEnvironment) -> None:
    stage.tweak("compute/fail_builds", name="^bad", message="The rack is on fire.", code=503)

    good, bad, better = stage.built(name="good"), stage.built(name="bad-1"), stage.built(name="bad-2")

    assert [stage.server_of(server)["status"] for server in (good, bad, better)] == ["ACTIVE", "ERROR", "ACTIVE"]
    assert stage.server_of(bad)["fault"]["message"] == "The rack is on fire."


def test_a_running_server_can_be_broken(stage: SimulatorEnvironment) -> None:
    server = stage.built()

    stage.tweak("compute/break_server", id=server, message="The host is gone.")

    assert (stage.server_of(server)["status"], stage.server_of(server)["fault"]["code"]) == ("ERROR", 500)


def test_two_servers_on_one_port_cannot_both_be_built(stage: SimulatorEnvironment) -> None:
    port = stage.port(stage.network()[0])
    first, second = stage.server(networks=[{"port": port}]), stage.server(networks=[{"port": port}])

    stage.clock.move(5)

    assert (stage.server_of(first)["status"], stage.server_of(second)["status"]) == ("ACTIVE", "ERROR")
    assert "Failed to allocate the network(s)" in stage.server_of(second)["fault"]["message"]


def test_a_server_boots_from_a_new_volume_that_goes_with_it(stage: SimulatorEnvironment) -> None:
    device = {**BOOT, "uuid": stage.image(), "delete_on_termination": True, "volume_type": "ssd"}

    server = stage.built(imageRef="", block_device_mapping_v2=[device])

    seen = stage.server_of(server)
    volume = stage.volume_of(seen["os-extended-volumes:volumes_attached"][0]["id"])
    assert (seen["status"], seen["image"]) == ("ACTIVE", "")
    assert (volume["status"], volume["size"], volume["volume_type"]) == ("in-use", 3, "ssd")
    stage.nova("DELETE", f"/servers/{server}")
    stage.clock.move(1)
    assert stage.refused("GET", f"{CINDER}/volumes/{volume['id']}")[0] == 404


def test_prepared_volumes_are_attached_and_stay(stage: SimulatorEnvironment) -> None:
    root, data = stage.volume(imageRef=stage.image()), stage.volume()
    devices = [
        {"boot_index": 0, "uuid": root, "source_type": "volume", "destination_type": "volume"},
        {"boot_index": -1, "uuid": data, "source_type": "volume", "destination_type": "volume", "tag": "etcd"},
    ]

    server = stage.built(imageRef="", block_device_mapping_v2=devices)

    attached = stage.nova("GET", f"/servers/{server}/os-volume_attachments")["volumeAttachments"]
    assert [(entry["volumeId"], entry["device"], entry["tag"]) for entry in attached] == [
        (root, "/dev/sda", None),
        (data, "/dev/sdb", "etcd"),
    ]
    stage.nova("DELETE", f"/servers/{server}")
    stage.clock.move(1)
    assert [stage.volume_of(volume)["status"] for volume in (root, data)] == ["available", "available"]


def test_a_volume_that_was_detached_outlives_the_server(stage: SimulatorEnvironment) -> None:
    root, data = stage.volume(imageRef=stage.image()), stage.volume()
    dying = {"source_type": "volume", "destination_type": "volume", "delete_on_termination": True}
    devices = [{**dying, "boot_index": 0, "uuid": root}, {**dying, "boot_index": -1, "uuid": data}]
    server = stage.built(imageRef="", block_device_mapping_v2=devices)

    stage.nova("DELETE", f"/servers/{server}/os-volume_attachments/{data}")
    stage.clock.move(1)
    stage.nova("DELETE", f"/servers/{server}")
    stage.clock.move(1)

    assert stage.volume_of(data)["status"] == "available"
    assert stage.refused("GET", f"{CINDER}/volumes/{root}")[0] == 404


def test_a_volume_over_quota_fails_the_build(stage: SimulatorEnvironment) -> None:
    quota = f"{CINDER}/os-quota-sets/{stage.member.project_id}"
    stage.admin.ask("PUT", quota, {"quota_set": {"volumes": 0}})

    server = stage.built(imageRef="", block_device_mapping_v2=[{**BOOT, "uuid": stage.image()}])

    assert stage.server_of(server)["fault"]["message"] == (
        f"Build of instance {server} aborted: VolumeLimitExceeded: "
        "Maximum number of volumes allowed (0) exceeded for quota 'volumes'."
    )


def test_anti_affinity_spreads_over_hosts_and_runs_out(stage: SimulatorEnvironment) -> None:
    wanted = {"server_group": {"name": "g", "policy": "anti-affinity"}}
    group = stage.nova("POST", "/os-server-groups", wanted)["server_group"]["id"]
    hints = {"os:scheduler_hints": {"group": group}}

    made = [stage.nova("POST", "/servers", {**stage.body(), **hints})["server"]["id"] for _ in range(3)]
    stage.clock.move(5)

    zones = [stage.server_of(server)["OS-EXT-AZ:availability_zone"] for server in made]
    assert (zones, stage.server_of(made[0])["server_groups"]) == (["az1", "az2", ""], [group])
    assert stage.server_of(made[2])["fault"]["message"] == (
        "No valid host was found. There are not enough hosts available."
    )
    members = stage.nova("GET", f"/os-server-groups/{group}")["server_group"]["members"]
    assert members == sorted(made)


def test_a_server_is_stopped_and_started(stage: SimulatorEnvironment) -> None:
    server = stage.built()

    stage.nova("POST", f"/servers/{server}/action", {"os-stop": None})
    assert stage.server_of(server)["OS-EXT-STS:task_state"] == "powering-off"
    stage.clock.move(1)

    assert stage.server_of(server)["status"] == "SHUTOFF"
    status, body = stage.refused("POST", f"{NOVA}/servers/{server}/action", {"os-stop": None})
    assert (status, body["conflictingRequest"]["message"]) == (
        409,
        f"Cannot 'stop' instance {server} while it is in vm_state stopped",
    )
    stage.nova("POST", f"/servers/{server}/action", {"os-start": None})
    stage.clock.move(1)
    assert stage.server_of(server)["status"] == "ACTIVE"


def test_a_cell_that_is_down_shows_unknown_servers_from_2_69(stage: SimulatorEnvironment) -> None:
    server = stage.built(name="s", tags=["a"])
    stage.tweak("compute/cell", down=True)
    old = {"OpenStack-API-Version": "compute 2.68"}

    seen = stage.nova("GET", "/servers/detail")["servers"]
    assert [(set(item), item["status"]) for item in seen] == [
        ({"id", "status", "tenant_id", "created", "links"}, "UNKNOWN")
    ]
    assert stage.server_of(server)["status"] == "UNKNOWN"
    assert stage.nova("GET", "/servers?tags=a") == {"servers": []}
    assert stage.nova("GET", "/servers", headers=old) == {"servers": []}
    assert stage.refused("GET", f"{NOVA}/servers/{server}", headers=old)[0] == 500
    assert stage.refused("DELETE", f"{NOVA}/servers/{server}")[0] == 500
    stage.tweak("compute/cell", down=False)
    assert stage.server_of(server)["status"] == "ACTIVE"


def test_ports_come_and_go_on_a_running_server(stage: SimulatorEnvironment) -> None:
    port = stage.port(stage.network()[0])
    server = stage.built()
    interfaces = f"/servers/{server}/os-interface"

    stage.nova("POST", interfaces, {"interfaceAttachment": {"port_id": port}})

    assert [entry["port_id"] for entry in stage.nova("GET", interfaces)["interfaceAttachments"]] == [port]
    stage.nova("DELETE", f"{interfaces}/{port}")
    stage.clock.move(1)
    assert stage.nova("GET", interfaces) == {"interfaceAttachments": []}
    assert stage.port_of(port)["device_id"] == ""


def test_a_floating_ip_shows_among_the_addresses(stage: SimulatorEnvironment) -> None:
    network, subnet = stage.network()
    external = stage.member.ask("GET", f"{NEUTRON}/networks?name=public")["networks"][0]["id"]
    gateway = {"network_id": external}
    router = stage.member.make(f"{NEUTRON}/routers", "router", external_gateway_info=gateway)["id"]
    stage.member.ask("PUT", f"{NEUTRON}/routers/{router}/add_router_interface", {"subnet_id": subnet})
    port = stage.port(network)
    server = stage.built(networks=[{"port": port}])

    floating = stage.member.make(f"{NEUTRON}/floatingips", "floatingip", floating_network_id=external, port_id=port)[
        "floating_ip_address"
    ]

    entries = stage.server_of(server)["addresses"]["net"]
    assert [(entry["OS-EXT-IPS:type"]) for entry in entries] == ["fixed", "floating"]
    assert entries[1]["addr"] == floating


def test_a_port_that_never_becomes_active_does_not_hold_the_server_back(stage: SimulatorEnvironment) -> None:
    stage.simulator.cloud.timings.port_active_s = math.inf
    port = stage.port(stage.network()[0])

    server = stage.built(networks=[{"port": port}])

    assert (stage.server_of(server)["status"], stage.port_of(port)["status"]) == ("ACTIVE", "DOWN")


def test_tags_can_be_replaced_and_removed_one_by_one(stage: SimulatorEnvironment) -> None:
    server = stage.built(tags=["a"])
    tags = f"/servers/{server}/tags"

    stage.nova("PUT", tags, {"tags": ["b", "c"]})
    stage.nova("PUT", f"{tags}/d")
    stage.nova("DELETE", f"{tags}/b")

    assert stage.nova("GET", tags) == {"tags": ["c", "d"]}
    assert stage.refused("GET", f"{NOVA}{tags}/b")[0] == 404
    assert stage.refused("GET", f"{NOVA}/servers/{NOBODY}/tags")[0] == 404


def test_keypairs_belong_to_their_user(stage: SimulatorEnvironment) -> None:
    key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAINbeEFI1k/aQms0lSknRQjtaxjy2SWWMvLzjmvzbs2GI x"

    stage.nova("POST", "/os-keypairs", {"keypair": {"name": "mine", "type": "ssh", "public_key": key}})

    assert [entry["keypair"]["name"] for entry in stage.nova("GET", "/os-keypairs")["keypairs"]] == ["lab", "mine"]
    assert stage.admin.ask("GET", f"{NOVA}/os-keypairs") == {"keypairs": []}
    stage.nova("DELETE", "/os-keypairs/mine")
    assert stage.refused("GET", f"{NOVA}/os-keypairs/mine")[0] == 404


def test_nothing_of_a_deleted_server_is_left_in_the_inventory(stage: SimulatorEnvironment) -> None:
    network, _ = stage.network()
    before = stage.member.ask("GET", "/_simulator/inventory")
    device = {**BOOT, "uuid": stage.image(), "delete_on_termination": True}
    server = stage.built(imageRef="", networks=[{"uuid": network}], block_device_mapping_v2=[device])
    assert [s["id"] for s in stage.member.ask("GET", "/_simulator/inventory")["compute"]["servers"]] == [server]

    stage.nova("DELETE", f"/servers/{server}")
    stage.clock.move(1)

    after = stage.member.ask("GET", "/_simulator/inventory")
    assert {kind: items for kinds in after.values() for kind, items in kinds.items() if items} == {
        kind: items for kinds in before.values() for kind, items in kinds.items() if items
    } | {"security_groups": after["network"]["security_groups"]} | {
        "security_group_rules": after["network"]["security_group_rules"]
    }
