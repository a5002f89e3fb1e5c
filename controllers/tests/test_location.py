"""Whether credentials are for the location of an object's resources."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from capo import names
from capo.errors import CloudUnavailableError, IdentityError, NotYetObserved
from capo.ledger import Ledger, Location
from capo.openstack.tests.builders import OTHER, OWNER, FakeCloud, cloud_view, port, server
from controllers import location

HERE = Location("keystone.example", "p1", "one")
RENAMED = replace(HERE, auth_host="identity.example")
ELSEWHERE = [replace(HERE, project_id="p2"), replace(HERE, region="two"), replace(RENAMED, project_id="p2")]


def settle(
    stored: Location | None,
    present: Location = HERE,
    *,
    accepted: str | None = None,
    is_proven: bool | None = None,
    may_lack: bool = False,
) -> Location | None:
    def prove() -> bool:
        assert is_proven is not None, "it was asked for a proof"
        return is_proven

    return location.settle(stored, present, accepted=accepted, is_proven=prove, may_lack=may_lack)


def test_the_same_location_needs_no_proof() -> None:
    assert settle(HERE) == HERE


@pytest.mark.parametrize("present", ELSEWHERE, ids=str)
def test_another_project_or_region_is_refused_whatever_is_seen_there(present: Location) -> None:
    with pytest.raises(IdentityError) as caught:
        settle(HERE, present, is_proven=True, may_lack=True)

    for told in (present.project_id, present.region, present.auth_host, HERE.project_id, HERE.region):
        assert told in caught.value.sentence
    assert f"{names.ACCEPT_LOCATION_ANNOTATION}={present}" in caught.value.sentence


@pytest.mark.parametrize("present", [*ELSEWHERE, RENAMED], ids=str)
def test_a_location_that_the_admin_names_exactly_is_accepted(present: Location) -> None:
    assert settle(HERE, present, accepted=str(present)) == present


def test_an_annotation_that_names_another_location_accepts_nothing() -> None:
    with pytest.raises(IdentityError):
        settle(HERE, ELSEWHERE[0], accepted=str(ELSEWHERE[1]))


def test_another_name_of_the_host_is_accepted_once_something_recorded_is_seen_there() -> None:
    assert settle(HERE, RENAMED, is_proven=True) == RENAMED


@pytest.mark.parametrize("may_lack", [False, True])
def test_another_host_where_nothing_is_seen_is_refused(may_lack: bool) -> None:
    with pytest.raises(IdentityError, match=r"identity\.example.*nothing of what is recorded.*keystone\.example"):
        settle(HERE, RENAMED, is_proven=False, may_lack=may_lack)


def test_what_was_recorded_without_a_location_gets_the_one_where_it_is_seen() -> None:
    assert settle(None, is_proven=True) == HERE


def test_what_was_recorded_without_a_location_and_is_not_seen_gets_none() -> None:
    with pytest.raises(IdentityError, match="nothing of what is recorded"):
        settle(None, is_proven=False)

    assert settle(None, is_proven=False, may_lack=True) is None


def ledger() -> Ledger:
    found = Ledger()
    found.record("server", "server", "s1")
    found.record("port", "port-0", "p1")
    return found


def ask(cloud: FakeCloud, recorded: Ledger) -> bool:
    """Repeat the check until every list that it needs is complete."""
    for _ in range(10):
        try:
            return location.is_anything_seen(cloud_view(cloud, recorded), recorded, OWNER)
        except NotYetObserved:
            cloud.clock.advance(1)
            cloud.run()
    raise AssertionError("it is never known")


@pytest.mark.parametrize(
    ("bodies", "expected"),
    [
        pytest.param({"server": server()}, True, id="recorded, with our stamp"),
        pytest.param({"port": port(role=None)}, True, id="recorded, without a stamp"),
        pytest.param({"port": port("p2")}, True, id="our stamp, not recorded"),
        pytest.param({"port": port(owner=OTHER)}, True, id="recorded, whosever it is"),
        pytest.param({"port": port("p2", owner=OTHER)}, False, id="another owner's stamp, not recorded"),
        pytest.param({"server": server("s2", role=None)}, False, id="somebody's"),
        pytest.param({"server": server(status="DELETED")}, False, id="deleted"),
        pytest.param({}, False, id="nothing"),
    ],
)
def test_what_proves_a_location(bodies: dict[str, Any], expected: bool) -> None:
    cloud = FakeCloud()
    for kind, body in bodies.items():
        cloud.put(kind, body)

    assert ask(cloud, ledger()) is expected


def test_a_proof_costs_one_list_where_the_first_kind_gives_it() -> None:
    cloud = FakeCloud()
    cloud.put("server", server())
    cloud.put("port", port())

    assert ask(cloud, ledger()) is True
    assert len(cloud.asked) == 1


def test_what_cannot_be_listed_proves_nothing_either_way() -> None:
    cloud = FakeCloud()
    cloud.error = CloudUnavailableError("down")

    with pytest.raises(CloudUnavailableError):
        ask(cloud, ledger())


def test_what_keeps_no_stamp_is_not_asked_for() -> None:
    recorded = Ledger()
    recorded.record("member", "member-6443", "m1")

    assert ask(FakeCloud(), recorded) is False
