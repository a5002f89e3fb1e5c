"""External changes under each policy; and that a provider that does otherwise breaks an invariant."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import pytest

from controllers.drift import TABLE
from e2e.simulation.drift import DEFAULTS
from e2e.simulation.plan import DRIFTING, FIELDS, with_compared
from e2e.simulation.tests.test_simulation import simulate

MUTANT: Final = """
import json, sys
from e2e.simulation import runner
from e2e.simulation.plan import Plan
runner.prepare()
from capo.openstack import load_balancer
from controllers.openstackcluster import balancer_settings, drift, network, router
from controllers.openstackmachine import member_weights
from controllers.openstackserver import drift as server_drift, repairs
{mutation}
print(runner.play(Plan.from_json(json.loads(sys.argv[1]))).invariant)
"""


def plan(policy: str, *fields: str) -> dict[str, Any]:
    """Return a plan in which these kinds are changed at rest, all by default, under one policy."""
    chosen = dict.fromkeys((FIELDS.get(name, name) for name in DRIFTING), policy)
    cluster = {
        **with_compared({}),
        "apiServer": {"managedLoadBalancer": {"enabled": True}, "enableFloatingIP": False},
        "managedSecurityGroups": {"allowAllInClusterTraffic": True},
        "driftPolicy": chosen,
    }
    drift = {"policy": chosen, "changes": list(fields or DRIFTING), "early": {}}
    operations = [{"feature": "user-balancer", "at_s": 5.0}]
    shape = {"cluster": cluster, "machines": 2, "drift": drift}
    return {"seed": f"drift {policy}", "shape": shape, "tuning": {"sync_period_s": 600.0}, "operations": operations}


def test_the_defaults_are_those_of_the_table() -> None:
    assert set(DEFAULTS) == set(DRIFTING)
    of_table = {(row.field, row.default.value) for row in TABLE}
    assert {(FIELDS.get(name, name), default) for name, default in DEFAULTS.items()} <= of_table


@pytest.mark.parametrize("policy", ["Off", "Report", "Repair"])
def test_all_that_is_compared_is_left_reported_or_reverted(tmp_path: Path, policy: str) -> None:
    path = tmp_path / "plan.json"
    path.write_text(json.dumps(plan(policy)))

    (outcome,) = simulate(tmp_path, "--plan", str(path))

    assert not outcome["invariant"], outcome["text"]


def test_a_listener_admits_the_routers_new_address_while_a_change_of_its_timeouts_is_left(tmp_path: Path) -> None:
    played = plan("Off", "listenerTimeouts", "router")
    cluster = played["shape"]["cluster"]
    cluster["apiServer"]["managedLoadBalancer"]["allowedCIDRs"] = ["192.0.2.0/24"]
    cluster["driftPolicy"]["router"] = "Repair"  # the dictionary that the simulation compares with, too
    path = tmp_path / "plan.json"
    path.write_text(json.dumps(played))

    (outcome,) = simulate(tmp_path, "--plan", str(path))

    assert not outcome["invariant"], outcome["text"]


@pytest.mark.parametrize(
    ("mutation", "policy", "field", "broken"),
    [
        pytest.param(
            "drift.held = lambda scope, found: None",
            "Report",
            "listenerTimeouts",
            "reported-changed",
            id="repairs what it has to report",
        ),
        pytest.param(
            "balancer_settings._differences = lambda *_: {}",
            "Repair",
            "poolAlgorithms",
            "policy-differs",
            id="finds nothing",
        ),
        pytest.param(
            "member_weights.message = lambda *_: ''",
            "Report",
            "memberWeights",
            "policy-differs",
            id="reports nothing",
        ),
        pytest.param(
            "listed = load_balancer.list_all\n"
            "def update(cloud, _id, changes):\n"
            "    (other,) = [each for each in listed(cloud) if each['name'] == 'theirs']\n"
            "    path = f\"/lbaas/loadbalancers/{other['id']}\"\n"
            "    cloud.put('load-balancer', path, json={'loadbalancer': {'description': 'ours'}})\n"
            "    return load_balancer.show(cloud, _id)\n"
            "balancer_settings._COMPARED['pool'].__dict__['update'] = update",
            "Repair",
            "poolAlgorithms",
            "foreign-changed",
            id="repairs what is not its own",
        ),
        pytest.param(
            "network.tagged = lambda scope, kind, body: body",
            "Repair",
            "networkTags",
            "policy-differs",
            id="sets no tags of networks",
        ),
        pytest.param(
            "network._with_mtu = lambda scope, found: found", "Report", "mtu", "policy-differs", id="compares no MTU"
        ),
        pytest.param(
            "router._with_gateway = lambda scope, found: found",
            "Repair",
            "router",
            "policy-differs",
            id="sets no gateway again",
        ),
        pytest.param(
            "server_drift.missing_tags = lambda *_: []",
            "Report",
            "serverTags",
            "policy-differs",
            id="compares no tags of servers",
        ),
        pytest.param(
            "server_drift.changed_metadata = lambda *_: {}",
            "Repair",
            "serverMetadata",
            "policy-differs",
            id="compares no metadata",
        ),
        pytest.param(
            "repairs.of_spec = lambda *_, **__: repairs.Policy.REPAIR",
            "Off",
            "allowedAddressPairs",
            "reported-changed",
            id="repairs address pairs that it has to ignore",
        ),
    ],
)
def test_a_provider_that_does_otherwise_is_found(mutation: str, policy: str, field: str, broken: str) -> None:
    script = MUTANT.replace("{mutation}", mutation)
    environment = {**os.environ, "PYTHONHASHSEED": "0", "E2E_SIMULATION": "1"}

    ended = subprocess.run(
        [sys.executable, "-c", script, json.dumps(plan(policy, field))],
        capture_output=True,
        text=True,
        check=False,
        env=environment,
    )

    assert ended.stdout.split()[-1:] == [broken], ended.stdout + ended.stderr
