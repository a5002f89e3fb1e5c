"""Projects and users that a run creates for itself, so that it shares nothing with other users of the cloud."""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import yaml

from capo.json_types import Body
from capo.openstack import identity
from capo.openstack.cloud import Cloud
from capo.openstack.connections import Limits
from capo.openstack.identity import Credentials
from environments.targets import Target
from environments.wire import TappedSession, Wire

LIMITS: Final = Limits(connect_s=10, read_s=60, write_s=120)
ROLES: Final = ("member", "load-balancer_member")
NOTHING: Final[Mapping[str, tuple[str, str, Mapping[str, int]]]] = {
    "compute": ("/os-quota-sets/{}", "quota_set", {"instances": 0, "server_groups": 0, "key_pairs": 0}),
    "network": (
        "/quotas/{}",
        "quota",
        {
            "floatingip": 0,
            "network": 0,
            "port": 0,
            "router": 0,
            "security_group": 1,
            "security_group_rule": 4,
            "subnet": 0,
            "trunk": 0,
        },
    ),
    "volume": ("/os-quota-sets/{}", "quota_set", {"volumes": 0}),
    "load-balancer": ("/lbaas/quotas/{}", "quota", {"load_balancer": 0}),
}
"""By service: path and key of a project's quotas, and the limits of a project that may have no resources."""


class SystemClock:
    """The wall clock."""

    def now(self) -> float:
        """Return seconds since 1970."""
        return time.time()


def no_wake(_: Hashable) -> None:
    """Do nothing."""


def cloud_of(wire: Wire, credentials: Credentials) -> Cloud:
    """Return the provider's own client with the wire installed."""
    return Cloud(credentials, TappedSession(wire, LIMITS), clock=SystemClock(), wake=no_wake)


def credentials_of(entry: Body, *, region: str | None = None) -> Credentials:
    """Return credentials from an entry of ``clouds.yaml``."""
    return identity.parse(yaml.safe_dump({"clouds": {"it": entry}}).encode(), "it", region=region)


@dataclass
class Tenant:
    """A project with one user, who is a plain member.

    Args:
        entry: its ``clouds.yaml`` entry.
    """

    name: str
    project_id: str
    user_id: str
    entry: dict[str, Any]
    cloud: Cloud

    def with_auth(self, **changes: Any) -> dict[str, Any]:
        """Return the entry with other credentials in ``auth``."""
        copy: dict[str, Any] = json.loads(json.dumps(self.entry))
        copy["auth"] |= changes
        return copy


def make(wire: Wire, target: Target, admin: Cloud, name: str) -> Tenant:
    """Create a project and a user of the same name."""
    password = secrets.token_hex(12)
    project = admin.post("identity", "/projects", json={"project": {"name": name, "domain_id": "default"}})["project"]
    wanted = {"name": name, "domain_id": "default", "password": password, "default_project_id": project["id"]}
    user = admin.post("identity", "/users", json={"user": wanted})["user"]
    for role in ROLES:
        grant(admin, project["id"], user["id"], role)
    auth = {
        "auth_url": target.auth_url,
        "username": name,
        "password": password,
        "project_name": name,
        "user_domain_name": "Default",
        "project_domain_name": "Default",
    }
    entry = {"auth_type": "password", "region_name": target.admin["region_name"], "auth": auth}
    return Tenant(name, project["id"], user["id"], entry, cloud_of(wire, credentials_of(entry)))


def grant(admin: Cloud, project_id: str, user_id: str, role: str) -> None:
    """Give a user a role in a project."""
    role_id = admin.get("identity", "/roles", params={"name": role})["roles"][0]["id"]
    admin.put("identity", f"/projects/{project_id}/users/{user_id}/roles/{role_id}")


def remove(admin: Cloud, tenant: Tenant) -> None:
    """Delete user and project."""
    admin.delete("identity", f"/users/{tenant.user_id}")
    admin.delete("identity", f"/projects/{tenant.project_id}")


def limit(admin: Cloud, project_id: str, service: str, limits: Mapping[str, int]) -> None:
    """Set quotas of a project for a service; others stay, -1 is no limit."""
    path, key, _ = NOTHING[service]
    admin.put(service, path.format(project_id), json={key: dict(limits)})


def unlimit(admin: Cloud, project_id: str, service: str) -> None:
    """Reset the quotas of a project."""
    path, _, _ = NOTHING[service]
    admin.delete(service, path.format(project_id))
