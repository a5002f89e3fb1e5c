import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from capo.errors import IdentityError, ImageNotFoundError
from capo.openstack.reference_cache import KEPT_S, MAX_ENTRIES, MISSING_KEPT_S, ReferenceCache
from capo.openstack.tests.builders import FakeClock


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


def test_an_answer_is_kept_for_a_minute(clock: FakeClock) -> None:
    lookups, answers = ReferenceCache(clock.now), iter(range(9))

    first = lookups.get("k", lambda: next(answers))
    clock.advance(KEPT_S)
    second = lookups.get("k", lambda: next(answers))
    clock.advance(1)
    third = lookups.get("k", lambda: next(answers))

    assert (first, second, third) == (0, 0, 1)


def test_a_failure_is_not_kept(clock: FakeClock) -> None:
    lookups = ReferenceCache(clock.now)

    def fail() -> Any:
        raise KeyError("missing")

    with pytest.raises(KeyError):
        lookups.get("k", fail)

    assert lookups.get("k", lambda: 1) == 1


def test_what_is_missing_is_not_asked_for_twice_in_a_second(clock: FakeClock) -> None:
    lookups, is_there = ReferenceCache(clock.now), False

    def ask() -> str:
        if not is_there:
            raise ImageNotFoundError("not yet")
        return "there"

    with pytest.raises(ImageNotFoundError):
        lookups.get("k", ask)
    is_there = True
    clock.advance(MISSING_KEPT_S)
    with pytest.raises(ImageNotFoundError, match="not yet"):
        lookups.get("k", ask)
    clock.advance(0.1)

    assert lookups.get("k", ask) == "there"


def test_a_refusal_of_other_credentials_is_not_shared(clock: FakeClock) -> None:
    lookups, inside, refuse = ReferenceCache(clock.now), threading.Event(), threading.Event()

    def ask_and_be_refused() -> Any:
        inside.set()
        refuse.wait(10)
        raise IdentityError("revoked")

    with ThreadPoolExecutor(2) as threads:
        first = threads.submit(lookups.get, "k", ask_and_be_refused)
        inside.wait(10)
        second = threads.submit(lookups.get, "k", lambda: "answer")
        refuse.set()

    assert isinstance(first.exception(), IdentityError)
    assert second.result() == "answer"


def test_callers_who_ask_at_once_share_one_request(clock: FakeClock) -> None:
    lookups, go, asked = ReferenceCache(clock.now), threading.Event(), []

    def slow() -> int:
        asked.append(1)
        assert go.wait(60)
        return 7

    with ThreadPoolExecutor(8) as pool:
        futures = [pool.submit(lookups.get, "k", slow) for _ in range(8)]
        go.set()
        answers = [future.result() for future in futures]

    assert answers == [7] * 8
    assert len(asked) == 1


def test_there_is_a_limit_to_what_is_kept(clock: FakeClock) -> None:
    lookups = ReferenceCache(clock.now)

    for number in range(MAX_ENTRIES + 10):
        lookups.get(number, lambda: None)

    assert len(lookups._entries) <= MAX_ENTRIES
