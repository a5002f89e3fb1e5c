"""Another management cluster has the same objects in the same project: foreign resources are not touched."""

from __future__ import annotations

import copy
import json
from typing import Any, Final

import pytest

from capo import names
from capo.openstack.kinds import KINDS
from e2e.faults.scenes import SCENES, Scene, delete_all
from environments.provider import OURS, ProviderEnvironment

pytestmark = [pytest.mark.crash, pytest.mark.timeout(600)]

MADE_S: Final = 400.0
OLDEST: Final = max(kind.age_factor for kind in KINDS.values())
"""The maximum age of a list, in resync periods."""
TOUCH: Final = {"metadata": {"annotations": {"touched": "yes"}}}


def made(scene: Scene, stage: ProviderEnvironment) -> bool:
    """Play until everything is created; return whether it was."""
    return stage.play(for_s=MADE_S, until=lambda: scene.is_made(stage) and stage.is_settled())


def without_stamps(value: Any) -> Any:
    """Return a resource as a creator without stamps would have created it."""
    if isinstance(value, dict):
        return {k: without_stamps(v) for k, v in value.items() if not names.stamp_in(f"{k}:{v}")}
    if isinstance(value, list):
        return [without_stamps(each) for each in value if not (isinstance(each, str) and names.stamp_in(each))]
    return value.partition(" [capo:")[0] if isinstance(value, str) else value


def forget_owners(stage: ProviderEnvironment) -> None:
    """Remove all stamps in the cloud."""

    def change() -> None:
        for service, kinds in stage.cloud.inventory().items():
            for kind in kinds if service != "identity" else ():
                for item in stage.cloud.table(service, kind).values():
                    item.update({k: without_stamps(v) for k, v in item.items() if not k.startswith("_")})

    stage.simulator.call(change)


def resync(stage: ProviderEnvironment) -> None:
    """Resync everything, as happens every ten minutes."""
    stage.clock.advance(OLDEST * stage.settings.sync_period_s)
    for obj in stage.ours():
        stage.patch(next(kind for kind in OURS if kind.kind == obj["kind"]), obj["metadata"]["name"], TOUCH)
    stage.play(for_s=5)


def untouched(before: dict[str, dict[str, Any]], after: dict[str, dict[str, Any]]) -> list[str]:
    """Return the differences."""
    lost = [
        f"{kind} {id_} is gone" for kind, items in before.items() for id_ in items if id_ not in after.get(kind, {})
    ]
    for kind, items in before.items():
        for id_ in items.keys() & after.get(kind, {}).keys():
            was, is_ = (json.dumps(found[kind][id_], sort_keys=True, default=str) for found in (before, after))
            if was != is_:
                lost.append(f"{kind} {id_} was changed: {was} -> {is_}")
    return lost


@pytest.mark.parametrize("is_stamped", [True, False], ids=["of another management cluster", "of nobody"])
@pytest.mark.parametrize("scene", SCENES, ids=str)
def test_resources_of_the_same_names_stay_untouched(scene: Scene, is_stamped: bool) -> None:
    with ProviderEnvironment() as stage:
        scene.place(stage)
        assert made(scene, stage), stage.messages()
        expected = stage.counts()
        stage.play(for_s=5)  # until the load balancer is not changing
        if not is_stamped:
            forget_owners(stage)
        theirs = copy.deepcopy(stage.inventory())
        stage.another_management_cluster()

        scene.place(stage)
        assert made(scene, stage), stage.messages()
        assert stage.counts() == expected
        assert not untouched(theirs, stage.inventory())
        resync(stage)
        told = [c["message"] for o in stage.ours() for c in o["status"]["conditions"] if c["type"] == "NamesUnique"]
        assert told, "nothing is said of them"
        assert all(("of owner" if is_stamped else "without an owner") in message for message in told)

        delete_all(stage)
        assert stage.play(for_s=MADE_S, until=lambda: not stage.ours()), stage.messages()
        assert not stage.counts()
        assert not untouched(theirs, stage.inventory())
