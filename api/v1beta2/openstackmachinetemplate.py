"""OpenStackMachineTemplate: the template of OpenStackMachines that Cluster API creates."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Literal

from api import printer_columns
from api.meta import Conditions, KubernetesObject
from api.model import Model
from api.schema import ANY_OF, Column, Names, Quantity, Rule, Schema
from api.v1beta2.conditions import ConditionType
from api.v1beta2.openstackclustertemplate import TemplateObjectMeta
from api.v1beta2.openstackmachine import OpenStackMachineSpec
from api.v1beta2.server import FlavorParam, ImageParam


class OpenStackMachineTemplateResource(Model):
    """The machine to create."""

    crd: ClassVar[Schema] = Schema(rules=(Rule("!has(self.spec.providerID)", "providerID cannot be set in templates"),))

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


class NodeInfo(Model):
    """Properties of the nodes before they exist."""

    crd: ClassVar[Schema] = ANY_OF

    architecture: Literal["amd64", "arm64", "ppc64le", "s390x"] | None = None
    """Processor architecture, from the property hw_architecture of the image or a trait of the flavor; else assumed."""
    operating_system: str = ""
    """Operating system, from the property os_type of the image; else assumed."""


class OpenStackMachineTemplateStatus(Model):
    """What the cluster autoscaler needs to scale up from zero."""

    conditions: Conditions = ()
    """Conditions of the object."""
    capacity: Mapping[str, Quantity] = {}
    """Resources of one node by name (cpu, memory, ephemeral-storage, storage, GPUs), from the flavor and root volume.
    """
    node_info: NodeInfo | None = None
    """Facts about the nodes, from the image."""


class OpenStackMachineTemplate(KubernetesObject):
    """A template for OpenStackMachines, for MachineDeployments and control planes."""

    names: ClassVar[Names] = Names("openstackmachinetemplates", short="osmt")
    columns: ClassVar[tuple[Column, ...]] = (
        printer_columns.flavor(".spec.template.spec", priority=0),
        printer_columns.image(".spec.template.spec", priority=0),
        printer_columns.state(ConditionType.REFERENCES_READY),
        Column("CPU", ".status.capacity.cpu", "Processors of a node", priority=1),
        Column("Memory", ".status.capacity.memory", "Memory of a node", priority=1),
        Column("Arch", ".status.nodeInfo.architecture", "Processor architecture of a node", priority=1),
        printer_columns.changed(ConditionType.REFERENCES_READY),
        printer_columns.AGE,
    )

    api_version: Literal["infrastructure.cluster.x-k8s.io/v1beta2"] = "infrastructure.cluster.x-k8s.io/v1beta2"
    """Group and version of the kind."""
    kind: Literal["OpenStackMachineTemplate"] = "OpenStackMachineTemplate"
    """Kind of the object."""
    spec: OpenStackMachineTemplateSpec = OpenStackMachineTemplateSpec(
        template=OpenStackMachineTemplateResource(
            spec=OpenStackMachineSpec(flavor=FlavorParam(), image=ImageParam()),
        )
    )
    """The template."""
    status: OpenStackMachineTemplateStatus = OpenStackMachineTemplateStatus()
    """Observed state of the template."""
