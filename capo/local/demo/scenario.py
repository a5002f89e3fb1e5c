"""The scenario of a demo, in order: set up, create, check, scale, edit, replace, delete, compare.

Everything here uses Kubernetes and the cloud from outside; it fails with one clear message.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass

from capo import names
from capo.json_types import Json
from capo.local.clusterctl import PROVIDER, Clusterctl
from capo.local.demo import checks, inventory, report, watch
from capo.local.demo.clouds import Site
from capo.local.demo.console import Screen
from capo.local.demo.counting import Meter
from capo.local.demo.inventory import Inventory, Item
from capo.local.demo.objects import LIVING, Objects, ObjectSnapshot, is_control_plane
from capo.local.demo.watch import DemoError, Watch


@dataclass(frozen=True)
class Plan:
    """Parameters of the demo.

    Args:
        cluster: name of the cluster.
        more_workers: how many workers are added and removed again.
        idle_s: how long to observe an idle cluster; 0 skips that.
        limit_s: how long one phase may take.
        keeps: end while the cluster is up.
    """

    cluster: str = "demo"
    namespace: str = "default"
    control_planes: int = 3
    workers: int = 2
    more_workers: int = 2
    idle_s: float = 0.0
    limit_s: float = 600.0
    keeps: bool = False


class Story:
    """One demo on a running rig, cloud and manager."""

    def __init__(self, plan: Plan, clusterctl: Clusterctl, site: Site, screen: Screen, meter: Meter) -> None:
        self._plan, self._clusterctl, self._site, self._screen, self._meter = plan, clusterctl, site, screen, meter
        self._rig = rig = clusterctl.rig
        self._objects = Objects(rig.api, plan.namespace)
        self._watch = Watch(self._objects, screen, rig.check)

    def tell(self) -> None:
        """Run the whole demo.

        Raises:
            RigError: a check failed; the message names it.
        """
        before = inventory.take(self._site.member)
        self._screen.say(f"the cloud has {len(before)} resources before we begin")
        self._create()
        self._show()
        if self._plan.keeps:
            return
        if self._plan.idle_s:
            self._stay_idle()
        self._scale()
        self._edit_bastion()
        self._replace_control_plane()
        self._delete()
        self._compare(before)

    def _create(self) -> None:
        plan = self._plan
        self._screen.heading(
            f"Create: {plan.control_planes} control planes behind a load balancer, {plan.workers} workers, a bastion"
        )
        manifests = with_bastion(self._generate(), self._site.variables)
        with self._meter.phase(report.CREATE):
            self._rig.apply(manifests)
            self._until_running(plan.workers, bastion=True)

    def _generate(self) -> list[Json]:
        """Return the manifests that the real clusterctl generates from the installed release's default template."""
        plan = self._plan
        self._screen.say(f"clusterctl generate cluster {plan.cluster} --infrastructure={PROVIDER}")
        return self._clusterctl.cluster(
            plan.cluster,
            namespace=plan.namespace,
            kubernetes=self._site.variables["KUBERNETES_VERSION"],
            machines=(plan.control_planes, plan.workers),
        )

    def _until_running(self, workers: int, *, bastion: bool = False) -> ObjectSnapshot:
        plan = self._plan

        def missing(world: ObjectSnapshot) -> str:
            lack = watch.lacks_machines(world, control_planes=plan.control_planes, workers=workers)
            return lack or (watch.lacks_bastion(world, plan.cluster) if bastion else "")

        what = f"{plan.control_planes + workers} Machines Running{' and a bastion' if bastion else ''}"
        return self._watch.until(what, missing, limit_s=plan.limit_s)

    def _show(self) -> None:
        self._check(self._objects.look())
        world, found = self._objects.look(), inventory.take(self._site.member)
        self._screen.table("Machines", ("Machine", "Phase", "Provider ID", "Node"), watch.machine_rows(world))
        owners = owners_of(world)
        self._screen.table(
            "OpenStack resources by owner", ("Owner", "Kind", "Role", "Name", "Id"), resource_rows(found, owners)
        )
        plan = self._plan
        for line in self._clusterctl("describe", "cluster", plan.cluster, f"--namespace={plan.namespace}").splitlines():
            self._screen.say(line, source="clusterctl")

    def _check(self, world: ObjectSnapshot) -> None:
        for line in checks.pool_members(self._site.member, world, self._plan.cluster):
            self._screen.say(line, source="check")
        if self._site.admin is None:
            self._screen.say("user data is not compared: no cloud of an administrator is known", source="check")
        else:
            self._screen.say(checks.user_data(self._site.admin, self._objects, world), source="check")

    def _stay_idle(self) -> None:
        self._screen.heading(f"Nothing happens for {self._plan.idle_s:.0f} s")
        with self._meter.phase(f"idle, {self._plan.idle_s:.0f} s"):
            ends_s = time.monotonic() + self._plan.idle_s
            while (left_s := ends_s - time.monotonic()) > 0:
                self._rig.check()
                time.sleep(min(left_s, 10.0))

    def _scale(self) -> None:
        plan = self._plan
        for phase, workers in (
            (f"{plan.more_workers} more workers", plan.workers + plan.more_workers),
            (f"{plan.more_workers} workers less", plan.workers),
        ):
            self._screen.heading(f"Scale: {phase}")
            with self._meter.phase(phase):
                name = f"{plan.cluster}-md-0"
                self._objects.patch("machinedeployments", name, {"spec": {"replicas": workers}})
                world = self._until_running(workers)
            self._check(world)

    def _edit_bastion(self) -> None:
        plan = self._plan
        flavor = self._site.variables["OPENSTACK_CONTROL_PLANE_MACHINE_FLAVOR"]
        self._screen.heading(f"Edit the bastion: flavor {flavor}; it is replaced")
        old = self._objects.get("openstackclusters", plan.cluster)["status"]["bastion"]["id"]
        with self._meter.phase(report.BASTION):
            patch = {"spec": {"bastion": {"spec": {"flavor": {"filter": {"name": flavor}}}}}}
            self._objects.patch("openstackclusters", plan.cluster, patch)
            self._watch.until(
                "a new bastion",
                lambda world: watch.lacks_bastion(world, plan.cluster, other_than=old),
                limit_s=plan.limit_s,
            )

    def _replace_control_plane(self) -> None:
        machine = next(m for m in self._objects.look().all("machines") if is_control_plane(m))
        name = str(machine["metadata"]["name"])
        self._screen.heading(f"Delete Machine {name}: it leaves the load balancer, and another one is created")
        with self._meter.phase("control plane replaced"):
            self._objects.delete("machines", name)

            def missing(world: ObjectSnapshot) -> str:
                if world.one("machines", name):
                    return f"{name} is still there"
                return watch.lacks_machines(world, control_planes=self._plan.control_planes, workers=self._plan.workers)

            world = self._watch.until(f"{name} replaced", missing, limit_s=self._plan.limit_s)
        self._check(world)

    def _delete(self) -> None:
        self._screen.heading("Delete the cluster")
        with self._meter.phase(report.DELETE):
            delete_cluster(self._plan, self._objects, self._watch)

    def _compare(self, before: Inventory) -> None:
        """Wait until the cloud is as it was before.

        Raises:
            DemoError: something is left, or something else is missing.
        """
        ends_s = time.monotonic() + self._plan.limit_s
        while True:
            after = inventory.take(self._site.member)
            change = inventory.change(before, after)
            if change.is_empty:
                text = f"the whole inventory of every service, {len(after)} resources, equals that from before"
                self._screen.say(text, source="check")
                return
            # Services finish requests asynchronously, such as deleting the ports of a load balancer.
            if time.monotonic() > ends_s:
                raise DemoError(f"the cloud is not as it was:\n{_told(change)}")
            time.sleep(watch.EVERY_S)


