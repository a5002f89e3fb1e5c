"""Hints to Nova's scheduler, which Nova accepts and never shows."""

from __future__ import annotations

from typing import Any

from controllers.openstackserver.tests.environment import made, place, server
from environments.in_memory import InMemoryEnvironment


def hint(name: str, **value: Any) -> dict[str, Any]:
    return {"name": name, "value": value}


def test_hints_of_all_types_reach_the_scheduler_beside_the_server_group(stage: InMemoryEnvironment) -> None:
    group = {"name": "apart", "policy": "soft-anti-affinity"}
    header = {"OpenStack-API-Version": "compute 2.64"}
    path = "/compute/v2.1/os-server-groups"
    group_id = stage.member.ask("POST", path, {"server_group": group}, headers=header)["server_group"]["id"]
    hints = [
        hint("text", type="String", string="a"),
        hint("no", type="Bool", bool=False),
        hint("number", type="Number", number=7),
    ]
    place(stage, serverGroup={"filter": {"name": "apart"}}, schedulerHintAdditionalProperties=hints)

    stage.settle(for_s=30)

    assert server(stage)["scheduler_hints"] == {"group": [group_id], "text": ["a"], "no": [False], "number": [7]}
    assert made(stage) == {"servers": 1, "ports": 1}
