"""OpenStackMachineTemplate: the template of OpenStackMachines that Cluster API creates."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Literal

from api import printer_columns
from api.meta import KubernetesObject
from api.model import Model
from api.schema import Column, Names, Quantity, Schema
from api.v1beta1.conditions import Conditions
from api.v1beta1.openstackmachine import OpenStackMachineSpec
from api.v1beta1.server import ImageParam
from api.v1beta2 import openstackmachinetemplate as newer
from api.v1beta2.openstackclustertemplate import TemplateObjectMeta


class OpenStackMachineTemplateResource(Model):
    """The machine to create."""

    crd: ClassVar[Schema] = newer.OpenStackMachineTemplateResource.crd

    metadata: TemplateObjectMeta | None = None
    """Metadata that Cluster API sets on machines created from the template. Default: none. May change at any time:
    machines that exist keep theirs.
    """
    spec: OpenStackMachineSpec
    """Spec of each machine, without `providerID`. Cannot change, but for `allowedAddressPairs` of ports: create a new
    template and refer to that one.
    """


class OpenStackMachineTemplateSpec(Model):
    """The template."""

    template: OpenStackMachineTemplateResource
    """The machine to create. Cannot change, but for its metadata and `allowedAddressPairs` of ports."""


class OpenStackMachineTemplateStatus(Model):
    """What the cluster autoscaler needs to scale up from zero."""

    capacity: Mapping[str, Quantity] = {}
    """Resources of one node by name (cpu, memory, ephemeral-storage, storage, GPUs), from the flavor and root volume.
    """
    node_info: newer.NodeInfo | None = None
    """Facts about the nodes, from the image."""
    conditions: Conditions = ()
    """Conditions of the object."""


class OpenStackMachineTemplate(KubernetesObject):
    """A template for OpenStackMachines, for MachineDeployments and control planes."""

    names: ClassVar[Names] = newer.OpenStackMachineTemplate.names
    columns: ClassVar[tuple[Column, ...]] = printer_columns.with_flavor_as_text(newer.OpenStackMachineTemplate.columns)

    api_version: Literal["infrastructure.cluster.x-k8s.io/v1beta1"] = "infrastructure.cluster.x-k8s.io/v1beta1"
    """Group and version of the kind."""
    kind: Literal["OpenStackMachineTemplate"] = "OpenStackMachineTemplate"
    """Kind of the object."""
    spec: OpenStackMachineTemplateSpec = OpenStackMachineTemplateSpec(
        template=OpenStackMachineTemplateResource(spec=OpenStackMachineSpec(image=ImageParam())),
    )
    """The template."""
    status: OpenStackMachineTemplateStatus = OpenStackMachineTemplateStatus()
    """Observed state of the template."""
