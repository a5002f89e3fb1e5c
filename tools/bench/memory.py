"""What a machine takes in the manager's memory: `python -m tools.bench.memory 1000 5000 10000`.

Without API server and cloud: each size is a process of its own, which feeds the store with watched objects as an API
server sends them, and the shared lists with servers and ports as Nova and Neutron list them (`memory_objects.json`).
Resident memory counts all that is left behind, what is held counts the objects that are reachable.
"""

from __future__ import annotations

import argparse
import functools
import gc
import json
import os
import resource
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any, Final

from capo.engine.resync import Resync
from capo.engine.store import Store
from capo.json_types import Body, Json
from capo.kube.client import Kube
from capo.kube.kinds import MACHINE, OPENSTACK_MACHINE, OPENSTACK_SERVER, Key, Kind
from capo.openstack.kinds import PORT, SERVER
from capo.openstack.list_poller import ListPoller
from capo.openstack.pages import Listing
from tools.bench.measure import resident_mib

OBJECTS: Final = Path(__file__).with_name("memory_objects.json")
KINDS: Final = (MACHINE, OPENSTACK_MACHINE, OPENSTACK_SERVER)
RESOURCES: Final = (SERVER, PORT)
FEW: Final = 100
"""Machines with which a process is compared: what it takes for any number of them is not theirs."""
PAGE: Final = 500
PER_CLUSTER: Final = 10
COLUMNS: Final = ("Machines", "Resident MiB", "at most", "KiB a machine beyond the first hundred", "of them held KiB")


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("machines", type=int, nargs="*", default=[1000, 5000, 10_000])
    parser.add_argument("--alone", action="store_true", help="measure one size in this process, print it as JSON")
    wanted = parser.parse_args(arguments)
    if wanted.alone:
        print(json.dumps(measured(wanted.machines[0])))
        return 0
    few = _in_a_process(FEW)
    print(f"| {' | '.join(COLUMNS)} |\n| {' | '.join('---' for _ in COLUMNS)} |")
    for count in wanted.machines:
        print(row(count, _in_a_process(count), few), flush=True)
    return 0


def row(count: int, found: Mapping[str, float], few: Mapping[str, float]) -> str:
    """Return one line of the table; pure."""
    each = {name: (found[name] - few[name]) * 1024 / (count - FEW) for name in found}
    sizes = f"{found['resident_mib']:.0f} | {found['peak_mib']:.0f}"
    return f"| {count} | {sizes} | {each['resident_mib']:.1f} | {each['held_mib']:.1f} |"


def _in_a_process(count: int) -> dict[str, float]:
    argv = [sys.executable, "-m", "tools.bench.memory", "--alone", str(count)]
    found: dict[str, float] = json.loads(subprocess.run(argv, check=True, capture_output=True).stdout)
    return found


def measured(count: int) -> dict[str, float]:
    """Return what a process with so many machines takes."""
    kept = filled(count)
    gc.collect()
    peak_mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"resident_mib": resident_mib(os.getpid()), "peak_mib": peak_mib, "held_mib": held(kept) / 2**20}


def filled(count: int) -> tuple[Store, ListPoller]:
    """Return store and lists with so many machines, filled as a cold manager fills them."""
    store, objects = Store(), Objects(count)
    Resync(Lists(objects), store, KINDS, on_restored=lambda: None).run()
    for kind in KINDS:
        # The watches list everything once more.
        for text in objects.texts(kind.kind):
            store.apply(kind, None, json.loads(text))
    poller = ListPoller(objects, lambda: 1.0, lambda _key: None)
    for values in objects.machines():
        _register(poller, values)
    for what in RESOURCES:
        poller.demand(what.name, "nobody")
        poller.run(what.name)
    return store, poller


def _register(poller: ListPoller, values: Mapping[str, str]) -> None:
    """Register a machine's owner as its reconcile does."""
    key = Key(OPENSTACK_SERVER, "bench-fleet", values["@name"])
    poller.owners.register(values["@server-owner"], key, uid=values["@server-uid"])
    poller.claim(SERVER.name, values["@server-id"], key)
    poller.claim(PORT.name, values["@port-id"], key)
    poller.track(SERVER.name, key)


