"""What the store keeps, and which listeners it calls."""

from __future__ import annotations

from typing import Any

import pytest

from capo.compact import NotKeptError
from capo.engine.store import LAST_APPLIED, Change, Store
from capo.engine.tests.builders import an_object, key
from capo.kube.client import Snapshot
from capo.kube.kinds import MACHINE, MACHINE_DEPLOYMENT, OPENSTACK_MACHINE, OPENSTACK_SERVER


def changes_of(store: Store) -> list[Change]:
    seen: list[Change] = []
    store.listen(seen.append)
    return seen


def label(cluster: str) -> dict[str, Any]:
    return {"cluster.x-k8s.io/cluster-name": cluster}


def test_a_newer_version_replaces_an_older_one_and_is_news() -> None:
    store = Store()

    assert store.apply(OPENSTACK_SERVER, "ADDED", an_object("a", uid="u", version=1)) == key("a")
    assert store.apply(OPENSTACK_SERVER, "MODIFIED", an_object("a", uid="u", version=2)) == key("a")

    found = store.get(*key("a"))
    assert found is not None
    assert found["metadata"]["resourceVersion"] == "2"


def test_an_older_or_equal_version_is_no_news() -> None:
    store = Store()
    store.apply(OPENSTACK_SERVER, "ADDED", an_object("a", uid="u", version=10))

    assert store.apply(OPENSTACK_SERVER, "MODIFIED", an_object("a", uid="u", version=9)) is None
    assert store.apply(OPENSTACK_SERVER, None, an_object("a", uid="u", version=10)) is None

    found = store.get(*key("a"))
    assert found is not None
    assert found["metadata"]["resourceVersion"] == "10"


def test_an_equal_version_with_other_contents_is_news_as_after_a_restored_etcd() -> None:
    store = Store()
    known = an_object("a", uid="u", version=10)
    store.apply(OPENSTACK_SERVER, "ADDED", known)
    managed = {**known, "metadata": {**known["metadata"], "managedFields": [{"manager": "capo"}]}}

    assert store.apply(OPENSTACK_SERVER, "MODIFIED", managed) is None
    assert store.apply(OPENSTACK_SERVER, None, {**known, "status": {"ready": True}}) == key("a")

    found = store.get(*key("a"))
    assert found is not None
    assert found["status"] == {"ready": True}


def test_an_object_made_anew_under_an_old_name_replaces_it() -> None:
    store = Store()
    store.apply(OPENSTACK_SERVER, "ADDED", an_object("a", uid="old", version=5))

    store.apply(OPENSTACK_SERVER, "ADDED", an_object("a", uid="new", version=9))

    assert store.apply(OPENSTACK_SERVER, "DELETED", an_object("a", uid="old", version=8)) is None
    found = store.get(*key("a"))
    assert found is not None
    assert found["metadata"]["uid"] == "new"


def test_a_late_answer_does_not_bring_back_what_is_deleted() -> None:
    store = Store()
    store.apply(OPENSTACK_SERVER, "ADDED", an_object("a", uid="u", version=1))
    store.apply(OPENSTACK_SERVER, "DELETED", an_object("a", uid="u", version=3))

    store.apply_own(OPENSTACK_SERVER, an_object("a", uid="u", version=2))

    assert store.get(*key("a")) is None


def test_the_answer_that_takes_the_last_finalizer_buries_the_object() -> None:
    store = Store()
    gone = {"deletionTimestamp": "2026-01-01T00:00:00Z"}
    store.apply(OPENSTACK_SERVER, "ADDED", an_object("a", uid="u", version=1, finalizers=["f"], **gone))

    store.apply_own(OPENSTACK_SERVER, an_object("a", uid="u", version=2, **gone))

    assert store.get(*key("a")) is None


def test_listeners_hear_of_changes_alone() -> None:
    store = Store()
    seen = changes_of(store)
    store.apply(OPENSTACK_SERVER, "ADDED", an_object("a", uid="u", version=1))
    store.apply(OPENSTACK_SERVER, "MODIFIED", an_object("a", uid="u", version=1))
    store.apply(OPENSTACK_SERVER, "DELETED", an_object("a", uid="u", version=2))

    assert [(c.key, c.is_deleted, c.by) for c in seen] == [(key("a"), False, None), (key("a"), True, None)]


