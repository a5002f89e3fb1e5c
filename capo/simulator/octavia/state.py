"""Load balancers and their parts as Octavia stores them, and how a change passes through PENDING to its end.

Parts refer to their parents (`loadbalancer_id`, `pool_id`); `view` inverts that.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Final
from weakref import WeakKeyDictionary

from capo.simulator.cloud import Cloud, Json, Table
from capo.simulator.octavia.service import forbidden, is_admin, service
from capo.simulator.routing import Fault, Request

TITLES: Final = {
    "loadbalancers": "Load Balancer",
    "listeners": "Listener",
    "pools": "Pool",
    "members": "Member",
    "healthmonitors": "Health Monitor",
}


@dataclass(slots=True)
class Failure:
    """Changes of load balancers that end in ERROR.

    Args:
        name: Regular expression for the names of the load balancers.
    """

    name: re.Pattern[str]
    times: int = 1


@dataclass(slots=True)
class PartFailure:
    """Parts of load balancers that do not become ACTIVE although their load balancer does.

    Octavia writes the state of each part on its own, and the load balancer's last, whether the change failed or not.
    Source: octavia/controller/worker/v2/tasks/lifecycle_tasks.py, `MemberToErrorOnRevertTask` and those beside it.

    Args:
        kind: Of the parts, as `members`.
        name: Regular expression for the names of the parts.
        status: The state that they have instead.
        for_s: Seconds after which they become ACTIVE; None for never.
    """

    kind: str
    name: re.Pattern[str]
    status: str = "ERROR"
    for_s: float | None = None
    times: int = 1


@dataclass(slots=True)
class Notes:
    """Octavia's state besides its resources."""

    failures: list[Failure] = field(default_factory=list)
    part_failures: list[PartFailure] = field(default_factory=list)


_NOTES: Final[WeakKeyDictionary[Cloud, Notes]] = WeakKeyDictionary()


def notes(cloud: Cloud) -> Notes:
    """Return the notes of a cloud."""
    return _NOTES.setdefault(cloud, Notes())


def table(cloud: Cloud, kind: str) -> Table:
    """Return the resources of a kind by id."""
    return cloud.table("load-balancer", kind)


def vips_of(balancer: Json) -> list[str]:
    """Return the virtual addresses of a load balancer."""
    more = [each["ip_address"] for each in balancer["additional_vips"]]
    return [balancer["vip_address"], *(address for address in more if address)]


def time_of(cloud: Cloud) -> str:
    """Return the time in Octavia's format."""
    return f"{cloud.now():%Y-%m-%dT%H:%M:%S}"


def missing(kind: str, resource_id: str) -> Fault:
    return Fault(404, f"{TITLES[kind]} {resource_id} not found.")


def find(request: Request, kind: str, resource_id: str) -> Json:
    """Return a resource of the caller's.

    Raises:
        Fault: 404 if it does not exist, 403 if it belongs to another project.
    """
    found = table(request.cloud, kind).get(resource_id)
    if found is None:
        raise missing(kind, resource_id)
    if found["project_id"] != request.project_id and not is_admin(request):
        raise forbidden()
    return found


def new(cloud: Cloud, values: Json, project_id: str, **more: str | None) -> Json:
    """Return a new resource, in PENDING_CREATE."""
    return {
        "id": cloud.new_id(),
        **values,
        "project_id": project_id,
        "provisioning_status": "PENDING_CREATE",
        "operating_status": "OFFLINE",
        "created_at": time_of(cloud),
        "updated_at": None,
        **more,
    }


def listeners_of(cloud: Cloud, balancer_id: str) -> list[Json]:
    """Return the listeners of a load balancer."""
    return [item for item in table(cloud, "listeners").values() if item["loadbalancer_id"] == balancer_id]


def pools_of(cloud: Cloud, balancer_id: str) -> list[Json]:
    """Return the pools of a load balancer."""
    return [item for item in table(cloud, "pools").values() if item["loadbalancer_id"] == balancer_id]


def listeners_with(cloud: Cloud, pool_id: str) -> list[Json]:
    """Return the listeners whose default pool this is."""
    return [item for item in table(cloud, "listeners").values() if item["default_pool_id"] == pool_id]


def members_of(cloud: Cloud, pool_id: str) -> list[Json]:
    """Return the members of a pool."""
    return [item for item in table(cloud, "members").values() if item["pool_id"] == pool_id]


def monitor_of(cloud: Cloud, pool_id: str) -> Json | None:
    """Return the health monitor of a pool."""
    return next((item for item in table(cloud, "healthmonitors").values() if item["pool_id"] == pool_id), None)


def balancer_of(cloud: Cloud, part: Json) -> Json:
    """Return the load balancer of a listener or pool."""
    return table(cloud, "loadbalancers")[part["loadbalancer_id"]]


