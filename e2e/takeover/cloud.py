"""The clouds of these tests: the simulator, or a project of its own on the services of ``tools/openstack-lab``."""

from __future__ import annotations

import contextlib
import secrets
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Final, Protocol

from capo import names
from capo.json_types import Body, Json
from capo.local.demo import clouds
from capo.local.demo.counting import LogCounter, Tally
from capo.local.demo.inventory import LISTINGS, entries
from capo.local.demo.openstack import CloudError, OpenStack
from capo.openstack import kinds
from capo.openstack.cloud import Cloud
from capo.openstack.kinds import KINDS, NOVA, ResourceKind
from capo.simulator.simulator import Simulator
from capo.simulator.testing import Inventory, inventory, without_default_groups
from controllers.tests import stamps
from e2e.crash.session import KEY_PAIR, PUBLIC_KEY
from e2e.takeover import go_provider
from environments import sweep, targets, tenancy
from environments.manager_process import wait_until
from environments.wire import Wire


class CloudUnderTest(Protocol):
    """A cloud without other users, or a project of one.

    Args:
        limit_s: time limit for a cluster.
        idle_s: time for which a ready cluster is observed.
        has_second_cluster: a second cluster exists beside the one that is taken over or moved.
        variables: of the cluster template.
    """

    name: str
    limit_s: float
    idle_s: float
    has_second_cluster: bool
    variables: Mapping[str, str]

    def inventory(self) -> Inventory:
        """Return every resource by kind and id, except the default security group and its rules."""

    def unstamp(self) -> None:
        """Remove our stamps from every resource."""

    def reset_requests(self) -> None:
        """Reset the count of requests."""

    def requests(self) -> Tally:
        """Return the provider's requests since the reset."""


class SimulatedCloud:
    """The simulator."""

    name = targets.SIMULATOR
    limit_s = 300.0
    idle_s = 0.0
    has_second_cluster = False

    def __init__(self, simulator: Simulator) -> None:
        self.simulator = simulator
        self.variables: Mapping[str, str] = clouds.simulated(simulator.clouds_yaml, simulator.url).variables

    def inventory(self) -> Inventory:
        """Return every resource."""
        return inventory(self.simulator)

    def unstamp(self) -> None:
        """Remove our stamps."""
        go_provider.unstamp(self.simulator)

    def reset_requests(self) -> None:
        """Reset the count of requests."""
        self.simulator.call(self.simulator.cloud.counter.reset)

    def requests(self) -> Tally:
        """Return the requests since the reset."""
        calls = self.simulator.call(lambda: list(self.simulator.cloud.counter.calls))
        return Counter((call.service, f"{call.method} {call.path}") for call in calls)


class RealCloud:
    """A project on the real services. No other provider may use them: requests are counted by user agent."""

    name = targets.LAB
    limit_s = 900.0
    idle_s = 90.0
    has_second_cluster = True

    def __init__(self, tenant: tenancy.Tenant) -> None:
        self._tenant = tenant
        # Its user agent differs from the provider's, so its requests are not counted.
        self._reader = OpenStack(tenant.entry)
        self._counter = LogCounter(targets.lab_folder() / "log", clouds.PROVIDER_AGENT)
        self._forgotten: Tally = Counter()
        self.variables: Mapping[str, str] = clouds.variables(self._reader, tenant.entry)

    def inventory(self) -> Inventory:
        """Return every resource."""
        found: Inventory = {}
        for listing in LISTINGS:
            bodies = [body.get("keypair", body) for body in entries(self._reader, listing)]
            found[f"{listing.service}/{listing.key}"] = {body.get("id") or body["name"]: body for body in bodies}
        members = [body for pool_id in found["load-balancer/pools"] for body in self._members(pool_id)]
        found["load-balancer/members"] = {body["id"]: body for body in members}
        return without_default_groups(found)

    def _members(self, pool_id: str) -> list[Json]:
        try:
            return list(self._reader.list("load-balancer", f"/lbaas/pools/{pool_id}/members", "members"))
        except CloudError as error:
            if ": 404 " in str(error):  # the pool was deleted after it had been listed
                return []
            raise

    def unstamp(self) -> None:
        """Remove our stamps."""
        for kind in KINDS.values():
            for body in self._listed(kind):
                if kind.stamp_of(body):
                    self._remove_stamp(kind, body)
        for pool in self._listed(kinds.POOL):
            for member in self._members(pool["id"]):
                wait_until("no load balancer is being changed", self._balancers_are_active)
                path = f"/lbaas/pools/{pool['id']}/members/{member['id']}"
                change = {"member": {"tags": stamps.remove(member)["tags"]}}
                self._tenant.cloud.put("load-balancer", path, json=change)

    def _listed(self, kind: ResourceKind) -> list[Body]:
        params = kind.list_params(self._tenant.project_id)
        found: list[Body] = self._tenant.cloud.list_all(
            kind.service, kind.list_path, kind.key, params=params, microversion=kind.microversion
        )
        return found

    def _remove_stamp(self, kind: ResourceKind, body: Body) -> None:
        cloud, path = self._tenant.cloud, kind.path(body["id"])
        if kind.stamp_place == kinds.METADATA:
            cloud.delete(kind.service, f"{path}/metadata/{names.VOLUME_STAMP_KEY}", microversion=kind.microversion)
        elif kind is kinds.SERVER:
            tags = stamps.remove(dict(body))["tags"]
            cloud.put(kind.service, f"{path}/tags", json={"tags": tags}, microversion=kind.microversion)
        else:
            if kind.service == "load-balancer":
                wait_until("no load balancer is being changed", self._balancers_are_active)
            change = {kind.stamp_place: stamps.remove(dict(body))[kind.stamp_place]}
            cloud.put(kind.service, path, json={kind.body_key: change})

    def _balancers_are_active(self) -> bool:
        return {body["provisioning_status"] for body in self._listed(kinds.LOAD_BALANCER)} <= {"ACTIVE"}

    def reset_requests(self) -> None:
        """Reset the count of requests."""
        self._forgotten = self._counter.tally()

    def requests(self) -> Tally:
        """Return the requests since the reset."""
        return self._counter.tally() - self._forgotten


@contextlib.contextmanager
def running(name: str) -> Iterator[CloudUnderTest]:
    """Yield a cloud; a project on the real services is deleted afterwards."""
    if name == targets.SIMULATOR:
        with Simulator.start() as simulator:
            yield SimulatedCloud(simulator)
        return
    with targets.running(name) as target:
        admin = tenancy.cloud_of(Wire(target.auth_url, []), tenancy.credentials_of(target.admin))
        with _tenant(target, admin) as tenant:
            yield RealCloud(tenant)


@contextlib.contextmanager
def _tenant(target: targets.Target, admin: Cloud) -> Iterator[tenancy.Tenant]:
    """Yield a project with one user who has a key pair."""
    tenant = tenancy.make(Wire(target.auth_url, []), target, admin, f"takeover-{secrets.token_hex(3)}")
    try:
        key: Final = {"name": KEY_PAIR, "public_key": PUBLIC_KEY, "type": "ssh"}
        tenant.cloud.post("compute", "/os-keypairs", json={"keypair": key}, microversion=NOVA)
        yield tenant
    finally:
        sweep.empty(tenant.cloud, admin, tenant.project_id, every_s=target.every_s)
        tenancy.remove(admin, tenant)
