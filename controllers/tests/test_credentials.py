"""Which cloud an identityRef refers to, and when its Secret is read again."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest
import yaml

from capo.engine.tests.fake_kube import FakeClock, FakeKube
from capo.errors import IdentityError
from capo.kube.errors import Conflict
from capo.kube.kinds import NAMESPACE, OPENSTACK_CLUSTER_IDENTITY, SECRET
from capo.openstack.clouds import Clouds
from controllers.credentials import CredentialsCache

REF = {"name": "cloud", "cloudName": "here"}
SHARED = {"type": "ClusterIdentity", "name": "shared", "cloudName": "here"}


@dataclass
class CredentialsEnvironment:
    kube: FakeKube = field(default_factory=FakeKube)
    clock: FakeClock = field(default_factory=FakeClock)
    woken: list[object] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.clouds = Clouds(self.clock, self.woken.append)
        self.identities = CredentialsCache(self.kube, self.clouds, self.clock, max_age_s=600)  # type: ignore[arg-type]

    def apply_secret(self, password: str, name: str = "cloud", auth_url: str = "http://127.0.0.1:1/v3") -> None:
        auth = {"auth_url": auth_url, "username": "u", "password": password, "project_name": "p"}
        text = yaml.safe_dump({"clouds": {"here": {"auth": auth}}})
        data = {"clouds.yaml": base64.b64encode(text.encode()).decode()}
        self.kube.put(SECRET, {"metadata": {"name": name, "namespace": "default"}, "data": data})


@pytest.fixture
def world() -> Iterator[CredentialsEnvironment]:
    made = CredentialsEnvironment()
    yield made
    made.clouds.close()


def test_a_secret_is_kept_until_the_next_resync(world: CredentialsEnvironment) -> None:
    world.apply_secret("old")
    first = world.identities.cloud(REF, "default")
    world.apply_secret("new")

    assert world.identities.cloud(REF, "default") is first
    world.clock.now_s += 601
    assert world.identities.cloud(REF, "default") is not first


def test_credentials_that_were_refused_and_stay_the_same_keep_their_cloud(world: CredentialsEnvironment) -> None:
    world.apply_secret("old")
    first = world.identities.cloud(REF, "default")

    world.identities.forget(REF, "default")

    assert world.identities.cloud(REF, "default") is first
    assert not first.poller.is_closed


def test_a_mended_secret_wakes_those_who_wait_for_the_old_cloud(world: CredentialsEnvironment) -> None:
    world.apply_secret("old")
    first = world.identities.cloud(REF, "default")
    first.poller.owners.register("owner", "key")
    world.apply_secret("new")

    world.identities.forget(REF, "default")

    assert world.identities.cloud(REF, "default") is not first
    assert first.poller.is_closed
    assert world.woken == ["key"]


def test_a_missing_secret_is_named(world: CredentialsEnvironment) -> None:
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
    assert CredentialsCache.describe({**REF, **more}, "default") == words


def test_credentials_of_one_cloud_share_its_budget_once_they_were_read(world: CredentialsEnvironment) -> None:
    world.apply_secret("one")
    world.apply_secret("other", name="other")
    other = {**REF, "name": "other"}

    before = world.identities.cloud_key(REF, "default")
    for ref in (REF, other):
        world.identities.resolve_cloud(ref, "default")

    assert before is None
    assert world.identities.cloud_key(REF, "default") == world.identities.cloud_key(other, "default") is not None


def test_a_budget_is_not_known_as_long_as_the_secret_is_missing(world: CredentialsEnvironment) -> None:
    with pytest.raises(IdentityError, match="Secret default/cloud does not exist"):
        world.identities.resolve_cloud(REF, "default")

    assert world.identities.cloud_key(REF, "default") is None


@pytest.fixture
def shared(world: CredentialsEnvironment) -> CredentialsEnvironment:
    """A world in which an OpenStackClusterIdentity admits the namespace ``team``."""
    world.apply_secret("old")
    spec = {
        "secretRef": {"name": "cloud", "namespace": "default"},
        "namespaceSelector": {"matchLabels": {"may": "use"}},
    }
    world.kube.put(OPENSTACK_CLUSTER_IDENTITY, {"metadata": {"name": "shared", "namespace": ""}, "spec": spec})
    label(world, "use")
    return world


def label(world: CredentialsEnvironment, value: str) -> None:
    world.kube.put(NAMESPACE, {"metadata": {"name": "team", "namespace": "", "labels": {"may": value}}})


def test_access_that_the_namespace_loses_counts_at_once(shared: CredentialsEnvironment) -> None:
    shared.identities.cloud(SHARED, "team")

    label(shared, "not")

    with pytest.raises(IdentityError, match="does not admit namespace team"):
        shared.identities.cloud(SHARED, "team")


def test_access_that_the_identity_takes_away_counts_at_once(shared: CredentialsEnvironment) -> None:
    shared.identities.cloud(SHARED, "team")

    selector = {"namespaceSelector": {"matchLabels": {"may": "never"}}}
    shared.kube.edit(OPENSTACK_CLUSTER_IDENTITY, "", "shared", {"spec": selector})

    with pytest.raises(IdentityError, match="does not admit namespace team"):
        shared.identities.cloud(SHARED, "team")


def test_an_identity_that_is_deleted_admits_nobody_any_more(shared: CredentialsEnvironment) -> None:
    shared.identities.cloud(SHARED, "team")

    shared.kube.delete(OPENSTACK_CLUSTER_IDENTITY, "", "shared")

    with pytest.raises(IdentityError, match="OpenStackClusterIdentity shared does not exist"):
        shared.identities.cloud(SHARED, "team")


def test_access_that_is_given_back_needs_no_other_cloud(shared: CredentialsEnvironment) -> None:
    first = shared.identities.cloud(SHARED, "team")
    label(shared, "not")
    with pytest.raises(IdentityError):
        shared.identities.cloud(SHARED, "team")
    label(shared, "use")

    assert shared.identities.cloud(SHARED, "team") is first


def test_another_secret_of_the_identity_counts_at_once(shared: CredentialsEnvironment) -> None:
    first = shared.identities.cloud(SHARED, "team")
    shared.apply_secret("new", name="other")

    shared.kube.edit(OPENSTACK_CLUSTER_IDENTITY, "", "shared", {"spec": {"secretRef": {"name": "other"}}})

    assert shared.identities.cloud(SHARED, "team") is not first


@pytest.mark.parametrize(
    "auth_url", ["https://[", "https://[x]/v3", "https://h:port/v3", "https://h:99999/v3", "https:///v3"]
)
def test_a_url_without_a_host_is_refused_before_anything_is_worked_out_from_it(
    world: CredentialsEnvironment, auth_url: str
) -> None:
    world.apply_secret("word", auth_url=auth_url)

    with pytest.raises(IdentityError, match="auth_url has no host, or one that cannot be read"):
        world.identities.resolve_cloud(REF, "default")

    assert world.identities.cloud_key(REF, "default") is None


def test_a_secret_that_leads_to_another_cloud_ends_the_pass_which_uses_the_budget_of_the_old_one(
    world: CredentialsEnvironment,
) -> None:
    world.apply_secret("word")
    world.identities.cloud(REF, "default")
    world.apply_secret("word", auth_url="http://127.0.0.2:1/v3")
    world.identities.forget(REF, "default")

    with pytest.raises(Conflict, match="lead to another cloud"):
        world.identities.cloud(REF, "default")

    assert world.identities.cloud_key(REF, "default") == ("127.0.0.2:1/", "127.0.0.2")
    assert world.identities.cloud(REF, "default").credentials.host == "127.0.0.2"


def test_spellings_of_a_cloud_share_its_budget(world: CredentialsEnvironment) -> None:
    slots = set()
    for number, auth_url in enumerate(("http://127.0.0.1:80/v3", "http://u@127.1/v3", "http://[::ffff:127.0.0.1]/v3")):
        world.apply_secret("word", name=f"s{number}", auth_url=auth_url)
        ref = {**REF, "name": f"s{number}"}
        world.identities.resolve_cloud(ref, "default")
        slots.add(world.identities.cloud_key(ref, "default"))

    assert slots == {("127.0.0.1:80/", "127.0.0.1")}
