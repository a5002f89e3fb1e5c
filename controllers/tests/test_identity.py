"""Which cloud an identityRef leads to, and when its Secret is read anew."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest
import yaml

from capo.controllers.identity import Identities
from capo.engine.tests.fake_kube import FakeClock, FakeKube
from capo.errors import IdentityError
from capo.kube.kinds import NAMESPACE, OPENSTACK_CLUSTER_IDENTITY, SECRET
from capo.openstack.cloud import Clouds

REF = {"name": "cloud", "cloudName": "here"}
SHARED = {"type": "ClusterIdentity", "name": "shared", "cloudName": "here"}


@dataclass
class World:
    kube: FakeKube = field(default_factory=FakeKube)
    clock: FakeClock = field(default_factory=FakeClock)
    woken: list[object] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.clouds = Clouds(self.clock, self.woken.append)
        self.identities = Identities(self.kube, self.clouds, self.clock, max_age_s=600)  # type: ignore[arg-type]

    def put_secret(self, password: str, name: str = "cloud") -> None:
        auth = {"auth_url": "http://127.0.0.1:1/v3", "username": "u", "password": password, "project_name": "p"}
        text = yaml.safe_dump({"clouds": {"here": {"auth": auth}}})
        data = {"clouds.yaml": base64.b64encode(text.encode()).decode()}
        self.kube.put(SECRET, {"metadata": {"name": name, "namespace": "default"}, "data": data})


@pytest.fixture
def world() -> Iterator[World]:
    made = World()
    yield made
    made.clouds.close()


def test_a_secret_is_kept_until_the_next_resync(world: World) -> None:
    world.put_secret("old")
    first = world.identities.cloud(REF, "default")
    world.put_secret("new")

    assert world.identities.cloud(REF, "default") is first
    world.clock.now_s += 601
    assert world.identities.cloud(REF, "default") is not first


def test_credentials_that_were_refused_and_stay_the_same_keep_their_cloud(world: World) -> None:
    world.put_secret("old")
    first = world.identities.cloud(REF, "default")

    world.identities.forget(REF, "default")

    assert world.identities.cloud(REF, "default") is first
    assert not first.observer.is_closed


def test_a_mended_secret_wakes_those_who_wait_for_the_old_cloud(world: World) -> None:
    world.put_secret("old")
    first = world.identities.cloud(REF, "default")
    first.observer.owners.register("owner", "key")
    world.put_secret("new")

    world.identities.forget(REF, "default")

    assert world.identities.cloud(REF, "default") is not first
    assert first.observer.is_closed
    assert world.woken == ["key"]


def test_a_missing_secret_is_named(world: World) -> None:
    with pytest.raises(IdentityError, match="Secret default/cloud does not exist"):
        world.identities.cloud(REF, "default")


@pytest.mark.parametrize(
    ("more", "words"),
    [
        pytest.param({}, "Secret default/cloud, cloud 'here'", id="Secret"),
        pytest.param({"type": "ClusterIdentity"}, "OpenStackClusterIdentity cloud, cloud 'here'", id="shared"),
    ],
)
def test_the_place_of_credentials_is_told_in_words(more: dict[str, str], words: str) -> None:
    assert Identities.describe({**REF, **more}, "default") == words


def test_credentials_of_one_cloud_share_its_budget_once_they_were_read(world: World) -> None:
    world.put_secret("one")
    world.put_secret("other", name="other")
    other = {**REF, "name": "other"}

    before = world.identities.slot(REF, "default")
    for ref in (REF, other):
        world.identities.locate(ref, "default")

    assert before is None
    assert world.identities.slot(REF, "default") == world.identities.slot(other, "default") != ""


def test_a_budget_is_not_known_as_long_as_the_secret_is_missing(world: World) -> None:
    with pytest.raises(IdentityError, match="Secret default/cloud does not exist"):
        world.identities.locate(REF, "default")

    assert world.identities.slot(REF, "default") is None


@pytest.fixture
def shared(world: World) -> World:
    """A world in which the namespace ``team`` is admitted by an OpenStackClusterIdentity."""
    world.put_secret("old")
    spec = {
        "secretRef": {"name": "cloud", "namespace": "default"},
        "namespaceSelector": {"matchLabels": {"may": "use"}},
    }
    world.kube.put(OPENSTACK_CLUSTER_IDENTITY, {"metadata": {"name": "shared", "namespace": ""}, "spec": spec})
    label(world, "use")
    return world


def label(world: World, value: str) -> None:
    world.kube.put(NAMESPACE, {"metadata": {"name": "team", "namespace": "", "labels": {"may": value}}})


def test_access_that_the_namespace_loses_counts_at_once(shared: World) -> None:
    shared.identities.cloud(SHARED, "team")

    label(shared, "not")

    with pytest.raises(IdentityError, match="does not admit namespace team"):
        shared.identities.cloud(SHARED, "team")


def test_access_that_the_identity_takes_away_counts_at_once(shared: World) -> None:
    shared.identities.cloud(SHARED, "team")

    selector = {"namespaceSelector": {"matchLabels": {"may": "never"}}}
    shared.kube.edit(OPENSTACK_CLUSTER_IDENTITY, "", "shared", {"spec": selector})

    with pytest.raises(IdentityError, match="does not admit namespace team"):
        shared.identities.cloud(SHARED, "team")


def test_an_identity_that_is_deleted_admits_nobody_any_more(shared: World) -> None:
    shared.identities.cloud(SHARED, "team")

    shared.kube.delete(OPENSTACK_CLUSTER_IDENTITY, "", "shared")

    with pytest.raises(IdentityError, match="OpenStackClusterIdentity shared does not exist"):
        shared.identities.cloud(SHARED, "team")


def test_access_that_is_given_back_needs_no_other_cloud(shared: World) -> None:
    first = shared.identities.cloud(SHARED, "team")
    label(shared, "not")
    with pytest.raises(IdentityError):
        shared.identities.cloud(SHARED, "team")
    label(shared, "use")

    assert shared.identities.cloud(SHARED, "team") is first


def test_another_secret_of_the_identity_counts_at_once(shared: World) -> None:
    first = shared.identities.cloud(SHARED, "team")
    shared.put_secret("new", name="other")

    shared.kube.edit(OPENSTACK_CLUSTER_IDENTITY, "", "shared", {"spec": {"secretRef": {"name": "other"}}})

    assert shared.identities.cloud(SHARED, "team") is not first
