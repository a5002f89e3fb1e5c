"""Cost of clouds for the manager: memory for each, and CPU time for one request.

python -m tools.bench.clouds --clouds 1000
"""

from __future__ import annotations

import argparse
import functools
import gc
import importlib
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from capo.openstack import identity
from capo.openstack.cloud import Cloud
from capo.openstack.clouds import Clouds
from capo.openstack.identity import Credentials

SERVICES: Final = {
    "network": "/networks",
    "compute": "/servers",
    "image": "/images",
    "volume": "/volumes",
    "load-balancer": "/lbaas/pools",
}
"""Resources that are read once of each cloud."""
REPEATED: Final = 300
MANAGER: Final = ("kopf", "kubernetes", "controllers")
"""Modules that the manager has imported before its first cloud."""


class Clock:
    """The clock of this machine."""

    def now(self) -> float:
        """Return monotonic seconds."""
        return time.monotonic()


def resident_kib() -> int:
    """Return the memory of this process."""
    gc.collect()
    line = next(each for each in Path("/proc/self/status").read_text().splitlines() if each.startswith("VmRSS"))
    return int(line.split()[1])


@contextmanager
def simulated() -> Iterator[Credentials]:
    """Run the simulator in a process of its own; yield credentials of a project."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "clouds.yaml")
        command = [sys.executable, "-m", "capo", "simulate", "--port", "0", "--clouds", str(file)]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            while not file.exists() or not file.read_text():
                time.sleep(0.1)
            yield identity.parse(file.read_bytes(), "sim")
        finally:
            process.terminate()
            process.wait()


def several(credentials: Credentials, count: int) -> Iterator[Credentials]:
    """Yield different credentials of the same project."""
    for number in range(count):
        entry = json.dumps({**credentials.entry, "number": number})
        yield Credentials(entry, credentials.cacert, credentials.region)


def computing_us(call: Callable[[], object]) -> float:
    """Return the CPU time of a call in microseconds, the minimum of several."""

    def once() -> float:
        began_s = time.process_time()
        for _ in range(REPEATED):
            call()
        return (time.process_time() - began_s) / REPEATED * 1e6

    return min(once() for _ in range(5))


def use(cloud: Cloud) -> None:
    """Send one read to each service."""
    for service, path in SERVICES.items():
        cloud.get(service, path)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m tools.bench.clouds", description=__doc__)
    parser.add_argument("--clouds", type=int, default=1000, help="how many clouds at once")
    wanted = parser.parse_args()
    for name in MANAGER:
        importlib.import_module(name)
    with simulated() as credentials:
        clouds = Clouds(Clock(), lambda _key: None, max_idle=wanted.clouds + 20)
        before = resident_kib()
        began_s = time.process_time()
        first = clouds.get(credentials)
        first_s = time.process_time() - began_s
        use(first)
        for each in several(credentials, 10):  # to exclude memory that is allocated only once
            use(clouds.get(each))
        loaded = resident_kib()
        kept = [clouds.get(each) for each in several(credentials, wanted.clouds + 10)][10:]
        made = resident_kib()
        for cloud in kept:
            use(cloud)
        used = resident_kib()
        print(f"first cloud: {first_s:.2f} s of computing, {(loaded - before) / 1024:.1f} MiB with what it imports")
        size_kib, in_use = ((kib - loaded) / len(kept) for kib in (made, used))
        print(f"{wanted.clouds} clouds: {size_kib:.1f} KiB for each, {in_use:.1f} KiB after it was used")
        for service, path in SERVICES.items():
            request = functools.partial(first.get, service, path)
            print(f"{service}: {computing_us(request):.0f} us of computing a request")
        clouds.close()


if __name__ == "__main__":
    main()
