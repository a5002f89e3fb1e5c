"""Two managers of different objects at the same time, as ``docs/how-to/shards.md`` sets them up."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest
import yaml

from capo import components, names
from capo.json_types import Json
from capo.simulator.testing import Client
from e2e.crash.environment import CrashEnvironment, crash_environment, flags_of
from e2e.crash.scenarios import NAME, SCENARIOS
from e2e.crash.session import KEY_PAIR, CrashSession
from e2e.crash.test_two_managers import IN_POD
from environments import objects
from environments.manager_process import ManagerProcess, wait_until

pytestmark = [pytest.mark.integration, pytest.mark.crash, pytest.mark.timeout(600)]

PAGE: Final = Path(__file__).parents[2] / "docs" / "how-to" / "shards.md"
ELECTION: Final = (
    "--leader-elect",
    "--leader-elect-lease-duration=30s",
    "--leader-elect-renew-deadline=20s",
    "--leader-elect-retry-period=1s",
)
"""A renewal of the common lease that is only seen leaves less time than an own one, and a call has a quarter of it.

A manager that loses its lease ends. Nothing restarts the second one, and the first one would be another holder then.
"""
LEASE: Final = "capo-shard-{}"
CLUSTER: Final = next(scenario for scenario in SCENARIOS if scenario.name == "control-plane")
LEASES: Final = f"/apis/coordination.k8s.io/v1/namespaces/{components.NAMESPACE}/leases"
BEFORE_CREATION: Final = {"method": "POST", "service": "compute", "route": "/v2.1/servers"}


@dataclass
class Shards:
    """A namespace with managers of the shards a and b; both have the shipped account and the rights of the page."""

    world: CrashEnvironment
    managers: dict[str, ManagerProcess]

    def start(self, shard: str) -> None:
        """Start the manager of a shard."""
        self.managers[shard].start()
        if self.world.starts == 0:
            self.world.manager, self.world.starts = self.managers[shard], 1

    def kill(self, shard: str) -> None:
        """Kill the manager of a shard; the environment goes on with the other."""
        self.managers[shard].kill()
        (self.world.manager,) = (manager for name, manager in self.managers.items() if name != shard)

    def holder(self, name: str) -> str:
        """Return the holder of a lease, empty if it has none."""
        found = self.world.api.find(f"{LEASES}/{name}")
        return str(found["spec"].get("holderIdentity") or "") if found else ""

    def label(self, shard: str, *plurals: str) -> None:
        """Give objects to a shard, as a user does."""
        for plural in plurals:
            labels = {"metadata": {"labels": {names.WATCH_FILTER_LABEL: shard}}}
            self.world.patch(plural, NAME, labels)

    def server(self, name: str, shard: str | None) -> None:
        """Apply an OpenStackServer with the label of a shard, or without any."""
        (network,) = self.world.inventory()["network/networks"]
        wanted = objects.openstack_server(name, network, flavor="m1.small", sshKeyName=KEY_PAIR)
        self.world.apply(objects.placed(wanted, self.world.namespace, shard) if shard else wanted)

    def is_ready(self, name: str) -> Callable[[], bool]:
        """Return a function that returns whether an OpenStackServer is ready."""
        return lambda: bool(self.world.status("openstackservers", name).get("ready"))

    def is_untouched(self, name: str) -> bool:
        """Return whether no manager ever wrote an OpenStackServer."""
        found = self.world.find("openstackservers", name)
        assert found
        return not found["metadata"].get("finalizers") and "status" not in found


@contextlib.contextmanager
def shards(ground: CrashSession) -> Iterator[Shards]:
    """Yield two managers that are not started yet."""
    ground.rig.apply(roles())
    with crash_environment(ground) as world:
        managers = {shard: _manager(ground, world, shard) for shard in "ab"}
        try:
            yield Shards(world, managers)
        finally:
            for manager in managers.values():
                if manager.was_started and manager.is_alive():
                    manager.kill()
            for name in (names.LEASE, *map(LEASE.format, managers)):
                ground.rig.api.delete(f"{LEASES}/{name}")


def _manager(ground: CrashSession, world: CrashEnvironment, shard: str) -> ManagerProcess:
    flags = (
        *flags_of(world.namespace, ground),
        *ELECTION,
        f"--watch-filter={shard}",
        f"--leader-elect-resource-name={LEASE.format(shard)}",
    )
    log = ground.folder / f"{world.namespace}-{shard}.log"
    return ManagerProcess(ground.kubeconfig, log, flags, environment=IN_POD, launcher=ground.launcher)


def roles() -> list[Json]:
    """Return the Role and RoleBinding of the page."""
    text = PAGE.read_text(encoding="utf-8").partition("<<'EOF'\n")[2].partition("    EOF\n")[0]
    return list(yaml.safe_load_all(text.replace("\n    ", "\n").removeprefix("    ")))


def test_each_manager_acts_on_its_own_objects_alone(ground: CrashSession) -> None:
    with shards(ground) as made:
        world = made.world
        made.start("a")
        made.start("b")
        make_network(made)
        for name, shard in (("of-a", "a"), ("of-b", "b"), ("of-none", None)):
            made.server(name, shard)
        for name in ("of-a", "of-b"):
            world.wait_until(f"{name} is ready", made.is_ready(name))
        holders = [made.holder(LEASE.format(shard)) for shard in "ab"]
        assert all(holders)
        assert holders[0] != holders[1]
        assert made.holder(names.LEASE).startswith("shared_")

        made.kill("b")
        world.patch("openstackservers", "of-b", {"metadata": {"annotations": {"edited": "yes"}}})
        made.server("later-of-b", "b")
        made.server("later-of-a", "a")
        world.wait_until("the other goes on", made.is_ready("later-of-a"))
        world.wait_until("it holds the common lease", lambda: holders[0] in made.holder(names.LEASE))
        made.server("last-of-a", "a")
        world.wait_until("it still acts", made.is_ready("last-of-a"))
        assert made.holder(LEASE.format("b")) == holders[1]
        assert made.is_untouched("later-of-b")

        made.start("b")
        world.wait_until("its successor continues", made.is_ready("later-of-b"))
        assert made.is_untouched("of-none")


@pytest.mark.parametrize("is_created", [True, False], ids=["at rest", "while it is created"])
def test_a_cluster_moves_to_another_manager_and_nothing_is_created_twice(
    ground: CrashSession, is_created: bool
) -> None:
    with shards(ground) as made:
        world = made.world
        made.start("a")
        made.start("b")
        CLUSTER.act(world)
        made.label("a", "openstackclusters", "openstackmachines")
        if is_created:
            world.wait_until("the first created it", lambda: CLUSTER.is_made(world))
        else:
            world.add_fault(BEFORE_CREATION, {"delay_s": 2.0})
            world.wait_until("the server is being created", lambda: world.find("openstackservers", NAME))
        before = world.writes()

        made.label("b", "openstackclusters", "openstackmachines")
        world.wait_until("the server follows", lambda: is_of(world, "b"))
        made.kill("a")
        world.wait_until("all is there", lambda: CLUSTER.is_made(world))

        once = {key: number for key, number in world.signature().items() if key[1]}
        assert set(once.values()) == {1}
        assert sum(number for (kind, _), number in once.items() if kind == "compute/servers") == 1
        if is_created:
            assert world.writes() == before
        CLUSTER.delete(world)
        world.wait_until("all is gone", lambda: CLUSTER.is_gone(world))
        assert not world.signature()


def is_of(world: CrashEnvironment, shard: str) -> bool:
    """Return whether the machine's OpenStackServer has the label of a shard."""
    found = world.find("openstackservers", NAME)
    return bool(found and found["metadata"]["labels"].get(names.WATCH_FILTER_LABEL) == shard)


