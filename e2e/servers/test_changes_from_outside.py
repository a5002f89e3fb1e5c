"""External changes of running servers, on both clouds: noticed within a minute by the real manager, and not reverted.

All changes are made together, because one list a minute shows all of them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any, Final

import pytest

from capo import names
from capo.openstack.kinds import NOVA
from e2e.servers.environment import ServersEnvironment

pytestmark = pytest.mark.integration

NOTICED_S: Final = 60.0
BUSY_S: Final = 120.0
"""Additional time for a busy machine."""
CLOCK_S: Final = 2.0
"""Nova's launch times are whole seconds: a rebuild within the same second leaves no trace."""
OTHER_IMAGE: Final = "ubuntu-2204-kube-v1.31.0"
STATES: Final = {
    "outside-stopped": ("SHUTOFF", {"InstanceNotReady"}),
    "outside-broken": ("ERROR", {"InstanceStateError"}),
    "outside-deleted": ("DELETED", {"InstanceNotFound", "InstanceDeleted"}),
}
"""The reported state of each server, and the allowed reasons."""


def status(ground: ServersEnvironment, name: str) -> dict[str, Any]:
    found: dict[str, Any] = (ground.server(name) or {})["status"]
    return found


def reason(ground: ServersEnvironment, name: str) -> str:
    return str(ground.condition("openstackservers", name, "InstanceReady").get("reason"))


def message(ground: ServersEnvironment, name: str) -> str:
    return str(ground.condition("openstackservers", name, "InstanceReady").get("message"))


def is_told(ground: ServersEnvironment, name: str) -> bool:
    """Return whether a server is reported in its new state, and not as ready."""
    shown, (state, reasons) = status(ground, name), STATES[name]
    return shown["instanceState"] == state and not shown["ready"] and reason(ground, name) in reasons


def act(ground: ServersEnvironment, name: str, **body: Any) -> None:
    """Send an action to the Nova server, as an administrator."""
    path = f"/servers/{status(ground, name)['instanceID']}/action"
    ground.admin.post("compute", path, json=body, microversion=NOVA)


def noticed(ground: ServersEnvironment, looks: Mapping[str, Callable[[], Any]]) -> None:
    """Wait until all changes are noticed, which must be within a minute."""
    began_s = time.monotonic()
    for what, look in looks.items():
        ground.wait_until(what, look)
    assert time.monotonic() - began_s <= NOTICED_S + BUSY_S


def ready(ground: ServersEnvironment, *wanted: str) -> None:
    """Create servers and wait until they are ready."""
    ground.apply(*map(ground.server_object, wanted))
    for name in wanted:
        ground.wait_until_ready(name)


def test_servers_that_are_stopped_broken_or_deleted_are_not_ready_within_a_minute(ground: ServersEnvironment) -> None:
    """Takes up to two minutes: one list a minute shows the changes, and the next one the recovery."""
    ready(ground, *STATES)
    act(ground, "outside-stopped", **{"os-stop": None})
    act(ground, "outside-broken", **{"os-resetState": {"state": "error"}})
    gone_id = status(ground, "outside-deleted")["instanceID"]
    ground.admin.delete("compute", f"/servers/{gone_id}", microversion=NOVA)

    noticed(ground, {n: lambda n=n: is_told(ground, n) for n in STATES})  # type: ignore[misc]

    act(ground, "outside-stopped", **{"os-start": None})
    act(ground, "outside-broken", **{"os-resetState": {"state": "active"}})
    recovered = ("outside-stopped", "outside-broken")
    noticed(ground, {n: lambda n=n: status(ground, n)["ready"] for n in recovered})  # type: ignore[misc]

    assert "outside-deleted" not in ground.remaining()["server"]
    for name in STATES:
        ground.delete("openstackservers", name)


@pytest.mark.lab
def test_server_that_an_operator_rebuilt_is_not_ready_any_more(ground: ServersEnvironment) -> None:
    ready(ground, "outside-rebuilt")
    other = ground.cloud.get("image", "/images", params={"name": OTHER_IMAGE})["images"][0]["id"]

    act(ground, "outside-rebuilt", rebuild={"imageRef": other})

    noticed(ground, {"rebuilt": lambda: f"rebuilt from image {other}" in message(ground, "outside-rebuilt")})
    shown = status(ground, "outside-rebuilt")
    assert (shown["ready"], shown["instanceState"]) == (False, "ACTIVE")
    assert reason(ground, "outside-rebuilt") == "InstanceStateError"
    ground.delete("openstackservers", "outside-rebuilt")


@pytest.mark.lab
def test_server_that_an_operator_rebuilt_from_its_own_image_is_not_ready_any_more(ground: ServersEnvironment) -> None:
    ready(ground, "outside-wiped")
    asked_s = time.monotonic()
    ground.wait_until("another second begins", lambda: time.monotonic() - asked_s > CLOCK_S)
    own = status(ground, "outside-wiped")["resolved"]["imageID"]

    act(ground, "outside-wiped", rebuild={"imageRef": own})

    noticed(ground, {"rebuilt": lambda: "rebuilt from its own image" in message(ground, "outside-wiped")})
    shown = status(ground, "outside-wiped")
    assert (shown["ready"], shown["instanceState"]) == (False, "ACTIVE")
    ground.delete("openstackservers", "outside-wiped")


def test_server_that_fits_nowhere_says_so_with_the_request(ground: ServersEnvironment) -> None:
    ground.apply(ground.server_object("too-big", flavor="lab.too-big"))

    ground.wait_until("it is told", lambda: "NoValidHost" in message(ground, "too-big"))

    told = message(ground, "too-big")
    assert "No valid host was found" in told
    assert "fault code 500" in told
    assert "(request req-" in told
    ground.delete("openstackservers", "too-big")


def test_owner_id_that_was_lost_comes_back(ground: ServersEnvironment) -> None:
    ready(ground, "forgetful")

    def annotation() -> str | None:
        found = (ground.server("forgetful") or {})["metadata"].get("annotations") or {}
        return found.get(names.OWNER_ID_ANNOTATION)

    before = annotation()
    ground.patch("openstackservers", "forgetful", {"metadata": {"annotations": {names.OWNER_ID_ANNOTATION: None}}})

    ground.wait_until("it is back", annotation)

    assert annotation() == before
    ground.delete("openstackservers", "forgetful")
