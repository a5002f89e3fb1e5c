"""The management cluster: its clients, and the logs and restarts of its managers."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from capo import components
from capo.components import deployment
from capo.local.binaries import Binaries

LIMIT: Final = "600s"
DEPLOYMENT: Final = f"deployment/{deployment.NAME}"
IN_NAMESPACE: Final = f"--namespace={components.NAMESPACE}"
_SELECTOR: Final = ",".join(f"{name}={value}" for name, value in deployment.POD_LABELS.items())
_ERROR: Final = re.compile(r"[EF]\d{4} |Traceback|Watches failed")
"""Beginnings of log lines that an operator would investigate, and the log line of a failed watch."""


@dataclass
class Management:
    """The management cluster.

    Args:
        kind: cluster of pytest-kind.
        folder: configuration and repository of clusterctl, logs of the managers.
    """

    kind: Any
    folder: Path
    _followers: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    _restarts: dict[str, int] = field(default_factory=dict)

    def kubectl(self, *arguments: str, **options: Any) -> str:
        """Return what kubectl prints."""
        return str(self.kind.kubectl(*arguments, **options))

    def get(self, *arguments: str) -> Any:
        """Return an object or a list."""
        return json.loads(self.kubectl("get", *arguments, "--output=json"))

    @contextmanager
    def running(self, *arguments: str, log: Path | None = None) -> Iterator[None]:
        """Run kubectl in the background of the block."""
        process = self._start(arguments, log)
        try:
            yield
        finally:
            process.terminate()
            process.wait()

    def _start(self, arguments: tuple[str, ...], log: Path | None) -> subprocess.Popen[bytes]:
        environment = {**os.environ, "KUBECONFIG": str(self.kind.kubeconfig_path)}
        with (log or Path(os.devnull)).open("wb") as output:
            return subprocess.Popen([str(self.kind.kubectl_path), *arguments], env=environment, stdout=output)

    def load(self, archive: Path) -> None:
        """Load the images of an archive into the node."""
        command = [str(self.kind.kind_path), "load", "image-archive", str(archive), f"--name={self.kind.name}"]
        subprocess.run(command, check=True)

    def clusterctl(self, *arguments: str, **variables: str) -> str:
        """Return what the real clusterctl prints."""
        program = Binaries.from_environment().require(["clusterctl"], say=print)["clusterctl"]
        where = (f"--config={self.folder / 'clusterctl.yaml'}", f"--kubeconfig={self.kind.kubeconfig_path}")
        done = subprocess.run(
            [str(program), *arguments, *where],
            env={**os.environ, **variables},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def pods(self) -> list[Any]:
        """Return the manager's pods."""
        listed: list[Any] = self.get("pods", IN_NAMESPACE, f"--selector={_SELECTOR}")["items"]
        return listed

    def follow_logs(self) -> None:
        """Write the log of every existing pod, from its beginning to its end: the log is deleted with its pod."""
        for pod in self.pods():
            name = pod["metadata"]["name"]
            for status in pod["status"].get("containerStatuses", ()):
                self._restarts[name] = max(self._restarts.get(name, 0), status["restartCount"])
            if name not in self._followers:
                command = ("logs", "--follow", name, IN_NAMESPACE, "--container=manager")
                self._followers[name] = self._start(command, self._log(name))

    def _log(self, pod: str) -> Path:
        return self.folder / f"{pod}.log"

    @property
    def followed(self) -> int:
        """Return how many pods of the manager there were."""
        return len(self._followers)

    def faults(self) -> list[str]:
        """Return restarts, and error lines of every manager's log."""
        self.follow_logs()
        found = [f"{name} restarted {count} times" for name, count in self._restarts.items() if count]
        for name in self._followers:
            text = self._log(name).read_text()
            assert text, f"nothing was read of the log of {name}: the test proves nothing"
            found += [f"{name}: {line}" for line in text.splitlines() if _ERROR.search(line)]
        return found

    def stop(self) -> None:
        """Stop following the logs."""
        for process in self._followers.values():
            process.terminate()
            process.wait()
