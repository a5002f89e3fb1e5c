"""Running objects of each kind, in virtual time: the real engine and controllers, a simulated cloud over HTTP."""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from typing import Any, Final

from capo import names
from capo.json_types import Json
from capo.kube import kinds
from capo.kube.errors import Invalid
from capo.kube.kinds import (
    CLUSTER,
    MACHINE,
    MACHINE_DEPLOYMENT,
    OPENSTACK_CLUSTER,
    OPENSTACK_CLUSTER_IDENTITY,
    OPENSTACK_FLOATING_IP_POOL,
    OPENSTACK_MACHINE,
    OPENSTACK_MACHINE_TEMPLATE,
    OPENSTACK_SERVER,
    OURS,
    SECRET,
    Key,
    Kind,
)
from controllers.openstackmachinetemplate.controller import MachineTemplateController
from e2e.misoperation import bases, rows, structure
from environments import objects
from environments.in_memory import NAMESPACE
from environments.provider import NAME, ProviderEnvironment

KINDS: Final = {kind.kind: kind for kind in OURS}
SCHEMAS: Final = {version.kind: version.root["properties"]["spec"] for version in rows.STORED}
BUILD_S: Final = 900.0
RESYNC_S: Final = 90.0
"""Seconds before the end of a wait at which every object is reconciled once more, as in a resync."""


class RunningObjectEnvironment(ProviderEnvironment):
    """A manager with all controllers, and the running object of a kind.

    Args:
        kind: whose object is edited.
    """

    factories = (*ProviderEnvironment.factories, MachineTemplateController)

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.kind = KINDS[kind]
        self.kube.before_write = self._validate
        self._furnish()
        PLACE[kind](self)
        assert self.play(for_s=BUILD_S, until=self.is_well), self.messages()
        self.play(for_s=BUILD_S)

    @property
    def key(self) -> Key:
        """Return the key of the object that is edited."""
        return Key(self.kind, NAMESPACE if self.kind.is_namespaced else "", NAME)

    def object(self) -> Json:
        """Return the object that is edited."""
        found = self.kube.get(*self.key)
        assert found is not None
        return found

    def write(self, obj: Json) -> None:
        """Write the object as a user does, with a new generation."""
        generation = obj["metadata"].get("generation", 0) + 1
        self.apply(self.kind, obj | {"metadata": obj["metadata"] | {"generation": generation}})

    def is_well(self) -> bool:
        """Return whether everything is ready, and no operation is in progress."""
        ours = self.ours()
        shown = [c for obj in ours for c in (obj.get("status") or {}).get("conditions") or ()]
        ready = [c for c in shown if c["type"] == "Ready"]
        is_up = len(ready) == len(ours) and all(c["status"] == "True" for c in shown if c["type"] != "Paused")
        expected = PARTS[self.kind.kind]
        return is_up and self.is_settled() and {obj["kind"] for obj in ours} >= expected

    def wait(self, for_s: float) -> None:
        """Advance time, with a resync before the end."""
        # Cluster API's part has nothing to do here and copies many objects, so it is skipped.
        self.settle(for_s=for_s - RESYNC_S)
        for key in self.kube.objects:
            if any(controller.kind == key.kind for controller in self.controllers):
                self._wake(key)
        self.settle(for_s=RESYNC_S)

    def _validate(self, verb: str, key: Key, body: Mapping[str, Any]) -> None:
        """Refuse an object of ours as the API server does, when the manager creates it."""
        if verb == "create" and key.kind in OURS:
            causes = structure.causes(SCHEMAS[key.kind.kind], body["spec"], "spec")
            if causes:
                raise Invalid(", ".join(f"{cause.field}: {cause.message}" for cause in causes), status=422)

    def _furnish(self) -> None:
        """Create the resources that the specs refer to, as a user does."""
        self.network()
        self.apply_secret(bases.SECOND_SECRET)
        for name in (bases.GROUP, bases.SECOND_GROUP):
            made = self.member.make("/network/v2.0/security-groups", "security_group", name=name)
            self.member.ask("PUT", f"/network/v2.0/security-groups/{made['id']}/tags/{bases.TAG}")
        group = {"name": bases.SERVER_GROUP, "policies": ["soft-anti-affinity"]}
        headers = {"OpenStack-API-Version": "compute 2.15"}
        self.member.ask("POST", "/compute/v2.1/os-server-groups", {"server_group": group}, headers=headers)
        self.cloud.counter.reset()


def place(environment: RunningObjectEnvironment, kind: Kind, obj: Json) -> Json:
    """Place an object of ours with the defaults that the API server fills in."""
    return environment.apply(kind, {**obj, "spec": structure.defaulted(SCHEMAS[kind.kind], obj["spec"])})


def place_alone(environment: RunningObjectEnvironment, kind: Kind, spec: Json) -> Json:
    """Place an object that belongs to no cluster."""
    return place(environment, kind, {"metadata": {"name": NAME}, "spec": spec})


