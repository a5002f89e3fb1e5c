"""Random histories: claims come and go while the manager is killed, answers are lost and others use floating IPs."""

from __future__ import annotations

import random
from typing import Any

import pytest

from capo.json_types import Json
from capo.kube.kinds import IP_ADDRESS, IP_ADDRESS_CLAIM
from capo.kube.kinds import OPENSTACK_FLOATING_IP_POOL as KIND
from controllers.openstackfloatingippool.tests.environment import PoolEnvironment
from environments.in_memory import killed_at_write

pytestmark = pytest.mark.slow

SEEDS = range(24)
STEPS = 12
EFFECTS: list[Json] = [{"cut": "after"}, {"cut": "before"}, {"status": 503}, {"status": 429}]
PATH = "/v2.0/floatingips*"


class History:
    """A user, an adversary, and what must hold after each of their steps."""

    def __init__(self, stage: PoolEnvironment, seed: int) -> None:
        self.stage, self.source = stage, random.Random(seed)
        self.network = stage.connected()
        self.prepared = [str(stage.floating_ip()["floating_ip_address"]) for _ in range(2)]
        for pool in ("pool", "second"):
            policy = self.source.choice(["Delete", "Retain"])
            stage.pool(pool, preAllocatedFloatingIPs=self.prepared, reclaimPolicy=policy)
        self.published: dict[str, str] = {}
        self.used: dict[str, str] = {}
        self.count = 0

    def step(self) -> None:
        """Do one thing, and let some time pass in which the manager may be killed."""
        self.source.choice([self.claim, self.claim, self.release, self.lose, self.occupy])()
        for_s = self.source.choice([0.5, 3.0, 20.0, 90.0])
        if self.source.random() < 0.4:
            with killed_at_write(self.stage, self.source.randint(1, 8), is_certain=False):
                self.stage.settle(for_s=for_s)
            self.stage.start()
        else:
            self.stage.settle(for_s=for_s)
        self.check()

    def claim(self) -> None:
        for _ in range(self.source.randint(1, 3)):
            self.count += 1
            self.stage.claim(f"claim-{self.count:02}", self.source.choice(["pool", "second"]))

    def release(self) -> None:
        if known := self.living():
            self.stage.delete(IP_ADDRESS_CLAIM, self.source.choice(known))

    def lose(self) -> None:
        method = self.source.choice(["POST", "DELETE", "GET"])
        match: dict[str, Any] = {"method": method, "path": PATH, "nth": self.source.randint(1, 3)}
        self.stage.add_fault(match=match, effect=self.source.choice(EFFECTS))

    def occupy(self) -> None:
        """Use a floating IP that no claim names, as somebody else; it may have been created or allocated for one."""
        named = set(self.stage.answers().values())
        free = [ip for ip, body in self.stage.floating_ips().items() if not body["port_id"] and ip not in named]
        if free:
            ip = self.source.choice(sorted(free))
            self.used[ip] = self.stage.use(ip, self.network)["id"]

    def leave(self) -> None:
        """Dissociate the floating IPs that somebody else uses."""
        for ip in self.used:
            self.stage.free(ip)
        self.used.clear()

    def blocked(self) -> set[str]:
        """Return the claims whose floating IP somebody else uses: they wait for it."""
        described = [self.stage.floating_ips()[ip]["description"] for ip in self.used]
        uids = {name: self.stage.get(IP_ADDRESS_CLAIM, name)["metadata"]["uid"] for name in self.living()}
        roles = {name: f":ip-{uid.replace('-', '')}]" for name, uid in uids.items()}
        return {name for name, role in roles.items() if any(each.endswith(role) for each in described)}

    def living(self) -> list[str]:
        return sorted(key.name for key in self.stage.kube.objects if key.kind == IP_ADDRESS_CLAIM)

    def check(self) -> None:
        """Require that no address belongs to two claims, that none of a claim changes, and that none in use is taken.

        Nor is one in use handed out.
        """
        answers, present = self.stage.answers(), self.stage.floating_ips()
        assert len(set(answers.values())) == len(answers), answers
        assert not set(answers.values()) & set(self.used), answers
        for name, ip in answers.items():
            assert self.published.setdefault(name, ip) == ip
        assert {ip: present[ip]["port_id"] for ip in self.used} == self.used
        assert {*self.prepared, *self.used} <= set(present)


@pytest.mark.parametrize("seed", SEEDS)
def test_no_history_gives_an_address_to_two_claims_or_loses_one(seed: int) -> None:
    with PoolEnvironment() as stage:
        history = History(stage, seed)
        for _ in range(STEPS):
            history.step()

        stage.clear_faults()
        stage.start()
        stage.settle(for_s=600)
        history.check()
        living = history.living()
        assert set(living) - set(stage.answers()) <= history.blocked()
        assert set(stage.answers().values()) <= set(stage.floating_ips())

        history.leave()
        stage.settle(for_s=120)
        history.check()
        assert sorted(stage.answers()) == living

        for name in living:
            stage.delete(IP_ADDRESS_CLAIM, name)
        for pool in ("pool", "second"):
            stage.patch(KIND, pool, {"spec": {"reclaimPolicy": "Delete"}})
            stage.delete(KIND, pool)
        stage.settle(for_s=900)

        assert not [key for key in stage.kube.objects if key.kind in (KIND, IP_ADDRESS, IP_ADDRESS_CLAIM)]
        assert sorted(stage.floating_ips()) == sorted(history.prepared)
