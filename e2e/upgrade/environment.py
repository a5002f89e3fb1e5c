"""One run: a namespace, a project and a manager that is of one version, then of the other."""

from __future__ import annotations

import collections
import contextlib
import copy
import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, TypeVar

from capo import names
from capo.json_types import Json
from capo.local.demo import counting
from capo.local.testing import spare_ports
from capo.simulator.counters import Call
from capo.simulator.testing import Inventory
from e2e.crash.environment import LIMIT_S, OURS, STAMP, CrashEnvironment, Signature, flags_of
from e2e.crash.session import CrashSession
from e2e.takeover.go_provider import pruned
from e2e.upgrade.installation import Installation, Version
from environments.kube_proxy import KubeProxy
from environments.manager_launcher import ManagerLauncher
from environments.manager_process import ManagerProcess, NotReachedError, wait_until

Tally = collections.Counter[str]

LOOK_S: Final = 0.15
RESYNC_S: Final = 1
ROUNDS: Final = 2
"""Number of reconciles of every object in a span."""
SPANS: Final = 6
"""Of so many spans an idle manager must not write in one."""
CONTROLLERS: Final = {plural: plural.removesuffix("s") for plural in OURS}
"""The controller of each kind as named in metrics."""
DEFINITIONS: Final = "/apis/apiextensions.k8s.io/"
MASKS: Final = (
    (re.compile(r"\b[0-9a-f]{8}-?(?:[0-9a-f]{4}-?){3}[0-9a-f]{12}\b"), "<id>"),
    (re.compile(r"\b\d+\.\d+\.\d+\.\d+\b"), "<address>"),
    (re.compile(r"\bcapo:[a-z2-7]{13}:"), "capo:<owner>:"),
    (re.compile(r"\baz\d\b"), "<zone>"),
    (re.compile(r"\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z"), "<time>"),
)
"""Differences between two equal runs; the simulator chooses zones at random."""
EQUAL_S: Final = 120.0
"""Time limit for conditions to equal those of an undisturbed run after everything is ready."""


@dataclass(frozen=True)
class Facts:
    """The result of a run.

    Args:
        resources: number of each kind and role.
        objects: status, finalizers and annotations of our objects, without ids, addresses and times.
        created: number of resources created in the project, by route.
        deleted: number of resources deleted in the project, by route.
    """

    resources: Signature
    objects: Mapping[str, Any]
    created: Tally
    deleted: Tally

    def with_status_of(self, installed: Installation) -> Facts:
        """Return the same without status fields that a version neither writes nor removes: it does not define them."""
        objects = {
            path: {**shown, "status": pruned(shown["status"], schema)}
            for path, shown in self.objects.items()
            for schema in [installed.status_schemas[path.partition("/")[0]]]
        }
        return replace(self, objects=objects)

    def without_adoption(self) -> Facts:
        """Return the same without the annotation of adopted objects: it depends on the version that completed it.

        So does the location: a version that has nothing left to read from the cloud stores it with a later resync.
        """
        objects = copy.deepcopy(dict(self.objects))
        for shown in objects.values():
            (shown["status"].get("resources") or {}).pop("location", None)
            shown["annotations"] = [name for name in shown["annotations"] if name != names.ADOPTED_ANNOTATION]
        return replace(self, objects=objects)


