"""The life of servers: scheduled, connected to ports and volumes, spawned, failed, stopped, deleted.

The stages follow nova-compute: a server is unknown to cells until it is scheduled, gets its ports next and its
addresses when it is ACTIVE.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from capo.simulator import ports
from capo.simulator.cinder import state
from capo.simulator.cinder.state import WantedVolume
from capo.simulator.cloud import Cloud, Json
from capo.simulator.neutron import internal
from capo.simulator.nova import instance_actions
from capo.simulator.nova.state import (
    HOST_RAM_MIB,
    HOST_VCPUS,
    Failure,
    host_of,
    long_time_of,
    notes,
    servers,
    time_of,
    touch,
)
from capo.simulator.routing import Fault

NO_HOST: Final = "No valid host was found. "
NOT_ENOUGH_HOSTS: Final = "No valid host was found. There are not enough hosts available."
# The stages before spawning take a quarter of a build each, at most so many seconds.
STAGE_LIMIT_S: Final = 0.3
VOLUME_LOOK_S: Final = 0.1
# The part of a deletion in which the server has no resources left and is still shown.
SHOWN_DELETED: Final = 0.25


def start(cloud: Cloud, server: Json) -> None:
    """Start building a server that was just recorded."""
    _later(cloud, server, _stage_s(cloud), _schedule)


def _stage_s(cloud: Cloud) -> float:
    return min(cloud.timings.server_build_s / 4, STAGE_LIMIT_S)


def _later(cloud: Cloud, server: Json, seconds: float, stage: Callable[[Cloud, Json], None]) -> None:
    """Continue with a server, unless it is being deleted or was changed externally."""

    def run() -> None:
        is_here = servers(cloud).get(server["id"]) is server
        if is_here and server["status"] == "BUILD" and server["task_state"] != "deleting":
            stage(cloud, server)

    cloud.after(seconds, run)


def _schedule(cloud: Cloud, server: Json) -> None:
    server["_is_mapped"] = True
    failure = _ordered_failure(cloud, server)
    if failure is not None:
        fail(cloud, server, failure.message, code=failure.code)
        return
    host = _pick_zone(cloud, server)
    if not isinstance(host, str):
        fail(cloud, server, NO_HOST if host is None else NOT_ENOUGH_HOSTS)
        return
    touch(cloud, server, host=host_of(host), availability_zone=host, task_state="networking")
    _later(cloud, server, _stage_s(cloud), _connect)


def _ordered_failure(cloud: Cloud, server: Json) -> Failure | None:
    for failure in notes(cloud).failures:
        if failure.times > 0 and failure.name.search(server["name"]):
            failure.times -= 1
            return failure
    return None


def _pick_zone(cloud: Cloud, server: Json) -> str | bool | None:
    """Return the zone whose host gets the server; None if none is big enough, False if a rule forbids all."""
    flavor = server["flavor"]
    if flavor["vcpus"] > HOST_VCPUS or flavor["ram"] > HOST_RAM_MIB:
        return None
    wanted = server["pinned_availability_zone"]
    zones = [zone for zone in cloud.config.zones if wanted in {None, zone}]
    group = cloud.table("compute", "server_groups").get(server["server_group"] or "")
    if group is not None:
        zones = _zones_of_group(cloud, server, group, zones)
    if not zones:
        return False
    load = [other["host"] for other in servers(cloud).values()]
    return min(zones, key=lambda zone: load.count(host_of(zone)))


def _zones_of_group(cloud: Cloud, server: Json, group: Json, zones: list[str]) -> list[str]:
    """Return the zones that a group's policy allows, the best first."""
    others = [servers(cloud).get(member) for member in group["members"] if member != server["id"]]
    used = {other["host"] for other in others if other is not None and other["host"]}
    with_members = [zone for zone in zones if host_of(zone) in used]
    without = [zone for zone in zones if host_of(zone) not in used]
    match group["policy"]:
        case "anti-affinity":
            return without
        case "affinity":
            return with_members if used else zones
        case "soft-anti-affinity":
            return without or zones
        case _:
            return with_members or zones


