"""What happens to a fleet: machines are created and deleted, bastions edited, credentials rotated, a cloud fails.

Every action is chosen by a seed and takes the place of users and of Cluster API; none waits for the manager.
"""

from __future__ import annotations

import itertools
import random
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import requests
import yaml

from capo.json_types import Json
from capo.local.rig import Rig
from environments import objects
from tools.bench.environment import BenchEnvironment, Client, logged_in
from tools.bench.player import CORE, INFRA, Player, Watch, are_ready, condition, is_ready

LIMIT_S: Final = 1800.0
TIMEOUT_S: Final = 30.0
FAULT_S: Final = 20.0
"""For how long the cloud fails each time."""
FAULTS: Final[tuple[Json, ...]] = (
    {"match": {"service": "compute"}, "effect": {"status": 503}},
    {"match": {"service": "network", "writes_only": True}, "effect": {"status": 500}},
    {"match": {"service": "compute", "method": "GET"}, "effect": {"delay_s": 3.0}},
    {"match": {"service": "compute", "writes_only": True, "last": 2}, "effect": {"cut": "after"}},
    {"match": {"service": "network"}, "effect": {"status": 429, "headers": {"Retry-After": "5"}}},
    {"match": {"service": "identity"}, "effect": {"status": 503}},
)
BASTIONS: Final[tuple[Json, ...]] = (
    {"enabled": True, "spec": objects.MACHINE_SPEC},
    {"spec": {"flavor": {"filter": {"name": "m1.small"}}}},
    {"enabled": False},
)
"""The edits of a cluster's bastion: created, replaced, deleted."""


@dataclass(frozen=True)
class Pace:
    """Seconds between two actions of a kind.

    Args:
        at_once: machines that are replaced together.
    """

    replace_s: float = 5.0
    edit_s: float = 30.0
    rotate_s: float = 300.0
    fail_s: float = 180.0
    at_once: int = 2

    def quicker(self, factor: float) -> Pace:
        """Return a pace that is so many times quicker; the cloud never fails for more than a third of the time."""
        return Pace(
            replace_s=self.replace_s / factor,
            edit_s=self.edit_s / factor,
            rotate_s=self.rotate_s / factor,
            fail_s=max(self.fail_s / factor, 3 * FAULT_S),
            at_once=self.at_once,
        )


