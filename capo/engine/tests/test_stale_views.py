"""A pass whose view of its object is older than what is."""

from __future__ import annotations

import pytest

from capo.engine.tests.toy import KEY, KIND, World
from capo.kube.errors import Conflict


def test_an_owner_id_that_a_stale_view_hides_is_never_replaced(world: World) -> None:
    stale = world.obj
    world.reconcile()
    known = world.obj["metadata"]["annotations"]
    world.start()
    world.store.apply(KIND, "ADDED", stale)

    with pytest.raises(Conflict, match="got an owner id meanwhile"):
        world.manager.reconcile(KEY)
    world.manager.reconcile(KEY)

    assert world.obj["metadata"]["annotations"] == known
    assert list(world.cloud.things) == ["id-1"]
