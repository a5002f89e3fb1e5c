"""Credentials that expire are reported on objects that have them for themselves."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from capo.json_types import Json
from capo.kube.kinds import OPENSTACK_CLUSTER, OPENSTACK_FLOATING_IP_POOL, OPENSTACK_SERVER, Kind
from controllers.openstackfloatingippool.tests.environment import PoolEnvironment
from controllers.openstackserver.tests.environment import place
from controllers.tests import application_credentials

REF = {"name": "cloud", "cloudName": "sim"}
OBJECTS = [
    pytest.param(OPENSTACK_FLOATING_IP_POOL, "pool", id="pool"),
    pytest.param(OPENSTACK_SERVER, "s", id="server"),
]


class ExpiryEnvironment(PoolEnvironment):
    """A pool and a server whose application credential expires in two days."""

    def __init__(self) -> None:
        super().__init__()
        made, text = application_credentials.create(self)
        ends = datetime.fromtimestamp(self.clock.wall() + 2 * 86400, UTC)
        made["expires_at"] = f"{ends:%Y-%m-%dT%H:%M:%S.%f}"
        self.password = self.simulator.clouds_yaml.read_bytes()
        self.apply_secret(text=text)

    def up(self) -> None:
        """Create the objects."""
        place(self)
        self.pool()
        self.settle()

    def cluster(self, **metadata: Json) -> None:
        """Create an OpenStackCluster with the same credentials, which another manager reconciles."""
        self.apply(OPENSTACK_CLUSTER, {"metadata": {"name": "c", **metadata}, "spec": {"identityRef": REF}})

    def reasons(self, kind: Kind, name: str) -> tuple[str, set[str]]:
        """Return the reason of the condition and those of the Events."""
        about = {reason for _, reason, text in self.events.seen if "expires at" in text}
        return self.condition(kind, name, "CredentialsCurrent").get("reason", ""), about


@pytest.fixture
def world() -> Iterator[ExpiryEnvironment]:
    with ExpiryEnvironment() as made:
        yield made  # type: ignore[misc]


@pytest.mark.parametrize(("kind", "name"), OBJECTS)
def test_an_object_of_no_cluster_warns_until_its_credentials_are_replaced(
    world: ExpiryEnvironment, kind: Kind, name: str
) -> None:
    world.up()
    world.wake_all()
    world.settle()
    assert world.reasons(kind, name) == ("CredentialsExpireSoon", {"CredentialsExpireSoon"})

    world.apply_secret(text=world.password)
    world.clock.now_s += 600
    world.wake_all()
    world.settle()

    assert world.reasons(kind, name)[0] == ""


@pytest.mark.parametrize(("kind", "name"), OBJECTS)
def test_an_object_with_the_credentials_of_a_cluster_leaves_the_warning_to_it(
    world: ExpiryEnvironment, kind: Kind, name: str
) -> None:
    world.cluster()

    world.up()

    assert world.reasons(kind, name) == ("", set())


def test_a_cluster_that_others_manage_warns_about_nothing(world: ExpiryEnvironment) -> None:
    world.cluster(annotations={"cluster.x-k8s.io/managed-by": "somebody"})

    world.up()

    assert world.reasons(OPENSTACK_SERVER, "s")[0] == "CredentialsExpireSoon"
