"""Edits of the bastion in quick succession, in any state of the former one: the result is what the spec says.

The sequences are random and repeatable: a failing seed is a test case.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest

from controllers.openstackcluster.tests import given
from controllers.openstackcluster.tests.environment import (
    BASTION,
    BASTION_NAME,
    GROUPS,
    MANAGED,
    SERVER,
    ClusterEnvironment,
)

pytestmark = pytest.mark.slow

WITH: dict[str, Any] = {**MANAGED, **GROUPS, **BASTION}
PAUSES_S = (0.0, 0.0, 0.5, 2.0, 5.0, 20.0, 90.0)
"""After a pause of 0 the next edit precedes the reconcile of the former one."""
EDITS = 10
END_S = 900.0
FLAVORS = ("m1.small", "m1.medium")


class BastionEnvironment:
    """A cluster with two floating IPs of the user, and the bastion that its spec asks for."""

    def __init__(self, world: ClusterEnvironment) -> None:
        self.world = world
        self.theirs = [given.floating_ip(world)["floating_ip_address"] for _ in range(2)]
        self.most = 0

    def edit(self, **fields: Any) -> None:
        self.world.change(bastion=fields or None)

    def has_one_at_most(self) -> None:
        """Record the highest number of servers that ever existed at once."""
        names = [s["name"] for s in self.world.inventory().get("servers", {}).values()]
        self.most = max(self.most, names.count(BASTION_NAME))

    def settle(self, for_s: float) -> None:
        self.world.settle(for_s=for_s, until=self.has_one_at_most)


def edits(rng: random.Random, site: BastionEnvironment) -> list[tuple[str, Callable[[], None]]]:
    """Return the possible edits of a bastion, each with its name."""
    spec = {**SERVER, "flavor": {"filter": {"name": rng.choice(FLAVORS)}}}
    volume = rng.choice([None, {"sizeGiB": 1}])
    ports: Any = rng.choice([None, [{}, {}], [{"tags": ["a"]}]])
    address = rng.choice([None, *site.theirs])
    return [
        ("disable", lambda: site.edit(enabled=False)),
        ("enable", lambda: site.edit(enabled=True, spec=SERVER)),
        ("remove", site.edit),
        ("flavor", lambda: site.edit(enabled=True, spec=spec)),
        ("volume", lambda: site.edit(enabled=True, spec={**SERVER, "rootVolume": volume})),
        ("ports", lambda: site.edit(enabled=True, spec={**SERVER, "ports": ports})),
        ("zone", lambda: site.edit(enabled=True, spec=SERVER, availabilityZone=rng.choice(["az1", "az2", None]))),
        ("address", lambda: site.edit(enabled=True, spec=SERVER, floatingIP=address)),
        ("restart", site.world.start),
        ("delete the server", lambda: delete_server(site)),
    ]


def delete_server(site: BastionEnvironment) -> None:
    """Delete the bastion's server externally, if there is one."""
    for server in site.world.inventory().get("servers", {}).values():
        if server["name"] == BASTION_NAME:
            site.world.member.request("DELETE", f"/compute/v2.1/servers/{server['id']}")


def assert_as_wanted(site: BastionEnvironment) -> None:
    """Assert that the cloud matches the spec: the bastion or none, and no other resource."""
    world, bastion = site.world, site.world.osc()["spec"].get("bastion")
    made, ours = world.created(), list(world.created()["floatingips"].values())
    user = [f for f in world.inventory()["floatingips"].values() if f["floating_ip_address"] in site.theirs]
    assert len(user) == 2
    assert world.is_ready(), world.message("Ready")
    ports = [p for p in made.get("ports", {}).values() if p["name"].startswith(BASTION_NAME)]
    if bastion is None or not bastion["enabled"]:
        assert not world.has_bastion()
        assert {"servers", "volumes"} & made.keys() == set()
        assert (ports, len(ours), world.counts()["security_groups"]) == ([], 1, 2)
        assert not any(f["port_id"] for f in user)
        assert "bastion" not in world.status()
        return
    spec, status = bastion["spec"], world.status()["bastion"]
    server, wanted_ports = world.one("servers"), spec.get("ports") or [{}]
    assert world.shown("BastionReady") == ("True", "Ready"), world.message("BastionReady")
    assert server["id"] == status["id"]
    assert server["flavor"]["name"] == spec["flavor"]["filter"]["name"]
    assert len(made.get("volumes", {})) == (1 if spec.get("rootVolume") else 0)
    assert len(ports) == len(wanted_ports)
    assert {p["device_id"] for p in ports} == {server["id"]}
    assert sorted(p["tags"] for p in ports) == sorted(p.get("tags", []) for p in wanted_ports)
    assert server["availability_zone"] in (
        bastion.get("availabilityZone"),
        *([] if bastion.get("availabilityZone") else ["az1", "az2", "nova"]),
    )
    (attached,) = (f for f in [*user, *ours] if f["port_id"] in {p["id"] for p in ports})
    assert attached["floating_ip_address"] == status["floatingIP"] == bastion.get("floatingIP", status["floatingIP"])
    assert len(ours) == (1 if attached in user else 2)


