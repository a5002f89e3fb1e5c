"""Cost of a credential for each cluster, beside one for all: `python -m tools.bench.credentials`.

Objects of a thousand clusters, with the OpenStack layer of the manager in this process and the simulator in another.
Time is virtual: ten minutes in which nothing happens take the time of their requests. The result is stored in
``docs/benchmarks/credentials.md``.
"""

from __future__ import annotations

import argparse
import importlib
import json
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from subprocess import DEVNULL, PIPE, Popen, run
from typing import Any, Final

import requests
import yaml

from capo.errors import NotYetObserved
from capo.ledger import Ledger
from capo.openstack import identity
from capo.openstack.cloud import Cloud
from capo.openstack.cloud_view import CloudView
from capo.openstack.identity import Credentials
from capo.openstack.list_poller import ListPoller
from capo.openstack.poller_pool import Site
from capo.openstack.shared_state import SharedState, Unshared
from capo.openstack.token_scope import TokenScope
from environments.in_memory import ManualClouds
from tools.bench.clouds import MANAGER, resident_kib
from tools.bench.environment import Client, logged_in
from tools.bench.report import table

KINDS: Final = ("network", "subnet", "router", "security_group", "server", "port")
"""What the objects of a cluster with machines look for."""
RESYNC_S: Final = 600.0
STEP_S: Final = 5.0
"""Pause between two looks for lists that are due."""
THREADS: Final = 10
"""Reconciles at a time for one cloud: ``--cloud-concurrency``."""
COLUMNS: Final = (
    "Clusters",
    "Projects",
    "Credentials",
    "Lists shared",
    "Requests at the start",
    "logins",
    "Requests in ten minutes",
    "of Keystone",
    "Tokens",
    "Pollers",
    "Sockets",
    "MiB",
)


class VirtualClock:
    """A clock that the benchmark advances."""

    def __init__(self) -> None:
        self.now_s = time.time()

    def now(self) -> float:
        """Return steady seconds."""
        return self.now_s


class BenchmarkClouds(ManualClouds):
    """Clouds whose lists the benchmark runs.

    Args:
        is_sharing: whether credentials that see the same share lists.
    """

    is_sharing = True

    def join(self, cloud: Cloud, scope: TokenScope) -> SharedState:
        """Return the state of a scope, or one for this cloud alone."""
        if self.is_sharing:
            return super().join(cloud, scope)
        state = Unshared(self.clock.now, self.wake).join(cloud, scope)
        self._observe(state.poller, Site())
        return state


@dataclass(frozen=True)
class Row:
    """One measurement."""

    clusters: int
    projects: int
    credentials: int
    is_sharing: bool
    start: int
    logins: int
    rest: int
    keystone: int
    tokens: int
    pollers: int
    sockets: int
    mib: float

    def cells(self) -> list[str]:
        """Return the cells of the table."""
        values = asdict(self)
        values["is_sharing"] = "yes" if self.is_sharing else "no"
        values["mib"] = f"{self.mib:.1f}"
        return [str(value) for value in values.values()]


