"""What a plan has changed in a project: later reads show it, on top of what the live cloud answered.

It holds resources by service and collection; the rules of each service, as what a create answers, are in
``neutron.py``, ``nova.py`` and ``octavia.py``.
"""

from __future__ import annotations

import copy
import ipaddress
import itertools
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from capo.json_types import Body, Json
from capo.openstack.kinds import KINDS

NETWORK: Final = "network"
COMPUTE: Final = "compute"
VOLUME: Final = "volume"
BALANCING: Final = "load-balancer"


class Place(NamedTuple):
    """A collection of resources, as ``network /ports``."""

    service: str
    collection: str

    @classmethod
    def of(cls, kind: str) -> Place:
        """Return the collection of a kind of ``capo/openstack/kinds.py``."""
        return cls(KINDS[kind].service, KINDS[kind].collection)

    @property
    def keys(self) -> tuple[str, str]:
        """Return the keys of a list and of one resource in answers."""
        for kind in KINDS.values():
            if (kind.service, kind.collection) == self:
                return kind.key, kind.body_key
        last = self.collection.rpartition("/")[2].replace("-", "_")
        return last, last.removesuffix("s")


class MissingError(Exception):
    """A resource does not exist; the service would answer 404."""

    def __init__(self, place: Place, resource_id: str) -> None:
        super().__init__(f"{place.keys[1]} {resource_id} could not be found")


class RefusedError(Exception):
    """The service would refuse a write with 409, because of what uses the resource.

    Args:
        type_: of the error, in the words of Neutron.
    """

    def __init__(self, type_: str, message: str) -> None:
        super().__init__(message)
        self.type = type_


@dataclass
class Overlay:
    """The resources that a plan created, changed and deleted.

    Args:
        read: returns a live resource, or raises :class:`MissingError`.
        timestamp: returns now, in the form of the services.
        project_id: returns the project of created resources.
    """

    read: Callable[[Place, str], Body]
    timestamp: Callable[[], str]
    project_id: Callable[[], str]
    created: dict[Place, dict[str, None]] = field(default_factory=dict)
    current: dict[Place, dict[str, Json]] = field(default_factory=dict)
    deleted: dict[Place, dict[str, Json]] = field(default_factory=dict)
    seen: dict[Place, dict[str, Body]] = field(default_factory=dict)
    """The live resources that reads returned."""
    assigned: dict[str, str] = field(default_factory=dict)
    """Ids and addresses that the cloud would choose, by the placeholder that stands for them."""
    _numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    # -- reads ------------------------------------------------------------------------------------------------------

    def note(self, place: Place, body: Body) -> None:
        """Note a live resource."""
        if "id" in body:
            self.seen.setdefault(place, {})[str(body["id"])] = body

    def find(self, place: Place, resource_id: str) -> Body:
        """Return a resource as it is after the planned writes.

        Raises:
            MissingError: it does not exist, or was deleted.
        """
        if resource_id in self.deleted.get(place, {}):
            raise MissingError(place, resource_id)
        known = self.current.get(place, {}).get(resource_id) or self.seen.get(place, {}).get(resource_id)
        if known is None and self.is_placeholder(resource_id):
            raise MissingError(place, resource_id)
        return known if known is not None else self.read(place, resource_id)

    def all(self, place: Place) -> list[Body]:
        """Return the resources of a collection that are known, after the planned writes."""
        known = {**self.seen.get(place, {}), **self.current.get(place, {})}
        return [body for id_, body in known.items() if id_ not in self.deleted.get(place, {})]

    def merged(self, place: Place, listed: Iterable[Body], params: Mapping[str, Any], *, is_last: bool) -> list[Body]:
        """Return a page of a live list after the planned writes; created resources are on the last page."""
        current, deleted = self.current.get(place, {}), self.deleted.get(place, {})
        shown = [current.get(str(body.get("id")), body) for body in listed if str(body.get("id")) not in deleted]
        if is_last:
            shown += [current[id_] for id_ in self.created.get(place, {}) if id_ in current]
        return [body for body in shown if str(body.get("id")) not in current or _matches(body, params)]

    def is_placeholder(self, value: str) -> bool:
        """Return whether a value stands for one that the cloud would choose."""
        return value in self.assigned

    # -- writes -----------------------------------------------------------------------------------------------------

    def add(self, place: Place, body: Mapping[str, Any]) -> Json:
        """Add a resource with an id of its own."""
        made = {"id": self.placeholder_id(place, str(body.get("name") or "")), **copy.deepcopy(dict(body))}
        self.current.setdefault(place, {})[made["id"]] = made
        self.created.setdefault(place, {})[made["id"]] = None
        return made

    def edit(self, place: Place, resource_id: str) -> Json:
        """Return a resource to be changed.

        Raises:
            MissingError: it does not exist.
        """
        known = self.current.setdefault(place, {})
        if resource_id not in known or resource_id in self.deleted.get(place, {}):
            known[resource_id] = copy.deepcopy(dict(self.find(place, resource_id)))
        return known[resource_id]

    def update(self, place: Place, resource_id: str, changes: Mapping[str, Any]) -> Json:
        """Change fields of a resource."""
        body = self.edit(place, resource_id)
        body.update(copy.deepcopy(dict(changes)))
        if isinstance(body.get("revision_number"), int):
            body["revision_number"] += 1
        for name in ("updated_at", "updated"):
            if name in body:
                body[name] = self.timestamp()
        return body

    def remove(self, place: Place, resource_id: str) -> Body:
        """Delete a resource; return it.

        Raises:
            MissingError: it does not exist.
        """
        body = self.find(place, resource_id)
        self.deleted.setdefault(place, {})[resource_id] = dict(body)
        self.current.get(place, {}).pop(resource_id, None)
        return body

    # -- what the cloud chooses ---------------------------------------------------------------------------------------

    def placeholder_id(self, place: Place, name: str) -> str:
        """Return a placeholder of an id that the cloud would choose."""
        made = str(uuid.uuid4())
        self.assigned[made] = f"<id of {place.keys[1].replace('_', ' ')} {name}>".replace(" >", ">")
        return made

    def number(self) -> int:
        """Return a number that was not returned before."""
        return next(self._numbers)

    def address(self, cidr: str, used: Iterable[str] = ()) -> str:
        """Return a placeholder of an address that the cloud would choose: one from the end of the range."""
        network = ipaddress.ip_network(cidr, strict=False)
        taken = {*used, *self.assigned}
        first, most = int(network.network_address), min(network.num_addresses, 65536)
        candidates = (str(network.network_address + offset) for offset in range(most - 2, 0, -1))
        made = next((each for each in candidates if each not in taken), str(ipaddress.ip_address(first + 1)))
        self.assigned[made] = f"<an address in {cidr}>"
        return made


def _matches(body: Body, params: Mapping[str, Any]) -> bool:
    """Return whether a resource matches the fields of a query; what is no field of it selects nothing here."""
    for name, wanted in params.items():
        if name == "tags" and not set(str(wanted).split(",")) <= set(body.get("tags") or ()):
            return False
        if name == "tags-any" and not set(str(wanted).split(",")) & set(body.get("tags") or ()):
            return False
        if name in body and isinstance(body[name], str | int | bool) and str(body[name]).lower() != str(wanted).lower():
            return False
    return True
