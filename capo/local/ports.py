"""Port numbers of a rig: free when chosen, kept while the rig's folder exists.

Webhook URLs with port numbers are stored in etcd, so a restart must find the same ports free. They are chosen below the
range that the kernel uses for outgoing connections, and a register in the user's cache folder keeps two rigs from
choosing the same, also while one of them is stopped.
"""

from __future__ import annotations

import json
import random
import socket
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from capo.local import layout
from capo.local.errors import RigError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

RANGE: Final = range(20000, 32000)
_REGISTER: Final = "ports.json"


def is_free(port: int) -> bool:
    """Return whether this port of the loopback address is free."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True


def choose(names: Iterable[str], *, taken: set[int], free: Callable[[int], bool] = is_free) -> dict[str, int]:
    """Return a port for each name, none of them taken, none twice."""
    chosen: dict[str, int] = {}
    candidates = iter(random.sample(RANGE, len(RANGE)))
    for name in names:
        port = next((port for port in candidates if port not in taken and free(port)), None)
        if port is None:
            raise RigError(f"no free port between {RANGE.start} and {RANGE.stop}")
        chosen[name] = port
    return chosen


def still_held(register: dict[str, str]) -> dict[str, str]:
    """Return the entries of the register whose rig still exists."""
    return {port: root for port, root in register.items() if layout.Layout(Path(root)).state.exists()}


def choose_spare(names: Iterable[str], *, cache: Path) -> dict[str, int]:
    """Return a free port for each name that no rig holds, not even one that is stopped; none of them is registered."""
    with _locked_register(cache) as register:
        return choose(names, taken={int(port) for port in register})


def allocate(rig: layout.Layout, names: Iterable[str], *, cache: Path) -> dict[str, int]:
    """Return the rig's ports by name; choose and store missing ones."""
    held: dict[str, int] = dict(rig.read_state().get("ports", {}))
    missing = [name for name in names if name not in held]
    if not missing:
        return held
    with _locked_register(cache) as register:
        chosen = choose(missing, taken={int(port) for port in register})
        held |= chosen
        rig.write_state(ports=held)
        register |= {str(port): str(rig.root) for port in chosen.values()}
        layout.write_file(cache / _REGISTER, json.dumps(register, indent=1))
    return held


@contextmanager
def _locked_register(cache: Path) -> Iterator[dict[str, str]]:
    """Yield the register's entries of existing rigs, and hold its lock."""
    cache.mkdir(parents=True, exist_ok=True)
    with layout.file_lock(cache / "ports.lock"):
        path = cache / _REGISTER
        yield still_held(json.loads(path.read_text(encoding="utf-8")) if path.exists() else {})
