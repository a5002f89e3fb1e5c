"""The environment of the servers of this folder: one project with a user's resources, a manager, a namespace.

The same on the simulator and on the real services; the manager is a process on a real API server, under the account
that ships.
"""

from __future__ import annotations

import contextlib
import json
import secrets
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import yaml

from capo.json_types import Json
from capo.local.rig import Rig
from capo.openstack.cloud import Cloud
from capo.openstack.kinds import CINDER, KINDS, NOVA
from environments import objects, sweep, targets, tenancy
from environments.api_server import NamespaceEnvironment
from environments.manager_process import ON_LOOPBACK, ManagerProcess, NotReachedError
from environments.wire import Wire

SERVERS: Final = "openstackservers"
LIMITS_S: Final = {targets.SIMULATOR: 300.0, targets.LAB: 500.0}
PUBLIC_KEY: Final = (
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIFKDnzqhKf0CnhHdJRPnuQBy1p5Lz+W98cbLa7217tuH nobody@example.org"
)
USER_DATA: Final = b"#cloud-config\nhostname: tried\n"
FIRST_CIDR: Final = "10.71.0.0/24"
SECOND_CIDR: Final = "10.71.1.0/24"
POOL: Final = ("32", "254")
"""Last parts of the addresses that Neutron allocates by itself; tests request the lower ones."""


@dataclass
class ServersEnvironment(NamespaceEnvironment):
    """The environment that all servers of a run share. The namespace's name is the prefix of all names in the cloud.

    Args:
        cloud: the plain member of the run's own project.
        admin: an administrator of the cloud.
        manager: the running manager.
    """

    rig: Rig
    target: targets.Target
    tenant: tenancy.Tenant
    admin: Cloud
    manager: ManagerProcess
    network: Json = field(default_factory=dict)
    subnets: tuple[Json, ...] = ()
    other_network: Json = field(default_factory=dict)
    groups: tuple[Json, ...] = ()
    server_group: Json = field(default_factory=dict)
    external_id: str = ""
    image: Json = field(default_factory=dict)
    local_flavor: str = ""
    """Name of a flavor that has 2 GiB for disks on the host."""
    admin_user_id: str = ""
    """The user of :func:`_as_admin`."""

    @property
    def cloud(self) -> Cloud:
        return self.tenant.cloud

    # -- Kubernetes ---------------------------------------------------------------------------------------------------

    def secret(self, name: str, entry: Mapping[str, Any]) -> Json:
        """Return a Secret with credentials."""
        text = yaml.safe_dump({"clouds": {"it": dict(entry)}}).encode()
        return objects.secret(name, {"clouds.yaml": text})

    def server_object(self, name: str, **spec: Any) -> Json:
        """Return an OpenStackServer of the run's network, with good defaults."""
        wanted = {
            "identityRef": {"name": "member", "cloudName": "it"},
            "image": {"id": self.image["id"]},
            "sshKeyName": "",
            **spec,
        }
        return objects.openstack_server(name, self.network["id"], **wanted)

    def server(self, name: str) -> Json | None:
        """Return an OpenStackServer as it is now."""
        return self.find(SERVERS, name)

    def wait_until(self, what: str, reached: Callable[[], Any]) -> Any:
        """Poll until a function returns something true; return it."""
        limit_s = LIMITS_S[self.target.name]
        ends_s = time.monotonic() + limit_s
        while not (answer := reached()):
            assert self.manager.is_alive(), f"{what}: the manager has ended\n{self._story()}"
            if time.monotonic() > ends_s:
                raise NotReachedError(f"{what}: not within {limit_s:.0f} s\n{self._story()}")
            time.sleep(0.1)
        return answer

    def _story(self) -> str:
        """Return the state of each server that is not ready or being deleted, and the end of the log."""
        servers = self.list(SERVERS)
        odd = [o for o in servers if "deletionTimestamp" in o["metadata"] or not o.get("status", {}).get("ready")]
        shown = [f"{o['metadata']['name']}: {json.dumps(o.get('status'), indent=1)}" for o in odd]
        return "\n".join([*shown, self.manager.tail(60)])

    def wait_until_ready(self, name: str) -> Json:
        """Wait until an OpenStackServer is ready; return it."""

        def reached() -> Json | None:
            found = self.server(name)
            return found if found and found.get("status", {}).get("ready") else None

        found: Json = self.wait_until(f"{name} is ready", reached)
        return found

    # -- OpenStack ----------------------------------------------------------------------------------------------------

    def show(self, kind: str, id_: str) -> Json:
        """Return a resource as an administrator sees it."""
        what = KINDS[kind]
        found: Json = self.admin.get(what.service, what.path(id_), microversion=what.microversion)[what.body_key]
        return found

    def records(self, obj: Json, kind: str) -> list[Json]:
        """Return the resources of a kind that an OpenStackServer created, by role, as an administrator sees them."""
        found = [r for r in obj["status"]["resources"]["records"] if r["kind"] == kind]
        return [self.show(kind, record["id"]) for record in sorted(found, key=lambda record: record["role"])]

    def remaining(self) -> dict[str, list[str]]:
        """Return the names of the project's servers, volumes, ports and trunks, except ports of routers and DHCP."""
        project = self.tenant.project_id
        found = {}
        for kind in ("server", "volume", "port", "trunk"):
            what = KINDS[kind]
            listed = self.cloud.list_all(
                what.service,
                what.list_path,
                what.key,
                params=what.list_params(project),
                microversion=what.microversion,
            )
            found[kind] = [b["name"] for b in listed if not str(b.get("device_owner", "")).startswith("network:")]
        return {kind: names for kind, names in found.items() if names}

    def make(self, service: str, path: str, kind: str, **values: Any) -> Json:
        """Create a resource as the user."""
        version = {"compute": NOVA, "volume": CINDER}.get(service)
        made: Json = self.cloud.post(service, path, json={kind: values}, microversion=version)[kind]
        return made


