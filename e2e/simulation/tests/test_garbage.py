"""The simulated garbage collector keeps the same objects as the real one."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from capo.json_types import Json
from capo.kube import client
from capo.kube.kinds import NAMESPACE, SECRET
from capo.local.testing import running_rig
from e2e.simulation.tests.play import JSON, MERGE, Server
from e2e.simulation.tests.servers import Real, Simulated, new_server, session_of
from environments.manager_process import NotReachedError, wait_until

HELD: Final = "example.org/held"
FOREGROUND: Final = "foregroundDeletion"
QUIET_S: Final = 3.0
LIMIT_S: Final = 120.0
"""How long the real collector may take on a busy machine, which collects within a second on an idle one."""
State = dict[str, str]
"""Deletion, finalizers and owners of the objects, by name."""


class Garden:
    """Secrets that own each other, in a namespace.

    Args:
        settle: waits until the garbage collector has nothing left to do, with the state that is wanted then.
    """

    def __init__(self, server: Server, namespace: str, settle: Settle) -> None:
        self.server, self.namespace, self._settle = server, namespace, settle
        self.uids: dict[str, str] = {}
        self.ask("POST", client.path(NAMESPACE, ""), {"metadata": {"name": namespace}})

    def ask(self, method: str, path: str, body: Any = None, type_: str = JSON) -> Any:
        status, answer = self.server.send(method, path, {}, type_, body)
        assert status < 300, answer
        return answer

    def plant(self, name: str, *owners: str | Json, finalizers: tuple[str, ...] = (), blocks: bool = True) -> None:
        references = [self.reference(owner, blocks) if isinstance(owner, str) else owner for owner in owners]
        metadata = {"name": name, "ownerReferences": references, "finalizers": list(finalizers)}
        made = self.ask("POST", client.path(SECRET, self.namespace), {"metadata": metadata})
        self.uids[name] = made["metadata"]["uid"]

    def reference(self, name: str, blocks: bool = True) -> Json:
        known = {"apiVersion": "v1", "kind": "Secret", "name": name, "uid": self.uids[name]}
        return {**known, "blockOwnerDeletion": blocks}

    def delete(self, name: str, propagation: str = "Background") -> None:
        self.ask("DELETE", client.path(SECRET, self.namespace, name), {"propagationPolicy": propagation})

    def let_go(self, name: str) -> None:
        self.ask("PATCH", client.path(SECRET, self.namespace, name), {"metadata": {"finalizers": None}}, MERGE)

    def require(self, wanted: State) -> None:
        """Require the state of the remaining objects once the garbage collector is done."""
        self._settle(self, wanted)
        assert self.state() == wanted

    def state(self) -> State:
        items = self.ask("GET", client.path(SECRET, self.namespace))["items"]
        return {item["metadata"]["name"]: _summary(item["metadata"]) for item in items}


Settle = Callable[[Garden, State], None]


def _summary(metadata: Json) -> str:
    parts = ["deleting"] if metadata.get("deletionTimestamp") else []
    parts += metadata.get("finalizers") or []
    parts += [f"of {owner['name']}" for owner in metadata.get("ownerReferences") or ()]
    return " ".join(parts)


def background(garden: Garden) -> None:
    garden.plant("owner")
    garden.plant("child", "owner")
    garden.plant("grandchild", "child")
    garden.plant("held", "owner", finalizers=(HELD,))
    garden.delete("owner")

    garden.require({"held": f"deleting {HELD} of owner"})


def foreground(garden: Garden) -> None:
    garden.plant("owner")
    garden.plant("held", "owner", finalizers=(HELD,))
    garden.plant("free", "owner", blocks=False)
    garden.delete("owner", "Foreground")

    garden.require({"owner": f"deleting {FOREGROUND}", "held": f"deleting {HELD} of owner"})
    garden.let_go("held")
    garden.require({})


def foreground_below(garden: Garden) -> None:
    garden.plant("owner")
    garden.plant("child", "owner")
    garden.plant("grandchild", "child", finalizers=(HELD,))
    garden.delete("owner", "Foreground")

    garden.require(
        {
            "owner": f"deleting {FOREGROUND}",
            "child": f"deleting {FOREGROUND} of owner",
            "grandchild": f"deleting {HELD} of child",
        }
    )
    garden.let_go("grandchild")
    garden.require({})


def foreground_without_blocking(garden: Garden) -> None:
    garden.plant("owner")
    garden.plant("held", "owner", finalizers=(HELD,), blocks=False)
    garden.delete("owner", "Foreground")

    garden.require({"held": f"deleting {HELD} of owner"})


def foreground_of_one_of_two(garden: Garden) -> None:
    garden.plant("one")
    garden.plant("two")
    garden.plant("child", "one", "two")
    garden.delete("one", "Foreground")

    garden.require({"two": "", "child": "of two"})


def orphans(garden: Garden) -> None:
    garden.plant("owner")
    garden.plant("child", "owner")
    garden.delete("owner", "Orphan")

    garden.require({"child": ""})


def one_of_two_owners(garden: Garden) -> None:
    garden.plant("one")
    garden.plant("two")
    garden.plant("child", "one", "two")
    garden.delete("one")

    garden.require({"two": "", "child": "of two"})


def owners_never_seen(garden: Garden) -> None:
    """After a restore references name uids that no object has."""
    garden.plant("other")
    unknown = {**garden.reference("other"), "uid": "3b4c0f2e-0000-0000-0000-000000000000"}
    garden.plant("namesake", unknown)
    garden.plant("child", {**unknown, "name": "nobody"})
    garden.plant("held", {**unknown, "name": "nobody"}, finalizers=(HELD,))

    garden.require({"other": "", "held": f"deleting {HELD} of nobody"})


def recreated_owner(garden: Garden) -> None:
    garden.plant("owner")
    first = garden.reference("owner")
    garden.delete("owner")
    garden.plant("owner")
    garden.plant("child", first)

    garden.require({"owner": ""})


def owner_of_unknown_kind(garden: Garden) -> None:
    thing = {"apiVersion": "example.org/v1", "kind": "Thing", "name": "thing", "uid": "some-uid"}
    garden.plant("child", thing)
    garden.plant("gone")
    gone = garden.reference("gone")
    garden.delete("gone")
    garden.plant("both", gone, thing)

    garden.require({"child": "of thing", "both": "of gone of thing"})


SCENARIOS: Final = (
    background,
    foreground,
    foreground_below,
    foreground_without_blocking,
    foreground_of_one_of_two,
    orphans,
    one_of_two_owners,
    owners_never_seen,
    recreated_owner,
    owner_of_unknown_kind,
)


def _name(scenario: Callable[[Garden], None]) -> str:
    return scenario.__name__.replace("_", "-")


@pytest.mark.parametrize("scenario", SCENARIOS, ids=_name)
def test_the_simulated_collector(scenario: Callable[[Garden], None]) -> None:
    server = new_server()

    def settle(_: Garden, __: State) -> None:
        while server.collect_garbage(limit=1):
            server.check_unchanged()

    scenario(Garden(Simulated(server), _name(scenario), settle))


@pytest.fixture(scope="module")
def real(rigs_folder: Path) -> Iterator[Real]:
    with running_rig(rigs_folder, "garbage", "api") as rig:
        rig.restart("kube-controller-manager")
        with session_of(rig) as session:
            made = Real(rig.url, session)
            _wait_for_the_collector(made)
            yield made


def _wait_for_the_collector(real: Real) -> None:
    """Wait until it collects: after a start it first lists all kinds."""
    garden = Garden(real, "first", lambda *_: None)
    garden.plant("owner")
    garden.plant("child", "owner")
    garden.delete("owner")
    wait_until("the garbage collector works", lambda: not garden.state(), limit_s=LIMIT_S)


@pytest.mark.integration
@pytest.mark.parametrize("scenario", SCENARIOS, ids=_name)
def test_the_real_collector(real: Real, scenario: Callable[[Garden], None]) -> None:
    def settle(garden: Garden, wanted: State) -> None:
        with contextlib.suppress(NotReachedError):  # the difference says more
            wait_until("the objects are those that are left", lambda: garden.state() == wanted, limit_s=LIMIT_S)
            ends_s = time.monotonic() + QUIET_S
            while garden.state() == wanted and time.monotonic() < ends_s:
                time.sleep(0.1)

    scenario(Garden(real, _name(scenario), settle))
