"""Patches that apply to one state of an object only, and the client's error for one that does not apply."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import jsonpatch
import pytest

from capo.kube import patches
from capo.kube.client import Kube
from capo.kube.errors import Conflict, Gone, Invalid
from capo.kube.kinds import OPENSTACK_SERVER
from capo.kube.tests.fake_apiserver import FakeApiServer


def an_object(*finalizers: str, uid: str = "u", **more: Any) -> dict[str, Any]:
    return {"metadata": {"name": "s", "namespace": "default", "uid": uid, "finalizers": [*finalizers], **more}}


@pytest.mark.parametrize("present", [("ours",), ("ours", "b"), ("a", "ours"), ("a", "ours", "b")])
def test_a_finalizer_is_removed_and_the_others_stay(present: tuple[str, ...]) -> None:
    obj = an_object(*present, labels={"a": "b"})

    after = jsonpatch.apply_patch(obj, patches.without_finalizer(obj, "ours"))

    assert after == an_object(*(each for each in present if each != "ours"), labels={"a": "b"})


def test_nothing_is_patched_where_the_finalizer_is_not() -> None:
    assert patches.without_finalizer(an_object("a"), "ours") == []
    assert patches.without_finalizer({"metadata": {"uid": "u"}}, "ours") == []


@pytest.mark.parametrize(
    "present",
    [an_object(), an_object("ours", "a"), an_object("a", "c"), an_object("a", "ours", uid="other")],
    ids=["gone", "moved", "replaced", "another object"],
)
def test_a_patch_does_not_fit_when_what_it_removes_is_not_there(present: dict[str, Any]) -> None:
    operations = patches.without_finalizer(an_object("a", "ours"), "ours")

    with pytest.raises((jsonpatch.JsonPatchException, jsonpatch.JsonPointerException)):
        jsonpatch.apply_patch(present, operations)


def test_each_value_that_is_replaced_removed_or_moved_is_tested() -> None:
    noted = {"a": "1", "b": "2", "c": "3"}
    old = {"metadata": {"uid": "u", "annotations": noted}}
    new = {"metadata": {"uid": "u", "annotations": {"a": "4", "d": "3"}}}

    operations = patches.precise(old, new)

    assert jsonpatch.apply_patch(old, operations) == new
    for name in ("a", "b", "c"):
        other = {"metadata": {"uid": "u", "annotations": {**noted, name: "edited"}}}
        with pytest.raises(jsonpatch.JsonPatchTestFailed):
            jsonpatch.apply_patch(other, operations)


@pytest.fixture
def api() -> Iterator[FakeApiServer]:
    with FakeApiServer().running() as running:
        yield running


def test_a_patch_that_fits_is_applied_though_others_wrote_the_object(api: FakeApiServer) -> None:
    kube = Kube(api.connection())
    seen = api.put(OPENSTACK_SERVER, an_object("a", "ours"))
    kube.patch(OPENSTACK_SERVER, "default", "s", {"metadata": {"labels": {"new": "label"}}})

    after = kube.json_patch(OPENSTACK_SERVER, "default", "s", patches.without_finalizer(seen, "ours"))

    assert (after["metadata"]["finalizers"], after["metadata"]["labels"]) == (["a"], {"new": "label"})


def test_a_patch_that_does_not_fit_is_a_conflict_and_a_refusal_of_its_result_is_not(api: FakeApiServer) -> None:
    kube = Kube(api.connection())
    seen = api.put(OPENSTACK_SERVER, an_object("ours"))
    operations = patches.without_finalizer(seen, "ours")
    api.fail_next.append((lambda _method, _path: True, 422))
    with pytest.raises(Invalid):
        kube.json_patch(OPENSTACK_SERVER, "default", "s", operations)
    kube.patch(OPENSTACK_SERVER, "default", "s", {"metadata": {"finalizers": ["theirs", "ours"]}})

    with pytest.raises(Conflict):
        kube.json_patch(OPENSTACK_SERVER, "default", "s", operations)
    with pytest.raises(Gone):
        kube.json_patch(OPENSTACK_SERVER, "default", "nothing", operations)
