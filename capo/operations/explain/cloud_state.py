"""What the cloud has of the objects of a story: each recorded resource by its id, read once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Final

from capo.errors import CapoError, CloudUnavailableError, IdentityError, NotAuthorizedError, NotFoundError
from capo.json_types import Body, Object
from capo.ledger import Ledger
from capo.openstack import server
from capo.openstack.cloud import Cloud
from capo.openstack.kinds import KINDS, SERVER
from capo.openstack.server import Server
from capo.operations.access import Management
from capo.operations.explain import related as objects
from capo.operations.explain.related import Part, Related

MAX_RESOURCES: Final = 60
EXISTS: Final = "exists"
"""State of a kind that has none, such as a subnet."""
MISSING: Final = "does not exist"
_STOPPED: Final = frozenset(
    {"SHUTOFF", "PAUSED", "SUSPENDED", "SHELVED", "SHELVED_OFFLOADED", "SOFT_DELETED", "DELETED", "RESCUE"}
)
_ENDING: Final = (CloudUnavailableError, IdentityError, NotAuthorizedError)
"""Errors after which no other resource would be answered for."""
_OF_STATUS: Final = (
    ("network", "network"),
    ("router", "router"),
    ("load_balancer", "apiServerManagedLoadBalancer"),
    ("load_balancer", "apiServerLoadBalancer"),
)
"""Kind, and field of the status of an OpenStackCluster with its id: resources that were given have no record."""


class Trouble(Enum):
    """What is wrong with a resource."""

    MISSING = "missing"
    ERROR = "error"
    STOPPED = "stopped"
    UNBOUND = "unbound"
    NO_MEMBER = "no member"
    """Of a load balancer: no member answers."""


@dataclass(frozen=True)
class Resource:
    """A resource as the cloud has it.

    Args:
        state: in the service's words.
        detail: why, in the cloud's words.
        request_id: of the request that failed.
        trouble: None if there is none, or the resource could not be read.
        is_unread: whether it could not be read; then ``detail`` has the reason.
    """

    kind: str
    role: str
    id: str
    owner: str
    name: str = ""
    state: str = ""
    detail: str = ""
    request_id: str = ""
    trouble: Trouble | None = None
    is_unread: bool = False

    @property
    def is_bad(self) -> bool:
        """Whether it is as it should not be, or not known."""
        return self.trouble is not None or self.is_unread


@dataclass
class CloudState:
    """What was read of the cloud.

    Args:
        error: why nothing more could be read; None if all was.
        pending: creates whose answer is unknown, as ``kind role``.
    """

    resources: list[Resource] = field(default_factory=list)
    pending: list[str] = field(default_factory=list)
    error: CapoError | None = None


def read(management: Management, story: Related) -> CloudState:
    """Return the state of all recorded resources of the objects.

    Raises:
        OperatorError: the user may not read the credentials.
    """
    found = CloudState()
    default = next(objects.identity_refs(story), None)
    try:
        for part in story.parts:
            _read_part(management, part, default, found)
    except CapoError as error:
        found.error = error
    return found


def _read_part(management: Management, part: Part, default: Object | None, found: CloudState) -> None:
    ledger = Ledger.read(part.status)
    found.pending += [f"{each.kind} {each.role} of {part}" for each in ledger.pending.values()]
    wanted = list(_ids(part, ledger))
    holder = part.obj if ((part.obj or {}).get("spec") or {}).get("identityRef") else default
    if not wanted or holder is None:
        return
    cloud = management.cloud_of(holder)
    _require_location(cloud, ledger)
    for kind, role, id_ in wanted[: MAX_RESOURCES - len(found.resources)]:
        found.resources.append(_resource(cloud, part, kind, role, id_))


def _ids(part: Part, ledger: Ledger) -> Iterator[tuple[str, str, str]]:
    known = [(each.kind, each.role, each.id) for each in ledger.records.values() if each.kind in KINDS]
    yield from known
    ids = {id_ for _, _, id_ in known}
    given = [(kind, field_, (part.status.get(field_) or {}).get("id")) for kind, field_ in _OF_STATUS]
    for kind, role, id_ in [*given, ("server", "server", part.status.get("instanceID"))]:
        if id_ and id_ not in ids and not (kind == "server" and part.kind.kind == "OpenStackMachine"):
            yield kind, role, id_


def _require_location(cloud: Cloud, ledger: Ledger) -> None:
    """Refuse credentials of another project or region: everything would seem to be missing there (ADR 0005)."""
    if ledger.location is None:
        return
    recorded, found = ledger.location, cloud.location
    if (recorded.project_id, recorded.region) != (found.project_id, found.region):
        raise IdentityError(f"the credentials lead to {found}, the resources are in {recorded}")


def _resource(cloud: Cloud, part: Part, kind: str, role: str, id_: str) -> Resource:
    what = KINDS[kind]
    found = Resource(kind, role, id_, str(part))
    try:
        answer = cloud.get(what.service, what.path(id_), microversion=what.microversion)
        return _described(cloud, found, answer[what.body_key])
    except NotFoundError:
        return replace(found, state=MISSING, trouble=None if part.is_deleting else Trouble.MISSING)
    except _ENDING:
        raise
    except CapoError as error:
        return replace(found, state="unknown", detail=error.message, request_id=error.request_id or "", is_unread=True)


def _described(cloud: Cloud, found: Resource, body: Body) -> Resource:
    name = str(body.get("name") or body.get("floating_ip_address") or "")
    words = [body.get(key) for key in ("provisioning_status", "operating_status", "status", "OS-EXT-STS:task_state")]
    if found.kind == SERVER.name:
        return _server(cloud, found, Server(body), name, _words(words))
    if body.get("binding:vif_type") == "binding_failed":
        return replace(found, name=name, state=_words(words), detail="binding_failed", trouble=Trouble.UNBOUND)
    return replace(found, name=name, state=_words(words), trouble=_trouble(body))


def _trouble(body: Body) -> Trouble | None:
    if any("ERROR" in str(body.get(key)).upper() for key in ("provisioning_status", "status")):
        return Trouble.ERROR
    return Trouble.NO_MEMBER if body.get("operating_status") == "ERROR" else None


def _server(cloud: Cloud, found: Resource, body: Server, name: str, state: str) -> Resource:
    if body.status != "ERROR":
        is_stopped = body.status in _STOPPED and not body.task_state
        return replace(found, name=name, state=state, trouble=Trouble.STOPPED if is_stopped else None)
    try:
        request_id = server.failed_request_id(cloud, body.id, since=body.fault_created or "")
    except CapoError:
        request_id = None  # the fault is known without it
    fault = body.fault_message
    return replace(found, name=name, state=state, detail=fault, request_id=request_id or "", trouble=Trouble.ERROR)


def _words(words: Iterable[object]) -> str:
    return " ".join(str(word) for word in words if word) or EXISTS
