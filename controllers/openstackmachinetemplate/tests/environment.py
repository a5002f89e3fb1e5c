"""A Cluster with templates and what refers to them, in the test environment."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from capo.json_types import Json
from capo.kube.kinds import (
    CLUSTER,
    KUBEADM_CONTROL_PLANE,
    MACHINE_DEPLOYMENT,
    OPENSTACK_CLUSTER,
    OPENSTACK_MACHINE_TEMPLATE,
    Kind,
)
from capo.names import CLUSTER_NAME_LABEL
from capo.settings import Settings
from capo.simulator.nova.flavors import add_flavor
from controllers.openstackmachinetemplate.controller import MachineTemplateController
from environments.in_memory import InMemoryEnvironment

KIND: Final = OPENSTACK_MACHINE_TEMPLATE
LABELS: Final = {CLUSTER_NAME_LABEL: "c"}
OWNER: Final = {"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "name": "c", "uid": "uid-of-c"}


class TemplateEnvironment(InMemoryEnvironment):
    """A Cluster and its OpenStackCluster; templates are created by the tests."""

    def __init__(self, settings: Settings | None = None) -> None:
        super().__init__(MachineTemplateController, settings=settings)
        self.apply_secret()
        infra = {"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "OpenStackCluster", "name": "c"}
        control_plane = {"apiGroup": KUBEADM_CONTROL_PLANE.group, "kind": KUBEADM_CONTROL_PLANE.kind, "name": "cp"}
        self.apply(
            CLUSTER,
            {
                "metadata": {"name": "c", "uid": OWNER["uid"]},
                "spec": {"infrastructureRef": infra, "controlPlaneRef": control_plane},
            },
        )
        spec = {"identityRef": {"name": "cloud", "cloudName": "sim"}}
        owned = {"name": "c", "labels": LABELS, "ownerReferences": [OWNER]}
        self.apply(OPENSTACK_CLUSTER, {"metadata": owned, "spec": spec})

    def place(self, name: str = "t", *, metadata: Mapping[str, Any] | None = None, **spec: Any) -> None:
        """Create a template of the Cluster."""
        wanted = {
            "flavor": {"filter": {"name": "m1.small"}},
            "image": {"filter": {"name": "tiny-image"}},
            **spec,
        }
        owned = {"name": name, "ownerReferences": [OWNER], **(metadata or {})}
        self.apply(KIND, {"metadata": owned, "spec": {"template": {"spec": wanted}}})

    def refer(
        self,
        template: str = "t",
        *,
        name: str = "md",
        kind: Kind = MACHINE_DEPLOYMENT,
        domain: str | None = None,
        **more: Any,
    ) -> None:
        """Create a MachineDeployment that refers to a template, in a failure domain."""
        ref = {"apiGroup": KIND.group, "kind": KIND.kind, "name": template}
        machine = {"infrastructureRef": ref, **({"failureDomain": domain} if domain else {})}
        spec = {"replicas": 0, "template": {"spec": machine}}
        self.apply(kind, {"metadata": {"name": name, "labels": LABELS, **more}, "spec": spec})

    def flavor(self, name: str, *, vcpus: int = 4, ram: int = 8192, disk: int = 20, **more: Any) -> Json:
        """Add a flavor to the cloud."""

        def add() -> Json:
            made = add_flavor(self.cloud, name, vcpus=vcpus, ram=ram, disk=disk)
            made |= more
            return made

        return self.simulator.call(add)

    def remove_flavor(self, name: str) -> None:
        def remove() -> None:
            flavors = self.cloud.table("compute", "flavors")
            for id_ in [id_ for id_, flavor in flavors.items() if flavor["name"] == name]:
                del flavors[id_]

        self.simulator.call(remove)

    def image(self, **properties: Any) -> None:
        """Set properties of the image of the templates."""

        def change() -> None:
            for found in self.cloud.table("image", "images").values():
                if found["name"] == "tiny-image":
                    found.update(properties)

        self.simulator.call(change)

    def status(self, name: str = "t") -> Json:
        found: Json = self.get(KIND, name).get("status") or {}
        return found

    def state(self, type_: str, name: str = "t") -> tuple[str, str]:
        """Return status and reason of a condition, empty if it is not shown."""
        found = self.condition(KIND, name, type_)
        return found.get("status", ""), found.get("reason", "")

    def reads(self) -> list[str]:
        """Return the requests besides logins and versions."""
        paths = [request.partition("?")[0] for request in self.requests()]
        return [path for path in paths if any(word in path for word in ("/flavors", "/images"))]
