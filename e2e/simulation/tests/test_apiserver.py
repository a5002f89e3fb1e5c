"""The project's own client on the simulated API server, and more than requests: history, backups, monitors."""

from __future__ import annotations

import itertools
import json
from typing import Any
from unittest import mock

import pytest
import urllib3

from capo.crdgen import files
from capo.kube.client import Kube
from capo.kube.connection import Connection
from capo.kube.credentials import Credential
from capo.kube.errors import Conflict, Denied, Expired, Gone, Invalid
from capo.kube.event_objects import EVENT
from capo.kube.kinds import (
    CLUSTER,
    LEASE,
    NAMESPACE,
    OPENSTACK_CLUSTER,
    OPENSTACK_MACHINE,
    OPENSTACK_SERVER,
    OURS,
    SECRET,
    Key,
    Kind,
)
from e2e.simulation.admission import Admission
from e2e.simulation.apiserver import ApiServer, Event, default_kinds
from e2e.simulation.kinds import traits
from e2e.simulation.kubernetes import URL, ClientPool
from e2e.simulation.schema import Node
from e2e.simulation.tests.play import MACHINE_SPEC, SERVER_SPEC, SPEC
from e2e.simulation.tests.servers import new_server

PLACE = "default"


@pytest.fixture
def server() -> ApiServer:
    return new_server()


@pytest.fixture
def kube(server: ApiServer) -> Kube:
    return kube_on(server)


def kube_on(server: ApiServer) -> Kube:
    kube = Kube(Connection(URL))
    with mock.patch.object(urllib3, "PoolManager", return_value=ClientPool(server)):
        kube._transport._client_for(Credential())
    return kube


def a_cluster(name: str = "c", **metadata: Any) -> dict[str, Any]:
    known = {"name": name, "namespace": PLACE, **metadata}
    return {"apiVersion": OPENSTACK_CLUSTER.api_version, "kind": "OpenStackCluster", "metadata": known, "spec": SPEC}


def test_writes_have_the_answers_that_the_client_relies_on(kube: Kube) -> None:
    made = kube.apply(OPENSTACK_CLUSTER, a_cluster(finalizers=["example.org/f"]))
    status = kube.patch(OPENSTACK_CLUSTER, PLACE, "c", {"status": {"ready": True}}, subresource="status")
    stale = {"metadata": {"resourceVersion": made["metadata"]["resourceVersion"], "labels": {"a": "b"}}}

    assert status["status"] == {"ready": True}
    assert int(status["metadata"]["resourceVersion"]) == int(made["metadata"]["resourceVersion"]) + 1
    with pytest.raises(Conflict, match="the object has been modified"):
        kube.patch(OPENSTACK_CLUSTER, PLACE, "c", stale)
    with pytest.raises(Conflict) as caught:
        kube.create(OPENSTACK_CLUSTER, a_cluster())
    assert (caught.value.status, caught.value.reason) == (409, "AlreadyExists")
    with pytest.raises(Conflict):
        kube.delete(OPENSTACK_CLUSTER, PLACE, "c", uid="another")
    kept = kube.delete(OPENSTACK_CLUSTER, PLACE, "c", uid=made["metadata"]["uid"])
    assert kept
    assert kept["metadata"]["deletionTimestamp"]
    with pytest.raises(Invalid, match="no new finalizers"):
        kube.patch(OPENSTACK_CLUSTER, PLACE, "c", {"metadata": {"finalizers": ["example.org/f", "example.org/g"]}})
    last = kube.patch(OPENSTACK_CLUSTER, PLACE, "c", {"metadata": {"finalizers": None}})
    assert last["metadata"]["deletionTimestamp"]
    assert kube.get(OPENSTACK_CLUSTER, PLACE, "c") is None
    kube.delete(OPENSTACK_CLUSTER, PLACE, "c")