def check_mutable(parent: Json, title: str, resource_id: str) -> None:
    """Refuse a change of a part while its load balancer or pool is not ACTIVE.

    Raises:
        Fault: 409 that names the resource that is locked.
    """
    if parent["provisioning_status"] != "ACTIVE":
        raise Fault(409, f"{title} {resource_id} is immutable and cannot be updated.")


def check_pool_mutable(cloud: Cloud, pool: Json) -> None:
    """Refuse a change inside a pool while it or its load balancer is not ACTIVE.

    Raises:
        Fault: 409.
    """
    for each in (pool, balancer_of(cloud, pool)):
        check_mutable(each, "Pool", pool["id"])


def check_state(balancer: Json, *states: str) -> None:
    """Refuse a change of a load balancer itself in another state.

    Raises:
        Fault: 409.
    """
    status = balancer["provisioning_status"]
    if status not in states:
        raise Fault(409, f"Invalid state {status} of loadbalancer resource {balancer['id']}")


def nothing() -> None:
    """Do nothing at the end of a change."""


def change(  # noqa: PLR0913 - each is a fact of the change
    cloud: Cloud,
    balancer: Json,
    parts: Iterable[tuple[Json, str]],
    *,
    seconds: float,
    finish: Callable[[], None] = nothing,
    status: str = "PENDING_UPDATE",
) -> None:
    """Put a load balancer and parts of it into PENDING states; all become ACTIVE after a delay.

    Args:
        parts: Resources with the state of each during the change.
        finish: Called at the end, before the states change, such as to remove what was deleted.
        status: The load balancer's state during the change.
    """
    touched = [balancer]
    balancer["provisioning_status"] = status
    for part, pending in parts:
        part["provisioning_status"] = pending
        touched.append(part)
    cloud.after(seconds, lambda: _settle(cloud, touched, status, finish))


def _settle(cloud: Cloud, touched: list[Json], status: str, finish: Callable[[], None]) -> None:
    balancer = touched[0]
    is_here = table(cloud, "loadbalancers").get(balancer["id"]) is balancer
    if not is_here or balancer["provisioning_status"] != status:
        return
    if _fails(cloud, balancer):
        end = "ERROR"
    else:
        finish()
        end = "ACTIVE"
    for resource in touched:
        own_end = _end_of_part(cloud, resource) if end == "ACTIVE" else end
        resource |= {"provisioning_status": own_end, "updated_at": time_of(cloud)}
        if own_end == "ACTIVE" and resource["id"] in table(cloud, "healthmonitors"):
            resource["operating_status"] = "ONLINE"


def _fails(cloud: Cloud, balancer: Json) -> bool:
    for failure in notes(cloud).failures:
        if failure.times > 0 and failure.name.search(balancer["name"]):
            failure.times -= 1
            return True
    return False


def _end_of_part(cloud: Cloud, part: Json) -> str:
    for failure in notes(cloud).part_failures:
        if failure.times > 0 and part["id"] in table(cloud, failure.kind) and failure.name.search(part["name"]):
            failure.times -= 1
            if failure.for_s is not None:
                cloud.after(failure.for_s, lambda: part.update(provisioning_status="ACTIVE", updated_at=time_of(cloud)))
            return failure.status
    return "ACTIVE"


def around_pool(cloud: Cloud, pool: Json) -> list[tuple[Json, str]]:
    """Return a pool and its listeners, all of which are pending during a change inside the pool."""
    return [(pool, "PENDING_UPDATE"), *((item, "PENDING_UPDATE") for item in listeners_with(cloud, pool["id"]))]


def drop_pool(cloud: Cloud, pool_id: str) -> None:
    """Delete a pool with its members and monitor."""
    for kind in ("members", "healthmonitors"):
        for part_id in [item["id"] for item in table(cloud, kind).values() if item["pool_id"] == pool_id]:
            del table(cloud, kind)[part_id]
    for listener in listeners_with(cloud, pool_id):
        listener["default_pool_id"] = None
    table(cloud, "pools").pop(pool_id, None)


@service.tweak("fail_changes")
def fail_changes(cloud: Cloud, order: Json) -> Json:
    """End the next changes in ERROR: `{"name": regular expression, "times": 1}`, both optional."""
    failure = Failure(re.compile(order.get("name", "")), int(order.get("times", 1)))
    notes(cloud).failures.append(failure)
    return {"pending": sum(item.times for item in notes(cloud).failures)}


@service.tweak("fail_parts")
def fail_parts(cloud: Cloud, order: Json) -> Json:
    """End the next changes of parts in another state than ACTIVE: `{"kind": "members", "name": regular expression}`.

    Optional: `name`, `status` (ERROR), `for_s` (for ever), `times` (1).
    """
    failure = PartFailure(order["kind"], re.compile(order.get("name", "")))
    failure.status, failure.for_s = order.get("status", failure.status), order.get("for_s")
    failure.times = int(order.get("times", failure.times))
    notes(cloud).part_failures.append(failure)
    return {"pending": sum(item.times for item in notes(cloud).part_failures)}
