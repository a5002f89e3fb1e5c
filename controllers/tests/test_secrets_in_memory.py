"""The contents of a Secret are removed from memory with the last object that uses it."""

from __future__ import annotations

import gc
import threading
import time
import uuid
import weakref
from collections.abc import Callable, Iterator

import pytest

from capo.engine.backoff import Backoff, Guard
from capo.engine.steps import Failed
from capo.engine.store import Store
from capo.errors import CapoError, IdentityError
from capo.kube.kinds import OPENSTACK_CLUSTER, SECRET, Key
from controllers.credentials import used
from controllers.tests.test_credentials import REF, CredentialsEnvironment

KEY = Key(OPENSTACK_CLUSTER, "default", "one")
CLUSTER = {
    "metadata": {"name": "one", "namespace": "default", "uid": "u", "resourceVersion": "1"},
    "spec": {"identityRef": REF},
}


def holders(text: str) -> list[object]:
    """Return the containers in this process with a text that includes this one."""
    gc.collect()
    found = []
    for obj in gc.get_objects():
        if type(obj) in (dict, list, tuple, set):
            values = obj.values() if type(obj) is dict else obj
            if any(type(value) is str and text in value for value in list(values)):
                found.append(obj)
    return found


def eventually(reached: Callable[[], bool]) -> bool:
    """Return whether the state is reached, at once or after the polling thread has noticed."""
    ends_s = time.monotonic() + 30
    while not reached() and time.monotonic() < ends_s:
        gc.collect()
        threading.Event().wait(0.01)
    return reached()


@pytest.fixture
def world() -> Iterator[CredentialsEnvironment]:
    made = CredentialsEnvironment()
    yield made
    made.clouds.close()


def test_a_password_leaves_with_the_last_object_of_its_namespace(world: CredentialsEnvironment) -> None:
    password, store, backoff = uuid.uuid4().hex, Store(), Backoff(world.clock)
    world.apply_secret(password)
    store.apply(OPENSTACK_CLUSTER, "ADDED", CLUSTER)
    cloud = world.identities.cloud(REF, "default")
    session = weakref.ref(cloud._session.session)
    try:
        cloud.authenticate()  # connection refused: the error includes the request, and that the password
    except CapoError as error:
        backoff.note(KEY, CLUSTER, {"NetworkReady": Failed(error)}, Guard({}))
    gone = weakref.ref(cloud)
    del cloud
    world.identities.tidy(used(store))
    world.identities.tidy(used(store))
    assert gone() is not None, "an object uses it"

    world.kube.delete(SECRET, "default", "cloud")
    store.apply(OPENSTACK_CLUSTER, "DELETED", CLUSTER)
    world.identities.tidy(used(store))
    world.identities.tidy(used(store))

    assert eventually(lambda: gone() is None)
    assert session() is None, "its connections are closed with it"
    assert holders(password) == []
    assert world.identities.cloud_key(REF, "default") is None


def test_a_password_leaves_when_a_pass_finds_that_its_secret_is_gone(world: CredentialsEnvironment) -> None:
    world.apply_secret("old")
    gone = weakref.ref(world.identities.cloud(REF, "default"))
    site = world.identities.cloud_key(REF, "default")
    world.kube.delete(SECRET, "default", "cloud")
    world.clock.now_s += 601

    with pytest.raises(IdentityError):
        world.identities.cloud(REF, "default")

    assert eventually(lambda: gone() is None)
    assert world.identities.cloud_key(REF, "default") == site, "whose budget a pass uses is known all the same"


def test_credentials_that_another_object_uses_stay(world: CredentialsEnvironment) -> None:
    world.apply_secret("one")
    first = world.identities.cloud(REF, "default")
    world.identities.resolve_cloud({**REF, "region": "other"}, "default")

    for _ in range(2):
        world.identities.tidy({("Secret", "default", "cloud", "here", None)})

    assert world.identities.cloud(REF, "default") is first
    assert world.identities.cloud_key({**REF, "region": "other"}, "default") is None


def test_an_object_that_comes_at_once_finds_what_was_read_before(world: CredentialsEnvironment) -> None:
    world.apply_secret("one")
    first = world.identities.cloud(REF, "default")

    world.identities.tidy(set())  # the next object with these credentials is not in the store yet
    world.identities.tidy({("Secret", "default", "cloud", "here", None)})
    world.identities.tidy(set())

    assert world.identities.cloud(REF, "default") is first
