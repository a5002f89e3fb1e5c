"""Which cloud an identityRef refers to, and when its Secret is read again."""

from __future__ import annotations

import base64
import contextlib
import unittest.mock
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Final

import pytest
import yaml

from capo.engine.tests.fake_kube import FakeClock, FakeKube
from capo.errors import IdentityError
from capo.kube.errors import Conflict
from capo.kube.kinds import NAMESPACE, OPENSTACK_CLUSTER_IDENTITY, SECRET
from capo.openstack import identity
from capo.openstack.clouds import Clouds
from capo.openstack.token_scope import TokenScope
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
    assert not first.is_closed


def test_a_secret_that_is_read_again_is_parsed_only_if_it_changed(
    world: CredentialsEnvironment, monkeypatch: pytest.MonkeyPatch
) -> None:
    entries = unittest.mock.Mock(wraps=identity.entries)
    monkeypatch.setattr(identity, "entries", entries)
    world.apply_secret("old")
    seen = []
    for text in ("old", "old", "old", "new"):
        world.apply_secret(text)
        world.identities.forget(REF, "default")
        seen.append(world.identities.cloud(REF, "default"))

    assert seen[0] is seen[1] is seen[2] is not seen[3]
    assert entries.call_count == 2


def test_a_mended_secret_wakes_those_who_wait_for_the_old_cloud(world: CredentialsEnvironment) -> None:
    world.apply_secret("old")
    first = world.identities.cloud(REF, "default")
    first.joined = world.clouds.join(first, TokenScope("p", (), ()))
    first.poller.owners.register("owner", "key", credential=first.fingerprint)
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


def label(world: CredentialsEnvironment, value: str, namespace: str = "team") -> None:
    world.kube.put(NAMESPACE, {"metadata": {"name": namespace, "namespace": "", "labels": {"may": value}}})


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


RULES: Final = (
    {"key": "secret-key", "operator": "In", "values": ["secret-value"]},
    {"key": "secret-key", "operator": "Exists"},
    {"key": "may", "operator": "NotIn", "values": ["use", "secret-value"]},
    {"key": "may", "operator": "DoesNotExist"},
    {"key": "secret-key", "operator": "Secret-operator"},
)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: str(rule["operator"]))
def test_a_namespace_that_is_not_admitted_reads_the_same_whatever_the_selector_is(
    shared: CredentialsEnvironment, rule: dict[str, Any]
) -> None:
    selector = {"matchLabels": {"may": "use"}, "matchExpressions": [rule]}
    shared.kube.edit(OPENSTACK_CLUSTER_IDENTITY, "", "shared", {"spec": {"namespaceSelector": selector}})

    with pytest.raises(IdentityError) as refused:
        shared.identities.cloud(SHARED, "team")

    assert refused.value.message == (
        "OpenStackClusterIdentity shared does not admit namespace team: its spec.namespaceSelector does not match the "
        "labels of the namespace; an administrator can change both"
    )


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


def test_changed_credentials_that_one_cluster_found_are_those_of_all(shared: CredentialsEnvironment) -> None:
    label(shared, "use", "crew")
    first = {shared.identities.cloud(SHARED, namespace) for namespace in ("team", "crew")}
    shared.apply_secret("new")
    shared.identities.forget(SHARED, "team")

    found = shared.identities.cloud(SHARED, "team")
    shared.apply_secret("not read")

    assert len(first) == 1
    assert found not in first
    assert shared.identities.cloud(SHARED, "crew") is found


def test_all_reconciles_that_the_former_credentials_fail_go_on_at_once_with_the_changed_ones(
    world: CredentialsEnvironment,
) -> None:
    """Each worker is a thread; they are refused one after the other, each with the cloud that it took before."""
    with contextlib.ExitStack() as stack:
        workers = [stack.enter_context(ThreadPoolExecutor(1)) for _ in range(3)]
        world.apply_secret("old")
        for worker in workers:
            worker.submit(world.identities.cloud, REF, "default").result()
        world.clock.now_s += 60
        world.apply_secret("new")

        first = workers[0].submit(world.identities.forget, REF, "default").result()
        second = workers[1].submit(world.identities.forget, REF, "default").result()
        workers[0].submit(world.identities.cloud, REF, "default").result()
        third = workers[2].submit(world.identities.forget, REF, "default").result()

    assert (first, second, third) == (True, True, True)


def test_credentials_that_stay_the_same_are_not_tried_again_at_once(world: CredentialsEnvironment) -> None:
    world.apply_secret("old")
    world.identities.cloud(REF, "default")
    world.clock.now_s += 60

    found = []
    for _ in range(3):
        found.append(world.identities.forget(REF, "default"))
        world.identities.cloud(REF, "default")

    assert found == [True, False, False]


def test_one_read_of_a_secret_in_a_resync_period_counts_for_all_who_use_it(shared: CredentialsEnvironment) -> None:
    label(shared, "use", "crew")
    for namespace in ("team", "crew"):
        shared.identities.cloud(SHARED, namespace)
    shared.clock.now_s += 601
    shared.identities.cloud(SHARED, "team")
    shared.apply_secret("not read")

    found = shared.identities.cloud(SHARED, "crew")

    assert "not read" not in found.credentials.cloud


def test_a_user_who_asks_for_a_read_gets_one_although_another_read_before(shared: CredentialsEnvironment) -> None:
    label(shared, "use", "crew")
    for namespace in ("team", "crew"):
        shared.identities.cloud(SHARED, namespace)
    shared.clock.now_s += 601
    shared.identities.cloud(SHARED, "team")
    shared.clock.now_s += 1
    shared.apply_secret("new")
    shared.identities.forget(SHARED, "crew")

    found = shared.identities.cloud(SHARED, "crew")

    assert "new" in found.credentials.cloud


def test_changed_credentials_do_not_follow_to_another_entry_of_the_secret(shared: CredentialsEnvironment) -> None:
    regional = {**SHARED, "region": "RegionOne"}
    shared.identities.cloud(SHARED, "team")
    before = shared.identities.cloud(regional, "team")
    shared.apply_secret("new")
    shared.identities.forget(SHARED, "team")

    shared.identities.cloud(SHARED, "team")

    assert shared.identities.cloud(regional, "team") is before


def test_a_cloud_stays_until_the_last_copy_of_its_secret_is_changed(world: CredentialsEnvironment) -> None:
    copies = [{**REF, "name": name} for name in ("one", "two")]
    for ref in copies:
        world.apply_secret("old", name=ref["name"])
    first = {world.identities.cloud(ref, "default") for ref in copies}.pop()
    is_closed = []

    for ref in copies:
        world.apply_secret("new", name=ref["name"])
        world.identities.forget(ref, "default")
        world.identities.cloud(ref, "default")
        is_closed.append(first.is_closed)

    assert is_closed == [False, True]


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