def test_an_own_answer_is_told_with_its_writer_and_its_echo_is_no_news() -> None:
    store = Store()
    store.apply(OPENSTACK_SERVER, "ADDED", an_object("a", uid="u", version=1))
    seen = changes_of(store)

    store.apply_own(OPENSTACK_SERVER, an_object("a", uid="u", version=2))

    assert store.apply(OPENSTACK_SERVER, "MODIFIED", an_object("a", uid="u", version=2)) is None
    assert [(c.by, c.version) for c in seen] == [(key("a"), "2")]


def test_a_child_that_a_pass_made_is_told_with_the_pass_as_writer() -> None:
    store = Store()
    seen = changes_of(store)
    machine = key("m", kind=OPENSTACK_MACHINE)

    store.apply_own(OPENSTACK_SERVER, an_object("a", version=2), by=machine)

    assert [(c.key, c.by) for c in seen] == [(key("a"), machine)]


def test_objects_are_found_by_owner_and_by_label_as_these_change() -> None:
    store = Store()
    owner = [{"uid": "owner-1", "kind": "OpenStackMachine", "name": "m", "apiVersion": "v1"}]
    store.apply(
        OPENSTACK_SERVER, "ADDED", an_object("a", uid="u", version=1, labels=label("c1"), ownerReferences=owner)
    )
    assert [o["metadata"]["name"] for o in store.owned_by(OPENSTACK_SERVER, "owner-1")] == ["a"]
    assert len(store.by_label(OPENSTACK_SERVER, "default", "cluster.x-k8s.io/cluster-name", "c1")) == 1
    assert store.by_label(OPENSTACK_SERVER, "other", "cluster.x-k8s.io/cluster-name", "c1") == []

    store.apply(OPENSTACK_SERVER, "MODIFIED", an_object("a", uid="u", version=2, labels=label("c2")))

    assert store.owned_by(OPENSTACK_SERVER, "owner-1") == []
    assert store.by_label(OPENSTACK_SERVER, "default", "cluster.x-k8s.io/cluster-name", "c1") == []
    assert len(store.by_label(OPENSTACK_SERVER, "default", "cluster.x-k8s.io/cluster-name", "c2")) == 1
    store.apply(OPENSTACK_SERVER, "DELETED", an_object("a", uid="u", version=3))
    assert store.by_label(OPENSTACK_SERVER, "default", "cluster.x-k8s.io/cluster-name", "c2") == []


def test_a_listing_heals_a_ghost_but_keeps_what_came_after_it() -> None:
    store = Store()
    store.apply(OPENSTACK_SERVER, "ADDED", an_object("ghost", version=5))
    store.apply(OPENSTACK_SERVER, "ADDED", an_object("kept", uid="k", version=6))
    store.apply(OPENSTACK_SERVER, "ADDED", an_object("newer", version=21))

    store.replace(OPENSTACK_SERVER, [an_object("kept", uid="k", version=6)], namespace=None, resource_version="20")

    assert {o["metadata"]["name"] for o in store.list(OPENSTACK_SERVER)} == {"kept", "newer"}


def test_a_listing_of_one_namespace_leaves_others_alone() -> None:
    store = Store()
    store.apply(OPENSTACK_SERVER, "ADDED", an_object("elsewhere", version=1, namespace="other"))

    store.replace(OPENSTACK_SERVER, [], namespace="default", resource_version="20")

    assert len(store.list(OPENSTACK_SERVER)) == 1


def test_managed_fields_are_not_kept() -> None:
    store = Store()

    store.apply(OPENSTACK_SERVER, "ADDED", an_object("a", managedFields=[{"manager": "kubectl"}]))

    found = store.get(*key("a"))
    assert found is not None
    assert "managedFields" not in found["metadata"]


def test_what_is_newer_than_a_reset_is_news_again() -> None:
    store = Store()
    store.apply(OPENSTACK_SERVER, "ADDED", an_object("a", uid="u", version=50))
    store.apply(OPENSTACK_SERVER, "DELETED", an_object("b", uid="back", version=51))
    seen = changes_of(store)

    store.begin_reset()
    listing = Snapshot([an_object("a", uid="u", version=10), an_object("b", uid="back", version=11)], "12")
    store.reset(OPENSTACK_SERVER, listing, namespace=None)

    assert [(change.key.name, change.version, change.is_listed) for change in seen] == [
        ("a", "10", True),
        ("b", "11", True),
    ]
    assert store.apply(OPENSTACK_SERVER, "MODIFIED", an_object("a", uid="u", version=13)) == key("a")
    assert store.newest() == (OPENSTACK_SERVER, 13)