@dataclass
class Churn:
    """A fleet in one project, and what happens to it.

    Args:
        clusters: number over which the machines are spread.
        count: machines that are there at any time, but for those that are being replaced.
    """

    rig: Rig
    site: BenchEnvironment
    clusters: int
    count: int
    pace: Pace = field(default_factory=Pace)
    seed: int = 0
    done: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._player = Player(self.rig, self.site.name)
        self._chance = random.Random(self.seed)
        self._numbers = itertools.count()
        self._owners: dict[str, str] = {}
        self._leaving: set[str] = set()
        self._created_s: dict[str, float] = {}
        self._ready_s: list[float] = []
        self._edits = itertools.product(BASTIONS, self._names())
        self._faults = itertools.cycle(FAULTS)
        self._credentials: list[str] = []
        self._due: dict[str, float] = {}

    def begin(self) -> None:
        """Create the fleet and wait until all machines are ready.

        Raises:
            StuckError: they were not in time.
        """
        self._player.fleet(self.clusters, 0, self.site.network_id)
        self._watch = Watch(self.rig, self._player.machines_path)
        for _ in range(0, self.count, self.clusters):
            self._join(min(self.clusters, self.count - len(self._owners)))
        self._watch.until("all machines are ready", are_ready(self.count), limit_s=LIMIT_S)
        self._created_s.clear()
        now_s = time.monotonic()
        self._due = {name: now_s + every_s for name, every_s in self._every_s().items()}

    def step(self) -> None:
        """Do what is due."""
        self._look()
        now_s = time.monotonic()
        for name in [name for name, due_s in self._due.items() if due_s <= now_s]:
            getattr(self, f"_{name}")()
            self.done[name] = self.done.get(name, 0) + 1
            self._due[name] = now_s + self._every_s()[name]

    def end(self) -> None:
        """Clear all faults and wait until the fleet has converged.

        Raises:
            StuckError: it did not in time.
        """
        requests.delete(f"{self.site.simulator_url}/_simulator/faults", timeout=TIMEOUT_S).raise_for_status()
        self._watch.until("all machines are ready again", are_ready(self.count), limit_s=LIMIT_S)
        self._look()

    def machines(self) -> tuple[int, int]:
        """Return how many OpenStackMachines there are, and how many of them are ready."""
        known = self._watch.known()
        return len(known), sum(condition(obj, "Ready").get("status") == "True" for obj in known)

    def ready_s(self) -> list[float]:
        """Return the seconds until ready of the machines that became so since the last call."""
        found, self._ready_s = self._ready_s, []
        return found

    def unexpected(self) -> list[str]:
        """Return how the cloud differs from the expected servers and ports; empty once all has converged."""
        answer = requests.get(f"{self.site.simulator_url}/_simulator/inventory", timeout=TIMEOUT_S).json()
        servers = [each for each in answer["compute"]["servers"] if each["status"] != "DELETED"]
        hosts = self.count + self._bastions()
        ports = [each for each in answer["network"]["ports"] if each["device_owner"].startswith("compute:")]
        loose = [each["id"] for each in answer["network"]["ports"] if not each["device_owner"]]
        found = (
            ("servers", len(servers), hosts),
            ("ports of servers", len(ports), hosts),
            ("loose ports", len(loose), 0),
        )
        return [f"{have} {what}, expected {want}" for what, have, want in found if have != want]

    def _every_s(self) -> Mapping[str, float]:
        pace = self.pace
        return {"replace": pace.replace_s, "edit": pace.edit_s, "rotate": pace.rotate_s, "fail": pace.fail_s}

    def _names(self) -> list[str]:
        return [f"cluster-{number:03d}" for number in range(self.clusters)]

    # -- actions ----------------------------------------------------------------------------------------------------

    def _replace(self) -> None:
        """Delete machines that are ready, and create as many."""
        ready = [obj["metadata"]["name"] for obj in self._watch.known() if is_ready(obj)]
        stay = sorted(set(ready) - self._leaving)
        for name in self._chance.sample(stay, min(self.pace.at_once, len(stay))):
            self._leaving.add(name)
            self._created_s.pop(name, None)
            self.rig.api.request("DELETE", f"{self._player.machines_path}/{name}")
        self._join(self.count - len(self._owners) + len(self._leaving))

    def _edit(self) -> None:
        """Edit the bastion of one cluster: all get one, then all another one, then none."""
        bastion, name = next(self._edits, (None, ""))
        if bastion is None:
            self._edits = itertools.product(BASTIONS, self._names())
            bastion, name = next(self._edits)
        self.rig.api.patch(f"{self._player.clusters_path}/{name}", {"spec": {"bastion": bastion}})

    def _rotate(self) -> None:
        """Put a new application credential into the Secret, and delete the one before the last."""
        entry = yaml.safe_load(self.site.clouds_yaml())["clouds"]["sim"]
        with logged_in(entry["auth"]) as session:
            member = Client(session, self.site.simulator_url)
            path = member.application_credentials_path()
            auth = member.application_credential(path, f"rotation-{next(self._numbers)}", entry["auth"]["auth_url"])
            self._store(entry, auth)
            self._credentials.append(auth["application_credential_id"])
            for old in self._credentials[:-2]:
                member.ask("DELETE", f"{path}/{old}")
            del self._credentials[:-2]

    def _fail(self) -> None:
        """Make the cloud fail for a while, each time in another way."""
        fault = {**next(self._faults), "for_s": FAULT_S}
        requests.post(f"{self.site.simulator_url}/_simulator/faults", json=fault, timeout=TIMEOUT_S).raise_for_status()
        # While the cloud fails a user could not replace the credentials either.
        self._due["rotate"] = max(self._due["rotate"], time.monotonic() + FAULT_S)

    # -- parts ------------------------------------------------------------------------------------------------------

    def _join(self, count: int) -> None:
        """Create so many machines."""
        if count <= 0:
            return
        new = {f"machine-{next(self._numbers):06d}": self._chance.choice(self._names()) for _ in range(count)}
        self._player.add_machines(new)
        self._owners |= new
        self._created_s |= dict.fromkeys(new, time.monotonic())

    def _look(self) -> None:
        """Note which machines became ready, and delete the Machines whose OpenStackMachine is gone."""
        known = {obj["metadata"]["name"]: obj for obj in self._watch.known()}
        for name in [name for name in self._created_s if name in known and is_ready(known[name])]:
            self._ready_s.append(time.monotonic() - self._created_s.pop(name))
        for name in self._leaving - known.keys():
            self.rig.api.request("DELETE", f"{CORE}/namespaces/{self.site.name}/machines/{name}")
            self._leaving.discard(name)
            del self._owners[name]

    def _store(self, entry: Json, auth: Json) -> None:
        clouds = {"sim": {**entry, "auth_type": "v3applicationcredential", "auth": auth}}
        secret = objects.secret("cloud", {"clouds.yaml": yaml.safe_dump({"clouds": clouds}).encode()})
        self.rig.apply([objects.in_namespace(secret, self.site.name)])

    def _bastions(self) -> int:
        items: list[Any] = self.rig.api.get(f"{INFRA}/namespaces/{self.site.name}/openstackclusters")["items"]
        return sum(bool((obj["spec"].get("bastion") or {}).get("enabled")) for obj in items)


def beats(*, seconds: float, every_s: float) -> Iterator[float]:
    """Yield the seconds that have passed, at most once in ``every_s``, until all have."""
    began_s = time.monotonic()
    while (passed_s := time.monotonic() - began_s) < seconds:
        yield passed_s
        time.sleep(max(0.0, every_s - (time.monotonic() - began_s - passed_s)))
