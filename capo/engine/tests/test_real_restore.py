"""A running manager while the etcd of a real kube-apiserver is restored from a backup."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from capo.crdgen import files
from capo.engine import manager
from capo.engine.manager import Manager
from capo.engine.store import Store
from capo.engine.tests.builders import FakeController, eventually
from capo.engine.tests.test_real_apiserver import SPEC
from capo.kube import config
from capo.kube.client import Kube
from capo.kube.kinds import NAMESPACE, OPENSTACK_SERVER
from capo.local.rig import Rig
from capo.local.testing import running_rig
from capo.settings import Settings

pytestmark = pytest.mark.integration

PLACE = "restore-test"


class Etcd:
    """The etcd of a rig of its own, which tests can restore."""

    def __init__(self, rig: Rig) -> None:
        self.rig, self._backup = rig, Path(f"{rig.layout.etcd}-backup")

    def back_up(self) -> None:
        self._stop()
        shutil.copytree(self.rig.layout.etcd, self._backup)
        self.rig.up("api")

    def restore(self) -> None:
        self._stop()
        shutil.rmtree(self.rig.layout.etcd)
        shutil.copytree(self._backup, self.rig.layout.etcd)
        self.rig.up("api")

    def _stop(self) -> None:
        for name in ("kube-apiserver", "etcd"):
            self.rig.stop(name, gently=False)


@pytest.fixture
def etcd(rigs_folder: Path) -> Iterator[Etcd]:
    with running_rig(rigs_folder, "restored", "api") as rig:
        rig.install_crds(files.load())
        yield Etcd(rig)


@pytest.fixture
def kube(etcd: Etcd) -> Kube:
    return Kube(config.from_kubeconfig(str(etcd.rig.kubeconfig)))


def write(kube: Kube, name: str, flavor: str) -> Any:
    return kube.apply(
        OPENSTACK_SERVER, {"metadata": {"name": name, "namespace": PLACE}, "spec": {**SPEC, "flavor": flavor}}
    )


def flavors(store: Store) -> dict[str, str]:
    return {obj["metadata"]["name"]: obj["spec"]["flavor"] for obj in store.list(OPENSTACK_SERVER, PLACE)}


def played(kube: Kube, scenario: Callable[[Store], None]) -> None:
    """Run a manager while a scenario runs."""
    settings = Settings(health_address="127.0.0.1:0", diagnostics_address="0")
    running = Manager(settings, kube, lambda _tools, _wake: [FakeController()])

    async def body() -> None:
        task = asyncio.create_task(running.run())
        try:
            await asyncio.to_thread(scenario, running._store)
        finally:
            running.stop()
            await task

    try:
        asyncio.run(body())
    finally:
        if running._watcher:
            running._watcher.stop(60)


def test_a_manager_believes_what_a_restored_etcd_holds_within_seconds(etcd: Etcd, kube: Kube) -> None:
    kube.apply(NAMESPACE, {"metadata": {"name": PLACE}})
    write(kube, "s", "m1")
    write(kube, "gone", "m1")
    etcd.back_up()
    resets: list[str] = []

    def scenario(store: Store) -> None:
        store.on_reset(lambda: resets.append("reset"))
        eventually(lambda: flavors(store) == {"s": "m1", "gone": "m1"})
        for number in range(20):
            write(kube, "s", f"m{number}")
        write(kube, "late", "m1")
        kube.delete(OPENSTACK_SERVER, PLACE, "gone")
        eventually(lambda: flavors(store) == {"s": "m19", "late": "m1"})
        etcd.rig.stop("kube-apiserver")
        etcd.rig.up("api")
        write(kube, "s", "m20")
        eventually(lambda: flavors(store) == {"s": "m20", "late": "m1"})
        assert resets == []

        etcd.restore()

        eventually(lambda: flavors(store) == {"s": "m1", "gone": "m1"}, 60)
        assert resets == ["reset"]
        write(kube, "s", "edited")
        eventually(lambda: flavors(store) == {"s": "edited", "gone": "m1"}, 4 * manager.GAP_S + 10)
        assert resets == ["reset"]

    played(kube, scenario)