def _connect(cloud: Cloud, server: Json) -> None:
    """Assign ports to the server and start creating its volumes."""
    for port_id in server["port_ids"]:
        port = cloud.table("network", "ports").get(port_id)
        if port is None:
            fail(
                cloud,
                server,
                "Exceeded maximum number of retries. Exhausted all hosts available for retrying build failures for "
                f"instance {server['id']}.",
            )
            return
        if port["device_id"] not in {"", server["id"]}:
            abort(cloud, server, "Failed to allocate the network(s), not rescheduling.")
            return
    try:
        _make_ports(cloud, server)
        _make_volumes(cloud, server)
    except Fault as fault:
        abort(cloud, server, fault.message)
        return
    for port_id in server["port_ids"]:
        _bind(cloud, server, cloud.table("network", "ports")[port_id])
    touch(cloud, server, task_state="block_device_mapping" if server["_devices"] else "spawning")
    _attach_volumes(cloud, server)


def _bind(cloud: Cloud, server: Json, port: Json) -> None:
    owner = f"compute:{server['availability_zone']}"
    internal.bind_port(cloud, port["id"], device_id=server["id"], device_owner=owner, host=server["host"])


def _make_ports(cloud: Cloud, server: Json) -> None:
    for position, wanted in enumerate(server["_networks"]):
        if wanted["port_id"] is not None:
            continue
        body: Json = {"network_id": wanted["network_id"], "device_id": server["id"]}
        if wanted["fixed_ip"]:
            body["fixed_ips"] = [{"ip_address": wanted["fixed_ip"]}]
        if server["_group_ids"]:
            body["security_groups"] = server["_group_ids"]
        made = internal.create_port(cloud, server["project_id"], body)
        server["port_ids"].insert(position, made["id"])
        server["_own_port_ids"].append(made["id"])


def _make_volumes(cloud: Cloud, server: Json) -> None:
    for device in server["_devices"]:
        if device["volume_id"] is not None:
            continue
        is_blank = device["image_id"] is None
        wanted = WantedVolume(
            project_id=server["project_id"],
            user_id=server["user_id"],
            size_gib=device["size_gib"],
            name=f"{server['id']}-blank-vol" if is_blank else "",
            description="",
            type_name=device["volume_type"],
            image_id=device["image_id"],
        )
        device["volume_id"] = state.create_volume(cloud, wanted)["id"]
        device["is_own"] = True


def _attach_volumes(cloud: Cloud, server: Json) -> None:
    """Attach the volumes once all of them are created, then spawn."""
    volumes = [state.volumes(cloud).get(device["volume_id"]) for device in server["_devices"]]
    if any(volume is not None and volume["status"] == "creating" for volume in volumes):
        _later(cloud, server, max(VOLUME_LOOK_S, cloud.timings.volume_create_s / 2), _attach_volumes)
        return
    for device, volume in zip(server["_devices"], volumes, strict=True):
        if volume is None or volume["status"] == "error":
            abort(cloud, server, f"Volume {device['volume_id']} could not be found.")
            return
    for device, volume in zip(server["_devices"], volumes, strict=True):
        assert volume is not None  # noqa: S101 - checked above
        attach_volume(cloud, server, volume, device)
    touch(cloud, server, task_state="spawning")
    extra_s = float(server["metadata"].get("lab-spawn-seconds", 0))
    rest_s = cloud.timings.server_build_s - 2 * _stage_s(cloud)
    _later(cloud, server, max(rest_s, 0.0) + extra_s, _spawn)


def attach_volume(cloud: Cloud, server: Json, volume: Json, device: Json) -> None:
    """Attach a volume to a server and record it there."""
    used = {entry["device"] for entry in server["volumes_attached"]}
    letters = "abcdefghijklmnopqrstuvwxyz"
    # A root disk that is no volume has the first name.
    names = [f"/dev/sd{letter}" for letter in letters[1 if server["image_id"] else 0 :]]
    name = next(name for name in names if name not in used)
    server["volumes_attached"].append(
        {
            "volume_id": volume["id"],
            "device": name,
            "tag": device["tag"],
            "delete_on_termination": device["delete_on_termination"],
            "attachment_id": state.attach(cloud, volume, server_id=server["id"], device=name),
            "bdm_uuid": cloud.new_id(),
        }
    )


