"""OpenStackClusterTemplate: the template of a ClusterClass's OpenStackClusters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Final, Literal

from api import printer_columns
from api.meta import KubernetesObject
from api.model import Model
from api.schema import ANY_OF, AnnotationValue, Column, LabelValue, Names, Schema
from api.v1beta2.identity import OpenStackIdentityReference
from api.v1beta2.openstackcluster import OpenStackClusterSpec

_CLUSTER: Final = ".spec.template.spec"
_BASTION: Final = f"{_CLUSTER}.bastion.spec"


class TemplateObjectMeta(Model):
    """Metadata of what is created from a template."""

    crd: ClassVar[Schema] = ANY_OF

    labels: Mapping[str, LabelValue] = {}
    """Labels. Default: none. May change at any time."""
    annotations: Mapping[str, AnnotationValue] = {}
    """Annotations. Default: none. May change at any time."""


class OpenStackClusterTemplateResource(Model):
    """The cluster to create."""

    metadata: TemplateObjectMeta | None = None
    """Metadata that the topology controller of Cluster API sets on clusters created from the template. Default: none.
    May change at any time.
    """
    spec: OpenStackClusterSpec
    """Spec of each cluster. Cannot change: create a new template and refer to that one."""


class OpenStackClusterTemplateSpec(Model):
    """The template."""

    template: OpenStackClusterTemplateResource
    """The cluster to create. Cannot change, but for its metadata."""


class OpenStackClusterTemplate(KubernetesObject):
    """A template for OpenStackClusters, for ClusterClasses."""

    names: ClassVar[Names] = Names("openstackclustertemplates", short="osct")
    columns: ClassVar[tuple[Column, ...]] = (
        Column("Identity", f"{_CLUSTER}.identityRef.name", "Secret or OpenStackClusterIdentity with the credentials"),
        Column("Cloud", f"{_CLUSTER}.identityRef.cloudName", "Entry of clouds.yaml"),
        printer_columns.flavor(_BASTION, name="Bastion Flavor"),
        printer_columns.image(_BASTION, name="Bastion Image"),
        printer_columns.AGE,
    )

    api_version: Literal["infrastructure.cluster.x-k8s.io/v1beta2"] = "infrastructure.cluster.x-k8s.io/v1beta2"
    """Group and version of the kind."""
    kind: Literal["OpenStackClusterTemplate"] = "OpenStackClusterTemplate"
    """Kind of the object."""
    spec: OpenStackClusterTemplateSpec = OpenStackClusterTemplateSpec(
        template=OpenStackClusterTemplateResource(
            spec=OpenStackClusterSpec(identity_ref=OpenStackIdentityReference(name="", cloud_name="")),
        )
    )
    """The template."""
