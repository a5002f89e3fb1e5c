"""Requests and answers, against the fake API server of the engine's tests."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from capo.kube.client import WRITES, Kube, path
from capo.kube.connection import Connection
from capo.kube.credentials import Credentials, bearer
from capo.kube.errors import Conflict, Denied, Expired, Gone, Invalid, KubeError
from capo.kube.kinds import NAMESPACE, OPENSTACK_SERVER, SECRET
from capo.kube.tests.fake_apiserver import FakeApiServer
from capo.kube.transport import Timeouts


@pytest.fixture
def api() -> Iterator[FakeApiServer]:
    with FakeApiServer().running() as running:
        yield running


@pytest.fixture
def kube(api: FakeApiServer) -> Kube:
    return Kube(api.connection())


def server(name: str, **metadata: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": "default", **metadata}, "spec": {"flavor": "m1"}}


def test_what_is_not_there_is_none(kube: Kube) -> None:
    assert kube.get(OPENSTACK_SERVER, "default", "nothing") is None


def test_a_kind_is_found_by_group_and_name_in_the_version_that_has_it(api: FakeApiServer, kube: Kube) -> None:
    assert kube.served(OPENSTACK_SERVER.group, "OpenStackServer") == OPENSTACK_SERVER
    assert kube.served(OPENSTACK_SERVER.group, "OpenStackServer").version == "v1alpha1"  # type: ignore[union-attr]
    assert kube.served(OPENSTACK_SERVER.group, "NoSuchKind") is None
    assert kube.served("example.org", "OpenStackServer") is None


def test_a_listing_takes_as_many_pages_as_it_needs(api: FakeApiServer, kube: Kube) -> None:
    for number in range(7):
        api.put(OPENSTACK_SERVER, server(f"s-{number}"))

    found = [item["metadata"]["name"] for item in kube.list(OPENSTACK_SERVER, "default", limit=3)]

    assert found == [f"s-{number}" for number in range(7)]
    assert len(api.requests) == 3


def test_a_snapshot_whose_pages_expire_is_taken_again(api: FakeApiServer, kube: Kube) -> None:
    api.put(OPENSTACK_SERVER, server("s"))
    api.fail_next.append((lambda _method, _path: True, 410))

    snapshot = kube.snapshot(OPENSTACK_SERVER)

    assert [item["metadata"]["name"] for item in snapshot.items] == ["s"]
    assert int(snapshot.resource_version) >= int(snapshot.items[0]["metadata"]["resourceVersion"])


def test_of_a_page_only_what_is_kept_is_left_when_the_next_one_is_requested(api: FakeApiServer, kube: Kube) -> None:
    for number in range(5):
        api.put(OPENSTACK_SERVER, server(f"s-{number}"))
    pages: list[int] = []

    def keep(obj: Mapping[str, Any]) -> Mapping[str, Any]:
        pages.append(len(api.requests))
        return {"name": obj["metadata"]["name"]}

    snapshot = kube.snapshot(OPENSTACK_SERVER, limit=2, keep=keep)

    assert list(snapshot.items) == [{"name": f"s-{number}"} for number in range(5)]
    assert pages == [1, 1, 2, 2, 3]


def test_items_of_a_listing_know_their_kind(api: FakeApiServer, kube: Kube) -> None:
    api.put(SECRET, {"metadata": {"name": "s", "namespace": "default"}})

    (found,) = kube.list(SECRET)

    assert (found["apiVersion"], found["kind"]) == ("v1", "Secret")


def test_a_patch_with_a_stale_resource_version_is_a_conflict(api: FakeApiServer, kube: Kube) -> None:
    stale = api.put(OPENSTACK_SERVER, server("s"))["metadata"]["resourceVersion"]
    fresh = kube.patch(OPENSTACK_SERVER, "default", "s", {"metadata": {"labels": {"a": "b"}}})

    with pytest.raises(Conflict):
        kube.patch(OPENSTACK_SERVER, "default", "s", {"metadata": {"resourceVersion": stale}, "spec": {"flavor": "m2"}})

    assert fresh["metadata"]["labels"] == {"a": "b"}


def test_status_and_spec_are_patched_apart(api: FakeApiServer, kube: Kube) -> None:
    api.put(OPENSTACK_SERVER, server("s"))

    answer = kube.patch(
        OPENSTACK_SERVER, "default", "s", {"status": {"ready": True}, "spec": {"flavor": "m2"}}, subresource="status"
    )

    assert answer["status"] == {"ready": True}
    assert answer["spec"] == {"flavor": "m1"}


def test_apply_makes_and_then_changes_one_object(api: FakeApiServer, kube: Kube) -> None:
    kube.apply(OPENSTACK_SERVER, server("s"))
    kube.apply(OPENSTACK_SERVER, {**server("s"), "spec": {"flavor": "m2"}})

    (found,) = api.all(OPENSTACK_SERVER)
    assert found["spec"] == {"flavor": "m2"}


def test_a_second_create_is_a_conflict(kube: Kube) -> None:
    kube.create(OPENSTACK_SERVER, server("s"))

    with pytest.raises(Conflict):
        kube.create(OPENSTACK_SERVER, server("s"))


def test_deleting_what_is_gone_is_fine(kube: Kube) -> None:
    kube.delete(OPENSTACK_SERVER, "default", "nothing")


def test_deleting_another_incarnation_is_a_conflict(api: FakeApiServer, kube: Kube) -> None:
    api.put(OPENSTACK_SERVER, server("s", uid="new"))

    with pytest.raises(Conflict):
        kube.delete(OPENSTACK_SERVER, "default", "s", uid="old")

    kube.delete(OPENSTACK_SERVER, "default", "s", uid="new")
    assert api.all(OPENSTACK_SERVER) == []


@pytest.mark.parametrize(
    ("status", "error"),
    [(403, Denied), (404, Gone), (409, Conflict), (410, Expired), (422, Invalid), (500, KubeError), (429, KubeError)],
)
def test_answers_become_errors(api: FakeApiServer, kube: Kube, status: int, error: type[KubeError]) -> None:
    api.fail_next.append((lambda _method, _path: True, status))

    with pytest.raises(KubeError, match=f"{status}") as caught:
        kube.patch(OPENSTACK_SERVER, "default", "s", {})

    assert type(caught.value) is error
    assert caught.value.status == status


def test_no_answer_in_time_is_an_error(api: FakeApiServer) -> None:
    api.hang = lambda _method, _path: True
    kube = Kube(api.connection(), timeouts=Timeouts(0.2, 0.1))

    with pytest.raises(KubeError, match="no answer"):
        kube.get(OPENSTACK_SERVER, "default", "s")
    api.hang = lambda _method, _path: False


def test_a_refused_token_is_fetched_anew_and_tried_once_more(api: FakeApiServer) -> None:
    api.token = "second"
    tokens = iter(["first", "second"])
    kube = Kube(Connection(api.url, credentials=Credentials(lambda: bearer(next(tokens)))))

    assert kube.get(OPENSTACK_SERVER, "default", "nothing") is None
    assert len(api.requests) == 2


def test_writes_are_counted_by_kind_and_verb_when_they_were_carried_out(api: FakeApiServer, kube: Kube) -> None:
    counter = WRITES.labels("OpenStackServer", "create")
    before = counter._value.get()
    kube.create(OPENSTACK_SERVER, server("s"))
    with pytest.raises(Conflict):
        kube.create(OPENSTACK_SERVER, server("s"))

    assert counter._value.get() == before + 1


def test_proxies_of_the_environment_are_not_used(api: FakeApiServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")

    assert Kube(api.connection()).get(OPENSTACK_SERVER, "default", "nothing") is None


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (path(OPENSTACK_SERVER, "ns", "n"), "openstackservers/n"),
        (path(OPENSTACK_SERVER, ""), "v1alpha1/openstackservers"),
        (path(NAMESPACE, "ignored", "n"), "/api/v1/namespaces/n"),
        (path(SECRET, "a/b", "n"), "/api/v1/namespaces/a%2Fb/secrets/n"),
    ],
)
def test_paths(found: str, expected: str) -> None:
    assert found.endswith(expected)
