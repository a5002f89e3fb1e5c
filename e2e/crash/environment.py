"""One run: a namespace, a project, and a manager that is killed on request."""

from __future__ import annotations

import collections
import contextlib
import json
import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from capo.json_types import Json
from capo.local.errors import ApiError
from capo.simulator.counters import Call
from capo.simulator.faults import Order
from capo.simulator.testing import Inventory, inventory, more_than
from e2e.crash.session import CrashSession, Tenant
from environments import objects
from environments.api_server import NamespaceEnvironment
from environments.core_manager_stub import CoreManagerStub, Pool
from environments.kube_proxy import KubeProxy
from environments.manager_process import ON_LOOPBACK, ManagerProcess, NotReachedError, wait_until

WINDOW_S: Final = 4
"""The window of an ambiguous create; 60 s in production."""
LIMIT_S: Final = 240.0
"""Time limit on a busy machine; undisturbed the operations take a few seconds."""
LOOK_S: Final = 0.15
OURS: Final = ("openstackclusters", "openstackmachines", "openstackservers", "openstackfloatingippools")
STAMP: Final = re.compile(r"capo:[a-z0-9]{13}:([a-z0-9-]+?)(?:-[0-9a-f]{32})?(?![a-z0-9-])")
"""The role in a stamp, without the uid of a claim, which differs in each run."""
Signature = collections.Counter[tuple[str, str]]
"""The number of resources of each kind and role; the role is empty for a resource without a stamp."""


@dataclass
class CrashEnvironment(NamespaceEnvironment):
    """The environment of one run.

    Args:
        proxy: the API server's address for the manager; None for the API server itself.
        writes_before: number of writes to OpenStack when the scenario began to act.
        before: resources of the project when the run began.
        has_other_writer: another client changes metadata of our objects all the time.
        meddle: called at each poll of a wait.
    """

    ground: CrashSession
    tenant: Tenant
    manager: ManagerProcess
    proxy: KubeProxy | None = None
    has_other_writer: bool = False
    meddle: Callable[[], None] = lambda: None
    starts: int = 0
    writes_before: int = 0
    before: Inventory = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.players: list[CoreManagerStub | Pool] = [CoreManagerStub(self.api, self.namespace)]

    # -- Kubernetes -------------------------------------------------------------------------------------------------

    def secret(self, name: str = "cloud") -> Json:
        """Return the Secret with the credentials."""
        return objects.secret(name, {"clouds.yaml": self.tenant.clouds.encode()})

    def ours(self) -> list[tuple[str, Json]]:
        """Return all objects of ours with their plural."""
        return [(plural, obj) for plural in OURS for obj in self.list(plural)]

    # -- OpenStack --------------------------------------------------------------------------------------------------

    def add_fault(self, match: Json, effect: Json) -> Order:
        """Inject a fault for this project only."""
        document = {"match": {"project": self.tenant.project_id, **match}, "effect": effect}
        simulator = self.ground.simulator
        return simulator.call(lambda: simulator.cloud.faults.add(document))

    def writes(self) -> list[str]:
        """Return all writes of this project in order, as ``METHOD service/route``."""
        return [f"{call.method} {call.service}{call.route}" for call in self.calls() if call.write_number]

    def calls(self) -> list[Call]:
        """Return all requests of the project in order."""
        counter = self.ground.simulator.cloud.counter
        calls = self.ground.simulator.call(lambda: list(counter.calls))
        return [call for call in calls if call.project_id == self.tenant.project_id]

    def inventory(self) -> Inventory:
        """Return everything in this project by kind and id; a kind without resources is empty."""
        found = inventory(self.ground.simulator)
        mine = {kind: {i: x for i, x in items.items() if self._is_mine(x)} for kind, items in found.items()}
        return collections.defaultdict(dict, {kind: items for kind, items in mine.items() if items})

    def _is_mine(self, item: Json) -> bool:
        places = ("project_id", "tenant_id", "os-vol-tenant-attr:tenant_id")
        return any(item.get(place) == self.tenant.project_id for place in places)

    def signature(self) -> Signature:
        """Return the resources that were added since ``before``."""
        found: Signature = collections.Counter()
        for kind, items in more_than(self.before, self.inventory()).items():
            for item in items.values():
                stamp = STAMP.search(json.dumps(item, default=str))
                found[kind, stamp[1] if stamp else ""] += 1
        return found

    # -- time -------------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Start the manager."""
        self.starts += 1
        self.manager.start()

    def wait_until(self, what: str, reached: Callable[[], Any], *, limit_s: float = LIMIT_S) -> None:
        """Poll for a state, with Cluster API's part; restart a manager that was killed."""

        def look() -> Any:
            if not self.manager.is_alive():
                self.start()
            for player in self.players:
                player.step()
            self.meddle()
            if self.has_other_writer:
                self._disturb()
            return reached()

        try:
            wait_until(f"{self.namespace}: {what}", look, limit_s=limit_s, every_s=LOOK_S)
        except NotReachedError as error:
            raise NotReachedError(f"{error}\n{self._story()}") from error

    def _disturb(self) -> None:
        """Change metadata of our objects as Cluster API's managers do all the time."""
        for plural, obj in self.ours():
            with contextlib.suppress(ApiError):  # it was deleted
                self.patch(plural, obj["metadata"]["name"], {"metadata": {"annotations": {"noise": str(time.time())}}})

    def _story(self) -> str:
        shown = [f"{p}/{o['metadata']['name']}: {json.dumps(o.get('status', {}))}" for p, o in self.ours()]
        return "\n".join([*shown, *self.writes(), self.manager.tail(60)])


@contextlib.contextmanager
def crash_environment(ground: CrashSession, *flags: str, with_proxy: bool = False) -> Iterator[CrashEnvironment]:
    """Yield a fresh project, and a manager that watches only a fresh namespace; it is not started yet."""
    name = ground.name()
    ground.rig.api.apply([{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}])
    with contextlib.ExitStack() as stack:
        proxy = stack.enter_context(KubeProxy(ground.gateway)) if with_proxy else None
        kubeconfig = proxy.kubeconfig(ground.kubeconfig, ground.folder / name) if proxy else ground.kubeconfig
        manager = ManagerProcess(
            kubeconfig, ground.folder / f"{name}.log", (*flags_of(name, ground), *flags), launcher=ground.launcher
        )
        made = CrashEnvironment(ground.rig.api, name, ground, ground.tenant(name), manager, proxy)
        made.apply(made.secret())
        made.before = made.inventory()
        try:
            yield made
        finally:
            if made.starts and manager.is_alive():
                manager.kill()


def flags_of(namespace: str, ground: CrashSession) -> tuple[str, ...]:
    """Return the flags of a manager of one namespace."""
    return (
        f"--namespace={namespace}",
        f"--ambiguous-create-window={WINDOW_S}s",
        *ON_LOOPBACK,
        f"--webhook-cert-dir={ground.folder / 'no-certificates'}",
        "--v=4",
    )