@pytest.mark.parametrize("seed", range(12))
def test_ten_edits_in_quick_succession_end_as_the_spec_says(world: ClusterEnvironment, seed: int) -> None:
    rng = random.Random(seed)
    history = ""
    site = BastionEnvironment(world)
    world.up(**(WITH if rng.random() < 0.5 else {**MANAGED, **GROUPS}))

    for _ in range(EDITS):
        name, edit = rng.choice(edits(rng, site))
        pause_s = rng.choice(PAUSES_S)
        history += f"{name}, {pause_s} s; "
        edit()
        site.settle(pause_s)
    site.settle(END_S)

    assert site.most <= 1, history
    assert_as_wanted(site)
    world.remove()
    world.settle(for_s=300)
    assert world.is_gone()
    assert world.created() == {}


FAULTS: list[tuple[str, str, str]] = [
    ("compute", "POST", "*/servers"),
    ("compute", "DELETE", "*/servers/*"),
    ("volume", "POST", "*/volumes"),
    ("network", "POST", "*/ports"),
    ("network", "DELETE", "*/ports/*"),
    ("network", "POST", "*/floatingips"),
    ("network", "PUT", "*/floatingips/*"),
    ("network", "DELETE", "*/floatingips/*"),
    ("network", "POST", "*/security-groups"),
    ("network", "DELETE", "*/security-groups/*"),
]
EFFECTS: list[dict[str, Any]] = [
    {"cut": "after"},
    {"cut": "before"},
    {"status": 500, "message": "broken"},
    {"status": 503, "message": "down"},
    {"status": 409, "message": "busy"},
]


@pytest.mark.parametrize("seed", range(8))
def test_ten_edits_while_the_cloud_fails_now_and_then_end_as_the_spec_says(
    world: ClusterEnvironment, seed: int
) -> None:
    rng = random.Random(seed)
    site = BastionEnvironment(world)
    world.up(**WITH)

    for _ in range(EDITS):
        _, edit = rng.choice([each for each in edits(rng, site) if each[0] != "delete the server"])
        service, method, route = rng.choice(FAULTS)
        match = {"service": service, "method": method, "route": route, "nth": 1}
        world.add_fault(match=match, effect=rng.choice(EFFECTS))
        edit()
        site.settle(rng.choice(PAUSES_S))
    world.clear_faults()
    site.settle(END_S)

    assert site.most <= 1
    assert_as_wanted(site)


@pytest.mark.parametrize("pause_s", [0.0, 3.0])
@pytest.mark.parametrize("how", [{"enabled": False}, None], ids=["disabled", "removed"])
def test_a_bastion_that_is_toggled_ten_times_is_there_once_and_gone_once(
    world: ClusterEnvironment, how: dict[str, Any] | None, pause_s: float
) -> None:
    site = BastionEnvironment(world)
    world.up(**WITH)

    for _ in range(EDITS):
        world.change(bastion=how)
        site.settle(pause_s)
        world.change(**BASTION)
        site.settle(pause_s)
    site.settle(END_S)
    assert_as_wanted(site)

    world.change(bastion=how)
    site.settle(END_S)
    assert_as_wanted(site)
    assert site.most <= 1
