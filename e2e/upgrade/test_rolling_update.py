"""A Deployment's rolling update: a manager of the other version waits, and leads once the first one has stopped."""

from __future__ import annotations

import random
from typing import Final

import pytest

from capo import components
from capo.engine import lease
from capo.local.installed import LONG_TERMS
from capo.local.rig import Rig
from e2e import sampling
from e2e.crash.scenarios import Scenario
from e2e.upgrade.environment import UpgradeEnvironment, upgrade_environment
from e2e.upgrade.matrix import ROLLING_UPDATES, ROUTES, STOPPED, Matrix, completed, ordered
from e2e.upgrade.situations import SITUATIONS, TAKEOVER
from environments.manager_process import ManagerProcess

pytestmark = [pytest.mark.integration, pytest.mark.crash, pytest.mark.timeout(4 * 3600)]

LEASE: Final = f"/apis/coordination.k8s.io/v1/namespaces/{components.NAMESPACE}/leases/{lease.NAME}"
CASES: Final = [(route, each) for route in ("upgrade", "downgrade") for each in SITUATIONS if each is not TAKEOVER]
IN_A_SAMPLE: Final = 2
ELECTION: Final = ("--leader-elect", "--leader-elect-retry-period=500ms", *LONG_TERMS)
IN_POD: Final = {"POD_NAMESPACE": components.NAMESPACE}


def holder(rig: Rig) -> str:
    """Return the holder of the lease, empty without one."""
    return str((rig.api.find(LEASE) or {"spec": {}})["spec"].get("holderIdentity") or "")


@pytest.mark.parametrize(("route", "case"), sampling.sample(CASES, IN_A_SAMPLE, of=ROLLING_UPDATES), ids=str)
def test_a_standby_of_the_other_version_completes_what_the_leader_began(
    matrix: Matrix, route: str, case: Scenario
) -> None:
    first, second = ROUTES[route]
    expected = matrix.reference(case, second.version)
    write = random.Random(f"{sampling.seed()} {route} {case}").randint(1, matrix.reference(case, first.version).writes)
    matrix.setting.install(first.definitions)
    with upgrade_environment(matrix.setting.ground, matrix.setting.nurseries) as made:
        made.api.delete(LEASE)  # a killed manager may hold it
        made.use(first.version, *ELECTION)
        made.manager.environment = IN_POD
        case.prepare(made)
        made.wait_until("the first manager leads", lambda: holder(made.ground.rig))
        matrix.setting.install(second.definitions)  # as clusterctl and Helm do, before the Deployment changes

        hand_over(made, made.another(second.version, *ELECTION), write, case)

        completed(made, case, matrix.setting.installations[second.version], expected)


def hand_over(made: UpgradeEnvironment, standby: ManagerProcess, write: int, case: Scenario) -> None:
    """Stop the leader during a write while another manager stands by, and wait until that one leads."""
    leader = holder(made.ground.rig)
    standby.start()
    order = ordered(made, STOPPED, write)
    case.act(made)
    # A run does not always need the last writes of the undisturbed one.
    made.wait_until(f"the leader has come to write {write}", lambda: order.struck or case.is_made(made))
    leading, made.manager = made.manager, standby
    leading.stop()
    made.wait_until("the standby leads", lambda: holder(made.ground.rig) not in ("", leader))
