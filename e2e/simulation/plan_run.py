"""A plan, played: users apply, the adversary acts, all of it is reverted, and the state is checked."""

from __future__ import annotations

import contextlib
import copy
import random
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Final

from capo.json_types import Json
from capo.kube.kinds import (
    CLUSTER,
    MACHINE,
    OPENSTACK_CLUSTER,
    OPENSTACK_MACHINE,
    OPENSTACK_SERVER,
    OURS,
    Key,
    Kind,
)
from capo.simulator.octavia import service as octavia
from e2e.simulation import adversary, claims, drift, judge, objects, pauses, places, rebuilds, template_edits, workloads
from e2e.simulation.apiclient import Endpoint, Written
from e2e.simulation.network import Sent
from e2e.simulation.objects import NAMESPACE
from e2e.simulation.plan import COMPARED, Operation, Plan
from e2e.simulation.replica import Replica
from e2e.simulation.simulation import SETTINGS, Simulation
from e2e.simulation.truth import Violation

READY_S: Final = 1200.0
"""After the last disturbance, everything must match the spec within this time."""
DELETED_S: Final = 1500.0
AFTERMATH_S: Final = 100.0
IDLE_S: Final = 600.0
QUOTA_REQUESTS: Final = 5
"""Those that read the quotas of a project, once in half an hour."""
IDLE_REQUESTS: Final = 19 + QUOTA_REQUESTS
"""To OpenStack, of one manager in ten idle minutes; the members of a pool are listed in the first of them."""
IDLE_WRITES: Final = 3
"""To Kubernetes: what a resync finds out of date is corrected once."""
LOOK_S: Final = 3.0
MAX_REQUESTS: Final = 6000
MAX_WRITES: Final = 2500
"""More requests to OpenStack, or writes to Kubernetes, than this in a plan of a quarter of an hour are a loop."""


