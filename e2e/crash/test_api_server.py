"""The API server dies during an operation and restarts: the operation continues."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from capo.local.testing import running_rig
from e2e.crash.environment import CrashEnvironment, crash_environment
from e2e.crash.scenarios import SCENARIOS, Scenario
from e2e.crash.session import CrashSession, crash_session

pytestmark = [pytest.mark.integration, pytest.mark.crash, pytest.mark.timeout(900)]

API_SERVER = "kube-apiserver"


@pytest.fixture(scope="module")
def own_ground(rigs_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[CrashSession]:
    """Yield an environment with an API server of its own."""
    with (
        running_rig(rigs_folder, "restart", "api") as made,
        crash_session(made, tmp_path_factory.mktemp("restart")) as found,
    ):
        yield found


def restart(made: CrashEnvironment, writes: int) -> None:
    """Kill the API server after so many writes to OpenStack, and start it again."""
    made.wait_until("it is under way", lambda: len(made.writes()) >= writes)
    made.ground.rig.stop(API_SERVER, gently=False)
    made.ground.rig.up("api")


@pytest.mark.parametrize("scenario", SCENARIOS, ids=str)
def test_an_api_server_that_dies_and_comes_back_changes_nothing_in_the_end(
    own_ground: CrashSession, scenario: Scenario
) -> None:
    with crash_environment(own_ground) as undisturbed:
        scenario.prepare(undisturbed)
        scenario.act(undisturbed)
        undisturbed.wait_until("all is made", lambda: scenario.is_made(undisturbed))
        expected = undisturbed.signature()
    with crash_environment(own_ground) as made:
        scenario.prepare(made)
        writes = len(made.writes())
        scenario.act(made)
        restart(made, writes + 1)
        made.wait_until("all is made", lambda: scenario.is_made(made))
        assert made.signature() == expected

        if not scenario.is_gone(made):  # the act of "leftovers" is the deletion
            writes = len(made.writes())
            scenario.delete(made)
            restart(made, writes + 1)
            made.wait_until("all is gone", lambda: scenario.is_gone(made))
        assert not made.signature()
