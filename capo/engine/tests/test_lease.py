"""The election, on a fake API server; time is a fake clock unless a thread has to wait."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from capo.engine.lease import NAME, Lease, Terms
from capo.engine.tests.builders import FakeClock, eventually
from capo.kube.client import Kube
from capo.kube.errors import Conflict, KubeError, NotLeading
from capo.kube.kinds import LEASE
from capo.kube.tests.fake_apiserver import FakeApiServer
from capo.kube.transport import Timeouts

QUICK = Terms(duration_s=0.6, renew_deadline_s=0.4, retry_s=0.05)
"""For leases that are to be lost: on a busy machine they may be lost at any time."""
LASTING = Terms(duration_s=120.0, renew_deadline_s=60.0, retry_s=0.05)
"""For leases that are to be kept on a machine of any speed."""
SLOW_S = 30.0
"""How long a busy machine may take for an immediate reaction."""


@pytest.fixture
def api() -> Iterator[FakeApiServer]:
    with FakeApiServer().running() as running:
        yield running


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


def candidate(api: FakeApiServer, identity: str, clock: FakeClock) -> Lease:
    return Lease(Kube(api.connection()), "capo-system", Terms(), lambda: None, identity=identity, clock=clock)


def holder(api: FakeApiServer) -> str | None:
    found = api.read(LEASE, "capo-system", NAME)
    return found["spec"]["holderIdentity"] if found else None


def test_the_first_candidate_makes_the_lease_and_holds_it(api: FakeApiServer, clock: FakeClock) -> None:
    lease = candidate(api, "one", clock)

    assert lease.attempt()

    found = api.read(LEASE, "capo-system", NAME)
    assert found is not None
    assert found["spec"] | {"acquireTime": "", "renewTime": ""} == {
        "holderIdentity": "one",
        "leaseDurationSeconds": 15,
        "leaseTransitions": 0,
        "acquireTime": "",
        "renewTime": "",
    }
    lease.fence()


def test_another_waits_for_the_whole_duration_since_the_last_change_it_saw(
    api: FakeApiServer, clock: FakeClock
) -> None:
    one, two = candidate(api, "one", clock), candidate(api, "two", clock)
    one.attempt()
    assert not two.attempt()
    clock.advance(14)
    one.attempt()
    assert not two.attempt()

    clock.advance(14.9)
    assert not two.attempt()
    clock.advance(0.2)

    assert two.attempt()
    found = api.read(LEASE, "capo-system", NAME)
    assert found is not None
    assert (found["spec"]["holderIdentity"], found["spec"]["leaseTransitions"]) == ("two", 1)


def test_clocks_of_other_machines_do_not_count(api: FakeApiServer, clock: FakeClock) -> None:
    candidate(api, "one", clock).attempt()
    found = api.read(LEASE, "capo-system", NAME)
    assert found is not None
    found["spec"]["renewTime"] = "1999-01-01T00:00:00.000000Z"
    api.put(LEASE, found)

    assert not candidate(api, "two", clock).attempt()


def test_a_renewal_keeps_the_time_of_acquisition(api: FakeApiServer, clock: FakeClock) -> None:
    lease = candidate(api, "one", clock)
    lease.attempt()
    before = api.read(LEASE, "capo-system", NAME)
    lease.attempt()
    after = api.read(LEASE, "capo-system", NAME)

    assert before is not None
    assert after is not None
    assert before["spec"]["acquireTime"] == after["spec"]["acquireTime"]
    assert before["spec"]["renewTime"] < after["spec"]["renewTime"]
    assert after["spec"]["leaseTransitions"] == 0


def test_a_renewal_is_one_request(api: FakeApiServer, clock: FakeClock) -> None:
    lease = candidate(api, "one", clock)
    lease.attempt()
    before = len(api.requests)

    lease.attempt()

    assert len(api.requests) - before == 1


def test_two_that_try_at_once_do_not_both_get_it(api: FakeApiServer, clock: FakeClock) -> None:
    one = candidate(api, "one", clock)
    one.attempt()
    found = api.read(LEASE, "capo-system", NAME)
    assert found is not None
    api.put(LEASE, found | {"spec": found["spec"] | {"holderIdentity": "two"}})

    with pytest.raises(Conflict):
        one.attempt()
    assert not one.attempt()


def test_the_fence_closes_when_a_renewal_is_overdue(api: FakeApiServer, clock: FakeClock) -> None:
    lease = candidate(api, "one", clock)
    with pytest.raises(NotLeading):
        lease.fence()
    lease.attempt()
    clock.advance(9.9)
    lease.fence()

    clock.advance(0.2)

    with pytest.raises(NotLeading):
        lease.fence()


def test_a_write_of_one_who_does_not_lead_never_leaves_the_process(api: FakeApiServer, clock: FakeClock) -> None:
    lease = candidate(api, "one", clock)
    kube = Kube(api.connection(), fence=lease.fence)

    with pytest.raises(NotLeading):
        kube.create(LEASE, {"metadata": {"name": "x", "namespace": "default"}})

    assert api.requests == []


def with_terms(terms: Terms, api: FakeApiServer, identity: str, lost: threading.Event) -> Lease:
    limit = Timeouts(terms.call_timeout_s, terms.call_timeout_s)
    return Lease(Kube(api.connection(), timeouts=limit), "capo-system", terms, lost.set, identity=identity)


def lasting(api: FakeApiServer, identity: str, lost: threading.Event) -> Lease:
    return with_terms(LASTING, api, identity, lost)


def started(lease: Lease) -> Lease:
    acquired = threading.Event()
    lease.start(acquired.set)
    assert acquired.wait(SLOW_S)
    return lease


def test_a_renewal_that_hangs_loses_the_lease_in_time(api: FakeApiServer) -> None:
    lost = threading.Event()
    lease = started(with_terms(QUICK, api, "one", lost))

    api.hang = lambda _method, path: "leases" in path

    assert lost.wait(SLOW_S)
    assert not lease.is_held()
    api.hang = lambda _method, _path: False


def test_short_trouble_of_the_api_server_does_not_lose_the_lease(api: FakeApiServer) -> None:
    lost = threading.Event()
    lease = started(lasting(api, "one", lost))
    renewals = len(api.requests)

    api.fail_next += [(lambda _method, path: "leases" in path, code) for code in (500, 409, 503)]

    eventually(lambda: len(api.requests) > renewals + 8)
    assert not lost.is_set()
    assert lease.is_held()
    lease.release()


def test_a_lease_that_somebody_else_took_is_lost(api: FakeApiServer) -> None:
    lost = threading.Event()
    started(lasting(api, "one", lost))
    found = api.read(LEASE, "capo-system", NAME)
    assert found is not None

    api.put(LEASE, found | {"spec": found["spec"] | {"holderIdentity": "thief"}})

    assert lost.wait(SLOW_S)


def test_a_released_lease_is_taken_at_once(api: FakeApiServer) -> None:
    one = started(lasting(api, "one", threading.Event()))
    two = lasting(api, "two", threading.Event())
    acquired = threading.Event()
    two.start(acquired.set)

    one.release()

    assert holder(api) in ("", "two")
    assert acquired.wait(SLOW_S), "it was waited for as one that nobody gave back"
    two.release()
    assert holder(api) == ""


def test_a_candidate_that_is_stopped_leaves_the_lease_alone(api: FakeApiServer) -> None:
    one = started(lasting(api, "one", threading.Event()))
    two = lasting(api, "two", threading.Event())
    two.start(lambda: None)

    two.release()

    assert holder(api) == "one"
    one.release()


def test_no_answer_at_all_is_an_error_and_no_lease(clock: FakeClock) -> None:
    server = FakeApiServer()
    with server.running():
        connection = server.connection()
    lease = Lease(Kube(connection), "capo-system", Terms(), lambda: None, clock=clock)

    with pytest.raises(KubeError):
        lease.attempt()
    assert not lease.is_held()