@dataclass
class UpgradeEnvironment(CrashEnvironment):
    """The environment of one run.

    Args:
        nurseries: start managers of either version.
        logs: of every manager of the run, in order.
        held: the request in flight when the last manager was killed, which takes effect when the next one runs.
    """

    nurseries: Mapping[Version, ManagerLauncher] = field(default_factory=dict)
    logs: list[str] = field(default_factory=list)
    held: Call | None = None

    # -- managers -----------------------------------------------------------------------------------------------------

    def use(self, version: Version, *flags: str) -> None:
        """Replace the manager, which must have ended, by one of a version; it is not started yet."""
        assert not self.manager.is_alive()
        self.manager = self.another(version, *flags)

    def another(self, version: Version, *flags: str) -> ManagerProcess:
        """Return a manager of a version beside the one in use."""
        log = self.ground.folder / f"{self.namespace}-{len(self.logs)}-{version}.log"
        self.logs.append(str(log))
        standard = (*flags_of(self.namespace, self.ground), *flags)
        return replace(self.manager, launcher=self.nurseries[version], log=log, flags=standard, _process=None)

    def start(self) -> None:
        """Start the manager in use.

        Raises:
            AssertionError: it was started before, so it has ended unexpectedly.
        """
        assert not self.manager.was_started, f"the manager ended by itself\n{self.manager.tail(60)}"
        super().start()

    def start_and_land(self, is_over: Callable[[], Any]) -> None:
        """Start the manager; a request that is held takes effect after the manager has listed its kind."""
        held, self.held = self.held, None
        seen = len(self.calls())
        self.start()
        if held is None:
            return
        collection = held.route.partition("/{")[0]

        def has_listed() -> bool:
            new = self.calls()[seen:]
            return any(each.method == "GET" and each.route.startswith(collection) for each in new) or bool(is_over())

        self.wait_until(f"the manager has listed {collection}", has_listed)
        simulator = self.ground.simulator
        simulator.call(simulator.cloud.release)

    def wait_until_ended(self, what: str, is_over: Callable[[], Any]) -> None:
        """Wait until the manager has ended or a condition holds, then end the manager."""

        def look() -> bool:
            if not self.manager.is_alive():
                return True
            for player in self.players:
                player.step()
            return bool(is_over())

        try:
            wait_until(f"{self.namespace}: {what}", look, limit_s=LIMIT_S, every_s=LOOK_S)
        except NotReachedError as error:
            raise NotReachedError(f"{error}\n{self._story()}") from error
        if self.manager.is_alive():
            self.manager.kill()

    def wait_until_conditions_equal(self, objects: Mapping[str, Any]) -> None:
        """Wait until our objects have the generation and conditions that those of an undisturbed run have.

        Raises:
            AssertionError: time is over; the message has the differences.
        """
        wanted, what = conditions(objects), "the conditions are those of an undisturbed run"
        try:
            self.wait_until(what, lambda: conditions(self.objects()) == wanted, limit_s=EQUAL_S)
        except AssertionError as error:
            raise AssertionError(f"{differences(wanted, conditions(self.objects()))}\n{error}") from error

    def require_idle(self, version: Version) -> None:
        """Start another manager of a version and wait for some resyncs; in the last of them it must not write."""
        self.manager.kill()
        address = f"127.0.0.1:{spare_ports('metrics')['metrics']}"
        self.use(version, f"--sync-period={RESYNC_S}s", f"--diagnostics-address={address}")
        self.start()
        self._until_reconciled(address, ROUNDS)
        for span in range(1, SPANS):
            before = collections.Counter(self._written())
            self._until_reconciled(address, (span + 1) * ROUNDS)
            more = collections.Counter(self._written()) - before
            if not more:
                return
        raise AssertionError(f"an idle manager goes on writing: {dict(more)}")

    def _until_reconciled(self, address: str, times: int) -> None:
        """Wait until the manager has reconciled every object so many times since its start."""
        wanted = {CONTROLLERS[plural]: times * len(self.list(plural)) for plural in OURS}

        def are_reconciled() -> bool:
            now = self._reconciles(address)
            return all(now[name] >= number for name, number in wanted.items())

        self.wait_until(f"every object is reconciled {times} times", are_reconciled)

    def _reconciles(self, address: str) -> Tally:
        found: Tally = collections.Counter()
        with contextlib.suppress(OSError):  # it does not serve yet
            for labels, value in counting.samples(
                counting.scrape(f"http://{address}/metrics"), "controller_runtime_reconcile_total"
            ):
                found[labels["controller"]] += int(value)
        return found

    def _written(self) -> list[str]:
        """Return the writes to Kubernetes and to OpenStack, except those of definitions, which all runs share."""
        assert self.proxy is not None
        objects = [each for each in self.proxy.written if not each.partition(" ")[2].startswith(DEFINITIONS)]
        return [*objects, *self.writes()]

    # -- the present state ------------------------------------------------------------------------------------------

    def facts(self) -> Facts:
        """Return the present result of the run."""
        created, deleted = self.changes()
        return Facts(self.signature(), self.objects(), created, deleted)

    def objects(self) -> Mapping[str, Any]:
        """Return the visible state of our objects, without ids, addresses and times."""
        return {f"{plural}/{obj['metadata']['name']}": self._shown(obj) for plural, obj in self.ours()}

    def _shown(self, obj: Json) -> Any:
        metadata, status = obj["metadata"], dict(obj.get("status") or {})
        # The released version shows it during a takeover, and it stays until each kind was listed again.
        status["conditions"] = [c for c in status.get("conditions") or () if c["reason"] != "NamesTaken"]
        if settings := status.get("loadBalancerSettings"):  # by ids, which differ
            status["loadBalancerSettings"] = sorted(settings, key=lambda each: sorted(each["settings"]))
        shown = {
            "status": status,
            "generation": metadata["generation"],
            "finalizers": metadata.get("finalizers"),
            "annotations": sorted(metadata.get("annotations") or {}),
        }
        return json.loads(masked(json.dumps(shown).replace(self.namespace, "<namespace>")))

    def changes(self) -> tuple[Tally, Tally]:
        """Return how many resources of the project requests created and deleted, by route."""
        created: Tally = collections.Counter()
        deleted: Tally = collections.Counter()
        for call in self.calls():
            # The released version calls Octavia by the older of the two paths that it has for everything.
            route = call.route.replace("/v2/lbaas/", "/v2.0/lbaas/")
            created[call.service + route] += len(call.created)
            deleted[call.service + route] += len(call.deleted)
        return +created, +deleted

    def lost(self) -> dict[str, set[str]]:
        """Return the ids of the project's initial resources that are missing, by kind."""
        now = self.inventory()
        lost = {kind: set(items) - set(now.get(kind, ())) for kind, items in self.before.items()}
        return {kind: ids for kind, ids in lost.items() if ids}


