"""Control plane machines are created, deleted and fail in random but repeatable order; only the end state counts."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from capo.kube.kinds import OPENSTACK_CLUSTER, OPENSTACK_MACHINE
from controllers.openstackmachine.tests.control_plane_environment import ControlPlaneEnvironment

ACTS = 10
PAUSES_S = (0.0, 0.5, 2.0, 10.0, 70.0)
END_S = 900.0
LOAD_BALANCER = [("POST", "*/members"), ("PUT", "*/members"), ("DELETE", "*/members/*"), ("GET", "*/members")]
FLOATING_IP = [("PUT", "*/floatingips/*"), ("GET", "*/floatingips")]
EFFECTS = [{"cut": "after"}, {"cut": "before"}, {"status": 503, "message": "down"}, {"status": 409, "message": "busy"}]


class Life:
    """The machines that should exist."""

    def __init__(self, site: ControlPlaneEnvironment, rng: random.Random) -> None:
        self.site, self.rng = site, rng
        self.names: list[str] = []
        self.count = 0

    def add(self) -> None:
        self.count += 1
        self.names.append(f"cp-{self.count}")
        self.site.add(self.names[-1])

    def delete(self) -> None:
        if len(self.names) > 1:
            self.site.delete(self.names.pop(self.rng.randrange(len(self.names))))

    def stop(self) -> None:
        """Stop the server of a machine, which stays in its pools: the health monitor keeps traffic from it."""
        self._ask_one("os-stop", "ACTIVE")

    def start(self) -> None:
        self._ask_one("os-start", "SHUTOFF")

    def _ask_one(self, action: str, state: str) -> None:
        servers = [s for s in self.site.all("servers") if s["status"] == state and s["name"] in self.names]
        if servers:
            path = f"/compute/v2.1/servers/{self.rng.choice(servers)['id']}/action"
            self.site.stage.member.request("POST", path, {action: None})  # refused while another action runs

    def restart(self) -> None:
        self.site.stage.start()

    def acts(self) -> list[Callable[[], None]]:
        return [self.add, self.add, self.delete, self.delete, self.stop, self.start, self.restart]


def live(site: ControlPlaneEnvironment, seed: int, faults: list[tuple[str, str]]) -> Life:
    """Run ten random actions, some while the cloud fails once; then wait until nothing is due."""
    rng = random.Random(seed)
    life = Life(site, rng)
    life.add()
    for _ in range(ACTS):
        if rng.random() < 0.5:
            method, route = rng.choice(faults)
            site.stage.add_fault(match={"method": method, "route": route, "nth": 1}, effect=rng.choice(EFFECTS))
        rng.choice(life.acts())()
        site.stage.settle(for_s=rng.choice(PAUSES_S))
    site.stage.clear_faults()
    site.stage.settle(for_s=30)  # running stop actions complete in this time
    for server in site.all("servers"):
        if server["status"] == "SHUTOFF":
            site.stage.member.ask("POST", f"/compute/v2.1/servers/{server['id']}/action", {"os-start": None})
    site.stage.settle(for_s=END_S)
    assert sorted(s["name"] for s in site.all("servers")) == sorted(life.names)
    assert sorted(p["name"] for p in site.all("ports") if p["name"].startswith("cp-")) == sorted(
        f"{name}-0" for name in life.names
    )
    for name in life.names:
        assert site.stage.condition(OPENSTACK_MACHINE, name, "Ready")["status"] == "True"
        assert site.ingress(name) == ("True", "Ready"), site.message(name)
    return life


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(8))
def test_the_pools_have_exactly_the_machines_that_there_are_w_28(site: ControlPlaneEnvironment, seed: int) -> None:
    site.balance(9345)

    life = live(site, seed, LOAD_BALANCER)

    wanted = sorted(site.address_of(name) for name in life.names)
    assert site.addresses(6443) == site.addresses(9345) == wanted


@pytest.mark.slow
@pytest.mark.parametrize("is_ours", [True, False], ids=["ours", "the user's"])
@pytest.mark.parametrize("seed", range(6))
def test_the_floating_ip_is_on_a_machine_that_there_is_w_09(
    site: ControlPlaneEnvironment, seed: int, is_ours: bool
) -> None:
    site.float()
    (address,) = site.all("floatingips")
    if not is_ours:
        site.record()
        host = {"host": address["floating_ip_address"], "port": 6443}
        site.stage.patch(OPENSTACK_CLUSTER, "infra", {"spec": {"controlPlaneEndpoint": host}})

    life = live(site, seed, FLOATING_IP)

    (after,) = site.all("floatingips")
    assert after["id"] == address["id"]
    assert after["port_id"] in {p["id"] for p in site.all("ports") if p["name"] in {f"{n}-0" for n in life.names}}
