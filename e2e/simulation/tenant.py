"""The creation time of a cluster beside a tenant whose clouds hang: `python -m e2e.simulation.tenant --servers 200`.

The tenant has a namespace of its own, one host that accepts connections and never answers, and regions that it invents;
each of its servers has credentials of its own, so that each of them waits for a login.
"""

from __future__ import annotations

import argparse
import json
import sys
from typing import Any, Final

from e2e.simulation import runner
from e2e.simulation.plan import Plan, Shape, Tuning

NAMESPACE: Final = "evil"
HOST: Final = "192.0.2.66"
REGIONS: Final = 7
READY_S: Final = 3600.0
HANGS_S: Final = 100_000.0
HANGING_S: Final = 30.0


def creation(servers: int, seed: str) -> float:
    """Return the time until a cluster with a machine is ready, in simulated seconds."""
    from e2e.simulation import judge, plan_run

    plan_run.MAX_REQUESTS = plan_run.MAX_WRITES = 1_000_000  # type: ignore[misc]
    played = plan_run.PlanRun(Plan(seed, Shape(cluster={}, machines=1), Tuning(switch_rate=0.0)))
    apply_cluster, played.apply = played.apply, lambda: None  # type: ignore[method-assign]
    played._set_up()
    place_tenant(played, servers)
    played.simulation.run(HANGING_S)
    began_s = played.scheduler.now_s
    apply_cluster()
    assert played.simulation.run(READY_S, lambda: judge.fault(played) is None), judge.fault(played)
    return played.scheduler.now_s - began_s


def place_tenant(played: Any, servers: int) -> None:
    """Apply servers of a tenant in invented regions."""
    from capo.kube.kinds import NAMESPACE as NAMESPACES
    from capo.kube.kinds import OPENSTACK_SERVER, SECRET, Key
    from e2e.simulation import objects
    from e2e.simulation.network import Disturbance
    from e2e.simulation.simulation import MAIN

    network, server = played.network, played.home.server
    network.sites[HOST] = network.sites[MAIN]
    network.disturb(Disturbance("hang", covers=lambda sent: sent.host == HOST), for_s=HANGS_S)
    server.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
    entry = played.simulation.clouds_yaml()["sim"]
    for number in range(servers):
        auth = {**entry["auth"], "auth_url": f"http://{HOST}/identity/v3", "username": f"u{number}"}
        clouds = {"sim": {**entry, "auth": auth, "region_name": f"r{number % REGIONS}"}}
        identity = {"name": f"s{number}", "cloudName": "sim"}
        obj = objects.server(f"s{number}", played.own_network["id"], spec={"identityRef": identity})
        for kind, each in ((SECRET, objects.secret(f"s{number}", clouds)), (OPENSTACK_SERVER, obj)):
            each["metadata"]["namespace"] = NAMESPACE
            server.create(kind, each)
        if lineage := played.truth.of(played.home, Key(OPENSTACK_SERVER, NAMESPACE, f"s{number}")):
            lineage.is_evil = True


def main() -> int:
    """Measure and print as JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--servers", type=int, default=200)
    parser.add_argument("--seed", default="1")
    wanted = parser.parse_args()
    runner.prepare()
    print(json.dumps({"seconds": creation(wanted.servers, wanted.seed)}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
