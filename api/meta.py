"""Types that belong to Kubernetes and Cluster API: metadata, conditions, references, selectors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Final

from api.model import Model
from api.schema import AtomicList, Column, Names, ObjectName, Required, Schema, Timestamp

CLUSTER_NAME_PATH: Final = r".metadata.labels.cluster\.x-k8s\.io/cluster-name"
"""JSONPath of the cluster's name for printer columns."""


class OwnerReference(Model):
    """The owner of this object, with which it is deleted."""

    api_version: str
    """Group and version of the owner."""
    kind: str
    """Kind of the owner."""
    name: str
    """Name of the owner."""
    uid: str = ""
    """UID of the owner."""
    controller: bool | None = None
    """Whether the owner is the managing controller; at most one is."""
    block_owner_deletion: bool | None = None
    """Whether foreground deletion of the owner waits for this object."""


class ObjectMeta(Model):
    """The part of ``metadata`` that controllers read."""

    name: str = ""
    """Name, unique in its namespace."""
    generate_name: str = ""
    """Beginning of a name that the API server completes."""
    namespace: str = ""
    """Namespace; empty for cluster-scoped kinds."""
    uid: str = ""
    """Unique identifier, never reused."""
    generation: int = 0
    """Counts changes of the spec."""
    resource_version: str = ""
    """Changes with every write."""
    labels: Mapping[str, str] = {}
    """Labels by key."""
    annotations: Mapping[str, str] = {}
    """Annotations by key."""
    finalizers: tuple[str, ...] = ()
    """Identifiers that block the deletion until their controllers have cleaned up."""
    owner_references: tuple[OwnerReference, ...] = ()
    """Objects that this one is deleted with."""
    creation_timestamp: str | None = None
    """When the object was created, RFC 3339."""
    deletion_timestamp: str | None = None
    """When deletion was requested, RFC 3339; None if it was not."""


class KubernetesObject(Model):
    """The root of a kind: names, columns and metadata."""

    names: ClassVar[Names]
    columns: ClassVar[tuple[Column, ...]] = ()

    api_version: str
    """Group and version."""
    kind: str
    """Kind."""
    metadata: ObjectMeta = ObjectMeta()
    """Name, labels, owners and other metadata."""

    def to_dict(self) -> dict[str, Any]:
        """Return the object as JSON data, always with ``apiVersion`` and ``kind``."""
        return {"apiVersion": self.api_version, "kind": self.kind} | super().to_dict()


class Condition(Model):
    """One aspect of the object's state, in the format of all Kubernetes conditions."""

    type: Annotated[
        str,
        Schema(
            max_length=316,
            pattern=r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?"
            r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$",
        ),
    ]
    """What the condition describes, CamelCase; unique in the list."""
    status: Annotated[str, Schema(enum=("True", "False", "Unknown"))]
    """True, False or Unknown."""
    observed_generation: Annotated[int, Schema(format="int64", minimum=0)] = 0
    """metadata.generation that the condition refers to; an older one means the spec has changed since."""
    last_transition_time: Required[Timestamp] = ""
    """When the status last changed, RFC 3339, whole seconds."""
    reason: Annotated[
        str,
        Schema(is_required=True, min_length=1, max_length=1024, pattern="^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$"),
    ] = ""
    """Reason for the status, in one CamelCase word for programs; `Ready` if the status is as it should be."""
    message: Annotated[str, Schema(is_required=True, max_length=32768)] = ""
    """Message for users; may be empty."""


Conditions = Annotated[tuple[Condition, ...], Schema(list_type="map", map_keys=("type",))]


class NodeAddress(Model):
    """An address of a server."""

    address: Required[str] = ""
    """IP address or host name."""
    type: Required[str] = ""
    """Hostname, InternalIP, ExternalIP, InternalDNS or ExternalDNS."""


class LocalObjectReference(Model):
    """A Secret in the same namespace."""

    crd: ClassVar[Schema] = Schema(map_type="atomic")

    name: Annotated[ObjectName, Schema(is_default_served=True)] = ""
    """Name of the Secret. Default: empty, which refers to none."""


class TypedLocalObjectReference(Model):
    """An object of any kind in the same namespace."""

    crd: ClassVar[Schema] = Schema(map_type="atomic")

    api_group: ObjectName | None = None
    """API group of the kind. Default: the group of this provider."""
    kind: Annotated[str, Schema(max_length=63)]
    """Kind of the object."""
    name: ObjectName
    """Name of the object."""


class LabelSelectorRequirement(Model):
    """One requirement on a label."""

    key: str
    """Key of the label."""
    operator: str
    """In, NotIn, Exists or DoesNotExist."""
    values: AtomicList[str] = ()
    """Values for In and NotIn; must be empty for the other operators. Default: none."""


class LabelSelector(Model):
    """Requirements on labels, all of which must hold; an empty selector matches everything."""

    crd: ClassVar[Schema] = Schema(map_type="atomic")

    match_expressions: AtomicList[LabelSelectorRequirement] = ()
    """Requirements with an operator. Default: none."""
    match_labels: Mapping[str, str] = {}
    """Labels that must have exactly this value. Default: none."""
