"""The status of an OpenStackClusterIdentity: who uses it, and whether logins with its Secret succeed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from capo.engine.context import Dependencies
from capo.engine.worker import Result
from capo.kube.kinds import (
    OPENSTACK_CLUSTER_IDENTITY,
    OPENSTACK_MACHINE_TEMPLATE,
    OPENSTACK_SERVER,
    SECRET,
    Key,
)
from capo.settings import Settings
from controllers.credentials import CredentialsCache
from controllers.openstackclusteridentity.controller import FIRST_LOOK_S, LOOK_S, ClusterIdentityController
from environments.in_memory import InMemoryEnvironment

NAME = "shared"
KEY = Key(OPENSTACK_CLUSTER_IDENTITY, "", NAME)
REF = {"type": "ClusterIdentity", "name": NAME, "cloudName": "sim"}


class IdentityEnvironment(InMemoryEnvironment):
    """An identity, its Secret, and the controller, which is called by hand."""

    def __init__(self) -> None:
        super().__init__()
        self.apply_secret()
        spec = {"secretRef": {"name": "cloud", "namespace": "default"}}
        metadata = {"name": NAME, "namespace": "", "generation": 1}
        self.kube.put(OPENSTACK_CLUSTER_IDENTITY, {"metadata": metadata, "spec": spec})
        self.woken: list[Key] = []
        self.identities = CredentialsCache(self.kube, self.clouds, self.clock, max_age_s=600)  # type: ignore[arg-type]
        deps = Dependencies(self.kube, self.store, self.events, self.clock, Settings())  # type: ignore[arg-type]
        self.controller = ClusterIdentityController(self.identities, deps, self.woken.append)

    def use(self, name: str, /, **ref: Any) -> None:
        """Create an object that uses the identity."""
        self.apply(OPENSTACK_SERVER, {"metadata": {"name": name}, "spec": {"identityRef": {**REF, **ref}}})

    def login(self, **ref: Any) -> None:
        self.identities.cloud({**REF, **ref}, "default").authenticate()

    def reconcile(self) -> Result:
        self._sync()
        result = self.controller.reconcile(KEY)
        self.clock.now_s += LOOK_S
        return result

    def status(self) -> dict[str, Any]:
        found = self.kube.get(*KEY)
        assert found is not None
        return dict(found.get("status") or {})

    def login_state(self) -> tuple[str, str]:
        (condition,) = self.status()["conditions"]
        assert condition["type"] == "OpenStackAuthenticationSucceeded"
        return condition["status"], condition["message"]


@pytest.fixture
def world() -> Iterator[IdentityEnvironment]:
    made = IdentityEnvironment()
    with made:
        yield made
    made.clouds.close()


def test_the_objects_that_name_the_identity_are_counted(world: IdentityEnvironment) -> None:
    world.use("one")
    world.use("two", cloudName="other")
    world.use("of-another-identity", name="another")
    world.use("of-a-secret", type="Secret")

    world.reconcile()

    assert world.status() == {"usedBy": 2}


def test_a_template_that_names_the_identity_is_counted_and_requeued(world: IdentityEnvironment) -> None:
    for name, ref in (("own", REF), ("other", {**REF, "name": "another"}), ("of-its-cluster", None)):
        spec = {"flavor": {"id": "1"}, **({"identityRef": ref} if ref else {})}
        world.apply(OPENSTACK_MACHINE_TEMPLATE, {"metadata": {"name": name}, "spec": {"template": {"spec": spec}}})
    world.reconcile()
    assert world.status() == {"usedBy": 1}

    world.kube.delete(OPENSTACK_CLUSTER_IDENTITY, "", NAME)
    world.reconcile()

    assert world.woken == [Key(OPENSTACK_MACHINE_TEMPLATE, "default", "own")]


def test_the_time_since_when_the_secret_works_stays_while_it_does(world: IdentityEnvironment) -> None:
    world.login()
    world.reconcile()
    since = world.status()["conditions"][0]["lastTransitionTime"]

    world.clock.now_s += 3600
    world.use("another")
    world.reconcile()

    assert world.login_state() == ("True", "")
    assert world.status()["conditions"][0]["lastTransitionTime"] == since


def test_nothing_is_written_while_nothing_changes_and_no_request_is_sent(world: IdentityEnvironment) -> None:
    world.login()
    world.reconcile()
    world.kube.writes.clear()
    world.cloud.counter.reset()

    for _ in range(5):
        assert world.reconcile().requeue_after_s == LOOK_S

    assert world.kube.writes == []
    assert world.requests() == []


def test_a_status_is_written_at_most_once_a_minute(world: IdentityEnvironment) -> None:
    for number in range(20):
        world.use(f"server-{number}")
        world.reconcile()
        world.clock.now_s -= LOOK_S - 2

    assert world.kube.writes.count(("patch/status", "OpenStackClusterIdentity", NAME)) == 1


def test_the_first_login_is_shown_soon_although_the_status_was_just_written(world: IdentityEnvironment) -> None:
    world.use("one")
    assert world.reconcile().requeue_after_s == FIRST_LOOK_S
    assert world.status() == {"usedBy": 1}

    world.login()
    world.clock.now_s -= LOOK_S - FIRST_LOOK_S
    result = world.reconcile()

    assert world.login_state() == ("True", "")
    assert result.requeue_after_s == LOOK_S


def test_a_spoiled_secret_is_reported_while_the_former_credentials_are_used(
    world: IdentityEnvironment,
) -> None:
    world.login()
    world.reconcile()
    assert world.login_state() == ("True", "")
    text = world.simulator.clouds_yaml.read_bytes().replace(b"capi-password", b"wrong")
    world.apply_secret(text=text)

    world.identities.forget(REF, "default")
    world.login()
    world.reconcile()

    status, message = world.login_state()
    assert status == "False"
    assert "'sim'" in message


def test_a_refused_login_is_reported_with_the_entry(world: IdentityEnvironment) -> None:
    text = world.simulator.clouds_yaml.read_bytes().replace(b"capi-password", b"wrong")
    world.apply_secret(text=text)
    with pytest.raises(Exception, match="requires authentication"):
        world.login()

    world.reconcile()

    status, message = world.login_state()
    assert status == "False"
    assert "cloud 'sim'" in message
    assert "wrong" not in message


def test_a_missing_secret_is_reported_until_it_is_read_again(world: IdentityEnvironment) -> None:
    world.kube.delete(SECRET, "default", "cloud")
    with pytest.raises(Exception, match="does not exist"):
        world.login()
    world.reconcile()
    assert world.login_state() == ("False", "Secret default/cloud does not exist")

    world.apply_secret()
    world.login()
    world.reconcile()

    assert world.login_state() == ("True", "")


def test_an_entry_that_a_tenant_invents_does_not_make_the_identity_look_broken(world: IdentityEnvironment) -> None:
    world.login()
    with pytest.raises(Exception, match="no cloud 'invented'"):
        world.login(cloudName="invented")

    world.reconcile()

    assert world.login_state() == ("True", "")


def test_a_restart_keeps_what_is_known_until_the_first_login(world: IdentityEnvironment) -> None:
    world.login()
    world.reconcile()
    before = world.status()

    world.identities.tidy(())
    world.identities.tidy(())
    world.reconcile()

    assert world.status() == before


def test_the_objects_that_use_an_identity_are_requeued_when_it_changes_or_is_deleted(
    world: IdentityEnvironment,
) -> None:
    world.use("one")
    world.use("of-a-secret", type="Secret")
    world.reconcile()
    assert world.woken == []

    world.kube.edit(OPENSTACK_CLUSTER_IDENTITY, "", NAME, {"metadata": {"generation": 2}})
    world.reconcile()
    assert [key.name for key in world.woken] == ["one"]

    world.kube.delete(OPENSTACK_CLUSTER_IDENTITY, "", NAME)
    world.reconcile()
    assert [key.name for key in world.woken] == ["one", "one"]


def test_a_secret_that_the_identity_does_not_name_any_more_says_nothing_about_it(world: IdentityEnvironment) -> None:
    text = world.simulator.clouds_yaml.read_bytes()
    world.apply_secret(text=text.replace(b"capi-password", b"wrong"))
    with pytest.raises(Exception, match="requires authentication"):
        world.login()
    world.apply_secret("next", text=text)
    world.kube.edit(OPENSTACK_CLUSTER_IDENTITY, "", NAME, {"spec": {"secretRef": {"name": "next"}}})

    world.identities.cloud(REF, "crew").authenticate()  # the namespace of the first login is not admitted any more
    world.reconcile()

    assert world.login_state() == ("True", "")


def test_an_annotation_of_the_identity_reads_its_secret_for_all_who_use_it(world: IdentityEnvironment) -> None:
    world.use("one")
    world.login()
    world.reconcile()
    text = world.simulator.clouds_yaml.read_bytes().replace(b"project_name: capi", b"project_name: elsewhere")
    world.apply_secret(text=text)

    world.kube.edit(OPENSTACK_CLUSTER_IDENTITY, "", NAME, {"metadata": {"annotations": {"example.org/rotated": "1"}}})
    world.reconcile()

    assert [key.name for key in world.woken] == ["one"]
    world.login()
    world.reconcile()
    assert world.login_state()[0] == "False"


def test_an_identity_that_is_created_again_is_another_one(world: IdentityEnvironment) -> None:
    world.use("one")
    world.reconcile()

    found = dict(world.kube.get(*KEY) or {})
    world.kube.delete(*KEY)
    world.kube.put(
        OPENSTACK_CLUSTER_IDENTITY, {"metadata": {**found["metadata"], "uid": "another"}, "spec": found["spec"]}
    )
    world.reconcile()

    assert [key.name for key in world.woken] == ["one"]


def test_new_credentials_that_one_namespace_tried_in_vain_are_not_tried_by_the_next(world: IdentityEnvironment) -> None:
    namespaces = ("default", "crew")
    for namespace in namespaces:
        world.identities.cloud(REF, namespace).authenticate()
    text = world.simulator.clouds_yaml.read_bytes().replace(b"capi-password", b"wrong")
    world.apply_secret(text=text)
    world.cloud.counter.reset()
    world.clock.now_s += 601

    for namespace in namespaces:
        world.identities.cloud(REF, namespace)
        world.clock.now_s += 200  # the pause after a refused login is over

    assert world.requests().count("POST /v3/auth/tokens") == 1
    assert all(world.identities.not_accepted(REF, namespace) for namespace in namespaces)


def test_a_definition_without_a_status_is_no_failure(world: IdentityEnvironment) -> None:
    world._sync()
    world.kube.unserved.add(OPENSTACK_CLUSTER_IDENTITY)
    world.kube.objects.pop(KEY)

    assert world.controller.reconcile(KEY).error is None
