"""Fixtures for tests that need a real API server: loaded as a pytest plugin by the project's ``conftest.py``.

Rigs of a test session are in the user's cache folder under the session's own pid. A session that was killed leaves its
rig behind; the next one stops and removes it.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest
import requests

from capo.local import layout, ports
from capo.local.binaries import Binaries, cache_folder
from capo.local.errors import NotReadyError, ProcessDiedError
from capo.local.modules import MANIFESTS
from capo.local.processes import started_at
from capo.local.rig import Rig

if TYPE_CHECKING:
    from collections.abc import Iterator

    from capo.local.rig import Part


_TIMEOUT_S: Final = 60


@pytest.fixture(scope="session")
def rigs_folder() -> Path:
    """Return the folder of the tests' rigs, after removing those of dead sessions."""
    folder = cache_folder() / "rigs"
    folder.mkdir(parents=True, exist_ok=True)
    with layout.file_lock(folder / ".lock"):
        for abandoned in folder.iterdir():
            if abandoned.is_dir() and not _owner_is_alive(abandoned.name):
                Rig(abandoned).down(wipe=True)
    return folder


@pytest.fixture(scope="session")
def api_server(rigs_folder: Path) -> Iterator[Rig]:
    """Yield a rig of etcd and kube-apiserver alone: nothing collects garbage or finishes namespaces."""
    with running_rig(rigs_folder, "api", "api") as made:
        yield made


@pytest.fixture(scope="session")
def rig(rigs_folder: Path) -> Iterator[Rig]:
    """Yield a whole rig, with Cluster API's managers and the substitutes for workload clusters running."""
    with running_rig(rigs_folder, "all") as made:
        yield made


def core_definitions() -> dict[str, dict[str, Any]]:
    """Return Cluster API's own definitions of its core kinds, by name, such as ``machines.cluster.x-k8s.io``."""
    path = Binaries.from_environment().require([MANIFESTS], say=print)[MANIFESTS]
    found = json.loads(path.read_text(encoding="utf-8"))["core"]
    return {each["metadata"]["name"]: each for each in found if each["kind"] == "CustomResourceDefinition"}


def session_folder(rigs: Path, purpose: str) -> Path:
    """Return the folder of a rig of this process; a later session removes it if this one does not."""
    return rigs / f"{purpose}-{_owner(os.getpid())}"


@contextlib.contextmanager
def running_rig(rigs: Path, purpose: str, part: Part = "all") -> Iterator[Rig]:
    """Yield a rig of this process, started; remove it with all its data at the end.

    Args:
        rigs: parent of its folder.
        purpose: beginning of the folder's name, unique in this process.
    """
    made = Rig(session_folder(rigs, purpose), say=print)
    try:
        try:
            made.up(part)
        except (NotReadyError, ProcessDiedError) as error:
            print(f"{error}\nstarting it once more: else all tests of this process fail")
            made.down(wipe=True)
            made.up(part)
        yield made
    finally:
        made.down(wipe=True)


def spare_ports(*names: str) -> dict[str, int]:
    """Return a free port for each name that no rig holds: some of a rig's ports are free most of the time."""
    return ports.choose_spare(names, cache=cache_folder())


def in_etcd(rig: Rig, resource: str, namespace: str, name: str) -> dict[str, Any]:
    """Return a custom resource as etcd holds it, in the version in which it was last written.

    Args:
        rig: whose etcd is read.
        resource: group and plural, such as ``infrastructure.cluster.x-k8s.io/openstackclusters``.
        namespace: of the object.
        name: of the object.
    """
    key = base64.b64encode(f"/registry/{resource}/{namespace}/{name}".encode()).decode()
    answer = requests.post(f"http://127.0.0.1:{rig.ports['etcd']}/v3/kv/range", json={"key": key}, timeout=_TIMEOUT_S)
    (found,) = answer.json()["kvs"]
    return dict(json.loads(base64.b64decode(found["value"])))


def _owner(pid: int) -> str:
    _, _, ticks = (started_at(pid) or "").rpartition("/")
    return f"{pid}-{ticks}"


def _owner_is_alive(folder: str) -> bool:
    _, pid, _ = folder.rsplit("-", 2)
    return folder.endswith(f"-{_owner(int(pid))}")
