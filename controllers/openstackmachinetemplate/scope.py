"""The inputs of one reconcile of an OpenStackMachineTemplate, and what its steps found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from api.v1beta2 import OpenStackMachineTemplate
from api.v1beta2.openstackmachine import OpenStackMachineSpec
from capo.engine.context import Dependencies
from capo.kube.kinds import Key
from capo.openstack.cloud import Cloud
from capo.openstack.flavor import Flavor


@dataclass
class Found:
    """The results of this reconcile's steps.

    Args:
        flavor: None if it was not found.
        capacity: None if it is not known.
        node_info: None if it is not known.
    """

    flavor: Flavor | None = None
    capacity: Mapping[str, str] | None = None
    node_info: Mapping[str, str] | None = None


@dataclass(frozen=True)
class TemplateScope:
    """The template and its cloud."""

    deps: Dependencies
    key: Key
    template: OpenStackMachineTemplate
    cloud: Cloud
    found: Found = field(default_factory=Found)

    @property
    def spec(self) -> OpenStackMachineSpec:
        """The spec of the machines."""
        return self.template.spec.template.spec
