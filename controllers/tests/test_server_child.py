"""How owners of an OpenStackServer report its state, and how they delete it."""

from __future__ import annotations

from typing import Any

import jsonpatch
import pytest

from api.v1beta2 import OpenStackIdentityReference
from controllers import server_child

GENERATION = 3
OLD = {"name": "old", "cloudName": "cloud", "region": "north"}


def server(*conditions: tuple[str, str, str, str, int], is_going: bool = True) -> dict[str, Any]:
    """Return an OpenStackServer with conditions by type, status, reason, message and generation."""
    fields = ("type", "status", "reason", "message", "observedGeneration")
    shown = [dict(zip(fields, each, strict=True)) for each in conditions]
    going = {"deletionTimestamp": "2026-01-01T00:00:00Z"} if is_going else {}
    metadata = {"name": "one", "uid": "the-uid", "resourceVersion": "7", "generation": GENERATION, **going}
    return {"metadata": metadata, "spec": {"identityRef": OLD}, "status": {"conditions": shown}}


@pytest.mark.parametrize(
    ("wanted", "changed"),
    [
        pytest.param({**OLD}, None, id="the same"),
        pytest.param({**OLD, "type": "Secret"}, None, id="the same, written out"),
        pytest.param({**OLD, "region": "south"}, None, id="the region stays: it is where the server is"),
        pytest.param({**OLD, "name": "new"}, {"type": "Secret", "name": "new", "cloudName": "cloud"}, id="a Secret"),
        pytest.param(
            {**OLD, "type": "ClusterIdentity"},
            {"type": "ClusterIdentity", "name": "old", "cloudName": "cloud"},
            id="another type",
        ),
    ],
)
def test_a_server_goes_on_with_the_credentials_of_its_owner_w_12(wanted: Any, changed: Any) -> None:
    patch = server_child.credentials_change(server(), OpenStackIdentityReference.model_validate(wanted))

    after = jsonpatch.apply_patch(server(), patch)
    assert after["spec"]["identityRef"] == {**OLD, **(changed or {})}
    assert bool(patch) == bool(changed)


def test_nobody_left_who_could_tell_the_credentials_changes_nothing() -> None:
    assert server_child.credentials_change(server(), None) == []


def test_credentials_that_somebody_else_changed_meanwhile_are_not_overwritten() -> None:
    patch = server_child.credentials_change(server(), OpenStackIdentityReference.model_validate({**OLD, "name": "new"}))
    edited = server() | {"spec": {"identityRef": {**OLD, "name": "theirs"}}}

    with pytest.raises(jsonpatch.JsonPatchTestFailed):
        jsonpatch.apply_patch(edited, patch)


STALE = ("InstanceReady", "False", "Deleting", "server s is being deleted", GENERATION)


@pytest.mark.parametrize(
    ("shown", "is_going", "message"),
    [
        pytest.param([], True, "OpenStackServer one is being deleted", id="nothing said"),
        pytest.param(
            [STALE, ("Ready", "False", "Deleting", "InstanceReady: server s is being deleted", GENERATION)],
            True,
            "OpenStackServer one is being deleted",
            id="all goes well",
        ),
        pytest.param(
            [STALE, ("Ready", "False", "OpenStackError", "Conflict: port p is in use by q", GENERATION)],
            True,
            "OpenStackServer one is being deleted: Conflict: port p is in use by q",
            id="a port is in the way",
        ),
        pytest.param(
            [("Ready", "False", "OpenStackAuthenticationFailed", "IdentityNotUsable: no Secret cloud", GENERATION - 1)],
            True,
            "OpenStackServer one is being deleted: IdentityNotUsable: no Secret cloud",
            id="the credentials are gone",
        ),
        pytest.param(
            [("Ready", "False", "OpenStackError", "InstanceReady: QuotaExceeded", GENERATION - 1)],
            True,
            "OpenStackServer one is being deleted",
            id="what was wrong before says nothing of the deletion",
        ),
    ],
)
def test_what_is_in_the_way_of_a_deletion_is_told_in_the_servers_words(
    shown: Any, is_going: bool, message: str
) -> None:
    wait = server_child.deletion(server(*shown, is_going=is_going))

    assert (wait.reason, wait.message) == ("Deleting", message)
