"""The resources of the cloud and the statuses, in a form that can be compared before and after an edit."""

from __future__ import annotations

import collections
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from capo import names
from capo.json_types import Json
from capo.kube.kinds import OPENSTACK_CLUSTER, OPENSTACK_SERVER
from e2e.misoperation.environment import RunningObjectEnvironment
from environments.provider import NAME

BASTION: Final = f"{NAME}-bastion"
BASTION_ROLES: Final = ("fip-bastion", "group-bastion")
OWNED_BY: Final = ("name", "description", "device_id", "tags", "metadata")
"""Fields in which a resource names its owner."""
RULES: Final = "security_group_rules"
"""Rules cannot be updated in Neutron: a changed rule has another id, so they are compared by content."""
OF_ADDRESS: Final = "network:floatingip"
"""Owner of the port that Neutron creates and deletes with each floating IP."""
VOLATILE: Final = frozenset(
    {
        *("id", "created_at", "updated_at", "created", "updated", "launched_at", "revision_number"),
        *("host", "binding:host_id", "device_owner", "reservation_id", "attachment_id", "bdm_uuid", "attached_at"),
        *("resources", "conditions"),
    }
)
"""Fields of resources and statuses that differ each time, or that the test checks separately."""
SUBSTITUTES: Final = (
    (re.compile(r"capo:[a-z0-9]{13}"), "capo"),
    (re.compile(r"fa:16:3e(:[0-9a-f]{2}){3}"), "MAC"),
    (re.compile(r"10\.6\.0\.[1-9]\d*"), "ADDRESS"),
)


@dataclass(frozen=True)
class Snapshot:
    """The state at one moment.

    Args:
        ids: kind by id, of everything except the bastion's resources and rules.
        bastion: the same of the bastion's resources.
        address: floating IP address of the bastion, empty for none.
        facts: every resource and every status in text, ids replaced by names.
    """

    ids: Mapping[str, str]
    bastion: Mapping[str, str]
    address: str
    facts: collections.Counter[str]

    def lost(self, later: Snapshot) -> list[str]:
        """Return the resources that are missing later, except the bastion's."""
        return sorted(f"{kind} {id_}" for id_, kind in self.ids.items() if id_ not in later.ids)

    def gained(self, later: Snapshot) -> list[str]:
        """Return the resources that are only in the later snapshot, except the bastion's."""
        return later.lost(self)

    def changes(self, later: Snapshot) -> list[str]:
        """Return the differences to a later snapshot, each fact with its sign."""
        less, more = self.facts - later.facts, later.facts - self.facts
        return [*(f"- {fact}" for fact in sorted(less)), *(f"+ {fact}" for fact in sorted(more))]


def take(environment: RunningObjectEnvironment) -> Snapshot:
    """Return the present state."""
    inventory = environment.inventory()
    items = [(kind, id_, item) for kind, found in inventory.items() for id_, item in found.items()]
    stamps = _stamps(environment)
    own = {id_ for _, id_, item in items if _is_bastions(item, stamps)}
    address = _address(environment)
    labels = {id_: _label(kind, item) for kind, id_, item in items} | ({address: "BASTION-ADDRESS"} if address else {})
    facts = [_fact(kind, item, labels) for kind, _, item in items]
    facts += [_fact(obj["kind"], obj.get("status") or {}, labels) for obj in environment.ours()]
    return Snapshot(
        {id_: kind for kind, id_, item in items if _has_identity(kind, item) and id_ not in own},
        {id_: kind for kind, id_, item in items if _has_identity(kind, item) and id_ in own},
        address,
        collections.Counter(facts),
    )


def _has_identity(kind: str, item: Json) -> bool:
    return kind != RULES and item.get("device_owner") != OF_ADDRESS


def _address(environment: RunningObjectEnvironment) -> str:
    if not environment.exists(OPENSTACK_CLUSTER, NAME):
        return ""
    status = environment.get(OPENSTACK_CLUSTER, NAME).get("status") or {}
    return str((status.get("bastion") or {}).get("floatingIP") or "")


def _stamps(environment: RunningObjectEnvironment) -> tuple[str, ...]:
    """Return the texts that mark the bastion's resources."""
    marks = [f":{role}" for role in BASTION_ROLES]
    if environment.exists(OPENSTACK_SERVER, BASTION):
        annotations = environment.get(OPENSTACK_SERVER, BASTION)["metadata"]["annotations"]
        marks.append(annotations[names.OWNER_ID_ANNOTATION].partition(".")[0])
    return (BASTION, *marks)


def _is_bastions(item: Json, stamps: tuple[str, ...]) -> bool:
    text = json.dumps([item.get(name) for name in OWNED_BY])
    return any(stamp in text for stamp in stamps)


def _label(kind: str, item: Json) -> str:
    role = re.search(r"capo:[a-z0-9]{13}:([a-z0-9-]+)", json.dumps(item))
    return f"{kind}/{item.get('name') or (role[1] if role else '')}"


def _fact(kind: str, item: Json, labels: Mapping[str, str]) -> str:
    text = json.dumps(item)
    for pattern, word in SUBSTITUTES:
        text = pattern.sub(word, text)
    text = IDS.sub(lambda match: labels.get(match[0], match[0]), text)
    return f"{kind} {json.dumps(_without(json.loads(text)), sort_keys=True)}"


IDS: Final = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|[0-9]+(?:\.[0-9]+){3}")
"""Ids and addresses: a known one is replaced by its label."""


def _without(value: Any) -> Any:
    match value:
        case dict():
            is_free = value.get("pinned_availability_zone", ...) is None
            left_out = VOLATILE | ({"availability_zone"} if is_free else set())
            return {name: _without(part) for name, part in value.items() if name not in left_out}
        case list():
            parts = [_without(part) for part in value]
            return sorted(parts, key=lambda part: json.dumps(part, sort_keys=True))
    return value
