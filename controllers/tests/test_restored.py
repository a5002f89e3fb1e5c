"""Controllers' in-memory records of their objects after the API server was restored from a backup."""

from __future__ import annotations

from typing import Any

from capo import names
from capo.engine.context import Dependencies
from capo.engine.store import Store
from capo.engine.tests.fake_kube import FakeClock, FakeKube
from controllers import all_controllers


class Kube(FakeKube):
    fence: Any = None


def test_a_reset_ends_the_exemption_of_what_this_process_created() -> None:
    deps = Dependencies(Kube(), Store(), None, FakeClock())  # type: ignore[arg-type]
    all_controllers(deps, lambda _key: None)
    server = {"metadata": {"uid": "u", "annotations": {names.OWNER_ID_ANNOTATION: "aaaaaaaaaaaaa.check"}}}
    deps.minted.add(server)
    assert deps.minted.has(server)

    deps.store.begin_reset()

    assert not deps.minted.has(server)
