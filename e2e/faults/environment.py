"""One namespace with one cloud of its own, on a rig and a manager that all scenarios share.

Each scenario has a simulated cloud of its own, so the cloud's counter has exactly the requests of the scenario's
objects: tokens, version discovery and shared lists included.
"""

from __future__ import annotations

import contextlib
import datetime
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Final

import yaml

from capo.json_types import Json
from capo.local.rig import Rig
from environments import api_server
from environments.manager_process import ManagerProcess, NotReachedError
from environments.objects import placed, secret

WATCH_FILTER: Final = "faults"
"""The manager of this folder ignores objects that other tests left on the rig."""
READ_TIMEOUT_S: Final = 170
"""The manager's, longer than its default: so long a request to a cloud that hangs holds a thread."""
PER_MINUTE: Final = 8
"""Maximum requests of a failing object: its image, Glance's versions and a list of servers once; five attempts at what
fails (at once, when the list has come, and after 2, 15 and 30 seconds)."""
MINUTE_S: Final = 60.0
SOON_S: Final = 120.0
"""Time limit beside all the other scenarios, on a busy machine."""


@dataclass
class FaultEnvironment(api_server.SimulatedCloudEnvironment):
    """The environment of one scenario.

    Args:
        counts_since_s: start of the observed minute.
        counts_until: its end, by the cloud's clock, in the format of its counter.
    """

    counts_since_s: float = 0.0
    counts_until: str = ""
    soon_s: ClassVar[float] = SOON_S

    # -- Kubernetes -------------------------------------------------------------------------------------------------

    def apply(self, *wanted: Json) -> None:
        """Apply objects in the namespace, labelled for the manager of this folder."""
        self.api.apply([placed(obj, self.namespace, WATCH_FILTER) for obj in wanted])

    def _warnings(self, name: str, words: Iterable[str]) -> list[str]:
        """Return the messages of the provider's warning Events on objects of a name that contain all words."""
        ours = [event for event in self.list("events") if event["regarding"]["name"] == name]
        notes = [event.get("note", "") for event in ours if event["type"] == "Warning"]
        return [note for note in notes if all(word in note for word in words)]

    # -- credentials ------------------------------------------------------------------------------------------------

    def secret(self, name: str = "cloud", **auth: str) -> Json:
        """Return the Secret with the credentials of the cloud; ``auth`` replaces some of them."""
        clouds = yaml.safe_load(self.simulator.clouds_yaml.read_bytes())
        clouds["clouds"]["sim"]["auth"] |= auth
        return secret(name, {"clouds.yaml": yaml.safe_dump(clouds).encode()})

    # -- OpenStack --------------------------------------------------------------------------------------------------

    def network(self, name: str = "own") -> str:
        """Create a network with a subnet, as a user would, and return its id; it does not count as left behind."""
        with self.client() as client:
            made, subnet = client.make_network(name)
        self.users |= {made["id"], subnet["id"]}
        return str(made["id"])

    def rename(self, service: str, kind: str, old: str, new: str) -> None:
        """Rename an initial resource."""

        def change() -> None:
            table = self.simulator.cloud.table(service, kind)
            next(item for item in table.values() if item["name"] == old)["name"] = new

        self.simulator.call(change)

    def add_fault(self, **document: Any) -> None:
        """Inject a fault."""
        self.simulator.call(lambda: self.simulator.cloud.faults.add(document))

    def clear_faults(self) -> None:
        """Remove all faults."""
        self.simulator.call(self.simulator.cloud.faults.clear)

    # -- waiting ----------------------------------------------------------------------------------------------------

    def wait_until_ready(self, plural: str, name: str, *, limit_s: float = SOON_S) -> None:
        """Wait until Cluster API shows the infrastructure of a Cluster or Machine ready."""

        def is_ready() -> bool:
            return bool(self.condition(plural, name, "InfrastructureReady").get("status") == "True")

        try:
            self.wait_until(f"{plural} {name} has its infrastructure", is_ready, limit_s=limit_s)
        except NotReachedError as error:
            raise NotReachedError(f"{error}\n{self.condition(plural, name, 'InfrastructureReady')}") from error

    def wait_for_message(
        self, plural: str, name: str, *words: str, event: Iterable[str] = (), limit_s: float = SOON_S
    ) -> str:
        """Wait until Cluster API shows these words as the reason for missing infrastructure; return the message.

        Our own object has the same in its ``Ready`` condition, and an Event reports it.

        Args:
            event: words of the Event, if it has others than the message, whose first ones are in it otherwise.
        """
        shown: Json = {}

        def is_shown() -> bool:
            shown.clear()
            shown.update(self.condition(plural, name, "InfrastructureReady"))
            own = self.condition(f"openstack{plural}", name, "Ready")
            is_same = shown.get("status") == "False" and shown.get("message") == own.get("message")
            return is_same and all(word in shown["message"] for word in words)

        try:
            self.wait_until(f"{plural} {name} shows {words}", is_shown, limit_s=limit_s)
        except NotReachedError as error:
            raise NotReachedError(f"{error}\nshown: {shown}") from error
        print(f"{plural} {name}: {shown['message']}")
        self.wait_until("an Event reports it", lambda: self._warnings(name, event or words[:1]))
        return str(shown["message"])

    def begin_minute(self) -> None:
        """Begin an observed minute."""
        self.simulator.call(self.simulator.cloud.counter.reset)
        self.counts_since_s = time.monotonic()
        ends = self.simulator.call(self.simulator.cloud.now) + datetime.timedelta(seconds=MINUTE_S)
        self.counts_until = ends.isoformat(timespec="milliseconds")

    def require_quiet_minute(self) -> None:
        """Observe a minute: a failing object causes few requests in it, and is not written.

        The first minute of a failure is the busiest. It takes a minute of real time, because the manager is a real
        process; the backoff grows in it, so recovery is tested in scenarios of its own.
        """
        assert self.counts_until, "no minute began"
        shown = self._shown()
        time.sleep(max(0.0, self.counts_since_s + MINUTE_S - time.monotonic()))
        made = [call for call in self.requests() if call["at"] < self.counts_until]
        calls = [f"{c['at']} {c['method']} {c['path']}" for c in made]
        assert len(calls) <= PER_MINUTE, "\n".join(calls)
        for name, status in self._shown().items():
            assert status == shown[name], f"{name} was {shown[name]}, is {status}"

    def _shown(self) -> dict[str, Json]:
        """Return the status of our objects without the intents, which appear during a retried create."""
        plurals = ("openstackclusters", "openstackmachines", "openstackservers")
        found = {f"{p}/{o['metadata']['name']}": o.get("status", {}) for p in plurals for o in self.list(p)}
        for status in found.values():
            status.get("resources", {}).pop("pending", None)
        return found

    def delete_and_wait(self, plural: str, name: str, *, limit_s: float = SOON_S) -> None:
        """Delete a Cluster or Machine, and wait until it is deleted with all its resources in the cloud."""
        self.delete(plural, name)
        ours = f"openstack{plural}"
        what = f"{plural} {name} and its {ours} are gone"
        self.wait_until(
            what, lambda: self.find(plural, name) is None and self.find(ours, name) is None, limit_s=limit_s
        )


@contextlib.contextmanager
def fault_environment(rig: Rig, manager: ManagerProcess) -> Iterator[FaultEnvironment]:
    """Run a scenario in a fresh namespace with a fresh cloud; require at its end that nothing is left in the cloud."""
    with api_server.fresh_environment(FaultEnvironment, "faults", rig, manager) as made:
        yield made