def test_a_write_that_changes_nothing_is_no_change(server: ApiServer, kube: Kube) -> None:
    kube.apply(OPENSTACK_CLUSTER, a_cluster(labels={"a": "b"}))
    version = server.version

    kube.apply(OPENSTACK_CLUSTER, a_cluster(labels={"a": "b"}))
    kube.patch(OPENSTACK_CLUSTER, PLACE, "c", {"metadata": {"labels": {"a": "b", "c": None}}})
    kube.replace(OPENSTACK_CLUSTER, server.get(OPENSTACK_CLUSTER, PLACE, "c") or {})

    assert server.version == version


def test_pages_are_of_one_version_and_expire_when_it_is_compacted(server: ApiServer, kube: Kube) -> None:
    for number in range(5):
        kube.create(OPENSTACK_CLUSTER, a_cluster(f"c-{number}"))
    whole = kube.snapshot(OPENSTACK_CLUSTER, limit=2)
    pages = kube.list(OPENSTACK_CLUSTER, PLACE, limit=2)
    first = next(pages)
    server.delete(OPENSTACK_CLUSTER, PLACE, "c-4")
    rest = [item["metadata"]["name"] for item in pages]
    others = kube.list(OPENSTACK_CLUSTER, limit=1)
    next(others)
    server.compact()

    assert [item["metadata"]["name"] for item in whole.items] == [f"c-{number}" for number in range(5)]
    assert whole.resource_version == str(server.version - 1)
    assert first["metadata"]["name"] == "c-0"
    assert rest == ["c-1", "c-2", "c-3", "c-4"]
    with pytest.raises(Expired):
        next(others)


