"""Application credentials of the member of a test environment."""

from __future__ import annotations

from typing import Any

import yaml

from capo.simulator.keystone.service import add_credential
from environments.in_memory import InMemoryEnvironment


def create(stage: InMemoryEnvironment) -> tuple[dict[str, Any], bytes]:
    """Return a new application credential as the simulator has it, and a clouds.yaml with it."""
    users = stage.cloud.table("identity", "users").values()
    member = next(user for user in users if user["name"] == "capi")
    made: dict[str, Any] = stage.simulator.call(
        lambda: add_credential(stage.cloud, member, member["default_project_id"], stage.cloud.new_hex())
    )
    auth = {
        "auth_url": f"{stage.simulator.url}/identity/v3",
        "application_credential_id": made["id"],
        "application_credential_secret": made["_secret"],
    }
    entry = {"auth_type": "v3applicationcredential", "auth": auth, "region_name": "RegionOne"}
    return made, yaml.safe_dump({"clouds": {"sim": entry}}).encode()