class Tenants:
    """Projects with a user each in a simulated cloud, and credentials of these."""

    def __init__(self, url: str, entries: Any, projects: int) -> None:
        self._url, self._entry = url, entries["sim"]
        with logged_in(entries["sim-admin"]["auth"]) as session:
            admin = Client(session, url)
            roles = {role["name"]: role["id"] for role in admin.ask("GET", "/identity/v3/roles")["roles"]}
            names = [f"tenant-{number:04d}" for number in range(projects)]
            self._auths = [admin.tenant(name, roles["member"], self._entry) for name in names]

    def passwords(self) -> list[Credentials]:
        """Return one set of credentials for each project."""
        return [self._parsed(auth) for auth in self._auths]

    def application_credentials(self, count: int) -> list[Credentials]:
        """Return so many, spread over the projects."""
        projects = len(self._auths)
        shares = [(count + projects - 1 - number) // projects for number in range(projects)]
        return [each for auth, share in zip(self._auths, shares, strict=True) for each in self._of_project(auth, share)]

    def _of_project(self, auth: Any, count: int) -> Iterator[Credentials]:
        with logged_in(auth) as session:
            member = Client(session, self._url)
            path = member.application_credentials_path()
            for number in range(count):
                yield self._parsed(member.application_credential(path, f"cluster-{number}", auth["auth_url"]))

    def _parsed(self, auth: Any) -> Credentials:
        entry = {"auth": auth, "region_name": self._entry["region_name"]}
        return identity.parse(yaml.safe_dump({"clouds": {"c": entry}}).encode(), "c")


class Fleet:
    """Clusters with one object each that looks for all kinds, and whose servers are tracked.

    Args:
        credentials: of each cluster; one may be that of several.
    """

    def __init__(self, credentials: Sequence[Credentials], *, is_sharing: bool) -> None:
        self.clock = VirtualClock()
        self.credentials = credentials
        self.clouds = BenchmarkClouds(self.clock, lambda _key: None, max_idle=10)
        self.clouds.is_sharing = is_sharing

    def start(self) -> None:
        """Reconcile each object until it has found what it looks for."""
        with ThreadPoolExecutor(THREADS) as threads:
            waiting = set(range(len(self.credentials)))
            while waiting:
                waiting -= {number for number in threads.map(self._reconcile, waiting) if number >= 0}
                self.clock.now_s += 0.2
                list(threads.map(self._run, self.clouds.pollers))

    def rest(self, seconds: float) -> None:
        """Advance the clock: each object is reconciled once in a resync, and lists run when they are due."""
        order = list(range(len(self.credentials)))
        random.Random(1).shuffle(order)
        for step in range(round(seconds / STEP_S)):
            first, last = (round(at * STEP_S * len(order) / RESYNC_S) for at in (step, step + 1))
            self.clock.now_s += STEP_S
            for number in order[first:last]:
                self._reconcile(number)
            for poller in self.clouds.pollers:
                self._run(poller)

    def _reconcile(self, number: int) -> int:
        """Reconcile an object; return its number if it has found everything, else -1."""
        cloud = self.clouds.get(self.credentials[number])
        cloud.confirm()
        view = CloudView(cloud, Ledger(), owner_id=f"{number:013d}", key=number, clock=self.clock)
        missing = 0
        for kind in KINDS:
            try:
                view.find(kind, kind)
            except NotYetObserved:
                missing += 1
        cloud.poller.track("server", number)
        return -1 if missing else number

    @staticmethod
    def _run(poller: ListPoller) -> None:
        while kinds := poller.due():
            for kind in kinds:
                poller.run(kind)


@contextmanager
def simulated() -> Iterator[tuple[str, Any]]:
    """Run the simulator in a process of its own; yield its URL and the entries of its clouds.yaml."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "clouds.yaml")
        command = [sys.executable, "-m", "capo", "simulate", "--port", "0", "--clouds", str(file)]
        process = Popen(command, stdout=DEVNULL, stderr=DEVNULL)
        try:
            while not file.exists() or not file.read_text():
                time.sleep(0.1)
            entries = yaml.safe_load(file.read_bytes())["clouds"]
            yield entries["sim"]["auth"]["auth_url"].removesuffix("/identity/v3"), entries
        finally:
            process.terminate()
            process.wait()


def counts(url: str) -> Counter[str]:
    """Return the requests that reached the simulator, by service and method, and set its counters to zero."""
    found: Counter[str] = Counter()
    for row in requests.get(f"{url}/_simulator/counts", timeout=60).json()["counts"]:
        found[f"{row['service']} {row['method']}"] += row["count"]
    requests.post(f"{url}/_simulator/reset", timeout=60)
    return found


def sockets() -> int:
    """Return how many sockets this process has open."""
    folder = Path("/proc/self/fd")
    return sum(each.is_symlink() and str(each.readlink()).startswith("socket:") for each in folder.iterdir())


def measured(clusters: int, projects: int, *, each: bool, is_sharing: bool) -> Row:
    """Measure one combination in this process, which has measured none before."""
    with simulated() as (url, entries):
        tenants = Tenants(url, entries, projects)
        own = tenants.application_credentials(clusters) if each else tenants.passwords()
        fleet = Fleet([own[number % len(own)] for number in range(clusters)], is_sharing=is_sharing)
        fleet.clouds.get(own[0]).authenticate()  # the SDK is loaded
        counts(url)
        before_kib = resident_kib()
        fleet.start()
        started = counts(url)
        fleet.clock.now_s += RESYNC_S
        fleet.rest(RESYNC_S)  # the first one reads when credentials expire
        counts(url)
        fleet.rest(RESYNC_S)
        rested = counts(url)
        return Row(
            clusters,
            projects,
            len(own),
            is_sharing,
            started.total(),
            started["identity POST"],
            rested.total(),
            sum(count for name, count in rested.items() if name.startswith("identity")),
            sum(cloud.known_project_id is not None for cloud in fleet.clouds._clouds.values()),
            len(fleet.clouds.pollers),
            sockets(),
            (resident_kib() - before_kib) / 1024,
        )


def markdown(rows: Sequence[Row]) -> str:
    """Return the table."""
    return table(COLUMNS, (row.cells() for row in rows)) + "\n"


def main() -> None:
    """Measure all combinations, each in a process of its own; print and write.

    Without sharing everything is proportional to the credentials, and is measured with a tenth of them.
    """
    parser = argparse.ArgumentParser(prog="python -m tools.bench.credentials", description=__doc__)
    parser.add_argument("--clusters", type=int, default=1000)
    parser.add_argument("--projects", type=int, nargs="+", default=[1, 300])
    parser.add_argument("--out", type=Path, default=Path("docs/benchmarks"), help="folder for credentials.json and .md")
    parser.add_argument("--alone", type=int, nargs=3, metavar="N", help="measure one: projects, credentials, sharing")
    wanted = parser.parse_args()
    if wanted.alone:
        for name in MANAGER:
            importlib.import_module(name)
        projects, each, is_sharing = wanted.alone
        row = measured(wanted.clusters, projects, each=bool(each), is_sharing=bool(is_sharing))
        print(json.dumps(asdict(row)))
        return
    rows = [_in_a_process(wanted.clusters, projects, each, 1) for projects in wanted.projects for each in (0, 1)]
    rows.append(_in_a_process(wanted.clusters // 10, 1, 1, 0))
    (wanted.out / "credentials.json").write_text(json.dumps([asdict(row) for row in rows], indent=2) + "\n")
    (wanted.out / "credentials.md").write_text(markdown(rows))


def _in_a_process(clusters: int, projects: int, each: int, is_sharing: int) -> Row:
    command = [sys.executable, "-m", "tools.bench.credentials", f"--clusters={clusters}", "--alone"]
    numbers = map(str, (projects, each, is_sharing))
    row = Row(**json.loads(run([*command, *numbers], stdout=PIPE, check=True).stdout))
    print(" | ".join(row.cells()), flush=True)
    return row


if __name__ == "__main__":
    main()
