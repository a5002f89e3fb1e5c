"""The ledger of an object: what it made in the cloud and what it was about to make.

Source: docs/adr/0001-ownership-and-create-protocol.md; :mod:`capo.ledger` reads and writes it.
"""

from __future__ import annotations

from typing import Annotated

from capo.api.model import Model
from capo.api.schema import AtomicList, NonEmpty, Schema, Timestamp
from capo.api.v1beta2.port import PortStatus


class PendingResource(Model):
    """A resource whose creation was begun and whose id is not known yet."""

    kind: NonEmpty
    """Kind of the resource, such as `port`."""
    role: NonEmpty
    """What the resource is to this object, such as `port-0`."""
    since: Timestamp
    """When creation was begun, RFC 3339, whole seconds."""
    waited_seconds: Annotated[int, Schema(minimum=0)] | None = None
    """For how many seconds nobody was creating it any more, as far as that was waited for and written down."""


class ResourceRecord(Model):
    """A resource that was made for this object."""

    kind: NonEmpty
    """Kind of the resource, such as `port`."""
    role: NonEmpty
    """What the resource is to this object, such as `port-0`."""
    id: NonEmpty
    """Id of the resource in OpenStack."""


class ResourceLocation(Model):
    """Project and region in which resources are."""

    auth_host: NonEmpty
    """Host of the Identity service, with the port unless it is the scheme's own."""
    project_id: NonEmpty
    """Id of the project."""
    region: str = ""
    """Region whose end points were used; empty when the catalogue names none."""


class ResourceLedger(Model):
    """What was made in the cloud for this object, and what was about to be made."""

    pending: Annotated[tuple[PendingResource, ...], Schema(list_type="map", map_keys=("kind", "role"))] = ()
    """Resources whose creation was begun and whose id is not known yet; looked up before anything is made again."""
    records: Annotated[tuple[ResourceRecord, ...], Schema(list_type="map", map_keys=("kind", "role"))] = ()
    """Ids of the resources that were made, by what they are to this object."""
    location: ResourceLocation | None = None
    """Where all of them are. Credentials that lead to another project or region are refused."""


class MachineResources(Model):
    """What was made for a server."""

    ports: AtomicList[PortStatus] = ()
    """Ports, in the order of the resolved ports."""