def test_a_manager_of_the_common_lease_and_one_with_its_own_never_act_together(ground: CrashSession) -> None:
    with shards(ground) as made:
        world = made.world
        flags = tuple(flag for flag in made.managers["a"].flags if "resource-name" not in flag)
        made.managers["a"].flags = flags  # as the release before, or before the flag was added
        made.start("a")
        wait_until("it leads", lambda: bool(made.holder(names.LEASE)))
        made.start("b")
        wait_until("the other waits", lambda: "common lease: waiting" in log_of(made.managers["b"]))
        make_network(made)
        made.server("of-b", "b")
        made.server("of-a", "a")
        world.wait_until("the first acts", made.is_ready("of-a"))
        assert made.is_untouched("of-b")

        made.managers["a"].stop()
        world.manager = made.managers["b"]
        world.wait_until("the other acts", made.is_ready("of-b"))
        assert made.holder(LEASE.format("b"))


def make_network(made: Shards) -> None:
    """Create a network as the project's user."""
    world = made.world
    auth = yaml.safe_load(world.tenant.clouds)["clouds"]["sim"]["auth"]
    client = Client(world.ground.simulator, auth=auth)
    with client.session:
        client.make_network()


def log_of(manager: ManagerProcess) -> str:
    """Return the log of a manager."""
    return manager.log.read_text(errors="replace") if manager.log.exists() else ""
