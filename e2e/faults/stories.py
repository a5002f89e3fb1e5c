"""Tests that mostly wait, run in parallel: the first one starts all of them in threads, then each waits for its own."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Final

from capo.local.rig import Rig
from e2e.faults.environment import FaultEnvironment, fault_environment
from environments.manager_process import ManagerProcess

Story = Callable[[FaultEnvironment], None]
_STORY: Final = "story"


class Stories:
    """Started stories."""

    def __init__(self, begun: Mapping[Story, Future[None]]) -> None:
        self._begun = begun

    def end(self, story: Story) -> None:
        """Wait for the end of a story and raise its exception."""
        self._begun[story].result()


def told_at_once(story: Story) -> Callable[[Stories], None]:
    """Turn a story into a test, which runs in parallel with all other selected ones."""

    @functools.wraps(story)
    def test(stories: Stories) -> None:
        stories.end(story)

    del test.__wrapped__  # pytest would request the story's own arguments as fixtures
    setattr(test, _STORY, story)
    return test


def of_tests(tests: Iterable[Any]) -> list[Story]:
    """Return the stories behind test functions."""
    return [getattr(test, _STORY) for test in tests if hasattr(test, _STORY)]


def begin(pool: ThreadPoolExecutor, wanted: Iterable[Story], rig: Rig, manager: ManagerProcess) -> Stories:
    """Start stories."""

    def tell(story: Story) -> None:
        began_s = time.monotonic()
        with fault_environment(rig, manager) as made:
            story(made)
        print(f"{story.__name__}: {time.monotonic() - began_s:.0f} s")

    return Stories({story: pool.submit(tell, story) for story in wanted})