def test_an_expired_page_says_how_to_go_on_with_what_is_there_now(server: ApiServer) -> None:
    for number in range(4):
        server.create(SECRET, {"metadata": {"name": f"s-{number}", "namespace": PLACE}})

    def page(**query: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(
            server.handle("GET", "/api/v1/secrets", {"limit": "1", **query}, "", b"").body
        )
        return found

    first = page()
    server.delete(SECRET, PLACE, "s-1")
    server.compact()
    refusal = page(**{"continue": first["metadata"]["continue"]})
    second = page(**{"continue": refusal["metadata"]["continue"]})
    third = page(**{"continue": second["metadata"]["continue"]})

    assert (refusal["code"], refusal["reason"]) == (410, "Expired")
    assert [each["items"][0]["metadata"]["name"] for each in (first, second, third)] == ["s-0", "s-2", "s-3"]
    assert page(resourceVersion=str(server.version + 1))["code"] == 504


def test_lists_are_in_the_order_of_keys_over_namespaces(server: ApiServer, kube: Kube) -> None:
    for namespace in ("b", "a-b", "a"):
        server.create(NAMESPACE, {"metadata": {"name": namespace}})
        server.create(SECRET, {"metadata": {"name": "s", "namespace": namespace}})

    listed = list(kube.list(SECRET, limit=1))

    # "/" sorts after "-": etcd compares whole keys.
    assert [item["metadata"]["namespace"] for item in listed] == ["a-b", "a", "b"]
    assert {item["kind"] for item in listed} == {"Secret"}


def test_events_since_a_version_are_those_after_it(server: ApiServer) -> None:
    begin = server.version
    made = server.create(OPENSTACK_CLUSTER, a_cluster(finalizers=["example.org/f"]))
    server.create(SECRET, {"metadata": {"name": "s", "namespace": "kube-system"}})
    server.delete(OPENSTACK_CLUSTER, PLACE, "c")
    server.patch(OPENSTACK_CLUSTER, PLACE, "c", {"metadata": {"finalizers": None}})

    events = server.events_since(OPENSTACK_CLUSTER, begin)
    assert [(event.type, event.version - begin) for event in events] == [("ADDED", 1), ("MODIFIED", 3), ("DELETED", 4)]
    assert [int(event.obj["metadata"]["resourceVersion"]) for event in events] == [event.version for event in events]
    assert events[0].obj == made
    assert server.events_since(OPENSTACK_CLUSTER, begin + 3) == events[2:]
    assert server.events_since(SECRET, begin, PLACE) == []
    assert server.events_since(OPENSTACK_CLUSTER, server.version + 5) == []
    server.compact()
    with pytest.raises(Expired):
        server.events_since(OPENSTACK_CLUSTER, server.version - 1)
    assert server.events_since(OPENSTACK_CLUSTER, server.version) == []


def test_a_restored_backup_gives_versions_out_again(server: ApiServer) -> None:
    made = server.create(OPENSTACK_CLUSTER, a_cluster())
    backup = server.snapshot()
    server.patch(OPENSTACK_CLUSTER, PLACE, "c", {"spec": {"controlPlaneAvailabilityZones": ["z"]}})
    server.create(OPENSTACK_CLUSTER, a_cluster("late"))
    newest = server.version

    server.restore(backup)

    assert server.version == backup.version < newest
    assert server.list(OPENSTACK_CLUSTER) == [made]
    with pytest.raises(Expired):
        server.events_since(OPENSTACK_CLUSTER, backup.version - 1)
    changed = server.patch(OPENSTACK_CLUSTER, PLACE, "c", {"metadata": {"labels": {"a": "b"}}})
    assert int(changed["metadata"]["resourceVersion"]) == backup.version + 1
    assert server.events_since(OPENSTACK_CLUSTER, newest) == []  # the missed events are the danger of a restore
    server.restore(backup)
    assert server.list(OPENSTACK_CLUSTER) == [made]


def test_a_restored_owner_that_was_made_later_leaves_garbage(server: ApiServer) -> None:
    backup = server.snapshot()
    owner = server.create(OPENSTACK_CLUSTER, a_cluster())
    reference = {"apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": "c", "uid": owner["metadata"]["uid"]}
    child = {"metadata": {"name": "s", "namespace": PLACE, "ownerReferences": [reference]}}
    server.restore(backup)
    server.create(SECRET, child)

    assert server.collect_garbage() == [Key(SECRET, PLACE, "s")]
    assert server.collect_garbage() == []
    server.create(OPENSTACK_CLUSTER, a_cluster())
    server.create(SECRET, child)
    assert server.collect_garbage() == [Key(SECRET, PLACE, "s")]


def test_a_moved_object_keeps_its_metadata_but_neither_uid_nor_status(server: ApiServer) -> None:
    server.create(OPENSTACK_CLUSTER, a_cluster(labels={"a": "b"}, annotations={"c": "d"}, finalizers=["example.org/f"]))
    source = server.patch(OPENSTACK_CLUSTER, PLACE, "c", {"status": {"ready": True}}, subresource="status")
    target = new_server()
    target.create(SECRET, {"metadata": {"name": "s", "namespace": PLACE}})

    moved = target.create(OPENSTACK_CLUSTER, source)

    kept = ("name", "namespace", "labels", "annotations", "finalizers", "creationTimestamp")
    assert {name: moved["metadata"][name] for name in kept} == {name: source["metadata"][name] for name in kept}
    assert moved["metadata"]["uid"] != source["metadata"]["uid"]
    assert moved["metadata"]["generation"] == 1
    assert "status" not in moved


def test_listeners_hear_of_each_change_once_it_is_stored(server: ApiServer) -> None:
    heard: list[tuple[Event, bool]] = []
    server.on_change.append(lambda event: heard.append((event, server.get(SECRET, PLACE, "s") is event.obj)))

    server.create(SECRET, {"metadata": {"name": "s", "namespace": PLACE}})
    server.patch(SECRET, PLACE, "s", {"data": {"a": "Yg=="}})
    server.patch(SECRET, PLACE, "s", {"data": {"a": "Yg=="}})
    server.delete(SECRET, PLACE, "s")

    assert [(event.type, is_stored) for event, is_stored in heard] == [
        ("ADDED", True),
        ("MODIFIED", True),
        ("DELETED", False),
    ]


def test_a_kind_without_definition_is_not_found(server: ApiServer, kube: Kube) -> None:
    server.create(CLUSTER, {"metadata": {"name": "c", "namespace": PLACE}, "spec": {}})
    server.set_served(CLUSTER, False)

    with pytest.raises(Gone, match="404 page not found"):
        list(kube.list(CLUSTER))
    with pytest.raises(Gone):
        server.events_since(CLUSTER, server.version)
    assert (server.serves(CLUSTER), server.list(CLUSTER), server.get(CLUSTER, PLACE, "c")) == (False, [], None)
    server.set_served(CLUSTER, True)
    assert len(list(kube.list(CLUSTER))) == 1


def test_a_kind_is_served_in_its_one_version(kube: Kube) -> None:
    older = CLUSTER.in_older_version()
    assert older
    kinds = [older if kind == CLUSTER else kind for kind in default_kinds]
    numbers = itertools.count()
    server = ApiServer(now=lambda: 0.0, new_uid=lambda: f"u{next(numbers)}", kinds=kinds)

    assert list(kube_on(server).list(older)) == []
    with pytest.raises(Gone):
        list(kube_on(server).list(CLUSTER))
    assert server.create(CLUSTER, {"apiVersion": older.api_version, "metadata": {"name": "c", "namespace": PLACE}})


def test_actors_get_the_errors_of_the_client(server: ApiServer) -> None:
    server.create(OPENSTACK_CLUSTER, a_cluster())

    with pytest.raises(Conflict):
        server.create(OPENSTACK_CLUSTER, a_cluster())
    with pytest.raises(Gone):
        server.patch(OPENSTACK_CLUSTER, PLACE, "missing", {"metadata": {"labels": {"a": "b"}}})
    with pytest.raises(Gone):
        server.create(OPENSTACK_CLUSTER, a_cluster(namespace="nowhere"))
    with pytest.raises(Conflict):
        server.delete(OPENSTACK_CLUSTER, PLACE, "c", uid="another")
    server.delete(OPENSTACK_CLUSTER, PLACE, "missing")


def test_what_actors_hand_in_is_copied(server: ApiServer) -> None:
    given = a_cluster(labels={"a": "b"})
    server.create(OPENSTACK_CLUSTER, given)
    change = {"spec": {"controlPlaneAvailabilityZones": ["x"]}}
    server.patch(OPENSTACK_CLUSTER, PLACE, "c", change)

    given["metadata"]["labels"]["a"] = "c"
    change["spec"]["controlPlaneAvailabilityZones"].append("y")

    server.check_unchanged()
    found = server.get(OPENSTACK_CLUSTER, PLACE, "c") or {}
    assert found["metadata"]["labels"] == {"a": "b"}
    assert found["spec"]["controlPlaneAvailabilityZones"] == ["x"]


def test_a_reader_who_changes_an_object_is_noticed(server: ApiServer, kube: Kube) -> None:
    server.create(OPENSTACK_CLUSTER, a_cluster())
    kube.get(OPENSTACK_CLUSTER, PLACE, "c")

    (server.get(OPENSTACK_CLUSTER, PLACE, "c") or {})["spec"]["new"] = True

    with pytest.raises(AssertionError, match="default/c"):
        server.check_unchanged()


def test_a_namespace_that_is_deleted_is_emptied_first(server: ApiServer) -> None:
    server.create(NAMESPACE, {"metadata": {"name": "n"}})
    server.create(OPENSTACK_CLUSTER, a_cluster(namespace="n", finalizers=["example.org/f"]))
    server.create(SECRET, {"metadata": {"name": "s", "namespace": "n"}})
    server.delete(NAMESPACE, "", "n")

    with pytest.raises(Denied, match="being terminated"):
        server.create(SECRET, {"metadata": {"name": "t", "namespace": "n"}})
    assert sorted(key.name for key in server.finish_namespaces()) == ["c", "s"]
    assert server.finish_namespaces() == []
    server.patch(OPENSTACK_CLUSTER, "n", "c", {"metadata": {"finalizers": None}})
    assert server.finish_namespaces() == [Key(NAMESPACE, "", "n")]
    assert server.get(NAMESPACE, "", "n") is None


def test_a_text_of_the_admission_is_the_refusal_of_a_webhook(server: ApiServer, kube: Kube) -> None:
    server.admit = lambda _operation, _kind, _old, new: (new, "not today")

    with pytest.raises(Denied, match='admission webhook "openstackclusters" denied the request: not today'):
        kube.create(OPENSTACK_CLUSTER, a_cluster())


@pytest.mark.parametrize("has_webhooks", [True, False])
def test_webhooks_can_be_left_out(has_webhooks: bool) -> None:
    server = new_server(Admission(has_webhooks=has_webhooks))
    server.create(OPENSTACK_SERVER, {"metadata": {"name": "s", "namespace": PLACE}, "spec": SERVER_SPEC})

    try:
        server.patch(OPENSTACK_SERVER, PLACE, "s", {"spec": {"flavor": "big"}})
    except Invalid:
        assert has_webhooks
    else:
        assert not has_webhooks
    with pytest.raises(Invalid, match=r"spec\.flavor in body must be of type string"):
        server.patch(OPENSTACK_SERVER, PLACE, "s", {"spec": {"flavor": 7}})


def test_what_was_stored_under_other_rules_stays_writable() -> None:
    server = new_server()
    spec = {**MACHINE_SPEC, "tags": ["same", "same"]}
    server.create(OPENSTACK_MACHINE, {"metadata": {"name": "m", "namespace": PLACE}, "spec": spec})
    server.admit = Admission()

    server.patch(OPENSTACK_MACHINE, PLACE, "m", {"metadata": {"labels": {"a": "b"}}})
    changed = server.patch(OPENSTACK_MACHINE, PLACE, "m", {"spec": {"providerID": "openstack:///x"}})

    assert changed["spec"]["tags"] == ["same", "same"]


def test_rules_and_status_subresources_are_those_of_the_definitions() -> None:
    kinds = {f"{kind.plural}.{kind.group}": kind for kind in OURS}
    for definition in files.load():
        kind = kinds[definition["metadata"]["name"]]
        (stored,) = (version for version in definition["spec"]["versions"] if version["storage"])
        assert traits(kind).has_status == ("subresources" in stored)
        assert kind.version == stored["name"]
        assert Node(stored["schema"]["openAPIV3Schema"])  # raises for an unknown rule


def test_the_same_requests_lead_to_the_same_bytes() -> None:
    def play() -> bytes:
        server = new_server(Admission())
        kube = kube_on(server)
        for name in ("b", "a"):
            kube.create(OPENSTACK_CLUSTER, a_cluster(name, generateName="x", labels={"z": "1", "y": "2"}))
        kube.patch(OPENSTACK_CLUSTER, PLACE, "a", {"status": {"ready": True}}, subresource="status")
        kube.create(EVENT, {"metadata": {"generateName": "e-", "namespace": PLACE}, "reason": "Test"})
        paths = ("/apis/events.k8s.io/v1/events", f"/apis/{OPENSTACK_CLUSTER.api_version}/openstackclusters")
        return b"".join(server.handle("GET", path, {}, "", b"").body for path in paths)

    assert play() == play()


def test_a_lease_is_taken_by_one_alone(server: ApiServer, kube: Kube) -> None:
    lease = {"apiVersion": LEASE.api_version, "kind": "Lease", "metadata": {"name": "l", "namespace": PLACE}}
    made = kube.create(LEASE, {**lease, "spec": {"holderIdentity": "one"}})
    kube.replace(LEASE, {**made, "spec": {"holderIdentity": "two"}})

    with pytest.raises(Conflict):
        kube.replace(LEASE, {**made, "spec": {"holderIdentity": "three"}})
    with pytest.raises(Conflict):
        kube.create(LEASE, lease)
    assert (server.get(LEASE, PLACE, "l") or {})["spec"] == {"holderIdentity": "two"}


def test_an_unknown_path_is_not_found(kube: Kube) -> None:
    assert kube.get(Kind("example.org", "v1", "things", "Thing"), PLACE, "x") is None
    with pytest.raises(Gone, match="404 page not found"):
        kube.create(Kind("example.org", "v1", "things", "Thing"), {"metadata": {"name": "x", "namespace": PLACE}})
