"""Credentials of a template that are taken away, replaced or given back count at its next reconcile."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import pytest

from capo.kube.kinds import NAMESPACE, OPENSTACK_CLUSTER, OPENSTACK_CLUSTER_IDENTITY, SECRET
from controllers.openstackmachinetemplate.tests.environment import KIND, TemplateEnvironment

AUTHENTICATED: Final = "OpenStackAuthenticationSucceeded"
REF: Final = {"type": "ClusterIdentity", "name": "shared", "cloudName": "sim"}
SELECTOR: Final = {"matchLabels": {"openstack": "shared"}}


@pytest.fixture
def world() -> Iterator[TemplateEnvironment]:
    with TemplateEnvironment() as made:
        yield made


def share(world: TemplateEnvironment, **spec: Any) -> None:
    """Create the identity."""
    wanted = {"secretRef": {"name": "cloud", "namespace": "default"}, **spec}
    world.kube.put(OPENSTACK_CLUSTER_IDENTITY, {"metadata": {"name": "shared", "namespace": ""}, "spec": wanted})


def label(world: TemplateEnvironment, **labels: str) -> None:
    """Create the namespace, or replace its labels."""
    world.kube.put(NAMESPACE, {"metadata": {"name": "default", "namespace": "", "labels": labels}})


def resync(world: TemplateEnvironment) -> None:
    world.settle(for_s=600)
    world.wake_all()
    world.settle(for_s=1)


@pytest.mark.parametrize("is_own", [True, False], ids=["own", "of-its-cluster"])
def test_an_identity_that_is_deleted_counts_at_the_next_reconcile(world: TemplateEnvironment, *, is_own: bool) -> None:
    share(world)
    if not is_own:
        world.patch(OPENSTACK_CLUSTER, "c", {"spec": {"identityRef": REF}})
    own: dict[str, Any] = {"identityRef": REF} if is_own else {}
    world.place(**own)
    world.refer()
    world.settle()
    assert world.state(AUTHENTICATED)[0] == world.state("Ready")[0] == "True"

    world.kube.delete(OPENSTACK_CLUSTER_IDENTITY, "", "shared")
    resync(world)
    assert world.state(AUTHENTICATED)[0] == world.state("Ready")[0] == "False"
    assert "shared does not exist" in world.condition(KIND, "t", AUTHENTICATED)["message"]

    share(world)
    resync(world)
    assert world.state(AUTHENTICATED)[0] == world.state("Ready")[0] == "True"


def test_a_namespace_that_is_no_longer_admitted_counts_at_the_next_reconcile(world: TemplateEnvironment) -> None:
    share(world, namespaceSelector=SELECTOR)
    label(world, openstack="shared")
    world.place(identityRef=REF)
    world.refer()
    world.settle()
    assert world.state(AUTHENTICATED)[0] == "True"

    label(world)
    resync(world)

    assert world.state(AUTHENTICATED)[0] == "False"
    assert "does not admit namespace default" in world.condition(KIND, "t", AUTHENTICATED)["message"]


def test_an_identity_that_stays_costs_no_request(world: TemplateEnvironment) -> None:
    share(world)
    world.place(identityRef=REF)
    world.refer()
    world.settle()
    world.cloud.counter.reset()

    for _ in range(5):
        resync(world)

    assert world.requests() == []


def test_an_annotation_of_a_template_with_credentials_of_its_own_reads_the_secret(world: TemplateEnvironment) -> None:
    world.apply_secret("other")
    world.place(identityRef={"name": "other", "cloudName": "sim"})
    world.refer()
    world.settle()
    assert world.state(AUTHENTICATED)[0] == "True"

    world.kube.delete(SECRET, "default", "other")
    world.patch(KIND, "t", {"metadata": {"annotations": {"example.org/rotated": "1"}}})
    world.settle(for_s=10)

    assert world.state(AUTHENTICATED)[0] == "False"
