"""A server's location is stored with its first intent; credentials for another location are refused."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from capo import names
from controllers.openstackserver.tests.environment import KIND, made, place, server, shown, status
from controllers.openstackserver.tests.test_recovery import settled
from controllers.tests import elsewhere
from environments.in_memory import InMemoryEnvironment, killed_when

ACCEPT = names.ACCEPT_LOCATION_ANNOTATION
OWNER = names.OWNER_ID_ANNOTATION
WHOLE = {"servers": 1, "ports": 1, "volumes": 1}
PLACES = ["project", "region", "cloud"]


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as made_:
        yield made_


def credentials(stage: InMemoryEnvironment, stack: ExitStack, kind: str) -> dict[str, Any]:
    """Return credentials for another location."""
    match kind:
        case "project":
            return elsewhere.other_project(stage)
        case "region":
            return stack.enter_context(elsewhere.other_region(stage))
        case _:
            return stack.enter_context(elsewhere.other_cloud(stage))


def here(stage: InMemoryEnvironment) -> dict[str, str]:
    host = stage.simulator.url.removeprefix("http://")
    return {"authHost": host, "projectID": stage.member.project_id, "region": "RegionOne"}


def resync(stage: InMemoryEnvironment, number: int = 0) -> None:
    stage.patch(KIND, "s", {"metadata": {"labels": {"resync": str(number)}}})


def forget_location(stage: InMemoryEnvironment) -> None:
    """Rewrite the records in the form of a version that stores no location."""
    stage.patch(KIND, "s", {"status": {"resources": {"location": None}}})


def requests_of_a_restart(stage: InMemoryEnvironment) -> list[str]:
    """Start the manager and return the requests of the first minute, sorted."""
    stage.start()
    stage.cloud.counter.reset()
    stage.settle(for_s=60)
    return sorted(stage.requests())


def test_the_location_is_stored_with_the_first_intent(stage: InMemoryEnvironment) -> None:
    place(stage)

    with killed_when(stage, lambda: bool(stage.inventory().get("ports"))):
        stage.settle(for_s=30)

    resources = status(stage)["resources"]
    assert resources["records"] == []
    assert [each["role"] for each in resources["pending"]] == ["port-0", "server"]
    assert resources["location"] == here(stage)


@pytest.mark.parametrize("is_named", [True, False])
def test_a_region_that_the_credentials_do_not_name_is_the_one_that_is_used(
    stage: InMemoryEnvironment, is_named: bool
) -> None:
    entry = elsewhere.entry_of(stage)
    elsewhere.put_credentials(stage, entry if is_named else {**entry, "region_name": ""})
    settled(stage)
    assert status(stage)["resources"]["location"] == here(stage)

    elsewhere.put_credentials(stage, {**entry, "region_name": ""} if is_named else entry)
    stage.start()
    stage.settle(for_s=60)

    assert shown(stage, "Ready") == ("True", "Ready")


@pytest.mark.parametrize("restarts", [False, True])
@pytest.mark.parametrize("deletes", [False, True])
@pytest.mark.parametrize("kind", PLACES)
def test_credentials_that_lead_elsewhere_are_refused(
    stage: InMemoryEnvironment, stack: ExitStack, kind: str, deletes: bool, restarts: bool
) -> None:
    settled(stage)
    stored = status(stage)["resources"]
    elsewhere.put_credentials(stage, credentials(stage, stack, kind))
    if restarts:
        stage.start()
    if deletes:
        stage.delete(KIND, "s")
    else:
        resync(stage)

    stage.settle(for_s=700)

    assert made(stage) == WHOLE
    assert status(stage)["resources"] == stored
    assert status(stage)["ready"] is True
    assert shown(stage, "OpenStackAuthenticationSucceeded") == ("False", "OpenStackAuthenticationFailed")
    message = stage.condition(KIND, "s", "Ready")["message"]
    assert "IdentityNotUsable [Secret default/cloud, cloud 'sim']" in message
    for told in here(stage).values():
        assert told in message

    stage.apply_secret()
    stage.settle(for_s=120)
    assert made(stage) == ({} if deletes else WHOLE)
    assert stage.exists(KIND, "s") is not deletes


@pytest.mark.parametrize("kind", PLACES)
def test_a_refusal_is_no_hot_loop(stage: InMemoryEnvironment, stack: ExitStack, kind: str) -> None:
    settled(stage)
    elsewhere.put_credentials(stage, credentials(stage, stack, kind))
    resync(stage)
    stage.settle(for_s=60)
    stage.cloud.counter.reset()
    stage.kube.writes.clear()

    stage.settle(for_s=600)

    assert len(stage.requests()) <= 6, stage.requests()
    assert stage.kube.writes == []


@pytest.mark.parametrize("kind", PLACES)
def test_a_location_that_the_admin_accepts_is_stored(stage: InMemoryEnvironment, stack: ExitStack, kind: str) -> None:
    settled(stage)
    elsewhere.put_credentials(stage, credentials(stage, stack, kind))
    stage.start()
    stage.settle(for_s=60)
    message = stage.condition(KIND, "s", "Ready")["message"]
    accepted = message.partition(f"{ACCEPT}=")[2].rstrip(".")

    stage.patch(KIND, "s", {"metadata": {"annotations": {ACCEPT: accepted}}})
    stage.settle(for_s=120)
    stage.delete(KIND, "s")
    stage.settle(for_s=120)

    assert not stage.exists(KIND, "s")
    assert made(stage) == WHOLE, "what is left where the admin said that nothing is"


def test_an_annotation_that_was_left_admits_no_other_location(stage: InMemoryEnvironment) -> None:
    settled(stage)
    theirs = "keystone.example/0123456789abcdef/RegionOne"
    stage.patch(KIND, "s", {"metadata": {"annotations": {ACCEPT: theirs}}})
    elsewhere.put_credentials(stage, elsewhere.other_project(stage))
    stage.start()

    stage.settle(for_s=60)

    assert made(stage) == WHOLE
    assert "lead to project" in stage.condition(KIND, "s", "Ready")["message"]


@pytest.mark.parametrize("deletes", [False, True])
def test_a_host_that_was_renamed_passes_once_something_recorded_is_read_there(
    stage: InMemoryEnvironment, deletes: bool
) -> None:
    settled(stage)
    elsewhere.put_credentials(stage, elsewhere.other_name(stage))
    stage.start()
    if deletes:
        stage.delete(KIND, "s")
    stage.kube.writes.clear()

    stage.settle(for_s=60)

    if deletes:
        assert not stage.exists(KIND, "s")
        assert made(stage) == {}
    else:
        assert shown(stage, "Ready") == ("True", "Ready")
        assert status(stage)["resources"]["location"] == {
            **here(stage),
            "authHost": here(stage)["authHost"].replace("127.0.0.1", "localhost"),
        }
        assert len(stage.kube.writes) == 1, stage.kube.writes
        assert made(stage) == WHOLE


def test_a_host_that_was_renamed_does_not_hide_that_the_server_vanished(stage: InMemoryEnvironment) -> None:
    settled(stage)
    stage.member.ask("DELETE", f"/compute/v2.1/servers/{server(stage)['id']}")
    stage.clock.advance(60)
    elsewhere.put_credentials(stage, elsewhere.other_name(stage))
    stage.start()

    stage.settle(for_s=120)

    assert shown(stage, "InstanceReady")[1] in ("InstanceNotFound", "InstanceDeleted")


def test_other_credentials_of_the_same_place_cost_no_write_and_only_the_read_of_their_expiry(
    stage: InMemoryEnvironment,
) -> None:
    settled(stage)
    elsewhere.put_credentials(stage, elsewhere.entry_of(stage))
    usual = requests_of_a_restart(stage)

    elsewhere.put_credentials(stage, elsewhere.entry_of(stage, "sim-appcred"))
    stage.kube.writes.clear()

    now = requests_of_a_restart(stage)
    expiry = [request for request in now if "/application_credentials/" in request]
    assert len(expiry) == 1
    assert [request for request in now if request not in expiry] == usual
    assert stage.kube.writes == []


@pytest.mark.parametrize("kind", ["project", "region"])
def test_a_lost_owner_id_is_not_replaced_elsewhere(stage: InMemoryEnvironment, stack: ExitStack, kind: str) -> None:
    settled(stage)
    before = stage.get(KIND, "s")["metadata"]["annotations"][OWNER]
    stage.patch(KIND, "s", {"metadata": {"annotations": None}})
    elsewhere.put_credentials(stage, credentials(stage, stack, kind))
    stage.start()

    stage.settle(for_s=60)
    assert OWNER not in (stage.get(KIND, "s")["metadata"].get("annotations") or {})

    stage.apply_secret()
    stage.settle(for_s=60)
    assert stage.get(KIND, "s")["metadata"]["annotations"][OWNER] == before


def test_a_lost_owner_id_is_not_replaced_where_nothing_recorded_is_read(
    stage: InMemoryEnvironment, stack: ExitStack
) -> None:
    settled(stage)
    stage.patch(KIND, "s", {"metadata": {"annotations": None}})
    elsewhere.put_credentials(stage, credentials(stage, stack, "cloud"))
    stage.start()

    stage.settle(for_s=60)

    assert OWNER not in (stage.get(KIND, "s")["metadata"].get("annotations") or {})
    assert made(stage) == WHOLE


# -- records without a location ----------------------------------------------------------------------------------------


def test_records_without_a_location_get_it_in_one_write(stage: InMemoryEnvironment) -> None:
    settled(stage)
    forget_location(stage)
    stage.start()
    stage.kube.writes.clear()

    stage.settle(for_s=60)

    assert status(stage)["resources"]["location"] == here(stage)
    assert len(stage.kube.writes) == 1, stage.kube.writes


def test_a_location_costs_no_request(stage: InMemoryEnvironment) -> None:
    settled(stage)
    usual = requests_of_a_restart(stage)

    forget_location(stage)

    assert requests_of_a_restart(stage) == usual


def test_a_moved_server_gets_its_location_with_what_is_found(stage: InMemoryEnvironment) -> None:
    settled(stage)
    stage.patch(KIND, "s", {"status": None})
    stage.start()

    stage.settle(for_s=60)

    assert status(stage)["resources"]["location"] == here(stage)


def test_records_without_a_location_of_which_nothing_is_there_do_not_count_as_vanished(
    stage: InMemoryEnvironment, stack: ExitStack
) -> None:
    settled(stage)
    forget_location(stage)
    elsewhere.put_credentials(stage, credentials(stage, stack, "region"))
    stage.start()

    stage.settle(for_s=120)

    assert status(stage)["ready"] is True
    assert "location" not in status(stage)["resources"]
    assert "nothing of what is recorded" in stage.condition(KIND, "s", "Ready")["message"]


def test_a_deletion_that_another_version_brought_almost_to_its_end_ends(stage: InMemoryEnvironment) -> None:
    settled(stage)
    forget_location(stage)
    for kind in ("servers", "ports", "volumes"):
        service = {"servers": "compute", "ports": "network", "volumes": "volume"}[kind]
        stage.simulator.call(lambda service=service, kind=kind: stage.cloud.table(service, kind).clear())  # type: ignore[misc]
    stage.delete(KIND, "s")
    stage.start()

    stage.settle(for_s=120)

    assert not stage.exists(KIND, "s")


def test_an_outage_of_the_identity_service_at_the_start_hides_nothing(stage: InMemoryEnvironment) -> None:
    settled(stage)
    before = status(stage)["resources"]
    stage.add_fault(match={"service": "identity"}, effect={"status": 503})
    stage.start()
    stage.settle(for_s=60)
    assert "CloudUnavailable" in stage.condition(KIND, "s", "Ready")["message"]

    stage.clear_faults()
    stage.settle(for_s=300)

    assert shown(stage, "Ready") == ("True", "Ready")
    assert status(stage)["resources"] == before


@pytest.mark.parametrize("is_renamed", [False, True], ids=["recorded without a location", "host renamed"])
def test_a_location_that_was_proven_outlasts_what_proved_it(stage: InMemoryEnvironment, is_renamed: bool) -> None:
    settled(stage)
    if is_renamed:
        elsewhere.put_credentials(stage, elsewhere.other_name(stage))
    else:
        forget_location(stage)
    stage.delete(KIND, "s")
    stage.start()

    stage.cloud.counter.reset()
    with killed_when(stage, lambda: any(request.startswith("DELETE") for request in stage.requests())):
        stage.settle(for_s=120)
    assert stage.exists(KIND, "s")
    host = here(stage)["authHost"].replace("127.0.0.1", "localhost") if is_renamed else here(stage)["authHost"]
    assert status(stage)["resources"]["location"] == {**here(stage), "authHost": host}

    stage.start()
    stage.settle(for_s=60)
    assert not stage.exists(KIND, "s")


@pytest.mark.parametrize("deletes", [False, True])
def test_an_outage_while_the_location_is_proven_is_not_shown_as_refused_credentials(
    stage: InMemoryEnvironment, deletes: bool
) -> None:
    settled(stage)
    forget_location(stage)
    stage.start()
    for service in ("compute", "network", "volume"):
        stage.add_fault(match={"service": service}, effect={"status": 503})
    if deletes:
        stage.delete(KIND, "s")
    stage.settle(for_s=120)

    assert shown(stage, "OpenStackAuthenticationSucceeded") == ("True", "Ready")
    assert shown(stage, "Ready") == ("False", "OpenStackError")
    assert stage.condition(KIND, "s", "Ready")["message"].startswith("CloudUnavailable")

    stage.clear_faults()
    stage.settle(for_s=300)
    assert stage.exists(KIND, "s") is not deletes
    assert made(stage) == ({} if deletes else WHOLE)
