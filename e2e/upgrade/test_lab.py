"""On the real services: create a cluster, replace its bastion and delete it, with a handover in the middle of each."""

from __future__ import annotations

import random
from typing import Any, Final

import pytest

from e2e import sampling
from e2e.crash import scenarios
from e2e.crash.scenarios import Scenario
from e2e.upgrade.environment import duplicates
from e2e.upgrade.installation import Version
from e2e.upgrade.matrix import KILLED_AT_KUBERNETES, VERSIONS, Setting, ordered
from e2e.upgrade.real_cloud import RealCloudEnvironment, real_cloud_environment
from e2e.upgrade.situations import SITUATIONS

pytestmark = [pytest.mark.integration, pytest.mark.lab, pytest.mark.timeout(1800)]

BY_NAME: Final = {each.name: each for each in SITUATIONS}
WRITES: Final = {"creation": (5, 25), "bastion": (2, 8), "deletion": (2, 8)}
"""The range of writes to Kubernetes at which the manager is killed."""


@pytest.mark.parametrize("first", VERSIONS)
def test_versions_take_turns_with_one_cluster(setting: Setting, first: Version) -> None:
    (second,) = set(VERSIONS) - {first}
    chance = random.Random(f"{sampling.seed()} {first}")
    with real_cloud_environment(setting.ground, setting.nurseries) as made:
        made.use(first)
        hand_over(made, second, BY_NAME["creation"], chance)
        made.require_idle(second)
        require_good(made)
        assert [each for each in made.writes() if each.startswith("DELETE")] == []
        created = made.inventory()

        note_first_bastion(made)
        made.manager.kill()
        made.use(second)
        hand_over(made, first, BY_NAME["bastion"], chance)
        made.require_idle(first)
        require_good(made)
        require_other_bastion(made, created)

        made.manager.kill()
        made.use(first)
        hand_over(made, second, BY_NAME["deletion"], chance)
        assert made.inventory() == made.before


def hand_over(made: RealCloudEnvironment, version: Version, situation: Scenario, chance: random.Random) -> None:
    """Start the manager, kill it during an operation and let one of another version complete it."""
    write, way = chance.randint(*WRITES[situation.name]), chance.choice(KILLED_AT_KUBERNETES)
    made.start()
    order = ordered(made, way, write)
    situation.act(made)
    made.wait_until_ended(f"{situation}: the manager comes to write {write}", lambda: situation.is_made(made))
    assert order.struck, f"{situation} was over before write {write}"
    made.use(version)
    made.start()
    made.wait_until(f"{situation} is complete", lambda: situation.is_made(made))


def require_good(made: RealCloudEnvironment) -> None:
    """Require that every condition is good and of the present generation, and that no resource exists twice."""
    wrong = [
        (path, condition)
        for path, shown in made.objects().items()
        for condition in shown["status"]["conditions"]
        if condition["status"] != ("False" if condition["type"] == "Paused" else "True")
        or condition.get("observedGeneration", shown["generation"]) != shown["generation"]
    ]
    assert wrong == []
    assert duplicates(made.inventory()) == []


def note_first_bastion(made: RealCloudEnvironment) -> None:
    """Record the bastion's present OpenStackServer."""
    uid = made.get("openstackservers", scenarios.BASTION)["metadata"]["uid"]
    made.patch("openstackclusters", scenarios.NAME, {"metadata": {"annotations": {"first": uid}}})


def require_other_bastion(made: RealCloudEnvironment, before: dict[str, dict[str, Any]]) -> None:
    """Require that the bastion's server and port were replaced once and everything else stayed."""
    now = made.inventory()
    gone = {kind: set(before[kind]) - set(now[kind]) for kind in before}
    new = {kind: set(now[kind]) - set(before[kind]) for kind in before}
    assert {kind: len(ids) for kind, ids in gone.items() if ids} == {"server": 1, "port": 1}
    assert {kind: len(ids) for kind, ids in new.items() if ids} == {"server": 1, "port": 1}
    assert sum(each.startswith("POST") and "/servers" in each for each in made.writes()) == 3
