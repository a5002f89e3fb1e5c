"""Follows a cluster: prints changes in Kubernetes and in the cloud, until a condition holds."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

import requests
from rich.table import Table

from capo.json_types import Json
from capo.local.demo.console import Screen, make_table
from capo.local.demo.objects import Objects, ObjectSnapshot, condition, is_leaving, provider_id
from capo.local.errors import RigError

Missing = Callable[[ObjectSnapshot], str]
"""Returns what is still missing, empty if nothing is."""

EVERY_S: Final = 1.0
_CONTROLLERS: Final = ("openstackcluster", "openstackmachine", "openstackserver")


class DemoError(RigError):
    """An expected result of the demo did not occur."""


class Watch:
    """Polls Kubernetes and prints changes.

    Args:
        check: raises when a process of the rig died.
    """

    def __init__(self, objects: Objects, screen: Screen, check: Callable[[], None]) -> None:
        self._objects, self._screen, self._check = objects, screen, check
        self._states: dict[tuple[str, str], str] = {}
        self._events: dict[str, int] = {}

    def skip_past(self) -> None:
        """Skip everything that happened before."""
        self._events = {event["metadata"]["uid"]: _count(event) for event in self._objects.list("events")}
        self._states = _states(self._objects.look())

    def until(self, what: str, missing: Missing, *, limit_s: float) -> ObjectSnapshot:
        """Return when nothing is missing any more.

        Raises:
            DemoError: the timeout expired; the message names what is missing and why.
        """
        ends_s = time.monotonic() + limit_s
        with self._screen.live():
            while True:
                world = self._look()
                lack = missing(world)
                if not lack:
                    return world
                if time.monotonic() > ends_s:
                    raise DemoError(f"{what}: not within {limit_s:.0f} s: {lack}\n{why(world)}")
                self._screen.show(machines_table(world, f"{what}: {lack}"))
                time.sleep(EVERY_S)

    def _look(self) -> ObjectSnapshot:
        self._check()
        try:
            world = self._objects.look()
            events = self._objects.list("events")
        except requests.RequestException as error:
            raise DemoError(f"the API server does not answer: {error}") from error
        self._tell_events(events)
        self._tell_states(world)
        return world

    def _tell_events(self, events: list[Json]) -> None:
        for event in sorted(events, key=lambda e: str(e.get("eventTime") or "")):
            uid, count = event["metadata"]["uid"], _count(event)
            if self._events.get(uid, 0) < count and is_ours(event):
                regarding = event["regarding"]
                text = f"{regarding['name']}: {event.get('note', '')}"
                self._screen.say(text, source="cloud" if event["type"] == "Normal" else "WARNING")
            self._events[uid] = count

    def _tell_states(self, world: ObjectSnapshot) -> None:
        states = _states(world)
        for key, state in states.items():
            if state and self._states.get(key) != state:
                self._screen.say(f"{_NAMES[key[0]]} {key[1]}: {state}", source="kubernetes")
        for plural, name in self._states.keys() - states.keys():
            self._screen.say(f"{_NAMES[plural]} {name}: gone", source="kubernetes")
        self._states = states


_NAMES: Final = {"clusters": "Cluster", "kubeadmcontrolplanes": "KubeadmControlPlane", "machines": "Machine"}


def _count(event: Json) -> int:
    return int((event.get("series") or {}).get("count", 1))


def _states(world: ObjectSnapshot) -> dict[tuple[str, str], str]:
    return {
        (plural, str(obj["metadata"]["name"])): state_of(plural, obj) for plural in _NAMES for obj in world.all(plural)
    }


def is_ours(event: Json) -> bool:
    """Return whether an Event is from the provider."""
    return str(event.get("regarding", {}).get("kind", "")).lower() in _CONTROLLERS


def state_of(plural: str, obj: Json) -> str:
    """Return the state of an object in a few words."""
    status = obj.get("status") or {}
    if plural == "kubeadmcontrolplanes":
        is_initialized = (status.get("initialization") or {}).get("controlPlaneInitialized")
        return f"{status.get('readyReplicas') or 0} ready{'' if is_initialized else ', not initialised'}"
    return str(status.get("phase") or "")


def machines_table(world: ObjectSnapshot, title: str) -> Table:
    """Return the Machines with their provider IDs and Nodes."""
    return make_table(title, ("Machine", "Phase", "Provider ID", "Node"), machine_rows(world))


def machine_rows(world: ObjectSnapshot) -> list[tuple[str, str, str, str]]:
    """Return a row for each Machine: name, phase, provider ID, Node."""
    return [
        (
            str(machine["metadata"]["name"]),
            str((machine.get("status") or {}).get("phase") or ""),
            provider_id(machine),
            str(((machine.get("status") or {}).get("nodeRef") or {}).get("name") or ""),
        )
        for machine in world.all("machines")
    ]


def why(world: ObjectSnapshot) -> str:
    """Return the conditions that keep objects from being ready, one per line."""
    lines = [
        f"  {_singular(plural)} {obj['metadata']['name']}: {ready.get('reason', '')}: {ready.get('message', '')}"
        for plural in ("openstackclusters", "openstackmachines", "openstackservers", "machines")
        for obj in world.all(plural)
        if (ready := condition(obj, "Ready")).get("status") != "True"
    ]
    return "\n".join(lines) or "  every object is ready"


def _singular(plural: str) -> str:
    return plural.removesuffix("s")


def lacks_machines(world: ObjectSnapshot, *, control_planes: int, workers: int) -> str:
    """Return what keeps exactly so many Machines from being Running, empty if they are."""
    machines = world.all("machines")
    running = [m for m in machines if (m.get("status") or {}).get("phase") == "Running" and not is_leaving(m)]
    wanted = control_planes + workers
    if len(running) == len(machines) == wanted:
        return ""
    return f"{len(running)} of {wanted} Machines Running, {len(machines) - len(running)} on their way"


def lacks_bastion(world: ObjectSnapshot, cluster: str, *, other_than: str = "") -> str:
    """Return what keeps the bastion from being reachable, empty if it is.

    Args:
        other_than: the id of a server that is to be replaced.
    """
    obj = world.one("openstackclusters", cluster) or {}
    bastion = (obj.get("status") or {}).get("bastion") or {}
    if not bastion.get("id") or bastion["id"] == other_than:
        return "no bastion" if not other_than else "the old bastion is still there"
    if bastion.get("state") != "ACTIVE":
        return f"bastion is {bastion.get('state') or 'without state'}"
    return "" if bastion.get("floatingIP") else "bastion has no floating IP"
