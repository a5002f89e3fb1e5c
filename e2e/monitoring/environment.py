"""One manager that Prometheus scrapes, and a namespace with a cloud of its own for each fault."""

from __future__ import annotations

import contextlib
import datetime
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

from capo.components import NAMESPACE as HOME
from capo.json_types import Json
from capo.local.installed import LONG_TERMS
from capo.local.rig import Rig
from capo.local.testing import spare_ports
from capo.simulator.keystone.service import add_credential
from environments import objects
from environments.api_server import SimulatedCloudEnvironment
from environments.manager_process import ON_LOOPBACK, ManagerProcess, running

WATCH_FILTER: Final = "monitoring"
SERVERS: Final = "openstackservers"
NAME: Final = "watched"
BLIND: Final = "blind"
"""Names of the manager that may not watch: of its account and role, and of what it would act on."""
_ROLES: Final = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
SHIPPED_ROLE: Final = f"{_ROLES}/capo-system-capo-manager-role"
BLIND_ROLE: Final = f"{_ROLES}/{BLIND}"


@dataclass
class MonitoredEnvironment(SimulatedCloudEnvironment):
    """A namespace with a cloud, in which one thing goes wrong."""

    def apply(self, *wanted: Json) -> None:
        """Apply objects in the namespace, labelled for the manager of this folder."""
        self.api.apply([objects.placed(obj, self.namespace, WATCH_FILTER) for obj in wanted])

    def prepare(self) -> str:
        """Apply the credentials; return the id of a network of the user."""
        self.apply(objects.secret("cloud", {"clouds.yaml": self.simulator.clouds_yaml.read_bytes()}))
        with self.client() as client:
            network, subnet = client.make_network("own")
        self.users |= {network["id"], subnet["id"]}
        return str(network["id"])

    def apply_server(self, name: str = NAME, **spec: Any) -> None:
        """Apply a server on a new network of the user."""
        self.apply(objects.openstack_server(name, self.prepare(), **spec))

    def wait_until_ready(self, name: str = NAME, *, limit_s: float | None = None) -> None:
        """Wait until a server is ready."""
        self.wait_until(f"{name} is ready", lambda: self.status(SERVERS, name).get("ready"), limit_s=limit_s)

    def wait_until_deleted(self, plural: str, name: str = NAME) -> None:
        """Wait until an object does not exist."""
        self.wait_until(f"{plural} {name} is deleted", lambda: self.find(plural, name) is None)

    def add_fault(self, **document: Any) -> None:
        """Inject a fault."""
        self.simulator.call(lambda: self.simulator.cloud.faults.add(document))

    def clear_faults(self) -> None:
        """Remove all faults."""
        self.simulator.call(self.simulator.cloud.faults.clear)

    def limit(self, service: str, resource: str, limit: int) -> None:
        """Set a quota of the project."""
        with self.client() as client:
            project_id = client.project_id
        self.simulator.call(lambda: self.simulator.cloud.set_quota(service, project_id, resource, limit))

    def application_credential(self, *, expires_in_s: float) -> Json:
        """Return a Secret with a new application credential that expires."""
        cloud = self.simulator.cloud
        expires = datetime.datetime.now(datetime.UTC) + datetime.timedelta(seconds=expires_in_s)

        def create() -> Json:
            member = next(user for user in cloud.table("identity", "users").values() if user["name"] == "capi")
            made = add_credential(cloud, member, member["default_project_id"], cloud.new_hex())
            made["expires_at"] = expires.strftime("%Y-%m-%dT%H:%M:%S.000000Z")
            return made

        made = self.simulator.call(create)
        auth = {
            "auth_url": f"{self.simulator.url}/identity/v3",
            "application_credential_id": made["id"],
            "application_credential_secret": made["_secret"],
        }
        entry = {"auth_type": "v3applicationcredential", "auth": auth, "region_name": "RegionOne"}
        return objects.secret("cloud", {"clouds.yaml": yaml.safe_dump({"clouds": {"sim": entry}}).encode()})


@dataclass
class Manager:
    """A manager as it ships, and where its metrics are."""

    process: ManagerProcess
    metrics: str


@dataclass
class BlindManager(Manager):
    """A manager without objects whose account may not watch, until it is allowed to."""

    rig: Rig

    def allow_watches(self) -> None:
        """Give its account the rights that ship."""
        self.rig.api.patch(BLIND_ROLE, {"rules": self.rig.api.get(SHIPPED_ROLE)["rules"]})


@contextlib.contextmanager
def running_manager(rig: Rig, folder: Path) -> Iterator[Manager]:
    """Run a manager that takes part in leader election; end it afterwards."""
    flags = (
        f"--watch-filter={WATCH_FILTER}",
        "--leader-elect",
        *LONG_TERMS,
        "--ambiguous-create-window=10s",
        "--sync-period=10s",
        "--openstack-quota-interval=2s",
        "--v=4",
    )
    process, metrics = _process(rig.install_provider_account(), folder / "manager.log", flags)
    with running(process):
        yield Manager(process, metrics)


@contextlib.contextmanager
def running_blind_manager(rig: Rig, folder: Path) -> Iterator[BlindManager]:
    """Run a manager that may list and not watch; end it afterwards."""
    role = rig.api.get(SHIPPED_ROLE)
    rules = [{**rule, "verbs": [verb for verb in rule["verbs"] if verb != "watch"]} for rule in role["rules"]]
    account = {"kind": "ServiceAccount", "name": BLIND, "namespace": HOME}
    group = "rbac.authorization.k8s.io"
    rig.apply(
        [
            {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": BLIND, "namespace": HOME}},
            {"apiVersion": f"{group}/v1", "kind": "ClusterRole", "metadata": {"name": BLIND}, "rules": rules},
            {
                "apiVersion": f"{group}/v1",
                "kind": "ClusterRoleBinding",
                "metadata": {"name": BLIND},
                "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": BLIND},
                "subjects": [account],
            },
        ]
    )
    kubeconfig = rig.service_account_kubeconfig(HOME, BLIND)
    process, metrics = _process(kubeconfig, folder / "blind.log", (f"--watch-filter={BLIND}",))
    with running(process):
        yield BlindManager(process, metrics, rig)


def _process(kubeconfig: Path, log: Path, flags: tuple[str, ...]) -> tuple[ManagerProcess, str]:
    """Return a manager and the address of its metrics."""
    address = f"127.0.0.1:{spare_ports('metrics')['metrics']}"
    given = (*ON_LOOPBACK, f"--diagnostics-address={address}", *flags)
    return ManagerProcess(kubeconfig, log, given, environment={"POD_NAMESPACE": HOME}), address
