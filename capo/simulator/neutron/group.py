"""Security groups: two egress rules in each new one, a default group per project."""

from __future__ import annotations

from typing import Any, Final

from capo.simulator.cloud import Cloud, Json
from capo.simulator.neutron import checks, rule
from capo.simulator.neutron.checks import Invalid
from capo.simulator.neutron.kind import Attribute, Caller, Kind, new, own, touch
from capo.simulator.routing import Fault

DEFAULT: Final = "default"


def missing(group_id: str) -> Fault:
    return Fault(404, f"Security group {group_id} does not exist", "SecurityGroupNotFound")


def _name(value: Any) -> str:
    text: str = checks.string(255)(value)
    if text.lower() == DEFAULT:
        raise Fault(409, "Default security group already exists.", "SecurityGroupDefaultAlreadyExists")
    if not isinstance(value, str):
        raise Invalid(f"'{value}' is not a valid string")
    return text


def ensure_default(cloud: Cloud, project_id: str) -> Json:
    """Return the project's default group, created at first use."""
    for found in KIND.table(cloud).values():
        if found["name"] == DEFAULT and found["project_id"] == project_id:
            return found
    values: Json = {
        "name": DEFAULT,
        "description": "Default security group",
        "stateful": True,
        "project_id": project_id,
        "tenant_id": project_id,
    }
    made = create(cloud, values, Caller(project_id, is_admin=True))
    for ethertype in ("IPv4", "IPv6"):
        rule.add(cloud, made, direction="ingress", ethertype=ethertype, remote_group_id=made["id"])
    return made


def create(cloud: Cloud, values: Json, _: Caller) -> Json:
    group = new(cloud, {**values, "shared": False})
    KIND.table(cloud)[group["id"]] = group
    for ethertype in ("IPv4", "IPv6"):
        rule.add(cloud, group, direction="egress", ethertype=ethertype)
    return group


def update(cloud: Cloud, group: Json, changes: Json, _: Caller) -> None:
    group.update(changes)
    touch(cloud, group)


def delete(cloud: Cloud, group: Json, caller: Caller) -> None:
    if any(group["id"] in port["security_groups"] for port in cloud.table("network", "ports").values()):
        raise Fault(409, f"Security Group {group['id']} in use.", "SecurityGroupInUse")
    if group["name"] == DEFAULT and not caller.is_admin:
        message = "Insufficient rights for removing default security group."
        raise Fault(409, message, "SecurityGroupCannotRemoveDefault")
    KIND.table(cloud).pop(group["id"])
    rules = cloud.table("network", "security_group_rules")
    gone = [
        found["id"] for found in rules.values() if group["id"] in {found["security_group_id"], found["remote_group_id"]}
    ]
    for rule_id in gone:
        rules.pop(rule_id)


def view(cloud: Cloud, group: Json) -> Json:
    rules = [found for found in rule.KIND.table(cloud).values() if found["security_group_id"] == group["id"]]
    return {**group, "security_group_rules": [rule.nested(found) for found in rules]}


def _view_in_list(cloud: Cloud, group: Json) -> Json:
    """Return a group of a list; there its rules do not show whether they are a default group's."""
    shown = view(cloud, group)
    rules = [{**found, "belongs_to_default_sg": None} for found in shown["security_group_rules"]]
    return {**shown, "security_group_rules": rules}


def _prepare_list(cloud: Cloud, caller: Caller) -> None:
    ensure_default(cloud, caller.project_id)


KIND: Final = Kind(
    name="security_group",
    plural="security_groups",
    path="security-groups",
    attributes=(
        Attribute("name", "PUFS", _name, ""),
        Attribute("stateful", "PUF", checks.boolean, default=True),
        Attribute("shared", "F", checks.boolean),
        Attribute("security_group_rules", ""),
    ),
    missing=missing,
    create=create,
    update=update,
    delete=delete,
    view=view,
    is_visible=own,
    is_owner=own,
    prepare_list=_prepare_list,
    view_in_list=_view_in_list,
)
