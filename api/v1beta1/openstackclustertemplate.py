"""OpenStackClusterTemplate: the template of a ClusterClass's OpenStackClusters."""

from __future__ import annotations

from typing import ClassVar, Literal

from api import printer_columns
from api.meta import KubernetesObject
from api.model import Model
from api.schema import Column, Names
from api.v1beta1.identity import OpenStackIdentityReference
from api.v1beta1.openstackcluster import OpenStackClusterSpec
from api.v1beta2 import openstackclustertemplate as newer


class OpenStackClusterTemplateResource(Model):
    """The cluster to create."""

    spec: OpenStackClusterSpec
    """Spec of each cluster. Cannot change: create a new template and refer to that one."""


class OpenStackClusterTemplateSpec(Model):
    """The template."""

    template: OpenStackClusterTemplateResource
    """The cluster to create. Cannot change: create a new template."""


class OpenStackClusterTemplate(KubernetesObject):
    """A template for OpenStackClusters, for ClusterClasses."""

    names: ClassVar[Names] = newer.OpenStackClusterTemplate.names
    columns: ClassVar[tuple[Column, ...]] = printer_columns.with_flavor_as_text(newer.OpenStackClusterTemplate.columns)

    api_version: Literal["infrastructure.cluster.x-k8s.io/v1beta1"] = "infrastructure.cluster.x-k8s.io/v1beta1"
    """Group and version of the kind."""
    kind: Literal["OpenStackClusterTemplate"] = "OpenStackClusterTemplate"
    """Kind of the object."""
    spec: OpenStackClusterTemplateSpec = OpenStackClusterTemplateSpec(
        template=OpenStackClusterTemplateResource(
            spec=OpenStackClusterSpec(identity_ref=OpenStackIdentityReference(name="", cloud_name="")),
        )
    )
    """The template."""
