"""Deletes what a reviewed plan approves: each resource is read and proven again right before. Source: ADR 0017."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from capo.clock import Clock
from capo.errors import CapoError, ConflictError, NotFoundError, UnsupportedByCloudError
from capo.json_types import Body
from capo.openstack import (
    floating_ip,
    load_balancer,
    network,
    port,
    router,
    security_group,
    server,
    server_group,
    subnet,
    trunk,
    volume,
)
from capo.openstack.cloud import Cloud
from capo.openstack.kinds import KINDS
from capo.openstack.port import Port
from capo.openstack.volume import Volume
from capo.operations.access import Management
from capo.operations.inventory import project
from capo.operations.inventory.project import Project
from capo.operations.inventory.resource import Resource
from capo.operations.orphans import evidence, findings
from capo.operations.orphans.evidence import Evidence
from capo.operations.orphans.findings import DELETABLE, Orphan
from capo.operations.orphans.plan import Plan, Planned
from capo.operations.orphans.usage import ResourceKey
from capo.parts import ROUTER_INTERFACES

LIMIT_S: Final = 300.0
"""How long a resource may take to disappear, or to become free of what was deleted before."""
FRESH_S: Final = 15.0
_PAUSE_S: Final = 2.0
_ASYNCHRONOUS: Final = ("server", "load_balancer", "volume")
_NETWORKED: Final = ("floating_ip", "port", "trunk", "network", "subnet", "router", "security_group")
"""Kinds whose uses are read from lists of the Networking service."""


class Outcome(Enum):
    """What became of a planned resource."""

    DELETED = "deleted"
    GONE = "gone before"
    KEPT = "kept"
    FAILED = "failed"


@dataclass(frozen=True)
class Report:
    """One planned resource and what became of it.

    Args:
        reason: why it was not deleted.
    """

    planned: Planned
    outcome: Outcome
    reason: str = ""


Prove = Callable[[], Evidence]
"""Reads all management clusters."""


@dataclass
class Run:
    """One deletion of what a plan approves.

    Args:
        clouds: by location, with write access.
        prove: reads all management clusters; what it raises ends the run.
        note: called with what is done now.
        is_rehearsal: send no deletion.
        failures: why credentials could not be used.
    """

    plan: Plan
    clouds: Mapping[str, Cloud]
    prove: Prove
    clock: Clock
    note: Callable[[str], None]
    is_rehearsal: bool = False
    sleep: Callable[[float], None] = time.sleep
    failures: Sequence[str] = ()
    _gone: set[ResourceKey] = field(default_factory=set)

    def reports(self) -> Iterator[Report]:
        """Delete project by project, and yield each result.

        Raises:
            OperatorError: a management cluster cannot be read; nothing more is deleted.
            CapoError: the credentials are refused.
        """
        approved = sorted(self.plan.approved, key=lambda each: (each.project, DELETABLE.index(each.key[0])))
        for location, planned in itertools.groupby(approved, key=lambda each: each.project):
            yield from self._in_project(location, list(planned))

    def _in_project(self, location: str, planned: Sequence[Planned]) -> Iterator[Report]:
        cloud = self.clouds.get(location)
        if cloud is None:
            yield from (Report(each, Outcome.KEPT, self._without_credentials) for each in planned)
            return
        found = project.read(cloud, self.note)
        if found.failures:
            # A list that is missing may be the one that shows a use.
            yield from (
                Report(each, Outcome.KEPT, f"not all lists could be read: {found.failures[0]}") for each in planned
            )
            return
        accepted, kept = self._accepted(found, planned)
        yield from kept
        deleted = {each.key for each in accepted}
        for each in accepted:
            report = self._delete(cloud, found, each, deleted)
            if report.outcome in (Outcome.KEPT, Outcome.FAILED):
                deleted.discard(each.key)  # what it uses stays in use
            yield report

    @property
    def _without_credentials(self) -> str:
        text = "no credentials lead to its project"
        return f"{text}; not all could be used: {self.failures[0]}" if self.failures else text

    def _accepted(self, found: Project, planned: Sequence[Planned]) -> tuple[list[Planned], list[Report]]:
        """Return what may be deleted together, and why the rest may not.

        What is kept may use something else, which is kept then, too.
        """
        orphans = {each.key: each for each in findings.find(found, self.prove(), singly=self.plan.singly)}
        present = {(each.kind, each.id) for each in found.resources}
        accepted, kept = list(planned), list[Report]()
        while True:
            deleted = {each.key for each in accepted}
            refused = [
                report
                for each in accepted
                if (report := self._refused(each, orphans.get(each.key), deleted, is_there=each.key in present))
            ]
            if not refused:
                return accepted, kept
            kept += refused
            accepted = [each for each in accepted if each.key not in {report.planned.key for report in refused}]

    def _refused(
        self, planned: Planned, orphan: Orphan | None, deleted: Iterable[ResourceKey], *, is_there: bool
    ) -> Report | None:
        if not is_there:
            return Report(planned, Outcome.GONE)
        reason = self._reason(planned, orphan, set(deleted))
        return Report(planned, Outcome.KEPT, reason) if reason else None

    def _reason(self, planned: Planned, orphan: Orphan | None, deleted: set[ResourceKey]) -> str | None:
        """Return why a resource is not deleted, None if it may be."""
        if orphan is None:
            return "it is no orphan any more"
        if orphan.mark != planned.mark or orphan.attribution.owner_id != planned.owner:
            return "its stamp or its name has changed since the plan"
        if orphan.refusal:
            return orphan.refusal
        doubts = orphan.left_doubts(deleted)
        return doubts[0] if doubts and planned.key[1] not in self.plan.singly else None

    # -- one resource ------------------------------------------------------------------------------------------------

    def _delete(self, cloud: Cloud, found: Project, planned: Planned, accepted: set[ResourceKey]) -> Report:
        kind, id_ = planned.key
        self.note(f"{'checking' if self.is_rehearsal else 'deleting'} {kind.replace('_', ' ')} {id_}")
        end_s = self.clock.now() + LIMIT_S
        while True:
            try:
                return self._try(cloud, found, planned, accepted)
            except ConflictError as error:
                if self.clock.now() >= end_s:
                    return Report(planned, Outcome.FAILED, error.message)
                self.sleep(_PAUSE_S)
            except CapoError as error:
                return Report(planned, Outcome.FAILED, error.message)

    def _try(self, cloud: Cloud, found: Project, planned: Planned, accepted: set[ResourceKey]) -> Report:
        """Read a resource, prove it again, and delete it.

        Raises:
            ConflictError: it still changes, or what was deleted before still uses it.
        """
        try:
            live = Resource(planned.key[0], planned.project, _show(cloud, planned.key))
        except NotFoundError:
            return Report(planned, Outcome.GONE)
        orphan = self._prove(cloud, found, live)
        if (reason := self._reason(planned, orphan, accepted)) is not None:
            if orphan is not None and reason == orphan.refusal and self._gone:
                raise ConflictError(reason)  # such as a volume whose server was deleted a moment ago
            return Report(planned, Outcome.KEPT, reason)
        if self.is_rehearsal:
            return Report(planned, Outcome.DELETED)
        if orphan is not None and live.kind == "volume" and Volume(live.body).server_ids:
            return self._attached(planned, orphan, accepted)
        _DELETE[planned.key[0]](cloud, planned.key[1])
        self._gone.add(planned.key)
        return self._await_end(cloud, planned)

    def _attached(self, planned: Planned, orphan: Orphan, accepted: set[ResourceKey]) -> Report:
        """Return that an attached volume is kept, also if it was named singly: Cinder does not delete it.

        Raises:
            ConflictError: the server that it was attached to was deleted a moment ago.
        """
        if left := [use.text for use in orphan.uses if use.is_left(accepted)]:
            return Report(planned, Outcome.KEPT, left[0])
        raise ConflictError("it is still attached to a server that was deleted")

    def _prove(self, cloud: Cloud, found: Project, live: Resource) -> Orphan | None:
        """Return a resource as an orphan by what is read now, None if it is none.

        The cloud is read first, and the management clusters after it.
        """
        key = (live.kind, live.id)
        others = [each for each in found.resources if (each.kind, each.id) not in {key, *self._gone}]
        if live.kind in _NETWORKED:
            others = _with_present_uses(cloud, others, live)
        fresh = Project(found.location, [*others, _aged(live, found)])
        return findings.find_one(fresh, self.prove(), key, singly=self.plan.singly)

    def _await_end(self, cloud: Cloud, planned: Planned) -> Report:
        end_s = self.clock.now() + LIMIT_S
        while planned.key[0] in _ASYNCHRONOUS:
            try:
                body = _show(cloud, planned.key)
            except NotFoundError:
                break
            if body.get("provisioning_status") == "DELETED":
                break
            if self.clock.now() >= end_s:
                return Report(planned, Outcome.FAILED, "its deletion was accepted, and it is still there")
            self.sleep(_PAUSE_S)
        return Report(planned, Outcome.DELETED)


def _show(cloud: Cloud, key: ResourceKey) -> Body:
    kind = KINDS[key[0]]
    body: Body = cloud.get(kind.service, kind.path(key[1]), microversion=kind.microversion)[kind.body_key]
    return body


def _aged(live: Resource, found: Project) -> Resource:
    """Return a resource with the age that its list showed."""
    known = next((each for each in found.resources if each.key == live.key), None)
    return Resource(live.kind, live.location, live.body, known.age_s if known else 0.0)


def _with_present_uses(cloud: Cloud, others: Sequence[Resource], live: Resource) -> list[Resource]:
    """Return resources with the ports, floating IPs and trunks as they are now, those of other projects included."""
    kept = [each for each in others if each.kind not in ("port", "floating_ip", "trunk")]
    project_id, location = cloud.project_id, live.location
    bodies = {
        kind.name: cloud.list_all(kind.service, kind.list_path, kind.key, params=kind.list_params(project_id))
        for kind in (KINDS["port"], KINDS["floating_ip"])
    }
    networks = {live.id} if live.kind == "network" else set()
    if live.kind == "subnet":
        networks = {str(live.body["network_id"])}
    if live.kind == "router":
        networks = {Port(body).network_id for body in bodies["port"] if Port(body).device_id == live.id}
    for network_id in sorted(networks):
        # Without a filter by project: a network that is shared has ports of others, which its owner may see.
        bodies["port"] += cloud.list_all("network", "/ports", "ports", params={"network_id": network_id})
    fresh = {
        (kind, str(body["id"])): Resource(kind, location, body)
        for kind, listed in bodies.items()
        for body in listed
        if (kind, str(body["id"])) != (live.kind, live.id)
    }
    trunks = _trunks(cloud, location) if live.kind == "port" else []
    return [*kept, *trunks, *fresh.values()]


def _trunks(cloud: Cloud, location: str) -> list[Resource]:
    """Return the trunks, which only ports are used by; none in a cloud that has no trunks."""
    kind = KINDS["trunk"]
    try:
        bodies = cloud.list_all(kind.service, kind.list_path, kind.key, params=kind.list_params(cloud.project_id))
    except (NotFoundError, UnsupportedByCloudError):
        return []
    return [Resource(kind.name, location, body) for body in bodies]


def _delete_router(cloud: Cloud, router_id: str) -> None:
    """Disconnect a router from its subnets, and delete it."""
    params = {"device_id": router_id}
    for body in cloud.list_all("network", "/ports", "ports", params=params):
        for subnet_id in sorted(Port(body).subnet_ids):
            if Port(body).device_owner in ROUTER_INTERFACES:
                router.remove_interface(cloud, router_id, subnet_id)
    router.delete(cloud, router_id)


_DELETE: Final[Mapping[str, Callable[[Cloud, str], None]]] = {
    "floating_ip": floating_ip.delete,
    "load_balancer": load_balancer.delete,
    "server": server.delete,
    "server_group": server_group.delete,
    "volume": volume.delete,
    "trunk": trunk.delete,
    "port": port.delete,
    "router": _delete_router,
    "subnet": subnet.delete,
    "network": network.delete,
    "security_group": security_group.delete,
}


class Prover:
    """Reads all management clusters, at most once in :data:`FRESH_S`.

    What it returns may be so much older than the read of a resource: the owner of a planned resource was not there when
    the plan was written, so that only a restored or a moved object can be missed, as between this read and the delete.
    """

    def __init__(self, managements: Sequence[Management], clock: Clock) -> None:
        self._managements = managements
        self._clock = clock
        self._known: tuple[float, Evidence] | None = None

    def __call__(self) -> Evidence:
        """Return what management clusters know.

        Raises:
            OperatorError: one of them cannot be read.
        """
        now_s = self._clock.now()
        if self._known is None or now_s - self._known[0] > FRESH_S:
            self._known = (now_s, evidence.read(self._managements))
        return self._known[1]