def held(*roots: object) -> int:
    """Return the bytes of all objects that are reachable, but classes, functions and modules."""
    seen: set[int] = set()
    waiting: list[Any] = list(roots)
    total = 0
    while waiting:
        found = waiting.pop()
        if id(found) in seen or isinstance(found, type | FunctionType | ModuleType):
            continue
        seen.add(id(found))
        total += sys.getsizeof(found)
        waiting += gc.get_referents(found)
    return total


class Objects:
    """The objects of a number of machines, as the texts that services send; a source of lists."""

    project_id = "project"

    def __init__(self, count: int) -> None:
        self._count = count

    def machines(self) -> Iterator[dict[str, str]]:
        """Yield what differs from machine to machine, by placeholder."""
        return (placeholders(number) for number in range(self._count))

    def texts(self, what: str) -> Iterator[str]:
        """Yield the JSON of an object for each machine."""
        template = _templates()[what]
        return (_replaced(template, values) for values in self.machines())

    def pages(self, what: str) -> Iterator[str]:
        """Yield lists of these."""
        page: list[str] = []
        for text in self.texts(what):
            page.append(text)
            if len(page) == PAGE:
                yield f"[{','.join(page)}]"
                page = []
        yield f"[{','.join(page)}]"

    def listing(
        self,
        service: str,
        path: str,
        key: str,
        *,
        params: Mapping[str, Any] | None = None,
        microversion: str | None = None,
        keep: Callable[[Body], Body] = lambda body: body,
    ) -> Listing:
        """Return a list of servers or ports."""
        (kind,) = (each for each in RESOURCES if each.key == key)
        return Listing([keep(item) for page in self.pages(kind.name) for item in json.loads(page)], 0.0)


class Lists(Kube):
    """An API server that has these objects; serves lists alone."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects

    def _pages(
        self, kind: Kind, namespace: str | None, selectors: Mapping[str, str | None], limit: int
    ) -> Iterator[Json]:
        version = str(placeholders(10**6)["@version"])
        return (
            {"metadata": {"resourceVersion": version}, "items": json.loads(page)}
            for page in self._objects.pages(kind.kind)
        )


@functools.lru_cache(maxsize=1)
def _templates() -> dict[str, str]:
    objects: Json = json.loads(OBJECTS.read_text(encoding="utf-8"))
    return {name: json.dumps(each) for name, each in objects.items()}


def _replaced(template: str, values: Mapping[str, str]) -> str:
    for name, value in values.items():
        template = template.replace(name, value)
    return template


def placeholders(number: int) -> dict[str, str]:
    """Return the values of one machine; pure. A placeholder that begins with another one comes first."""
    ids = ("machine-uid", "infra-uid", "server-uid", "server-id", "port-id", "boot-id", "system-uuid", "machine-id")
    cluster = f"cluster-{number // PER_CLUSTER:04d}"
    return {
        **{f"@{name}": str(uuid.uuid5(uuid.NAMESPACE_URL, f"{name} {number}")) for name in ids},
        **{f"@{name}": uuid.uuid5(uuid.NAMESPACE_URL, name).hex for name in ("project", "user")},
        "@set-uid": str(uuid.uuid5(uuid.NAMESPACE_URL, cluster)),
        "@infra-owner": f"i{number:012d}.0123abcd",
        "@server-owner": f"s{number:012d}",
        "@address": f"10.9.{number // 250}.{number % 250}",
        "@mac": f"fa:16:3e:00:{number // 256:02x}:{number % 256:02x}",
        "@host": f"{number % 100:056x}",
        "@version": str(1000 + number),
        "@time": f"2026-11-{1 + number // 3600:02d}T{number // 60 % 24:02d}:{number // 15 % 60:02d}:{number % 60:02d}Z",
        "@cluster": cluster,
        "@name": f"{cluster}-md-0-{number:05d}",
    }


if __name__ == "__main__":
    sys.exit(main())
