"""What a pool costs does not grow with the floating IPs of its project and with what other pools have."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

import pytest

from capo import names
from capo.engine.worker import Result
from capo.json_types import Object
from capo.kube.kinds import IP_ADDRESS_CLAIM, Key
from capo.kube.kinds import OPENSTACK_FLOATING_IP_POOL as KIND
from controllers.openstackfloatingippool import answer
from controllers.openstackfloatingippool.scope import PoolScope
from controllers.openstackfloatingippool.tests.environment import PoolEnvironment
from environments import operations

FEW: Final = 100
MANY: Final = 1000
OF_ONE_POOL: Final = 20
GROWTH: Final = 1.02


def crowd(stage: PoolEnvironment, count: int) -> None:
    """Create so many floating IPs in the project, each in an IPAddress of another pool."""
    own = stage.status()
    location = {"resources": {"location": own["resources"]["location"]}}
    table = stage.cloud.table("network", "floatingips")
    like = table[stage.floating_ip()["id"]]
    for number in range(count):
        ip, pool = f"198.{18 + number // 60000}.{number // 250}.{number % 250}", f"other-{number // OF_ONE_POOL}"
        id_ = stage.cloud.new_id()
        table[id_] = {**like, "id": id_, "floating_ip_address": ip}
        if number % OF_ONE_POOL == 0:
            paused = {"annotations": {names.PAUSED_ANNOTATION: "true"}}
            stage.pool(pool, metadata=paused, status={**location, "availableIPs": [ip]})
        stage.address(f"address-{number}", ip, pool=pool)


def cost(stage: PoolEnvironment, act: Callable[[], object]) -> int:
    """Return the instructions of all reconciles of the pool that an action causes."""
    reconcile, spent = stage.pools.reconcile, 0

    def counted(key: Key) -> Result:
        nonlocal spent
        if key.name != "pool":
            return reconcile(key)
        results: list[Result] = []
        spent += operations.count(lambda: results.append(reconcile(key)))
        return results[0]

    stage.pools.reconcile = counted  # type: ignore[method-assign]
    act()
    stage.settle(for_s=60.0)
    stage.pools.reconcile = reconcile  # type: ignore[method-assign]
    return spent


def costs(count: int) -> dict[str, int]:
    """Return what a pool costs at rest, for a claim, and for the release of one."""
    with PoolEnvironment() as stage:
        stage.pool()
        stage.claim("first")
        stage.settle(for_s=60.0)
        crowd(stage, count)
        for name in ("second", "third"):  # the second one builds the indices
            found = {
                "rest": cost(stage, lambda: stage._wake(Key(KIND, "default", "pool"))),
                "claim": cost(stage, partial(stage.claim, name)),
            }
            assert stage.answer(name)
            found["release"] = cost(stage, partial(stage.delete, IP_ADDRESS_CLAIM, name))
            assert not stage.is_there(IP_ADDRESS_CLAIM, name)
    return found


def only_own(scope: PoolScope, like: Object) -> list[Object]:
    """Return the IPAddresses of the pool, in place of a list of all, which is one request before each answer."""
    return scope.addresses()


def test_a_pool_costs_as_much_beside_1000_floating_ips_as_beside_100(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answer, "_listed", only_own)

    few, many = costs(FEW), costs(MANY)

    assert min(few.values()) > 0
    grown = {phase: (few[phase], many[phase]) for phase in few if many[phase] > GROWTH * few[phase]}
    assert not grown, grown
