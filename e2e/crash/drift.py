"""External changes that a manager finds when it starts, and reverts."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Mapping
from http import HTTPStatus
from typing import Any, Final

import yaml

from capo.json_types import Json
from capo.simulator.testing import Client, Refused
from e2e.crash.environment import LIMIT_S, LOOK_S, CrashEnvironment

POLICY: Final = dict.fromkeys(
    (
        "healthMonitors",
        "listenerTimeouts",
        "memberWeights",
        "poolAlgorithms",
        "portSecurityGroups",
        "securityGroupRules",
    ),
    "Repair",
)
_LBAAS: Final = "/load-balancer/v2.0/lbaas"
_SETTINGS: Final[Mapping[str, tuple[str, Json, Json]]] = {
    "load-balancer/listeners": ("listener", {"timeout_client_data": 1234}, {"timeout_client_data": 50000}),
    "load-balancer/pools": ("pool", {"lb_algorithm": "LEAST_CONNECTIONS"}, {"lb_algorithm": "ROUND_ROBIN"}),
    "load-balancer/healthmonitors": ("healthmonitor", {"delay": 77}, {"delay": 10}),
    "load-balancer/members": ("member", {"weight": 0}, {"weight": 1}),
}
"""By kind: the key in a request, what others set, and what is to be there."""
_HOLE: Final = {"direction": "ingress", "ethertype": "IPv4", "protocol": "tcp"}
_PORT: Final = 2222


def change_all(world: CrashEnvironment, machine: str) -> None:
    """Change, as the project's user, what the policy compares, and wait until the load balancer is free again."""
    with _user(world) as user:
        for kind, (key, changed, _) in _SETTINGS.items():
            (body,) = world.inventory()[kind].values()
            _change(world, user, _path(kind, body), {key: changed})
        _wait_until_free(world)
        group_id = world.status("openstackclusters", machine)["controlPlaneSecurityGroup"]["id"]
        rule = {**_HOLE, "port_range_min": _PORT, "port_range_max": _PORT, "security_group_id": group_id}
        user.make("/network/v2.0/security-group-rules", "security_group_rule", **rule)
        (port,) = _ports(world, machine)
        user.ask("PUT", f"/network/v2.0/ports/{port['id']}", {"port": {"security_groups": []}})


@contextlib.contextmanager
def _user(world: CrashEnvironment) -> Iterator[Client]:
    client = Client(world.ground.simulator, auth=yaml.safe_load(world.tenant.clouds)["clouds"]["sim"]["auth"])
    with client.session:
        yield client


def _change(world: CrashEnvironment, user: Client, path: str, change: Json) -> None:
    # the manager did not wait for its last change, which may reach the load balancer after the manager was killed
    while True:
        _wait_until_free(world)
        try:
            user.ask("PUT", path, change)
        except Refused as refused:
            if refused.status != HTTPStatus.CONFLICT:
                raise
        else:
            return


def _path(kind: str, body: Json) -> str:
    collection = kind.rpartition("/")[2]
    parent = f"pools/{body['pool_id']}/" if collection == "members" else ""
    return f"{_LBAAS}/{parent}{collection}/{body['id']}"


def _wait_until_free(world: CrashEnvironment) -> None:
    ends_s = time.monotonic() + LIMIT_S
    while not _is_free(world):
        assert time.monotonic() < ends_s, "the load balancer is still being changed"
        time.sleep(LOOK_S)


def _is_free(world: CrashEnvironment) -> bool:
    balancers = world.inventory()["load-balancer/loadbalancers"].values()
    return all(body["provisioning_status"] == "ACTIVE" for body in balancers)


def _ports(world: CrashEnvironment, machine: str) -> list[Any]:
    """Return the ports of the machine; none if it is being deleted."""
    ports = world.inventory()["network/ports"].values()
    return [port for port in ports if port["name"].startswith(f"{machine}-")]


def is_reverted(world: CrashEnvironment, machine: str) -> bool:
    """Return whether nothing that was changed is left."""
    found = world.inventory()
    settings = [
        body[name] == value
        for kind, (_, _, wanted) in _SETTINGS.items()
        for body in found[kind].values()
        for name, value in wanted.items()
    ]
    holes = [rule for rule in found["network/security_group_rules"].values() if rule["port_range_min"] == _PORT]
    has_groups = any(port["security_groups"] for port in _ports(world, machine))
    return all(settings) and not holes and has_groups and _is_free(world)