def place_cluster(environment: RunningObjectEnvironment, spec: Json = bases.CLUSTER) -> None:
    """Place a Cluster of Cluster API and its OpenStackCluster."""
    cluster = environment.apply(CLUSTER, objects.cluster(NAME))
    place(environment, OPENSTACK_CLUSTER, {**objects.openstack_cluster(NAME, owner=cluster), "spec": spec})


def place_control_plane(environment: RunningObjectEnvironment, *, template: str | None = None) -> None:
    """Place a cluster with its first control plane machine, cloned from a template if one is named."""
    place_cluster(environment)
    environment.apply(SECRET, objects.bootstrap())
    machine = environment.apply(MACHINE, objects.machine(NAME, NAME, is_control_plane=True))
    wanted = objects.openstack_machine(NAME, NAME, is_control_plane=True, owner=machine)
    made = objects.cloned(wanted, template) if template else wanted
    place(environment, OPENSTACK_MACHINE, {**made, "spec": bases.MACHINE})


def place_template(environment: RunningObjectEnvironment) -> None:
    """Place a cluster with a machine, and the template from which that was cloned, which is in use."""
    place_control_plane(environment, template=NAME)
    refer(environment, NAME, NAME)
    owner = objects.owner_reference(environment.get(CLUSTER, NAME))
    metadata = {"name": NAME, "ownerReferences": [owner]}
    spec = bases.BASES[OPENSTACK_MACHINE_TEMPLATE.kind]
    place(environment, OPENSTACK_MACHINE_TEMPLATE, {"metadata": metadata, "spec": spec})


def refer(environment: RunningObjectEnvironment, deployment: str, template: str) -> None:
    """Place a MachineDeployment without machines that refers to a template."""
    ref = {"apiGroup": names.GROUP, "kind": OPENSTACK_MACHINE_TEMPLATE.kind, "name": template}
    spec = {"replicas": 0, "template": {"spec": {"infrastructureRef": ref}}}
    metadata = {"name": deployment, "labels": {names.CLUSTER_NAME_LABEL: NAME}}
    environment.apply(MACHINE_DEPLOYMENT, {"metadata": metadata, "spec": spec})


def place_server(environment: RunningObjectEnvironment) -> None:
    """Place a standalone OpenStackServer."""
    place_alone(environment, OPENSTACK_SERVER, bases.OPENSTACK_SERVER)


def place_pool(environment: RunningObjectEnvironment) -> None:
    """Place a pool, and a claim that it answers."""
    ref = {"apiGroup": names.GROUP, "kind": "OpenStackFloatingIPPool", "name": NAME}
    environment.apply(kinds.IP_ADDRESS_CLAIM, {"metadata": {"name": NAME}, "spec": {"poolRef": ref}})
    place_alone(environment, OPENSTACK_FLOATING_IP_POOL, bases.POOL)


def place_identity(environment: RunningObjectEnvironment) -> None:
    """Place an OpenStackClusterIdentity, and a cluster that uses it."""
    environment.apply(kinds.NAMESPACE, {"metadata": {"name": NAMESPACE, "labels": {"team": "one"}}})
    data = {"clouds.yaml": base64.b64encode(environment.simulator.clouds_yaml.read_bytes()).decode()}
    metadata = {"name": "lent", "namespace": "vault"}
    environment.apply(SECRET, {"metadata": metadata, "data": data})
    place_alone(environment, OPENSTACK_CLUSTER_IDENTITY, bases.CLUSTER_IDENTITY)
    identity = {"type": "ClusterIdentity", "name": NAME, "cloudName": "sim"}
    place_cluster(environment, {"identityRef": identity, "managedSubnets": [{"cidr": bases.CIDR}]})


PLACE: Final[dict[str, Callable[[RunningObjectEnvironment], None]]] = {
    "OpenStackCluster": place_control_plane,
    "OpenStackMachine": place_control_plane,
    "OpenStackMachineTemplate": place_template,
    "OpenStackServer": place_server,
    "OpenStackFloatingIPPool": place_pool,
    "OpenStackClusterIdentity": place_identity,
}
"""By kind; OpenStackClusterTemplates have no controller, so nothing runs for them."""
PARTS: Final[dict[str, set[str]]] = {
    "OpenStackCluster": {"OpenStackCluster", "OpenStackMachine", "OpenStackServer"},
    "OpenStackMachine": {"OpenStackCluster", "OpenStackMachine", "OpenStackServer"},
    "OpenStackMachineTemplate": {"OpenStackCluster", "OpenStackMachine", "OpenStackServer"},
    "OpenStackServer": {"OpenStackServer"},
    "OpenStackFloatingIPPool": set(),
    "OpenStackClusterIdentity": {"OpenStackCluster"},
}
"""Kinds with at least one resource while everything is ready."""
