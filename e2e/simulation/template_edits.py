"""Edits of the allowed address pairs of a machine template: at rest each port has the newest, and its user's own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from capo import names
from capo.json_types import Json
from capo.kube.kinds import CLUSTER, OPENSTACK_MACHINE, OPENSTACK_MACHINE_TEMPLATE, OPENSTACK_SERVER, Key
from controllers import address_pairs
from e2e.simulation.objects import MACHINE_SPEC, NAMESPACE, owned_by

if TYPE_CHECKING:
    from e2e.simulation.plan_run import PlanRun

TEMPLATE: Final = Key(OPENSTACK_MACHINE_TEMPLATE, NAMESPACE, "t")
_KEPT: Final = "10.66.0.100"
"""An address that no edit removes."""
_OF_USER: Final = "10.66.1.1"
"""An address that a user of the cloud puts on ports."""
_FORGETS: Final = ("restore", "recreate", "takeover", "tenant", "move")
"""Features after which an edit may be unknown: it is passed on as a difference from what the objects recorded."""


def apply(story: PlanRun) -> None:
    """Apply the template of the cluster's machines if the plan edits it, and schedule its edits."""
    if not story.plan.shape.pair_edits:
        return
    owner = story.home.server.get(CLUSTER, NAMESPACE, "c")
    assert owner is not None
    metadata = {"name": TEMPLATE.name, "namespace": NAMESPACE, "ownerReferences": [owned_by(owner)]}
    kind = {"apiVersion": TEMPLATE.kind.api_version, "kind": TEMPLATE.kind.kind}
    story.home.server.create(TEMPLATE.kind, {**kind, "metadata": metadata, "spec": _spec(0)})
    story.home.server.on_change.append(lambda event: _note_first_record(story, event))
    for number, at_s in enumerate(story.plan.shape.pair_edits, start=1):
        story.scheduler.after(at_s, lambda each=number: edit(story, each))  # type: ignore[misc]


def _note_first_record(story: PlanRun, event: Any) -> None:
    """Note the template's address when a machine's first record of it is written; what was before is unknown to it."""
    if event.kind == OPENSTACK_MACHINE:
        for machine in story.home.server.list(OPENSTACK_MACHINE):
            if names.TEMPLATE_PAIRS_ANNOTATION in (machine["metadata"].get("annotations") or {}):
                present = _present(story)
                if present is not None:
                    story.first_pairs.setdefault(machine["metadata"]["name"], present)


def _present(story: PlanRun) -> int | None:
    """Return the number of the template's newest edit."""
    template = story.home.server.get(*TEMPLATE)
    if template is None:
        return None
    (port,) = template["spec"]["template"]["spec"]["ports"]
    return int(port["allowedAddressPairs"][-1]["ipAddress"].rpartition(".")[2])


def cloned(story: PlanRun, machine: Json) -> Json:
    """Return an OpenStackMachine as Cluster API clones it from the template as it is now, if there is one."""
    template = story.place.server.get(*TEMPLATE)
    if template is None:
        return machine
    metadata = machine["metadata"]
    annotations = {
        names.CLONED_FROM_NAME_ANNOTATION: TEMPLATE.name,
        names.CLONED_FROM_KIND_ANNOTATION: f"{TEMPLATE.kind.kind}.{names.GROUP}",
    }
    spec = {**machine["spec"], "ports": template["spec"]["template"]["spec"]["ports"]}
    return {**machine, "metadata": {**metadata, "annotations": annotations}, "spec": spec}


def edit(story: PlanRun, number: int) -> None:
    """Replace one of the template's two addresses."""
    server = story.place.server
    template = server.get(*TEMPLATE)
    if template is not None and not template["metadata"].get("deletionTimestamp"):
        server.patch(*TEMPLATE, {"spec": _spec(number)})


def edit_at_rest(story: PlanRun) -> None:
    """Edit the template when everything is ready, after a user of the cloud added an address to each port."""
    for _, port in _ports(story):
        pairs = [{"ip_address": ip} for ip in sorted({_OF_USER, *_addresses(port)})]
        story.user.ask("PUT", f"/network/v2.0/ports/{port['id']}", {"port": {"allowed_address_pairs": pairs}})
    edit(story, _last(story))


def fault(story: PlanRun) -> str | None:
    """Return the first port of a machine without the newest addresses, or with an edit not recorded as applied."""
    wanted = {_KEPT, _OF_USER, _address(_last(story))}
    may_have_more = any(each.feature.startswith(_FORGETS) for each in story.plan.operations)
    for name, port in _ports(story):
        unknown = {_address(number) for number in range(story.first_pairs.get(name, 0))}
        if not wanted <= _addresses(port) or not (may_have_more or _addresses(port) <= wanted | unknown):
            return f"port {port['name']} has the addresses {sorted(_addresses(port))}, wanted are {sorted(wanted)}"
    for name in _machines(story):
        record = address_pairs.record_of(story.place.server.get(OPENSTACK_SERVER, NAMESPACE, name) or {"metadata": {}})
        if record is None or record.changes:
            return f"machine {name} has recorded {record}"
    return None


def _last(story: PlanRun) -> int:
    return len(story.plan.shape.pair_edits) + 1


def _spec(number: int) -> Json:
    pairs = [{"ipAddress": _KEPT}, {"ipAddress": _address(number)}]
    return {"template": {"spec": {**MACHINE_SPEC, "ports": [{"allowedAddressPairs": pairs}]}}}


def _address(number: int) -> str:
    return f"10.66.0.{number}"


def _addresses(port: Json) -> set[str]:
    return {pair["ip_address"] for pair in port["allowed_address_pairs"]}


def _machines(story: PlanRun) -> Iterator[str]:
    """Yield the machines that were cloned from the template, and are neither lost nor of a malicious tenant."""
    for lineage in story.truth.living():
        obj = lineage.endpoint.server.get(*lineage.key)
        is_judged = lineage.endpoint is story.place and not (lineage.is_evil or lineage.is_lost or lineage.is_deleted)
        if lineage.key.kind == OPENSTACK_MACHINE and is_judged and obj and obj["spec"].get("ports"):
            yield lineage.key.name


def _ports(story: PlanRun) -> Iterator[tuple[str, Json]]:
    """Yield the judged machines, each with its port, by the records of their OpenStackServers."""
    table = story.simulation.cloud.table("network", "ports")
    for name in _machines(story):
        server = story.place.server.get(OPENSTACK_SERVER, NAMESPACE, name) or {}
        records = ((server.get("status") or {}).get("resources") or {}).get("records") or ()
        yield from ((name, table[each["id"]]) for each in records if each["role"] == "port-0" and each["id"] in table)