class PlanRun:
    """One plan, played."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        tuning = plan.tuning
        self.simulation = Simulation(plan.seed, switch_rate=tuning.switch_rate)
        self.simulation.scheduler.stall_s = tuning.stall_s
        self.scheduler = self.simulation.scheduler
        self.truth = self.simulation.truth
        self.network = self.simulation.network
        self.network.latency_s = tuning.latency_s
        self.random = random.Random(f"story {plan.seed}")
        # Renewed rarely: each renewal costs as much as a request that may find a defect.
        election = replace(SETTINGS, lease_duration_s=60.0, renew_deadline_s=40.0, retry_period_s=8.0)
        self.settings = replace(election, sync_period_s=tuning.sync_period_s, leader_elect=tuning.leader_elect)
        self.extra: list[Replica] = []
        self.takeovers = 0
        self.first_pairs: dict[str, int] = {}
        """Edits of the template that were made before a machine was recorded for the first time, by machine."""
        self.costs: dict[str, tuple[int, int]] = {}
        """Requests to OpenStack, and writes to Kubernetes, by phase; leases and Events are left out."""
        self.history: list[str] = []
        self.left: dict[str, Json] = {}
        """What workloads left, by what it is."""
        self.strangers: dict[str, float] = {}
        """Since when somebody else uses floating IPs of the pool, by address."""
        self.strangers_port = ""
        self.lost_balancer = ""
        """The id of the load balancer that failed, or that somebody deleted."""
        self.is_calm = False
        self.is_deleting = False
        self.is_moving = False
        self.leads_elsewhere = False
        self.annotated = 0
        self.is_location_lost = False
        self.has_other_project = False
        self.applying: list[Key] = []
        """Objects that were deleted and are applied again once the deletion is complete."""
        self._writes = 0
        self._waiting: list[tuple[Operation, re.Pattern[str], list[int]]] = []
        self._backs: list[Callable[[], None]] = []

    # -- the plot ---------------------------------------------------------------------------------------------------

    def play(self) -> Violation | None:
        """Play the plan; return the first invariant that was broken, None when all held."""
        for act in (self._set_up, self._disturb, self._calm, self._converge, self._delete):
            act()
            if self.truth.violation is not None:
                break
        return self.truth.violation

    def _set_up(self) -> None:
        simulation, tuning = self.simulation, self.plan.tuning
        octavia.offer(simulation.cloud, default=self.plan.shape.octavia)
        self.home: Endpoint = simulation.add_management("a")
        self._tune(self.home)
        self.user = simulation.user
        self.own_network = self.user.network("own")
        if self.plan.shape.neighbour:
            self._set_up_neighbour()
        self.manager = simulation.add_manager(self.home, settings=self.settings)
        simulation.run(5.0)
        self.apply()
        self.scheduler.stall_rate = tuning.stall_rate
        self.network.follow = self._requested
        simulation.kube.watch = self._written

    def _set_up_neighbour(self) -> None:
        """Create a management cluster whose manager created a cluster in the project, and has just listed it."""
        self.other: Endpoint = self.simulation.add_management("b")
        self._tune(self.other)
        self.simulation.add_manager(self.other, settings=replace(self.settings, leader_elect=False))
        self.apply_cluster(self.other, "n", cidr="10.7.0.0/24")
        self.simulation.run(300.0, lambda: judge.is_ready(self.other, Key(OPENSTACK_CLUSTER, NAMESPACE, "n")))

    def _tune(self, endpoint: Endpoint) -> None:
        endpoint.line.watch_s = self.plan.tuning.watch_s

    def apply(self) -> None:
        """Apply the objects of the plan's users."""
        shape = self.plan.shape
        if shape.server is not None:
            self.apply_server(shape.server)
        if shape.pool is not None:
            claims.watch(self, self.home)
            claims.apply_pool(self)
        if shape.cluster is not None:
            self.apply_cluster(self.home, "c", cidr="10.6.0.0/24")
            template_edits.apply(self)
            for name in self._machine_names():
                self.apply_machine(name)
            if shape.leftovers is not None:
                self.when_ready(lambda: workloads.leave(self))

    def apply_server(self, spec: Json) -> None:
        """Apply an OpenStackServer."""
        made = objects.server("s", self.own_network["id"], spec=spec)
        self.home.server.create(OPENSTACK_SERVER, made)

    def apply_cluster(self, endpoint: Endpoint, name: str, *, cidr: str) -> None:
        """Apply a Cluster with its OpenStackCluster."""
        spec = copy.deepcopy(self.plan.shape.cluster or {})
        if self.plan.shape.is_network_given and endpoint is self.home:
            spec |= {"network": {"id": self.own_network["id"]}, "enableExternalNetwork": False}
            spec.pop("managedSubnets", None)
        else:
            spec["managedSubnets"] = [{"cidr": cidr}]
        if "bastion" in spec:
            spec["bastion"]["spec"] = dict(objects.MACHINE_SPEC)
        endpoint.server.create(CLUSTER, objects.cluster(name))
        endpoint.server.create(OPENSTACK_CLUSTER, objects.openstack_cluster(name, spec=spec))

    def _machine_names(self) -> list[str]:
        shape = self.plan.shape
        workers = [f"w{number}" for number in range(shape.workers)]
        return [f"m{number}" for number in range(shape.machines)] + workers if shape.cluster is not None else []

    def apply_machine(self, name: str) -> None:
        """Apply a Machine with its OpenStackMachine; names that begin with ``m`` are control plane machines."""
        server, is_control_plane = self.place.server, name.startswith("m")
        machine = objects.machine(name, "c", is_control_plane=is_control_plane)
        if domains := (self.plan.shape.cluster or {}).get("failureDomains"):
            machine["spec"]["failureDomain"] = domains[0]["name"]
        made = server.create(MACHINE, machine)
        infra = objects.openstack_machine(name, "c", is_control_plane=is_control_plane, owner=made)
        infra["spec"] |= COMPARED if self.plan.shape.drift else {}
        if self.plan.shape.anti_affinity:
            infra["spec"]["antiAffinity"] = self.plan.shape.anti_affinity
        server.create(OPENSTACK_MACHINE, template_edits.cloned(self, infra))

    def _disturb(self) -> None:
        drift.schedule(self)
        for operation in self.plan.operations:
            self.scheduler.after(operation.at_s, lambda each=operation: self._due(each))  # type: ignore[misc]
        ends_s = [each.ends_s() for each in self.plan.operations]
        self.simulation.run(max([*ends_s, *self.plan.shape.pair_edits], default=0.0))
        self._waiting.clear()
        self.simulation.run(30.0)

    def _due(self, operation: Operation) -> None:
        if operation.on:
            self._waiting.append((operation, re.compile(operation.on), [operation.nth]))
        else:
            self._act(operation)

    def _act(self, operation: Operation) -> None:
        if self.is_calm:
            return
        self.history.append(f"{self.scheduler.now_s:9.3f} {operation}")
        self.scheduler.note(f"operation {operation.feature}")
        adversary.act(self, operation)

    def _calm(self) -> None:
        """Revert all disturbances and resume every process."""
        self.is_calm = True
        for back in [*self._backs]:
            back()
        self._backs.clear()
        places.put_secret_back(self)  # a backup may have had a wrong one
        pauses.end(self)  # or an annotation
        self.network.disturbances.clear()
        self.scheduler.stall_rate = 0.0
        for replica in self.simulation.replicas:
            if replica in self.extra:
                replica.kill()
            elif not replica.is_running:
                replica.start()
        self.simulation.run(1.0)

    def _converge(self) -> None:
        if not self.simulation.run(READY_S, lambda: judge.fault(self) is None):
            self.truth.broken("not-recovered", judge.fault(self) or "")
        if self.plan.shape.pair_edits:
            template_edits.edit_at_rest(self)
            if not self.simulation.run(READY_S, lambda: template_edits.fault(self) is None):
                self.truth.broken("not-recovered", template_edits.fault(self) or "")
        workloads.leave(self)
        self.simulation.run(AFTERMATH_S)
        self.costs["created"] = self.network.requests, self._writes
        self.truth.check_roles()
        self.truth.check_users()
        if fault := judge.fault(self):
            self.truth.broken("not-recovered", f"ready once, and then: {fault}")
        if fault := judge.status_fault(self):
            self.truth.broken("status-differs", fault)
        drift.play_at_rest(self)
        self._idle()

    def _idle(self) -> None:
        """Advance time without changes and check the budgets: a few lists, and almost no writes."""
        self.simulation.run(IDLE_S)
        requests, writes = self.network.requests, self._writes
        self.simulation.run(IDLE_S)
        asked, wrote = self.network.requests - requests, self._writes - writes
        self.costs["idle"] = asked, wrote
        if asked > IDLE_REQUESTS * len(self.endpoints()) + claims.idle_requests(self):
            self.truth.broken("too-many-requests", f"{asked} requests in ten idle minutes")
        if wrote > IDLE_WRITES:
            self.truth.broken("too-many-writes", f"{wrote} writes to Kubernetes in ten idle minutes")

    def _delete(self) -> None:
        requests, writes = self.network.requests, self._writes
        self.delete_all()
        if not self._are_deleted():
            self.truth.broken("not-deleted", judge.left_objects(self))
        self.simulation.run(AFTERMATH_S)
        self.costs["deleted"] = self.network.requests - requests, self._writes - writes
        self.truth.check_nothing_left()
        workloads.check_deleted(self)
        self.truth.check_users()

    def _are_deleted(self) -> bool:
        """Wait until all objects are gone; a person does what the conditions of those ask for that are left."""
        if self.simulation.run(DELETED_S, self._is_gone):
            return True
        blocking = [port for port in self.truth.orphans("ports") if port.id in judge.blockers(self)]
        for port in blocking:
            self.user.ask("DELETE", f"/network/v2.0/ports/{port.id}")
        # Only where a restore lost the record of it: elsewhere the provider has to find its way without a person.
        accepted = places.accept_locations(self) if self.is_location_lost else 0
        return bool(blocking or accepted) and self.simulation.run(DELETED_S, self._is_gone)

    def _is_gone(self) -> bool:
        return not judge.left_objects(self)

    # -- when -------------------------------------------------------------------------------------------------------

    def _requested(self, moment: str, sent: Sent) -> None:
        if self.network.requests > MAX_REQUESTS:
            self.truth.broken("too-many-requests", f"{self.network.requests} requests, {sent} the last")
        self._happened(f"{moment}{sent.method} /{sent.service}{sent.path}")

    def _written(self, written: Written) -> None:
        self._writes += "/leases" not in written.path and "/events" not in written.path
        if self._writes > MAX_WRITES:
            self.truth.broken("too-many-writes", f"{self._writes} writes, {written.method} {written.path} the last")
        rebuilds.check(self, written.path)
        self._happened(f"{written.method} {written.path}")

    def _happened(self, line: str) -> None:
        for entry in [*self._waiting]:
            operation, pattern, left = entry
            if pattern.search(line):
                left[0] -= 1
                if left[0] <= 0 and entry in self._waiting:
                    self._waiting.remove(entry)
                    if self.scheduler.current is None:
                        self._act(operation)
                    else:  # not within a task of the manager
                        self.scheduler.after(0.0, lambda each=operation: self._act(each))  # type: ignore[misc]

    def take_back(self, after_s: float, back: Callable[[], None]) -> None:
        """Call back after so long, and in any case before the final checks."""

        def once() -> None:
            if once in self._backs:
                self._backs.remove(once)
                back()

        self._backs.append(once)
        self.scheduler.after(after_s, once)

    def when_ready(self, callback: Callable[[], None]) -> None:
        """Call back as soon as everything is ready, unless it never is while the adversary acts."""
        if self.is_calm or self.is_deleting:
            return
        if judge.fault(self) is None:
            self.scheduler.note("everything is ready")
            callback()
        else:
            self.scheduler.after(LOOK_S, lambda: self.when_ready(callback))

    # -- the adversary's operations ------------------------------------------------------------------------------------

    def edit(self, spec: Json, back_s: float) -> None:
        """Edit the cluster's spec; revert it after so long, if at all."""
        key = Key(OPENSTACK_CLUSTER, NAMESPACE, "c")
        server = self.place.server
        obj = server.get(*key)
        if obj is None or obj["metadata"].get("deletionTimestamp"):
            return
        places.mark_edited(self, key)
        server.patch(*key, {"spec": spec})
        if back_s:
            original = places.reverse(obj["spec"], spec)
            self.take_back(back_s, lambda: places.patch_if_there(self, key, {"spec": original}))

    def recreate(self) -> None:
        """Delete the users' objects, except the cluster, and apply them again when they are deleted."""
        places.recreate(self, self._machine_names())

    def delete_all(self) -> None:
        """Delete everything that users applied, as they do."""
        self.is_deleting = True
        places.delete_all(self)

    def move(self, *, is_deleted: bool, back_s: float | None) -> None:
        """Move the cluster to the other management cluster, as ``clusterctl move`` does, once everything is created."""
        self.when_ready(lambda: places.move(self, self.home, self.other, is_deleted=is_deleted))
        if back_s is not None and not is_deleted:
            self.scheduler.after(back_s, lambda: self.when_ready(lambda: places.move(self, self.other, self.home)))

    def swap_secret(self, kind: str, for_s: float) -> None:
        """Put other credentials into the Secret for a while.

        Credentials of another location only once everything is created: resources there could not be found again.
        """
        if kind == "user":
            self._swap_secret(kind, for_s)
        else:
            self.when_ready(lambda: self._swap_secret(kind, for_s))

    def rotate_secret(self, kind: str, for_s: float) -> None:
        """Put credentials of the same location, or a slip, into the Secret for a while, and annotate all objects."""

        def back() -> None:
            self._put_secret_back()
            places.annotate_all(self)

        places.swap_secret(self, kind)
        places.annotate_all(self)
        self.take_back(for_s, back)

    def _swap_secret(self, kind: str, for_s: float) -> None:
        if kind != "user" and self.is_moving:
            return  # as a move while they are in force: see `places.move`
        places.swap_secret(self, kind)
        self.leads_elsewhere = kind != "user"
        self.take_back(for_s, self._put_secret_back)

    def _put_secret_back(self) -> None:
        places.put_secret_back(self)
        self.leads_elsewhere = False

    def make_namesake(self, number: int, *, has_stamp: bool) -> None:
        """Create a resource as a user with the name of one of ours."""
        places.make_namesake(self, number, has_stamp=has_stamp)

    def make_balancer(self) -> None:
        """Create a load balancer as a user, in the user's network, unless a quota is exhausted."""
        values = {"vip_network_id": self.own_network["id"], "name": "theirs"}
        with contextlib.suppress(ValueError):
            self.user.make("/load-balancer/v2.0/lbaas/loadbalancers", "loadbalancer", **values)

    def refuse_balancers(self, for_s: float) -> None:
        """Set the project's quota of listeners to zero for a while, so that Octavia refuses load balancers."""
        places.limit_listeners(self, 0)
        self.take_back(for_s, lambda: places.limit_listeners(self, -1))

    def exhaust(self, for_s: float, *, service: str, resource: str, limit: int) -> None:
        """Set a quota of the project for a while, maybe below its use."""
        places.limit(self, service, resource, limit)
        self.take_back(for_s, lambda: places.limit(self, service, resource, -1))

    def place_evil(self, *, copies_owner: bool) -> None:
        """Apply an object that claims another owner's resources."""
        places.place_evil(self, copies_owner=copies_owner)

    def place_hostile_texts(self, number: int) -> None:
        """Apply an object with texts that are slow to search."""
        places.place_hostile_texts(self, number)

    def claim_by_status(self) -> None:
        """Apply an object whose status, written by hand, records another owner's resources."""
        places.claim_by_status(self)

    def restore_statuses(self, after_s: float, *, is_early: bool) -> None:
        """Back up all statuses now, and write them back after a while, as a backup tool does."""

        def note() -> None:
            noted, takeovers = list(self.ours()), self.takeovers

            def restore() -> None:
                if self.is_calm:
                    return
                # A backup from before a takeover is the Go provider's: it never had our records.
                is_the_go_providers = takeovers != self.takeovers
                if is_the_go_providers and is_early:
                    return  # neither ids nor stamps would be left: what cannot be found (ADR 0001, non-goals)
                self.is_location_lost |= is_the_go_providers
                places.restore_statuses(self, noted, is_the_go_providers=is_the_go_providers)

            self.scheduler.after(after_s, restore)

        if is_early:
            note()
        else:
            self.when_ready(note)

    def restore_etcd(self, after_s: float, *, is_live: bool) -> None:
        """Back up etcd now, and restore it after a while; with the manager stopped, or running.

        Only once everything is created: the owner of resources created after a backup cannot be determined.
        """

        def note() -> None:
            state, objects_then = self.home.server.snapshot(), self._uids()

            def restore() -> None:
                # The owner of resources that were created after the backup cannot be determined.
                if not self.is_calm and self._uids() == objects_then:
                    places.restore_etcd(self, state, is_live=is_live)

            self.scheduler.after(after_s, restore)

        self.when_ready(note)

    def take_over(self, namesake: str, *, is_deleted: bool) -> None:
        """Change everything to the state that the Go provider leaves, and start the manager after that."""
        self.when_ready(lambda: places.take_over(self, namesake, is_deleted=is_deleted))

    # -- the present state ------------------------------------------------------------------------------------------

    @property
    def place(self) -> Endpoint:
        """Return the management cluster of the cluster."""
        for endpoint in self.endpoints():
            if endpoint.server.get(CLUSTER, NAMESPACE, "c"):
                return endpoint
        return self.home

    def endpoints(self) -> tuple[Endpoint, ...]:
        """Return all management clusters."""
        return (self.home, self.other) if self.plan.shape.neighbour else (self.home,)

    def _uids(self) -> list[str]:
        """Return our objects in the first management cluster, and which of them are being deleted."""
        metadata = [obj["metadata"] for _, obj in self.ours()]
        metadata += [obj["metadata"] for kind in claims.KINDS for obj in self.home.server.list(kind)]
        return sorted(f"{each['uid']} {'deletionTimestamp' in each}" for each in metadata)

    def ours(self) -> Iterator[tuple[Kind, Json]]:
        """Yield all objects of ours in the first management cluster."""
        for kind in OURS:
            for obj in self.home.server.list(kind):
                yield kind, obj
