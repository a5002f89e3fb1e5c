"""The ledger of an object: what it created in the cloud and what it was about to create.

Source: docs/adr/0001-ownership-and-create-protocol.md; :mod:`capo.ledger` reads and writes it.
"""

from __future__ import annotations

from typing import Annotated

from api.model import Model
from api.schema import AtomicList, NonEmpty, Schema, Timestamp
from api.v1beta2.port import PortStatus


class PendingResource(Model):
    """A resource whose create was sent and whose id is unknown."""

    kind: NonEmpty
    """Kind of the resource, such as `port`."""
    role: NonEmpty
    """Role of the resource for this object, such as `port-0`."""
    since: Timestamp
    """When the create was sent, RFC 3339, whole seconds."""
    waited_seconds: Annotated[int, Schema(minimum=0)] | None = None
    """Seconds during which no process was sending the create, as far as they are recorded."""


class ResourceRecord(Model):
    """A resource that was created for this object."""

    kind: NonEmpty
    """Kind of the resource, such as `port`."""
    role: NonEmpty
    """Role of the resource for this object, such as `port-0`."""
    id: NonEmpty
    """Id of the resource in OpenStack."""


class ResourceLocation(Model):
    """Project and region in which resources are."""

    auth_host: NonEmpty
    """Host of the Identity service, with the port unless it is the scheme's default."""
    project_id: NonEmpty
    """Id of the project."""
    region: str = ""
    """Region whose endpoints were used; empty when the catalogue names none."""


class ResourceLedger(Model):
    """Resources that were created in the cloud for this object, or were about to be created."""

    pending: Annotated[tuple[PendingResource, ...], Schema(list_type="map", map_keys=("kind", "role"))] = ()
    """Resources whose create was sent and whose id is unknown; searched for before anything is created again."""
    records: Annotated[tuple[ResourceRecord, ...], Schema(list_type="map", map_keys=("kind", "role"))] = ()
    """Ids of the created resources, by role."""
    location: ResourceLocation | None = None
    """Location of all of them. Credentials for another project or region are refused."""


class MachineResources(Model):
    """Resources that were created for a server."""

    ports: AtomicList[PortStatus] = ()
    """Ports, in the order of the resolved ports."""