def conditions(objects: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return generation and conditions of objects; other parts of a status may be a minute late."""
    return {
        path: (shown["generation"], (shown["status"] or {}).get("conditions", ())) for path, shown in objects.items()
    }


def masked(text: str) -> str:
    """Return a text without ids, addresses and times."""
    for pattern, mask in MASKS:
        text = pattern.sub(mask, text)
    return text


def differences(expected: Any, found: Any, path: str = "") -> list[str]:
    """Return a line for each place where two documents differ."""
    if isinstance(expected, Mapping) and isinstance(found, Mapping):
        keys = sorted({*expected, *found})
        return [line for key in keys for line in differences(expected.get(key), found.get(key), f"{path}/{key}")]
    if isinstance(expected, list) and isinstance(found, list) and len(expected) == len(found):
        pairs = enumerate(zip(expected, found, strict=True))
        return [line for index, (left, right) in pairs for line in differences(left, right, f"{path}/{index}")]
    return [] if expected == found else [f"{path}: {expected!r} expected, found {found!r}"]


def duplicates(found: Inventory) -> list[str]:
    """Return the stamps that more than one resource carries."""
    bodies = [json.dumps(body, default=str) for items in found.values() for body in items.values()]
    stamps = collections.Counter(stamp[0] for body in bodies if (stamp := STAMP.search(body)))
    return [stamp for stamp, number in stamps.items() if number > 1]


Kind = TypeVar("Kind", bound=UpgradeEnvironment)


@contextlib.contextmanager
def environment_of_kind(
    kind: type[Kind], ground: CrashSession, nurseries: Mapping[Version, ManagerLauncher]
) -> Iterator[Kind]:
    """Yield a run with a project and a namespace of its own; no manager is started yet."""
    name = ground.name()
    ground.rig.api.apply([{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}])
    with KubeProxy(ground.gateway) as proxy:
        kubeconfig = proxy.kubeconfig(ground.kubeconfig, ground.folder / name)
        manager = ManagerProcess(kubeconfig, ground.folder / f"{name}.log")
        made = kind(ground.rig.api, name, ground, ground.tenant(name), manager, proxy, nurseries=nurseries)
        made.apply(made.secret())
        made.before = made.inventory()
        try:
            yield made
        finally:
            if made.manager.is_alive():
                made.manager.kill()


def upgrade_environment(
    ground: CrashSession, nurseries: Mapping[Version, ManagerLauncher]
) -> contextlib.AbstractContextManager[UpgradeEnvironment]:
    """Return a run on the simulator."""
    return environment_of_kind(UpgradeEnvironment, ground, nurseries)
