"""Carries out a plan: reads everything again, stamps what has no stamp, then creates the objects.

A plan that was applied in part is applied again: stamps and objects that are as planned are kept.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from capo import names
from capo.contract import references
from capo.errors import ConflictError, NotFoundError
from capo.json_types import Body, Json, Object
from capo.kube.errors import Conflict, KubeError
from capo.kube.kinds import OPENSTACK_CLUSTER, OPENSTACK_MACHINE, OPENSTACK_SERVER, Kind
from capo.openstack.cloud import Cloud
from capo.openstack.kinds import KINDS, LOAD_BALANCER
from capo.operations.access import Management
from capo.operations.adoption import bastion_edits, facts, living, stamping
from capo.operations.adoption.plan import OBJECT_KINDS, Place, Plan, Resource
from capo.operations.errors import OperatorError, of_request

BUSY_S: Final = 2.0
BUSY_ATTEMPTS: Final = 60


@dataclass(frozen=True)
class Planned:
    """An object of a plan.

    Args:
        existing: the object of this name, if it is the planned one.
    """

    kind: Kind
    obj: Json
    existing: Object | None

    def __str__(self) -> str:
        """Return kind and name."""
        return f"{self.kind.kind} {self.obj['metadata']['namespace']}/{self.obj['metadata']['name']}"

    @property
    def owner(self) -> str | None:
        """The owner id that the object brings."""
        return names.owner_in(self.obj, kind=self.kind.kind)


def apply(
    plan: Plan,
    target: Management,
    others: Sequence[Management],
    *,
    report: Callable[[str], None],
    pause: Callable[[float], None] = time.sleep,
) -> None:
    """Stamp the resources of a plan and create its objects.

    Args:
        target: may write.
        others: management clusters whose objects must not own the resources either.
        report: called with a line for each object.
        pause: waits for so many seconds.

    Raises:
        OperatorError: the plan does not fit any more, and nothing was done; a load balancer changed while others were
            stamped, and no object was created; or the API server refuses a write.
        CapoError: the cloud refuses a read or a stamp; no object was created.
    """
    planned = [_planned(target, obj) for obj in plan.objects]
    bastion = bastion_edits.find(target, plan.bastion) if plan.bastion else None
    _refuse_owned(plan, planned, target, others)
    cloud = target.cloud_of(bastion or next(each.obj for each in planned if each.kind == OPENSTACK_CLUSTER))
    _refuse_elsewhere(plan, cloud)
    created = {(each.kind.kind, each.obj["metadata"]["name"]) for each in planned if each.existing}
    left = [each for each in plan.resources if tuple(each.of.split()) not in created]
    for resource, body in _read_again(cloud, left):
        if (resource.stamp or resource.is_to_stamp) and _stamp(cloud, resource, body, pause):
            report(f"{resource.kind} {resource.id} stamped")
    known: dict[tuple[str, str], Object] = {}
    for each in planned:
        known[each.kind.kind, each.obj["metadata"]["name"]] = _create(target, each, known, report)
    if plan.bastion:
        bastion_edits.carry_out(target, plan.bastion, report)


def _planned(target: Management, obj: Json) -> Planned:
    """Return an object of the plan with the existing one.

    Raises:
        OperatorError: its kind is not one of a plan, it has no name, or another object has the name.
    """
    kind, metadata = OBJECT_KINDS.get(str(obj.get("kind"))), obj.get("metadata") or {}
    if kind is None or not metadata.get("name") or not metadata.get("namespace"):
        raise OperatorError(f"the plan has an object of kind {obj.get('kind')} that cannot be adopted")
    if target.served(kind).version != kind.version:
        raise OperatorError(
            f"{target.name} serves {kind.kind} in {target.served(kind).version}: Cluster API is too old"
        )
    existing = target.find(kind, metadata["namespace"], metadata["name"])
    planned = Planned(kind, obj, existing)
    if existing is not None and not _is_planned(planned, existing):
        raise OperatorError(f"{planned} exists in {target.name} and is not the one of the plan")
    return planned


def _is_planned(planned: Planned, existing: Object) -> bool:
    if planned.owner is not None:
        return names.owner_in(existing, kind=planned.kind.kind) == planned.owner
    fields = ("providerID", "infrastructureRef")
    return all((existing.get("spec") or {}).get(each) == planned.obj["spec"].get(each) for each in fields)


def _refuse_owned(plan: Plan, planned: Sequence[Planned], target: Management, others: Sequence[Management]) -> None:
    """Refuse resources that belong to an object that exists.

    Raises:
        OperatorError: an object has an owner id of the plan, or has recorded one of its resources.
    """
    ids = {each.id for each in plan.resources}
    own = {(each.kind.kind, each.obj["metadata"]["namespace"], each.obj["metadata"]["name"]) for each in planned}
    wanted = {each.owner for each in planned if each.owner} | {_owner_of(each) for each in plan.resources} - {""}
    for each in living.find([target, *others]):
        owner = each.owner
        if (owner.kind, owner.namespace, owner.name) in own and each.management.uid == target.uid:
            continue
        if owner.owner in wanted:
            raise OperatorError(f"{each} has the owner id {owner.owner}: its resources are not lost")
        if shared := sorted(ids & each.resource_ids):
            raise OperatorError(f"{each} has recorded {', '.join(shared)}: it is not lost")


def _owner_of(resource: Resource) -> str:
    stamp = names.stamp_in(resource.stamp)
    return stamp.owner if stamp else ""


def _refuse_elsewhere(plan: Plan, cloud: Cloud) -> None:
    present = Place.of(cloud.location)
    if present != plan.location:
        raise OperatorError(
            f"the credentials of the OpenStackCluster lead to project {present.project_id} of {present.auth_host} "
            f"({present.region}), the plan is of project {plan.location.project_id} of {plan.location.auth_host} "
            f"({plan.location.region})"
        )


def _read_again(cloud: Cloud, resources: Sequence[Resource]) -> list[tuple[Resource, Body]]:
    """Return the resources as they are now.

    Raises:
        OperatorError: one was deleted, or differs from what the plan shows.
    """
    bodies = [(each, _body(cloud, each)) for each in resources]
    if changes := [text for each, body in bodies for text in _changes(each, body)]:
        raise OperatorError(f"the plan is outdated, write it again: {'; '.join(changes)}")
    return [(each, body) for each, body in bodies if body is not None]


def _body(cloud: Cloud, resource: Resource) -> Body | None:
    kind = KINDS[resource.kind]
    try:
        body: Body = cloud.get(kind.service, kind.path(resource.id), microversion=kind.microversion)[kind.body_key]
    except NotFoundError:
        return None
    return body


def _changes(resource: Resource, body: Body | None) -> Iterator[str]:
    name = f"{resource.kind} {resource.id}"
    if body is None:
        yield f"{name} does not exist"
        return
    stamp = str(KINDS[resource.kind].stamp_of(body) or "")
    if stamp != resource.stamp and (stamp or not resource.is_to_stamp):
        yield f"{name} carries the stamp {stamp or 'none'}, not {resource.stamp or 'none'}"
    yield from (f"{name}: {text}" for text in facts.differences(resource.seen, facts.of(resource.kind, body)))


def _stamp(cloud: Cloud, resource: Resource, body: Body, pause: Callable[[float], None]) -> bool:
    """Put the planned stamp on a resource that has none; return whether it had none.

    Raises:
        CapoError: it has changed since it was read, or the service fails.
        OperatorError: its load balancer stays immutable, or it has changed since it was read.
    """
    kind, stamp = KINDS[resource.kind], names.stamp_in(resource.stamp)
    if stamp is None:
        raise OperatorError(f"the plan has no valid stamp for {resource.kind} {resource.id}")
    if kind.stamp_of(body) is not None:
        return False
    for _ in range(BUSY_ATTEMPTS):
        present = _before_stamp(cloud, resource, body)
        if kind.stamp_of(present) is not None:
            return False
        try:
            stamping.put(cloud, kind, present, stamp)
        except ConflictError:
            if kind.service != LOAD_BALANCER.service:
                raise
            pause(BUSY_S)  # each stamp makes the whole load balancer immutable for a while
        else:
            return True
    raise OperatorError(f"the load balancer of {resource.kind} {resource.id} stays immutable: apply the plan again")


def _before_stamp(cloud: Cloud, resource: Resource, body: Body) -> Body:
    """Return a resource as it is right before its stamp.

    Args:
        body: the resource as it was read before the first stamp.

    Raises:
        OperatorError: it has changed since then.
    """
    if KINDS[resource.kind].service != LOAD_BALANCER.service:
        return body
    # Octavia replaces all tags and knows no condition for that, and the load balancer may have been immutable for long.
    present = _body(cloud, resource)
    changes = list(_changes(resource, present))
    if present is None or changes:
        raise OperatorError(
            f"{'; '.join(changes)}: it has changed since the first stamp. Undo the change and apply the plan again"
        )
    return present


def _create(
    target: Management,
    planned: Planned,
    known: Mapping[tuple[str, str], Object],
    report: Callable[[str], None],
) -> Object:
    if planned.existing is not None:
        report(f"{planned} exists")
        return planned.existing
    try:
        made = target.kube.create(planned.kind, _with_owner(planned, known))
    except Conflict as error:
        raise OperatorError(f"{planned} was created by someone else now: apply the plan again") from error
    except KubeError as error:
        raise of_request(error, "create", planned.kind, planned.obj["metadata"]["namespace"]) from error
    report(f"{planned} created")
    return made


def _with_owner(planned: Planned, known: Mapping[tuple[str, str], Object]) -> Json:
    """Return an OpenStackServer with the reference to its owner, a machine or a cluster; others as they are."""
    metadata = planned.obj["metadata"]
    if planned.kind != OPENSTACK_SERVER:
        return planned.obj
    cluster = (metadata.get("labels") or {}).get(names.CLUSTER_NAME_LABEL, "")
    owner = known.get((OPENSTACK_MACHINE.kind, metadata["name"]))
    if owner is None and metadata["name"] == names.bastion(cluster):
        owner = known.get((OPENSTACK_CLUSTER.kind, cluster))
    if owner is None:
        return planned.obj
    return {**planned.obj, "metadata": {**metadata, "ownerReferences": [references.controller_reference(owner)]}}
