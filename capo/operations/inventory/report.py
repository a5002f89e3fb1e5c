"""An inventory for people, as trees, and for programs; pure but for the console."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from capo.json_types import Json
from capo.operations.console import Cell, Console, Node
from capo.operations.inventory.attribution import Attribution, Basis
from capo.operations.inventory.resource import Size
from capo.operations.owners import ClusterName

COLUMNS: Final = ("RESOURCE", "NAME", "STATE", "AGE", "ADDRESS", "ZONE", "SIZE")
WIDE: Final = ("ID", "BASIS", "OWNER ID", "PROJECT")
_GOOD: Final = ("ACTIVE", "AVAILABLE", "IN-USE", "DOWN")
_ORDER: Final = (
    "server",
    "load_balancer",
    "listener",
    "pool",
    "health_monitor",
    "member",
    "floating_ip",
    "network",
    "subnet",
    "router",
    "security_group",
    "server_group",
    "volume",
    "trunk",
    "port",
)
_MINUTE_S: Final = 60
_AGES: Final = ((86400, "d"), (3600, "h"), (_MINUTE_S, "m"))


@dataclass(frozen=True)
class Inventory:
    """What was found.

    Args:
        shown: what the command was asked for.
        others: how many more resources the projects have.
        failures: one sentence for each part that could not be read.
        has_management: whether a management cluster was read, so that owners without an object mean something.
    """

    shown: Sequence[Attribution]
    others: int = 0
    failures: Sequence[str] = ()
    has_management: bool = True


def show(found: Inventory, console: Console) -> None:
    """Print an inventory in the format of the console."""
    if console.wants_data:
        console.data(to_json(found))
        return
    columns = (*COLUMNS, *(WIDE if console.is_wide else ()))
    console.tree(columns, list(trees(found, is_wide=console.is_wide)))
    if not found.shown:
        console.line("no resources")
    if found.others:
        console.line(
            f"{found.others} more resources in the same projects belong to others, or have no known owner", "dim"
        )


def trees(found: Inventory, *, is_wide: bool) -> Iterable[Node]:
    """Return a tree for each cluster, for each object without one, and for what has no known owner."""
    for label, group in _grouped(found.shown, lambda each: _root(each, has_management=found.has_management)):
        owners = _grouped(group, _branch)
        children = [_owner(name, members, is_wide=is_wide) for name, members in owners]
        parts = children[0].children if len(children) == 1 and children[0].label == label else children
        yield Node(label, ["", "", "", "", "", total(group).total()], parts)


def _grouped(
    found: Iterable[Attribution], label: Callable[[Attribution], tuple[int, str]]
) -> list[tuple[str, list[Attribution]]]:
    groups: dict[tuple[int, str], list[Attribution]] = {}
    for each in found:
        groups.setdefault(label(each), []).append(each)
    return [(name, groups[rank, name]) for rank, name in sorted(groups)]


def _root(each: Attribution, *, has_management: bool) -> tuple[int, str]:
    if each.cluster is not None:
        is_doubtful = has_management and not each.is_known
        return (1, f"{each.cluster} (no object)") if is_doubtful else (0, str(each.cluster))
    if each.owner is not None:
        return 2, str(each.owner)
    return (3, f"owner {each.owner_id}") if each.owner_id else (4, "no known owner")


def _branch(each: Attribution) -> tuple[int, str]:
    if each.owner is not None:
        return (0 if each.owner.kind == "OpenStackCluster" else 1), f"{each.owner.kind} {each.owner.name}"
    if each.owner_id:
        return 2, f"owner {each.owner_id}"
    words = {Basis.NAME: (3, "by name"), Basis.PART: (4, "parts"), Basis.WORKLOAD: (5, "workloads")}
    return words.get(each.basis, (6, "no known owner"))


def _owner(label: str, members: Sequence[Attribution], *, is_wide: bool) -> Node:
    ordered = sorted(members, key=lambda each: (_rank(each), each.role, each.resource.name, each.resource.id))
    return Node(label, (), [_row(each, is_wide=is_wide) for each in ordered])


def _rank(each: Attribution) -> int:
    return _ORDER.index(each.resource.kind) if each.resource.kind in _ORDER else len(_ORDER)


def _row(each: Attribution, *, is_wide: bool) -> Node:
    resource = each.resource
    role = f" {each.role}" if each.role and each.role not in (resource.word, "workload") else ""
    cells: list[str | Cell] = [
        resource.name,
        Cell(resource.state, style_of(resource.state)),
        age(resource.age_s),
        ",".join(resource.addresses),
        resource.zone,
        str(resource.size),
    ]
    more = [resource.id, each.basis.value, each.owner_id, resource.location] if is_wide else []
    return Node(f"{resource.word}{role}", [*cells, *more])


def style_of(state: str) -> str:
    """Return the style of a state."""
    first = state.partition(" ")[0].partition("/")[0]
    if first in _GOOD or not first:
        return "good" if first and first != "DOWN" else ""
    return "bad" if "ERROR" in state or "DEGRADED" in state else "warning"


def age(age_s: float | None) -> str:
    """Return an age in the largest unit that fits, as kubectl prints it."""
    if age_s is None:
        return ""
    found = next(((age_s // unit_s, unit) for unit_s, unit in _AGES if age_s >= unit_s), (age_s // 1, "s"))
    return f"{int(found[0])}{found[1]}"


def total(found: Iterable[Attribution]) -> Size:
    """Return what resources cost together."""
    return sum((each.resource.size for each in found), Size())


def to_json(found: Inventory) -> Json:
    """Return an inventory for programs."""
    clusters = _grouped([each for each in found.shown if each.cluster], lambda each: (0, str(each.cluster)))
    return {
        "clusters": [_cluster(members) for _, members in clusters],
        "resources": [resource_json(each) for each in found.shown],
        "others": found.others,
        "failures": list(found.failures),
    }


def _cluster(members: Sequence[Attribution]) -> Json:
    return {
        "cluster": _cluster_json(members[0].cluster),
        "isKnown": any(each.is_known for each in members),
        "resources": len(members),
        "total": total(members).to_json(),
    }


def _cluster_json(cluster: ClusterName | None) -> Json | None:
    return {"namespace": cluster.namespace, "name": cluster.name} if cluster else None


def resource_json(each: Attribution) -> Json:
    """Return a resource for programs."""
    resource, owner = each.resource, each.owner
    found: dict[str, Any] = {
        "kind": resource.kind,
        "id": resource.id,
        "name": resource.name,
        "role": each.role,
        "basis": each.basis.value,
        "ownerID": each.owner_id,
        "owner": {"kind": owner.kind, "namespace": owner.namespace, "name": owner.name} if owner else None,
        "managementCluster": owner.management if owner else None,
        "cluster": _cluster_json(each.cluster),
        "state": resource.state,
        "created": resource.created,
        "ageSeconds": None if resource.age_s is None else int(resource.age_s),
        "addresses": resource.addresses,
        "zone": resource.zone,
        "size": resource.size.to_json(),
        "project": resource.location,
    }
    return found