def test_of_kinds_that_only_refer_to_others_the_reference_alone_is_kept() -> None:
    store = Store()
    ref = {"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "OpenStackMachineTemplate", "name": "t"}
    inner = {"infrastructureRef": ref, "bootstrap": {"dataSecretName": "s"}}
    obj = an_object("md", uid="u", version=3) | {"spec": {"replicas": 3, "template": {"spec": inner}}, "status": {}}
    obj["metadata"] |= {"annotations": {"a": "b"}, "labels": label("c"), "generation": 4}

    store.apply(MACHINE_DEPLOYMENT, "ADDED", obj)

    (kept,) = store.list(MACHINE_DEPLOYMENT)
    assert kept["spec"] == {"template": {"spec": {"infrastructureRef": ref}}}
    with pytest.raises(NotKeptError):
        kept.get("status")
    with pytest.raises(NotKeptError):
        kept["metadata"].get("annotations")
    assert kept["metadata"]["generation"] == 4
    assert store.by_label(MACHINE_DEPLOYMENT, "default", "cluster.x-k8s.io/cluster-name", "c") == [kept]
    assert store.apply(MACHINE_DEPLOYMENT, None, obj) is None  # the same object, listed


def test_a_restored_state_keeps_as_little_of_these_kinds() -> None:
    store = Store()
    obj = an_object("md", uid="u", version=3) | {"spec": {"replicas": 3}}

    store.reset(MACHINE_DEPLOYMENT, Snapshot([obj], "5"), namespace=None)

    (kept,) = store.list(MACHINE_DEPLOYMENT)
    assert kept["spec"] == {}


def test_what_is_not_kept_of_a_machine_cannot_be_taken_for_absent() -> None:
    store = Store()
    seen = changes_of(store)
    obj = an_object("m", uid="u", version=3) | {
        "spec": {"bootstrap": {"dataSecretName": "b", "configRef": {"name": "c"}}, "version": "v1.36.3"},
        "status": {"phase": "Running"},
    }

    store.apply(MACHINE, "ADDED", obj)

    for kept in (*store.list(MACHINE), seen[0].obj):
        assert kept["spec"]["bootstrap"].get("dataSecretName") == "b"
        assert kept["spec"].get("failureDomain") is None
        for read in (lambda at: at.get("status"), lambda at: at["spec"]["version"], lambda at: "phase" in at["status"]):
            with pytest.raises(NotKeptError):
                read(kept)


def test_a_change_of_what_is_not_kept_is_news_all_the_same() -> None:
    store = Store()
    store.apply(MACHINE, "ADDED", an_object("m", uid="u", version=3) | {"status": {"phase": "Provisioning"}})
    seen = changes_of(store)

    assert store.apply(MACHINE, "MODIFIED", an_object("m", uid="u", version=4) | {"status": {"phase": "Running"}})

    assert [change.version for change in seen] == ["4"]


def test_of_an_object_of_ours_all_is_kept_but_what_writers_note_for_themselves() -> None:
    store = Store()
    obj = an_object("a", uid="u", version=3) | {"spec": {"flavor": "f" * 200, "ports": [{}]}, "status": {"ready": True}}
    obj["metadata"] |= {"annotations": {LAST_APPLIED: "{}", "a": "b"}, "managedFields": [{"manager": "kubectl"}]}

    store.apply(OPENSTACK_MACHINE, "ADDED", obj)

    (kept,) = store.list(OPENSTACK_MACHINE)
    metadata = {name: value for name, value in obj["metadata"].items() if name != "managedFields"}
    assert kept == {**obj, "metadata": {**metadata, "annotations": {"a": "b"}}}
    assert store.apply(OPENSTACK_MACHINE, None, obj) is None  # the same object, listed


def test_equal_texts_of_objects_are_kept_once() -> None:
    store = Store()
    for name in ("a", "b"):
        text = "".join(["flavor", "-of-both"])  # two texts
        store.apply(OPENSTACK_MACHINE, "ADDED", an_object(name, uid=name, version=3) | {"spec": {"flavor": text}})

    first, second = store.list(OPENSTACK_MACHINE)
    assert first["spec"]["flavor"] is second["spec"]["flavor"]
