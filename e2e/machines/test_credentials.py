"""Credentials on a real API server: who may use an OpenStackClusterIdentity, and changes under a running cluster."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import pytest

from e2e.machines import objects
from e2e.machines.environment import MachinesEnvironment
from environments.objects import secret

pytestmark = pytest.mark.integration

GROUP: Final = "infrastructure.cluster.x-k8s.io"
IDENTITIES: Final = f"/apis/{GROUP}/v1alpha1/openstackclusteridentities"
AUTHENTICATED: Final = "OpenStackAuthenticationSucceeded"
LABEL: Final = "e2e.example.org/may-use"


class Identity:
    """An OpenStackClusterIdentity of one test, for the namespaces with its label, and a cluster that uses it."""

    def __init__(self, world: MachinesEnvironment) -> None:
        self.world = world
        self.name = world.namespace
        self.rounds = 0

    def apply(self, **spec: Any) -> None:
        """Create or change the identity."""
        whole = {
            "secretRef": {"namespace": self.world.namespace, "name": "shared"},
            "namespaceSelector": {"matchLabels": {LABEL: self.name}},
            **spec,
        }
        metadata = {"name": self.name, "labels": objects.LABELS}
        kind = {"apiVersion": f"{GROUP}/v1alpha1", "kind": "OpenStackClusterIdentity"}
        self.world.api.apply([{**kind, "metadata": metadata, "spec": whole}])

    def label(self, value: str | None) -> None:
        """Label the namespace."""
        path = f"/api/v1/namespaces/{self.world.namespace}"
        self.world.api.patch(path, {"metadata": {"labels": {LABEL: value}}})

    def delete(self) -> None:
        """Delete the identity, if it exists."""
        self.world.api.delete(f"{IDENTITIES}/{self.name}")

    def apply_secret(self, name: str = "shared", *, password: bytes = b"capi-password") -> None:
        text = self.world.simulator.clouds_yaml.read_bytes().replace(b"capi-password", password)
        self.world.apply(secret(name, {"clouds.yaml": text}))

    def annotate(self) -> None:
        """Annotate the cluster, which reconciles it at once."""
        self.rounds += 1
        annotations = {"e2e.example.org/round": str(self.rounds)}
        self.world.patch("openstackclusters", objects.CLUSTER, {"metadata": {"annotations": annotations}})

    def apply_cluster(self) -> None:
        _, *cluster = objects.bare_cluster(self.world.simulator.clouds_yaml.read_bytes())
        ref = {"type": "ClusterIdentity", "name": self.name, "cloudName": "sim"}
        for obj in cluster:
            if obj["kind"] == "OpenStackCluster":
                obj["spec"]["identityRef"] = ref
        self.world.apply(*cluster)

    def wait_for_ready(self) -> None:
        world = self.world

        def is_ready() -> bool:
            shown = [world.condition("openstackclusters", objects.CLUSTER, type_) for type_ in ("Ready", AUTHENTICATED)]
            return all(condition.get("status") == "True" for condition in shown)

        world.wait_until("the cluster is ready", is_ready)

    def wait_for_refusal(self, *words: str) -> None:
        world = self.world

        def is_refused() -> bool:
            shown = world.condition("openstackclusters", objects.CLUSTER, AUTHENTICATED)
            return shown.get("status") == "False" and all(word in shown["message"] for word in words)

        world.wait_until(f"the condition says {words}", is_refused)


@pytest.fixture
def identity(world: MachinesEnvironment) -> Iterator[Identity]:
    """Yield an identity that admits the namespace, with a ready cluster; its deletion needs the identity."""
    made = Identity(world)
    made.apply_secret()
    made.apply()
    made.label(made.name)
    made.apply_cluster()
    made.wait_for_ready()
    yield made
    made.apply_secret()
    made.apply()
    made.label(made.name)
    made.annotate()
    world.delete("clusters", objects.CLUSTER)
    world.wait_until("the cluster is gone", lambda: world.find("clusters", objects.CLUSTER) is None)
    made.delete()


def test_a_namespace_without_the_label_is_refused_with_the_field_that_decides(identity: Identity) -> None:
    identity.label(None)
    identity.annotate()

    identity.wait_for_refusal(identity.name, f"namespace {identity.world.namespace}", "spec.namespaceSelector")

    identity.label(identity.name)
    identity.annotate()
    identity.wait_for_ready()


def test_another_selector_of_the_identity_revokes_the_access(identity: Identity) -> None:
    identity.apply(namespaceSelector={"matchExpressions": [{"key": LABEL, "operator": "DoesNotExist"}]})
    identity.annotate()

    identity.wait_for_refusal("does not admit", "spec.namespaceSelector")

    identity.apply(namespaceSelector={})
    identity.annotate()
    identity.wait_for_ready()


def test_an_identity_that_is_deleted_is_named_and_its_return_heals_the_cluster(identity: Identity) -> None:
    identity.delete()
    identity.annotate()

    identity.wait_for_refusal(f"OpenStackClusterIdentity {identity.name} does not exist")

    identity.apply()
    identity.wait_for_ready()


def test_a_secret_that_is_missing_is_reported_and_named_in_the_log_alone(identity: Identity) -> None:
    world = identity.world
    world.delete("secrets", "shared")
    identity.annotate()

    identity.wait_for_refusal("the Secret does not exist; the manager's log has more")

    identity.apply_secret()
    identity.wait_for_ready()


def test_an_identity_may_move_to_another_secret_under_a_running_cluster(identity: Identity) -> None:
    world = identity.world
    identity.apply_secret("next")
    identity.apply(secretRef={"namespace": world.namespace, "name": "next"})
    world.delete("secrets", "shared")
    identity.annotate()
    identity.wait_for_ready()

    identity.apply(secretRef={"namespace": world.namespace, "name": "shared"})
    identity.annotate()

    identity.wait_for_refusal("the Secret does not exist; the manager's log has more")


def test_a_password_that_does_not_work_leaves_the_former_in_use_and_is_reported(identity: Identity) -> None:
    world = identity.world

    def attention() -> str:
        return str(world.condition("openstackclusters", objects.CLUSTER, "CredentialsCurrent").get("reason"))

    identity.apply_secret(password=b"wrong")
    identity.annotate()
    world.wait_until("the refusal is reported", lambda: attention() == "NewCredentialsNotAccepted")
    identity.wait_for_ready()

    identity.apply_secret()
    identity.annotate()
    world.wait_until("the report ends", lambda: attention() == "None")


def test_an_annotation_of_the_identity_makes_its_secret_be_read_for_the_clusters_that_use_it(
    identity: Identity,
) -> None:
    world = identity.world

    def attention() -> str:
        return str(world.condition("openstackclusters", objects.CLUSTER, "CredentialsCurrent").get("reason"))

    identity.apply_secret(password=b"wrong")
    world.api.patch(f"{IDENTITIES}/{identity.name}", {"metadata": {"annotations": {"e2e.example.org/round": "1"}}})
    world.wait_until("the refusal is reported", lambda: attention() == "NewCredentialsNotAccepted")

    identity.apply_secret()
    world.api.patch(f"{IDENTITIES}/{identity.name}", {"metadata": {"annotations": {"e2e.example.org/round": "2"}}})
    world.wait_until("the report ends", lambda: attention() == "None")


def test_the_status_of_the_identity_shows_its_use(identity: Identity) -> None:
    """Takes a minute: the first status precedes the cluster, and no other is written within a minute."""

    def is_shown() -> bool:
        status = identity.world.api.get(f"{IDENTITIES}/{identity.name}").get("status") or {}
        return status.get("usedBy") == 1 and [c["status"] for c in status.get("conditions", ())] == ["True"]

    identity.world.wait_until("the status of the identity is written", is_shown)
