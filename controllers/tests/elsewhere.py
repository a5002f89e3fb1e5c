"""Credentials for another location than the stage's: another project, region, cloud or host name."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import yaml

from capo.simulator.cloud import Cloud
from capo.simulator.keystone.service import CATALOG, INTERFACES, add_user, service_id
from capo.simulator.simulator import Simulator
from environments.in_memory import InMemoryEnvironment

REGION = "RegionTwo"


def entry_of(stage: InMemoryEnvironment, name: str = "sim") -> dict[str, Any]:
    """Return an entry of the simulator's clouds.yaml."""
    found: dict[str, Any] = yaml.safe_load(stage.simulator.clouds_yaml.read_text())["clouds"][name]
    return found


def put_credentials(stage: InMemoryEnvironment, entry: dict[str, Any]) -> None:
    """Write an entry into the Secret under the name that objects use, after its cache has expired."""
    stage.clock.advance(stage.settings.sync_period_s + 1)
    stage.apply_secret(text=yaml.safe_dump({"clouds": {"sim": entry}}).encode())


def other_project(stage: InMemoryEnvironment) -> dict[str, Any]:
    """Return credentials of another project of the same cloud, which the first call creates."""
    auth = {"username": "other", "password": "of-other", "project_name": "other"}
    roles = ("member", "load-balancer_member")
    users = stage.cloud.table("identity", "users").values()
    if not any(user["name"] == auth["username"] for user in users):
        stage.simulator.call(lambda: add_user(stage.cloud, auth["username"], auth["password"], roles))
    entry = entry_of(stage)
    return {**entry, "auth": {**entry["auth"], **auth}}


def other_name(stage: InMemoryEnvironment) -> dict[str, Any]:
    """Return the same credentials with another host name of the Identity service."""
    entry = entry_of(stage)
    entry["auth"]["auth_url"] = entry["auth"]["auth_url"].replace("127.0.0.1", "localhost")
    return entry


@contextmanager
def other_region(stage: InMemoryEnvironment) -> Iterator[dict[str, Any]]:
    """Add an empty region that accepts the same tokens; yield credentials that name it."""
    with Simulator.start(Cloud(clock=stage.clock.now)) as second:
        second.cloud.tokens = stage.cloud.tokens
        stage.simulator.call(lambda: _add_region(stage, second.url))
        yield {**entry_of(stage), "region_name": REGION}


@contextmanager
def other_cloud(stage: InMemoryEnvironment) -> Iterator[dict[str, Any]]:
    """Start an empty cloud with the same users, projects and region; yield credentials for it."""
    with Simulator.start(Cloud(clock=stage.clock.now)) as second:
        identities = {
            kind: copy.deepcopy(dict(stage.cloud.table("identity", kind))) for kind in ("users", "projects", "roles")
        }
        second.call(lambda: _replace(second.cloud, identities))
        entry = entry_of(stage)
        entry["auth"]["auth_url"] = entry["auth"]["auth_url"].replace(stage.simulator.url, second.url)
        yield entry


def _replace(cloud: Cloud, identities: dict[str, dict[str, Any]]) -> None:
    for kind, items in identities.items():
        cloud.table("identity", kind).clear()
        cloud.table("identity", kind).update(items)


def _add_region(stage: InMemoryEnvironment, url: str) -> None:
    for kind, _name, path in CATALOG:
        for interface in INTERFACES:
            base = stage.simulator.url if kind == "identity" else url
            id_ = f"{kind}-{interface}"
            stage.cloud.table("identity", "endpoints")[id_] = {
                "id": id_,
                "interface": interface,
                "region_id": REGION,
                "region": REGION,
                "service_id": service_id(kind),
                "url": base + path.format(project_id=stage.member.project_id),
                "enabled": True,
            }
