"""The folder of a rig: one folder per rig."""

from __future__ import annotations

import fcntl
import json
import os
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@dataclass(frozen=True)
class Layout:
    """The folder of one rig.

    Attributes:
        root: absolute path of the folder.
    """

    root: Path

    @property
    def pki(self) -> Path:
        """Certificates and keys."""
        return self.root / "pki"

    @property
    def run(self) -> Path:
        """One record for each process."""
        return self.root / "run"

    @property
    def log(self) -> Path:
        """One log for each process, and the API server's audit log."""
        return self.root / "log"

    @property
    def etcd(self) -> Path:
        """The data of etcd."""
        return self.root / "etcd"

    @property
    def state(self) -> Path:
        """State that must survive a stop: port numbers, applied manifests."""
        return self.root / "state.json"

    @property
    def kubeconfig(self) -> Path:
        """Kubeconfig of the administrator."""
        return self.root / "kubeconfig"

    @property
    def kubeconfigs(self) -> Path:
        """Kubeconfigs of ServiceAccounts."""
        return self.root / "kubeconfigs"

    @property
    def audit_policy(self) -> Path:
        """The API server's audit policy."""
        return self.root / "audit-policy.yaml"

    def create(self) -> None:
        """Create the folders that processes write into, closed to other users: they hold keys."""
        self.root.mkdir(parents=True, exist_ok=True, mode=0o700)
        for folder in (self.run, self.log, self.kubeconfigs):
            folder.mkdir(exist_ok=True)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the folder's lock, so that one ``up`` or ``down`` at a time works on it."""
        self.root.mkdir(parents=True, exist_ok=True, mode=0o700)
        with file_lock(self.root / ".lock"):
            yield

    def read_state(self) -> dict[str, Any]:
        """Return what was stored; empty for a new folder."""
        if not self.state.exists():
            return {}
        stored: dict[str, Any] = json.loads(self.state.read_text(encoding="utf-8"))
        return stored

    def write_state(self, **changes: Any) -> None:
        """Store these values beside the existing ones."""
        write_file(self.state, json.dumps({**self.read_state(), **changes}, indent=1))


def write_file(path: Path, text: str, *, mode: int = 0o600) -> None:
    """Replace a file atomically, so that no reader sees half of it."""
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    with os.fdopen(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode), "w", encoding="utf-8") as out:
        out.write(text)
    partial.replace(path)


@contextmanager
def file_lock(path: Path) -> Iterator[None]:
    """Hold an exclusive lock on a file; the system releases it when the process ends."""
    with path.open("a", encoding="utf-8") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        yield
