"""The same runs on the real services of ``tools/openstack-lab``; a project of its own, requests counted in logs."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import yaml

from capo.local.demo.clouds import PROVIDER_AGENT
from capo.local.demo.counting import LogCounter, is_write
from capo.openstack.cloud import Cloud
from capo.openstack.kinds import KINDS, NOVA
from capo.simulator.testing import Inventory
from e2e.crash.session import KEY_PAIR, PUBLIC_KEY, CrashSession, Tenant
from e2e.upgrade.environment import UpgradeEnvironment, environment_of_kind
from e2e.upgrade.installation import Version
from environments import sweep, targets, tenancy
from environments.manager_launcher import ManagerLauncher
from environments.wire import Wire


@dataclass
class RealCloudSession(CrashSession):
    """A ground whose projects are on the real services.

    Args:
        made: the last created project.
    """

    target: targets.Target | None = None
    made: tenancy.Tenant | None = None

    def tenant(self, name: str) -> Tenant:
        """Create a project and a plain member of it."""
        assert self.target is not None
        wire = Wire(self.target.auth_url, [])
        made = tenancy.make(wire, self.target, administrator(self.target), name)
        key = {"name": KEY_PAIR, "public_key": PUBLIC_KEY, "type": "ssh"}
        made.cloud.post("compute", "/os-keypairs", json={"keypair": key}, microversion=NOVA)
        self.made = made
        return Tenant(made.project_id, made.user_id, yaml.safe_dump({"clouds": {"sim": made.entry}}))


@dataclass
class RealCloudEnvironment(UpgradeEnvironment):
    """A run on the real services; no other provider may use them during the run."""

    counter: LogCounter = field(default_factory=lambda: LogCounter(targets.lab_folder() / "log", PROVIDER_AGENT))

    @property
    def cloud(self) -> Cloud:
        """Return the client of the project's user."""
        assert isinstance(self.ground, RealCloudSession)
        assert self.ground.made is not None
        return self.ground.made.cloud

    def writes(self) -> list[str]:
        """Return the provider's writes, in no order."""
        tally = self.counter.tally()
        return [f"{request} of {service}" for service, request in tally.elements() if is_write(service, request)]

    def inventory(self) -> Inventory:
        """Return everything in the project by kind and id, except the default security group."""
        found: dict[str, dict[str, Any]] = {}
        for name, kind in KINDS.items():
            params = kind.list_params(self.tenant.project_id)
            listed = self.cloud.list_all(
                kind.service, kind.list_path, kind.key, params=params, microversion=kind.microversion
            )
            found[name] = {body["id"]: body for body in listed if body.get("name") != "default"}
        return {name: items for name, items in found.items() if items}


def administrator(target: targets.Target) -> Cloud:
    """Return a client of the cloud's administrator."""
    return tenancy.cloud_of(Wire(target.auth_url, []), tenancy.credentials_of(target.admin))


@contextlib.contextmanager
def real_cloud_environment(
    ground: CrashSession, nurseries: Mapping[Version, ManagerLauncher]
) -> Iterator[RealCloudEnvironment]:
    """Yield a run on the real services; project, its resources and user are deleted."""
    with targets.running(targets.LAB) as target:
        shared = {name: getattr(ground, name) for name in CrashSession.__dataclass_fields__ if not name.startswith("_")}
        on_lab = RealCloudSession(**shared, target=target)
        try:
            with environment_of_kind(RealCloudEnvironment, on_lab, nurseries) as made:
                yield made
        finally:
            if on_lab.made:
                admin = administrator(target)
                sweep.empty(on_lab.made.cloud, admin, on_lab.made.project_id, every_s=target.every_s)
                tenancy.remove(admin, on_lab.made)