@contextlib.contextmanager
def servers_environment(rig: Rig, kubeconfig: Path, cloud: str, folder: Path) -> Iterator[ServersEnvironment]:
    """Yield a project and a manager that watches only our namespace; at the end nothing is left of both."""
    run = f"servers-{secrets.token_hex(3)}"
    rig.apply([{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": run}}])
    manager = ManagerProcess(kubeconfig, folder / f"{run}.log", _flags(run))
    with targets.running(cloud) as target:
        wire = Wire(target.auth_url, [])
        admin = tenancy.cloud_of(wire, tenancy.credentials_of(target.admin))
        tenant = tenancy.make(wire, target, admin, run)
        ground = ServersEnvironment(rig.api, run, rig, target, tenant, admin, manager)
        try:
            _furnish(ground)
            ground.apply(ground.secret("member", tenant.entry), ground.secret("admin", _as_admin(ground)))
            manager.start()
            yield ground
        finally:
            if manager.is_alive():
                manager.stop()
            sweep.empty(tenant.cloud, admin, tenant.project_id, every_s=target.every_s)
            _unmake_flavor(ground)
            if ground.admin_user_id:
                admin.delete("identity", f"/users/{ground.admin_user_id}")
            tenancy.remove(admin, tenant)


def _flags(namespace: str) -> tuple[str, ...]:
    return (f"--namespace={namespace}", *ON_LOOPBACK, "--sync-period=20s", "--v=4")


def _as_admin(ground: ServersEnvironment) -> Json:
    """Return credentials of an administrator in the project: clouds allow some fields only to administrators."""
    name, password = f"{ground.namespace}-admin", secrets.token_hex(12)
    wanted = {"name": name, "domain_id": "default", "password": password}
    user = ground.admin.post("identity", "/users", json={"user": wanted})["user"]
    ground.admin_user_id = user["id"]
    roles = [role["name"] for role in ground.admin.get("identity", "/roles")["roles"]]
    # Neutron 2026.2 accepts a binding profile only from the role `service`; older clouds have no such role.
    for role in ("member", "admin", "service"):
        if role in roles:
            tenancy.grant(ground.admin, ground.tenant.project_id, user["id"], role)
    return ground.tenant.with_auth(username=name, password=password)


def _make_flavor(ground: ServersEnvironment) -> None:
    """Create a flavor with room for disks on the host; the clouds have none."""
    ground.local_flavor = f"{ground.namespace}-local"
    wanted = {"name": ground.local_flavor, "vcpus": 1, "ram": 512, "disk": 1, "OS-FLV-EXT-DATA:ephemeral": 2}
    simulator = ground.target.simulator
    if simulator is None:
        ground.admin.post("compute", "/flavors", json={"flavor": wanted}, microversion=NOVA)
        return

    def put() -> None:
        flavors = simulator.cloud.table("compute", "flavors")
        small = next(each for each in flavors.values() if each["name"] == "m1.small")
        flavors["local"] = {**small, "id": "local", "name": ground.local_flavor, "ephemeral": 2}

    simulator.call(put)


def _unmake_flavor(ground: ServersEnvironment) -> None:
    """Delete our flavor from a cloud that keeps running."""
    if ground.target.simulator is None and ground.local_flavor:
        flavors = ground.admin.list_all("compute", "/flavors", "flavors", microversion=NOVA)
        for each in flavors:
            if each["name"] == ground.local_flavor:
                ground.admin.delete("compute", f"/flavors/{each['id']}", microversion=NOVA)


def _make_subnet(ground: ServersEnvironment, name: str, network_id: str, cidr: str) -> Json:
    """Create a subnet whose first addresses are not allocated automatically."""
    prefix = cidr.rpartition(".")[0]
    pool = {"start": f"{prefix}.{POOL[0]}", "end": f"{prefix}.{POOL[1]}"}
    body = {"name": name, "network_id": network_id, "cidr": cidr, "ip_version": 4, "allocation_pools": [pool]}
    return ground.make("network", "/subnets", "subnet", **body)


def _furnish(ground: ServersEnvironment) -> None:
    """Create a user's resources before the first server."""
    run = ground.namespace
    ground.network = ground.make("network", "/networks", "network", name=f"{run}-net")
    ground.other_network = ground.make("network", "/networks", "network", name=f"{run}-other")
    cidrs = {FIRST_CIDR: ground.network, SECOND_CIDR: ground.network, "10.72.0.0/24": ground.other_network}
    ground.subnets = tuple(
        _make_subnet(ground, f"{run}-{i}", net["id"], cidr) for i, (cidr, net) in enumerate(cidrs.items())
    )
    ground.groups = tuple(
        ground.make("network", "/security-groups", "security_group", name=f"{run}-{i}") for i in range(2)
    )
    ground.server_group = ground.make(
        "compute", "/os-server-groups", "server_group", name=f"{run}-group", policy="soft-anti-affinity"
    )
    ground.make("compute", "/os-keypairs", "keypair", name=f"{run}-key", type="ssh", public_key=PUBLIC_KEY)
    external = ground.cloud.get("network", "/networks", params={"router:external": True})["networks"]
    ground.external_id = external[0]["id"]
    router = ground.make(
        "network", "/routers", "router", name=run, external_gateway_info={"network_id": ground.external_id}
    )
    for subnet in ground.subnets[:1]:
        path = f"/routers/{router['id']}/add_router_interface"
        ground.cloud.put("network", path, json={"subnet_id": subnet["id"]})
    ground.cloud.put("network", f"/networks/{ground.network['id']}/tags", json={"tags": [f"{run}-tag"]})
    ground.cloud.put("network", f"/security-groups/{ground.groups[1]['id']}/tags", json={"tags": [f"{run}-tag"]})
    _make_flavor(ground)
    ground.image = ground.cloud.get("image", "/images", params={"name": "tiny-image"})["images"][0]
