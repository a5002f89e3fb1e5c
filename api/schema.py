"""Markers for constraints of a CRD beyond a value's Python type.

A marker is in ``Annotated`` beside the type, or in the class variable ``crd`` of a model. The API server enforces it;
reading does not, so that an object stored under other rules (an older version, another provider) is always readable.
``capo.crdgen`` turns the markers into OpenAPI keywords.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Annotated, Final, Literal, TypeVar

T = TypeVar("T")


@dataclass(frozen=True)
class Rule:
    """A CEL rule: ``expression`` must hold, otherwise the API server answers ``message``.

    Args:
        ``told``: CEL expression whose text is answered instead, with the invalid values.
        field: the field that the answer names, below the value with the rule; empty: that value.
    """

    expression: str
    message: str
    told: str = ""
    field: str = ""


@dataclass(frozen=True)
class Schema:
    """OpenAPI keywords of one value; None leaves a keyword out.

    Args:
        is_required: listed in ``required`` although the Python field has a default.
        is_default_served: the Python default is the CRD's ``default`` too, filled in by the API server.
        is_int_or_string: a Kubernetes quantity or port, written as number or text.
        list_type: how server-side apply merges the list and which duplicates are refused: ``atomic``, ``set`` or
            ``map``.
        map_keys: the keys of a list of type ``map``.
        rules: CEL rules.
    """

    is_required: bool = False
    is_default_served: bool = False
    is_int_or_string: bool = False
    format: str | None = None
    enum: tuple[str, ...] | None = None
    pattern: str | None = None
    min_length: int | None = None
    max_length: int | None = None
    minimum: int | None = None
    maximum: int | None = None
    min_items: int | None = None
    max_items: int | None = None
    min_properties: int | None = None
    max_properties: int | None = None
    list_type: Literal["atomic", "set", "map"] | None = None
    map_keys: tuple[str, ...] | None = None
    map_type: Literal["atomic", "granular"] | None = None
    rules: tuple[Rule, ...] = ()

    def merged(self, other: Schema) -> Schema:
        """Return this schema with every keyword that the other one sets."""
        blank = Schema()
        changes = {
            f.name: getattr(other, f.name)
            for f in dataclasses.fields(self)
            if getattr(other, f.name) != getattr(blank, f.name)
        }
        return dataclasses.replace(self, **changes)


@dataclass(frozen=True)
class Column:
    """A column of ``kubectl get``; one of priority 1 is shown with ``-o wide`` only."""

    name: str
    json_path: str
    description: str
    type: Literal["string", "date"] = "string"
    priority: int = 0


@dataclass(frozen=True)
class Names:
    """Names of a kind in paths and in ``kubectl``."""

    plural: str
    short: str | None = None
    categories: tuple[str, ...] = ("cluster-api",)
    scope: Literal["Namespaced", "Cluster"] = "Namespaced"


Required = Annotated[T, Schema(is_required=True)]
"""Required by the API server; reading accepts its absence."""
Defaulted = Annotated[T, Schema(is_default_served=True)]
"""The API server fills in the Python default."""

NonEmpty = Annotated[str, Schema(min_length=1)]
Tag = Annotated[str, Schema(min_length=1, pattern="^[^,]+$")]
FoundTag = Annotated[Tag, Schema(max_length=255)]
"""A tag of a resource in Neutron (60 characters before 2023)."""
CloudText = Annotated[str, Schema(max_length=255)]
"""A name, id or description of a resource in OpenStack; all services store it in columns of this length."""
CloudName = Annotated[NonEmpty, Schema(max_length=255)]
Address = Annotated[str, Schema(max_length=64)]
"""An IP address or CIDR, which Neutron stores in 64 characters."""
Ipv6Mode = Annotated[str, Schema(enum=("slaac", "dhcpv6-stateful", "dhcpv6-stateless"))]
"""How hosts get their addresses of IPv6, as Neutron names it."""
IPFamily = Annotated[str, Schema(enum=("IPv4", "IPv6"))]
"""An IP version, as Kubernetes names it."""
ObjectName = Annotated[str, Schema(max_length=253)]
"""The name of a Kubernetes object: a DNS subdomain (RFC 1123)."""
NonEmptyObjectName = Annotated[ObjectName, Schema(min_length=1)]
NamespaceName = Annotated[str, Schema(max_length=63)]
LabelValue = Annotated[str, Schema(max_length=63)]
MAX_ANNOTATIONS: Final = 256 * 1024
"""Bytes of all keys and values of an object's annotations, by Kubernetes."""
AnnotationValue = Annotated[str, Schema(max_length=MAX_ANNOTATIONS)]
EntryName = Annotated[NonEmpty, Schema(max_length=1024)]
"""A key in YAML: a simple one ends within 1024 characters (YAML 1.2, 7.4.2)."""
Uuid = Annotated[str, Schema(format="uuid")]
Ipv4 = Annotated[str, Schema(format="ipv4")]
Timestamp = Annotated[str, Schema(format="date-time")]
Int32 = Annotated[int, Schema(format="int32")]
PositiveInt32 = Annotated[int, Schema(format="int32", minimum=1)]
NaturalInt32 = Annotated[int, Schema(format="int32", minimum=0)]
Quantity = Annotated[
    int | str,
    Schema(
        is_int_or_string=True,
        pattern=r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))"
        r"(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$",
    ),
]

AtomicList = Annotated[tuple[T, ...], Schema(list_type="atomic")]
"""A list that is replaced as a whole."""
SetList = Annotated[tuple[T, ...], Schema(list_type="set")]
"""A list without duplicates, merged by value."""
NamedList = Annotated[tuple[T, ...], Schema(list_type="map", map_keys=("name",))]
"""A list merged by its entries' ``name``."""

ONE_OF: Schema = Schema(min_properties=1, max_properties=1)
"""Exactly one field is set."""
ANY_OF: Schema = Schema(min_properties=1)
"""At least one field is set."""