def _spawn(cloud: Cloud, server: Json) -> None:
    if server["metadata"].get("lab-spawn") == "fail":
        abort(cloud, server, "lab-spawn=fail")
        return
    touch(cloud, server, status="ACTIVE", task_state=None, launched_at=long_time_of(cloud))


def abort(cloud: Cloud, server: Json, reason: str) -> None:
    """End a build in ERROR, with nova-compute's wording."""
    fail(cloud, server, f"Build of instance {server['id']} aborted: {reason}")


def fail(cloud: Cloud, server: Json, message: str, *, code: int = 500) -> None:
    """End a build in ERROR and release the server's resources."""
    release(cloud, server)
    fault = {"code": code, "created": time_of(cloud), "message": message}
    touch(cloud, server, status="ERROR", task_state=None, fault=fault, host=None, availability_zone=None)
    instance_actions.failed(cloud, server)


def break_server(cloud: Cloud, server: Json, message: str, *, code: int = 500) -> None:
    """Put an existing server into ERROR; it keeps its host, ports and volumes."""
    fault = {"code": code, "created": time_of(cloud), "message": message}
    touch(cloud, server, status="ERROR", task_state=None, fault=fault)
    instance_actions.failed(cloud, server)


def release(cloud: Cloud, server: Json) -> None:
    """Release ports and volumes; delete those that were created for the server alone."""
    for port in ports.ports_of_device(cloud, server["id"], []):
        if port["id"] in server["_own_port_ids"]:
            internal.delete_port(cloud, port["id"])
        else:
            internal.unbind_port(cloud, port["id"])
    server["port_ids"] = [port_id for port_id in server["port_ids"] if port_id not in server["_own_port_ids"]]
    server["_own_port_ids"] = []
    dying = {entry["volume_id"] for entry in server["volumes_attached"] if entry["delete_on_termination"]}
    for device in server["_devices"]:
        if device["volume_id"] is not None:
            state.release(cloud, device["volume_id"], server_id=server["id"])
            if device["delete_on_termination"]:
                dying.add(device["volume_id"])
    for entry in server["volumes_attached"]:
        state.release(cloud, entry["volume_id"], server_id=server["id"])
    server["volumes_attached"] = []
    for volume_id in dying:
        volume = state.volumes(cloud).get(volume_id)
        if volume is not None and volume["status"] in state.DELETABLE:
            state.delete_volume(cloud, volume)


def delete(cloud: Cloud, server: Json) -> None:
    """Delete a server: at once if it has no host, otherwise after a delay. A repeated call changes nothing."""
    if server["host"] is None:
        _forget(cloud, server)
        return
    if server["task_state"] == "deleting" or server["status"] == "DELETED":
        return
    touch(cloud, server, task_state="deleting")
    takes_s = cloud.timings.server_delete_s
    cloud.after(takes_s * (1 - SHOWN_DELETED), lambda: _end(cloud, server))
    cloud.after(takes_s, lambda: _forget(cloud, server))


def _end(cloud: Cloud, server: Json) -> None:
    """Release a server's resources; for a moment it is still shown, as DELETED."""
    if servers(cloud).get(server["id"]) is server:
        release(cloud, server)
        touch(cloud, server, status="DELETED", task_state=None)
        server["terminated_at"] = long_time_of(cloud)


def _forget(cloud: Cloud, server: Json) -> None:
    if servers(cloud).get(server["id"]) is not server:
        return
    if server["status"] != "DELETED":
        _end(cloud, server)
    for group in cloud.table("compute", "server_groups").values():
        if server["id"] in group["members"]:
            group["members"].remove(server["id"])
    del servers(cloud)[server["id"]]
    if not server["_is_mapped"]:
        return
    touch(cloud, server, tags=[], metadata={})
    notes(cloud).deleted[server["id"]] = server


def power(cloud: Cloud, server: Json, *, task: str, status: str) -> None:
    """Start, stop or reboot a server: the task is shown at once, the result after a delay."""
    touch(cloud, server, task_state=task)

    def done() -> None:
        if servers(cloud).get(server["id"]) is server and server["task_state"] == task:
            touch(cloud, server, status=status, task_state=None)

    cloud.after(cloud.timings.server_action_s, done)
