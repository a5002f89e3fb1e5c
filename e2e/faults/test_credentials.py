"""Conditions of a Cluster or Machine with bad credentials, and the quick recovery after the Secret is corrected."""

from __future__ import annotations

from typing import Final

import pytest

from capo.simulator.keystone.service import change_password
from e2e.faults import objects
from e2e.faults.environment import FaultEnvironment
from e2e.faults.scenarios import run_in_parallel
from environments.objects import IDENTITY

pytestmark = pytest.mark.integration

CLUSTER: Final = ("clusters", objects.CLUSTER)
MACHINE: Final = ("machines", "machine")
NOTICED_S: Final = 120.0
"""Time limit to notice a corrected Secret.

It is read every ten seconds, and the rest is for slow machines: without that, the resync would notice it after minutes.
"""
AUTHENTICATED: Final = "OpenStackAuthenticationSucceeded"


def noticed(world: FaultEnvironment) -> None:
    """Wait until the credentials are accepted in time, and the cluster becomes ready."""

    def is_accepted() -> bool:
        shown = world.condition("openstackclusters", objects.CLUSTER, AUTHENTICATED)
        return bool(shown.get("status") == "True")

    world.wait_until("the mended Secret is noticed", is_accepted, limit_s=NOTICED_S)
    world.wait_until_ready(*CLUSTER)


@run_in_parallel
def test_wrong_credentials_are_told_in_keystones_words_until_the_secret_is_mended(world: FaultEnvironment) -> None:
    world.begin_minute()
    world.apply(world.secret(password="wrong"), *objects.cluster())
    words = ("NotAuthorized", "requires authentication", "(request req-", f"Secret {world.namespace}/cloud")
    message = world.wait_for_message(*CLUSTER, *words)
    assert "wrong" not in message
    world.require_quiet_minute()
    world.apply(world.secret())
    noticed(world)
    world.delete_and_wait(*CLUSTER)


@run_in_parallel
def test_an_unknown_cloud_name_is_told_with_those_that_the_secret_has(world: FaultEnvironment) -> None:
    unknown = {"name": "cloud", "cloudName": "elsewhere"}
    world.begin_minute()
    world.apply(world.secret(), *objects.cluster(identityRef=unknown))
    words = ("IdentityNotUsable", "no cloud 'elsewhere'", "it has: sim,", f"Secret {world.namespace}/cloud")
    world.wait_for_message(*CLUSTER, *words)
    world.require_quiet_minute()
    assert not world.requests()
    world.patch("openstackclusters", objects.CLUSTER, {"spec": {"identityRef": IDENTITY}})
    noticed(world)
    world.delete_and_wait(*CLUSTER)


@run_in_parallel
def test_a_missing_secret_is_named_until_it_is_there(world: FaultEnvironment) -> None:
    world.begin_minute()
    world.apply(*objects.cluster())
    world.wait_for_message(*CLUSTER, "IdentityNotUsable", f"Secret {world.namespace}/cloud does not exist")
    world.require_quiet_minute()
    world.apply(world.secret())
    noticed(world)
    world.delete_and_wait(*CLUSTER)


@run_in_parallel
def test_a_cluster_that_never_had_credentials_is_deleted_at_once(world: FaultEnvironment) -> None:
    world.apply(*objects.cluster())
    world.wait_for_message(*CLUSTER, "IdentityNotUsable")
    world.delete_and_wait(*CLUSTER)


@run_in_parallel
def test_wrong_credentials_of_a_machine_are_told_on_the_machine(world: FaultEnvironment) -> None:
    # Without a version in it, the URL costs a discovery, too.
    unversioned = f"{world.simulator.url}/identity"
    own = world.secret("own", password="wrong", auth_url=unversioned)
    world.apply(world.secret(), own, *objects.cluster_on(world.network()))
    world.wait_until_ready(*CLUSTER)
    world.begin_minute()
    world.apply(*objects.machine(identityRef={"name": "own", "cloudName": "sim"}))
    world.wait_for_message(*MACHINE, "NotAuthorized", "requires authentication", f"Secret {world.namespace}/own")
    world.require_quiet_minute()
    world.apply(world.secret("own"))
    world.wait_until_ready(*MACHINE, limit_s=NOTICED_S)
    world.delete_and_wait(*MACHINE)
    world.delete_and_wait(*CLUSTER)


@run_in_parallel
def test_a_password_that_is_changed_while_a_server_is_built_is_told_until_the_secret_follows(
    world: FaultEnvironment,
) -> None:
    world.apply(world.secret(), *objects.cluster_on(world.network()))
    world.wait_until_ready(*CLUSTER)
    world.simulator.cloud.timings.server_build_s = float("inf")
    world.apply(*objects.machine())
    world.wait_until("a server is being built", lambda: "compute/servers" in world.remaining())
    world.begin_minute()
    world.simulator.call(lambda: change_password(world.simulator.cloud, {"user": "capi", "password": "changed"}))
    world.wait_for_message(*MACHINE, "NotAuthorized", "requires authentication", f"Secret {world.namespace}/cloud")
    world.require_quiet_minute()
    world.simulator.cloud.timings.server_build_s = 0.0
    world.simulator.call(world.simulator.cloud.release)
    world.apply(world.secret(password="changed"))
    world.wait_until_ready(*MACHINE, limit_s=NOTICED_S)
    world.delete_and_wait(*MACHINE)
    world.delete_and_wait(*CLUSTER)


@run_in_parallel
def test_a_deletion_without_credentials_says_so_and_goes_on_once_the_secret_is_mended(world: FaultEnvironment) -> None:
    world.apply(world.secret(), *objects.cluster())
    world.wait_until_ready(*CLUSTER)
    world.simulator.call(lambda: change_password(world.simulator.cloud, {"user": "capi", "password": "changed"}))
    world.delete(*CLUSTER)

    def is_told() -> bool:
        shown = world.condition("openstackclusters", objects.CLUSTER, "Ready")
        return "NotAuthorized" in shown.get("message", "")

    world.wait_until("the deletion tells what it waits for", is_told)
    world.apply(world.secret(password="changed"))
    world.delete_and_wait(*CLUSTER)
