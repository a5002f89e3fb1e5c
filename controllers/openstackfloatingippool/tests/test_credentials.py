"""A pool whose credentials are those of an OpenStackClusterIdentity, which may be taken away and given back."""

from __future__ import annotations

from typing import Any, Final

import pytest

from capo.kube.kinds import IP_ADDRESS_CLAIM, NAMESPACE, OPENSTACK_CLUSTER_IDENTITY
from capo.kube.kinds import OPENSTACK_FLOATING_IP_POOL as KIND
from controllers.openstackfloatingippool.tests.environment import PoolEnvironment

AUTHENTICATED: Final = "OpenStackAuthenticationSucceeded"
REF: Final = {"type": "ClusterIdentity", "name": "shared", "cloudName": "sim"}
SELECTOR: Final = {"matchLabels": {"openstack": "shared"}}


def share(stage: PoolEnvironment, **spec: Any) -> None:
    """Create the identity."""
    wanted = {"secretRef": {"name": "cloud", "namespace": "default"}, **spec}
    stage.kube.put(OPENSTACK_CLUSTER_IDENTITY, {"metadata": {"name": "shared", "namespace": ""}, "spec": wanted})


def label(stage: PoolEnvironment, **labels: str) -> None:
    """Create the namespace, or replace its labels."""
    stage.kube.put(NAMESPACE, {"metadata": {"name": "default", "namespace": "", "labels": labels}})


def revoke(stage: PoolEnvironment, how: str) -> None:
    if how == "deleted":
        stage.kube.delete(OPENSTACK_CLUSTER_IDENTITY, "", "shared")
    else:
        label(stage)


def restore(stage: PoolEnvironment, how: str) -> None:
    if how == "deleted":
        share(stage, namespaceSelector=SELECTOR)
    else:
        label(stage, openstack="shared")


@pytest.mark.parametrize("how", ["deleted", "not admitted"])
def test_an_identity_that_is_taken_away_stops_allocation_and_release_until_it_is_given_back(
    stage: PoolEnvironment, how: str
) -> None:
    share(stage, namespaceSelector=SELECTOR)
    label(stage, openstack="shared")
    stage.pool(identityRef=REF)
    stage.claim("before")
    stage.settle(for_s=60)
    (ip,) = stage.answers().values()
    assert stage.shown(AUTHENTICATED)[0] == "True"

    revoke(stage, how)
    stage.cloud.counter.reset()
    stage.claim("after")
    stage.delete(IP_ADDRESS_CLAIM, "before")
    stage.settle(for_s=120)

    assert stage.shown(AUTHENTICATED)[0] == "False"
    assert "OpenStackClusterIdentity shared does not" in stage.message(AUTHENTICATED)
    assert (stage.writes(), list(stage.floating_ips())) == ([], [ip])
    assert stage.answer("after") is None
    assert stage.exists(IP_ADDRESS_CLAIM, "before")

    restore(stage, how)
    stage.wake_all()
    stage.settle(for_s=300)
    assert stage.shown(AUTHENTICATED)[0] == "True"
    assert stage.answer("after")
    assert not stage.exists(IP_ADDRESS_CLAIM, "before")
    assert list(stage.floating_ips()) == [stage.answer("after")]


def test_a_pool_does_not_end_while_its_identity_is_taken_away(stage: PoolEnvironment) -> None:
    share(stage)
    stage.pool(identityRef=REF)
    stage.claim("mine")
    stage.settle(for_s=60)

    revoke(stage, "deleted")
    stage.delete(IP_ADDRESS_CLAIM, "mine")
    stage.delete(KIND, "pool")
    stage.settle(for_s=300)
    assert stage.exists(KIND, "pool")
    assert len(stage.floating_ips()) == 1

    share(stage)
    stage.wake_all()
    stage.settle(for_s=300)
    assert (stage.exists(KIND, "pool"), stage.floating_ips()) == (False, {})


@pytest.mark.parametrize("is_shared", [True, False], ids=["shared credentials", "credentials of its own"])
def test_the_port_that_has_a_prepared_address_is_named_only_with_credentials_of_the_namespace(
    stage: PoolEnvironment, *, is_shared: bool
) -> None:
    share(stage)
    ip = str(stage.floating_ip()["floating_ip_address"])
    port = stage.use(ip)
    own = {"name": "cloud", "cloudName": "sim"}
    stage.pool(preAllocatedFloatingIPs=[ip], identityRef=REF if is_shared else own)
    stage.claim("mine")

    stage.settle(for_s=120)

    shown = [str(stage.status()), *(str(each) for each in stage.events.seen)]
    assert any("leads to a port" if is_shared else f"leads to port {port['id']}" in text for text in shown)
    assert any(port["id"] in text for text in shown) != is_shared
