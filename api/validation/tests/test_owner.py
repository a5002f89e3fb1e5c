"""The owner id of an object: set at creation, valid for the object, never changed."""

from __future__ import annotations

import pytest

from api import validation
from capo import names
from capo.json_types import Json

OWN = names.new_owner_id("OpenStackServer", "team", "s")
OTHER = names.new_owner_id("OpenStackServer", "team", "s")
COPIED = names.new_owner_id("OpenStackServer", "team", "another")


def server(owner_id: str | None, **more: str) -> Json:
    annotations = {names.OWNER_ID_ANNOTATION: owner_id} if owner_id else {}
    return {"metadata": {"name": "s", "namespace": "team", "annotations": {**annotations, **more}}, "spec": {}}


@pytest.mark.parametrize("owner_id", [None, OWN], ids=["none", "its own"])
def test_an_object_is_created_without_one_or_with_its_own(owner_id: str | None) -> None:
    assert validation.faults_of_create("OpenStackServer", server(owner_id)) == []


@pytest.mark.parametrize(
    "owner_id", [COPIED, "aaaaaaaaaaaaa", "nonsense"], ids=["copied", "of another form", "nonsense"]
)
def test_one_that_was_made_for_another_object_is_refused(owner_id: str) -> None:
    (fault,) = validation.faults_of_create("OpenStackServer", server(owner_id))

    assert "was created for another object" in fault.message


@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param(OWN, OWN, id="kept"),
        pytest.param(None, OWN, id="set by the manager"),
        pytest.param(OWN, None, id="lost"),
    ],
)
def test_it_may_be_kept_set_and_lost(old: str | None, new: str | None) -> None:
    assert validation.faults_of_update("OpenStackServer", server(old), server(new, a="b"), is_dry_run=False) == []


def test_it_never_changes_to_another_even_one_that_fits() -> None:
    (fault,) = validation.faults_of_update("OpenStackServer", server(OWN), server(OTHER), is_dry_run=False)

    assert fault.field == f"metadata.annotations[{names.OWNER_ID_ANNOTATION}]"
    assert OWN in fault.message
