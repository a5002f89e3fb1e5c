"""Controllers' in-memory records of objects after a restore of the API server, or after another manager had them."""

from __future__ import annotations

from typing import Any

from capo import names
from capo.engine.context import Dependencies
from capo.engine.store import Store
from capo.engine.tests.builders import an_object
from capo.engine.tests.fake_kube import FakeClock, FakeKube
from capo.kube.kinds import OPENSTACK_SERVER, Key
from capo.openstack.cloud import Cloud
from capo.settings import Settings
from controllers import all_controllers


class Kube(FakeKube):
    fence: Any = None


class RecordedClouds:
    """Records which objects were given to, or taken from this manager."""

    def __init__(self) -> None:
        self.distrusted: list[str] = []

    def distrust(self, window_s: float) -> None: ...

    def in_use(self) -> list[Cloud]:
        return []

    def distrust_object(self, key: Key) -> None:
        self.distrusted.append(key.name)


def test_a_reset_ends_the_exemption_of_what_this_process_created() -> None:
    deps = Dependencies(Kube(), Store(), None, FakeClock())  # type: ignore[arg-type]
    all_controllers(deps, lambda _key: None)
    server = {"metadata": {"uid": "u", "annotations": {names.OWNER_ID_ANNOTATION: "aaaaaaaaaaaaa.check"}}}
    deps.minted.add(server)
    assert deps.minted.has(server)

    deps.store.begin_reset()

    assert not deps.minted.has(server)


def test_an_object_whose_watch_filter_changes_to_or_from_ours_is_seen_anew_in_the_cloud() -> None:
    deps = Dependencies(Kube(), Store(), None, FakeClock(), Settings(watch_filter="here"))  # type: ignore[arg-type]
    clouds = RecordedClouds()
    all_controllers(deps, lambda _key: None, clouds)  # type: ignore[arg-type]
    counts = []

    for version, value in enumerate(("here", "here", "elsewhere", "elsewhere", "here"), start=1):
        labels = {names.WATCH_FILTER_LABEL: value}
        deps.store.apply(OPENSTACK_SERVER, "MODIFIED", an_object("one", uid="u", version=version, labels=labels))
        counts.append(len(clouds.distrusted))

    assert counts == [0, 0, 1, 1, 2]