def delete_cluster(plan: Plan, objects: Objects, watch_: Watch) -> None:
    """Delete everything of the cluster in Kubernetes; its credentials last, because everything else needs them."""
    objects.delete("clusters", plan.cluster)
    watch_.until("everything deleted", _left, limit_s=plan.limit_s)
    objects.delete("secrets", f"{plan.cluster}-cloud-config")


def _left(world: ObjectSnapshot) -> str:
    counts = {plural: len(world.all(plural)) for plural in LIVING}
    return ", ".join(f"{count} {plural}" for plural, count in counts.items() if count)


def _told(change: inventory.Change) -> str:
    lines = [f"  left: {_line(item)}" for item in change.added] + [f"  gone: {_line(item)}" for item in change.removed]
    return "\n".join(lines)


def _line(item: Item) -> str:
    return f"{item.kind} {item.name} {item.id} {item.owner or 'without stamp'} {item.role}"


def with_bastion(manifests: list[Json], variables: Mapping[str, str]) -> list[Json]:
    """Return the manifests with a bastion in the OpenStackCluster; pure."""
    bastion = {
        "enabled": True,
        "spec": {
            "flavor": {"filter": {"name": variables["OPENSTACK_NODE_MACHINE_FLAVOR"]}},
            "image": {"filter": {"name": variables["OPENSTACK_IMAGE_NAME"]}},
            "sshKeyName": variables["OPENSTACK_SSH_KEY_NAME"],
        },
    }
    return [
        {**m, "spec": {**m["spec"], "bastion": bastion}} if m["kind"] == "OpenStackCluster" else m for m in manifests
    ]


def owners_of(world: ObjectSnapshot) -> dict[str, str]:
    """Return the object behind each owner id."""
    found: dict[str, str] = {}
    for plural in ("openstackclusters", "openstackmachines", "openstackservers"):
        for obj in world.all(plural):
            annotation = (obj["metadata"].get("annotations") or {}).get(names.OWNER_ID_ANNOTATION, "")
            found[annotation.partition(".")[0]] = f"{obj['kind']} {obj['metadata']['name']}"
    return found


def resource_rows(found: Inventory, owners: Mapping[str, str]) -> list[tuple[str, str, str, str, str]]:
    """Return a row for each resource that was created for the cluster: those with a stamp, by owner; pure."""
    rows = [
        (owners.get(item.owner, item.owner), item.kind, item.role, item.name, item.id)
        for item in found.values()
        if item.owner
    ]
    return sorted(rows)
