"""Controllers' in-memory records of their objects after the API server was restored from a backup."""

from __future__ import annotations

from typing import Any

from capo import names
from capo.controllers import all_controllers
from capo.engine.store import Store
from capo.engine.tests.fake_kube import FakeClock, FakeKube
from capo.engine.turn import Tools


class Kube(FakeKube):
    fence: Any = None


def test_a_reset_ends_the_exemption_of_what_this_process_created() -> None:
    tools = Tools(Kube(), Store(), None, FakeClock())  # type: ignore[arg-type]
    all_controllers(tools, lambda _key: None)
    server = {"metadata": {"uid": "u", "annotations": {names.OWNER_ID_ANNOTATION: "aaaaaaaaaaaaa.check"}}}
    tools.minted.add(server)
    assert tools.minted.has(server)

    tools.store.begin_reset()

    assert not tools.minted.has(server)
