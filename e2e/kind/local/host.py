"""This machine: Debian packages, podman's settings, and the kernel's parameters that a kubelet changes."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from capo.local.errors import RigError

PACKAGES: Final[dict[str, str]] = {
    "podman": "podman",
    "runc": "runc",
    "netavark": "/usr/lib/podman/netavark",
    "aardvark-dns": "/usr/lib/podman/aardvark-dns",
    "iptables": "iptables",
    "mmdebstrap": "mmdebstrap",
}
"""Debian packages, and a program of each."""
SYSCTLS: Final = (
    "vm/overcommit_memory",
    "vm/panic_on_oom",
    "kernel/panic",
    "kernel/panic_on_oops",
    "kernel/keys/root_maxkeys",
    "kernel/keys/root_maxbytes",
)
"""What a kubelet changes, for the whole machine."""
MODULES: Final = Path("/lib/modules")
_PROC: Final = Path("/proc/sys")
_PATHS: Final = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"


def missing_packages() -> list[str]:
    """Return the packages whose program is not installed."""
    return [package for package, program in PACKAGES.items() if shutil.which(program, path=_PATHS) is None]


def prepare(*, say: Callable[[str], None] = print) -> None:
    """Install what is missing.

    Raises:
        RigError: this is not root, or not Debian.
    """
    if os.geteuid() != 0:
        raise RigError("a node from Debian packages needs root: kind's node is a privileged container")
    # kind mounts it, and podman does not create what a machine without kernel modules lacks.
    MODULES.mkdir(exist_ok=True)
    missing = missing_packages()
    if not missing:
        return
    if shutil.which("apt-get") is None:
        raise RigError(f"install {', '.join(missing)}: this is no Debian")
    say(f"installing {', '.join(missing)}")
    quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for command in (["update", "-qq"], ["install", "-qq", "--yes", "--no-install-recommends", *missing]):
        subprocess.run(["apt-get", *command], check=True, env=quiet, stdout=subprocess.DEVNULL)


def environment() -> dict[str, str]:
    """Return the variables with which podman and kind run here."""
    return {"CONTAINERS_CONF": str(Path(__file__).parent / "containers.conf"), "KIND_EXPERIMENTAL_PROVIDER": "podman"}


@contextmanager
def kernel_kept(store: Path) -> Iterator[None]:
    """Put the kernel's parameters back at the end; the store survives a run that was killed."""
    if not store.exists():
        paths = [name for name in SYSCTLS if (_PROC / name).exists()]
        store.write_text("".join(f"{name} {(_PROC / name).read_text().strip()}\n" for name in paths))
    try:
        yield
    finally:
        restore(store)


def restore(store: Path) -> None:
    """Write the stored parameters, where they differ, and delete the store."""
    for line in store.read_text().splitlines() if store.exists() else ():
        name, value = line.split(" ", 1)
        if (_PROC / name).read_text().strip() != value:
            (_PROC / name).write_text(value)
    store.unlink(missing_ok=True)
