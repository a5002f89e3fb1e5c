"""OpenStackMachineTemplate for the engine: capacity and properties of nodes, for the cluster autoscaler.

Templates have no finalizer and nothing in the cloud, so this is no :class:`capo.engine.reconciler.Reconciler`. A
template to which nothing refers costs no request; one in use is read again when it, what refers to it or its
credentials change, and once a day.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from api.v1beta2 import OpenStackMachineTemplate
from capo import caches
from capo.contract import rules
from capo.engine import backoff, conditions, overall
from capo.engine.conditions import Condition
from capo.engine.contention import Contention
from capo.engine.context import Dependencies
from capo.engine.steps import Failed, Results, Wait, all_done, walk_forward
from capo.engine.store import Route
from capo.engine.worker import Result
from capo.engine.writer import ObjectReplaced, Writer
from capo.errors import CapoError, IdentityError, NotAuthorizedError
from capo.json_types import Object
from capo.kube.kinds import OPENSTACK_MACHINE_TEMPLATE, ORC_IMAGE, Key, Kind
from capo.shares import CloudKey
from controllers import orc_images, pause_conditions
from controllers.credential_secrets import is_shared
from controllers.credentials import CredentialsCache
from controllers.openstackmachinetemplate import preflight, referrers
from controllers.openstackmachinetemplate.routes import ROUTES
from controllers.openstackmachinetemplate.scope import Found, TemplateScope
from controllers.openstackmachinetemplate.steps import PLAN

KEPT_S: Final = 86_400.0
"""What was read is kept so long, unless something changes."""
FIRST_S: Final = 15.0
CEILING_S: Final = 3600.0
"""Upper bound of the pause while something cannot be found out: a policy may hide it for good."""
REFUSED_S: Final = 60.0
YOUNG_S: Final = 60.0
"""Cluster API refers to a new template within this time; that nothing refers to it is reported after it."""
MAX_TEMPLATES: Final = 20_000
"""Templates whose last reading is remembered; beyond that some are read again at a resync."""
NOT_REFERRED: Final = "NotReferred"


@dataclass(frozen=True)
class _Reading:
    """What a template was read for, and when it is due again.

    Args:
        failures: consecutive readings that were not complete.
    """

    inputs: Hashable
    due_s: float
    failures: int


class MachineTemplateController:
    """The controller of OpenStackMachineTemplates."""

    name = "openstackmachinetemplate"
    kind: Kind = OPENSTACK_MACHINE_TEMPLATE
    plan = PLAN
    routes: Sequence[Route] = ROUTES

    def __init__(self, identities: CredentialsCache, deps: Dependencies) -> None:
        self._identities = identities
        self._deps = deps
        self.concurrency = deps.settings.template_concurrency
        self._contention = Contention()
        self._readings: caches.Bounded[str, _Reading] = caches.Bounded.by_number(MAX_TEMPLATES, name="templates")

    def cloud_key(self, key: Key) -> CloudKey | None:
        """Return the cloud whose budgets apply, None until it is located; an empty key if no cloud is called."""
        template = self._deps.store.get(*key)
        ref = self._identity_ref(template) if template else None
        return self._identities.cloud_key(ref, key.namespace) if ref else CloudKey()

    def resolve_cloud(self, key: Key) -> bool:
        """Read the credentials; return whether that succeeded. If not, the reconcile reports why."""
        template = self._deps.store.get(*key)
        ref = self._identity_ref(template) if template else None
        try:
            if ref:
                self._identities.resolve_cloud(ref, key.namespace)
        except CapoError:
            return False
        return self.cloud_key(key) is not None

    def reconcile(self, key: Key) -> Result:
        """Report capacity and properties of the nodes of a template, if machines are created from it."""
        template = self._deps.store.get(*key)
        is_left = template is None or not self._deps.is_selected(template)
        if template is None or is_left or template["metadata"].get("deletionTimestamp"):
            self._contention.forget(key)
            return Result()
        writer = Writer(self._deps, key, template, self._contention)
        try:
            return self._reconcile(template, writer)
        except ObjectReplaced:
            return Result()

    def _identity_ref(self, template: Object) -> Object | None:
        """Return the credentials of a template to which something refers; None: no cloud is called."""
        store = self._deps.store
        return referrers.identity_ref(template, store) if referrers.of(template, store) else None

    def _reconcile(self, template: Object, writer: Writer) -> Result:
        store = self._deps.store
        cluster, found = referrers.cluster_of(template, store), referrers.of(template, store)
        if not found:
            return self._report_not_referred(template, writer)
        if cause := rules.pause_cause(template, cluster):
            self._show(writer, [Condition(pause_conditions.PAUSED, "True", "Paused", cause)])
            return Result()
        ref = self._identity_ref(template)
        if ref is None:
            return Result()  # the event of the OpenStackCluster requeues the template
        inputs = self._inputs(template, found, ref)
        uid, now_s = str(template["metadata"]["uid"]), self._deps.clock.now()
        known = self._readings.get(uid)
        is_same = known is not None and known.inputs == inputs
        if known and is_same and now_s < known.due_s:
            is_over = conditions.is_true(_shown(template), pause_conditions.PAUSED)
            self._show(writer, [pause_conditions.NOT_PAUSED] if is_over else [])
            return self._again(known.due_s - now_s)
        failures = known.failures if known and is_same else 0
        due_s = self._read(writer, ref, failures)
        self._readings.put(uid, _Reading(inputs, now_s + due_s, 0 if due_s == KEPT_S else failures + 1))
        return self._again(due_s)

    def _again(self, due_s: float) -> Result:
        """Requeue, unless a resync comes first."""
        return Result(requeue_after_s=due_s) if due_s < self._deps.sync_period_s else Result()

    def _inputs(self, template: Object, found: frozenset[referrers.Referrer], ref: Object) -> Hashable:
        """Return everything of Kubernetes that a reading depends on."""
        metadata = template["metadata"]
        spec = template["spec"]["template"]["spec"]
        image = spec.get("image") or {}
        orc = self._deps.store.get(ORC_IMAGE, metadata["namespace"], (image.get("imageRef") or {}).get("name") or "")
        return (
            metadata.get("generation"),
            frozenset((metadata.get("annotations") or {}).items()),
            found,
            frozenset(ref.items()),
            # Read each time: it may be taken away, by labels of the namespace, too.
            self._identities.access(ref, metadata["namespace"]),
            _image_of(orc) if orc else None,
            tuple(referrers.zones_of_machines(template, self._deps.store)) if _has_zone_of_machine(spec) else (),
        )

    def _report_not_referred(self, template: Object, writer: Writer) -> Result:
        """Report that nothing refers to a template of a Cluster, or no longer; a new one may still be referred to."""
        cluster = referrers.cluster_of(template, self._deps.store)
        if cluster is None or cluster["metadata"].get("deletionTimestamp"):
            return Result()  # a template of a ClusterClass, or one that is deleted with its Cluster
        if not _shown(template):
            age_s = self._deps.clock.wall() - conditions.seconds(template["metadata"].get("creationTimestamp") or "")
            if 0 <= age_s < YOUNG_S:
                return Result(requeue_after_s=YOUNG_S - age_s)
        text = "no MachineDeployment, MachineSet or control plane refers to the template: it is not checked"
        types = (conditions.READY, "ReferencesReady")
        self._show(writer, [Condition(type_, "Unknown", NOT_REFERRED, text) for type_ in types])
        return Result()

    def _read(self, writer: Writer, ref: Object, failures: int) -> float:
        """Run the steps and write their results; return the seconds until the next reading."""
        namespace = writer.key.namespace
        if own := referrers.own_identity_ref(writer.obj):
            self._identities.note_edit(writer.obj, own)
        try:
            cloud = self._identities.cloud(ref, namespace)
            cloud.authenticate()
        except CapoError as failure:
            error = overall.for_user(failure, str(writer.key), is_shared=is_shared(ref))
            shown = overall.from_refusal(error.about(self._identities.describe(ref, namespace)))
            self._identities.forget(ref, namespace)
            self._show(writer, [*shown, pause_conditions.NOT_PAUSED])
            return max(REFUSED_S, backoff.pause_s(error, failures + 1))
        template = OpenStackMachineTemplate.model_validate(writer.obj)
        zones = referrers.zones(writer.obj, self._deps.store)
        of_machines = referrers.zones_of_machines(writer.obj, self._deps.store)
        scope = TemplateScope(self._deps, writer.key, template, cloud, zones, of_machines, is_shared=is_shared(ref))
        results = walk_forward(PLAN, scope, create=_creates_nothing, guard=lambda _step: None)
        self._write(writer, scope.found, results)
        if all_done(results):
            return KEPT_S
        return min(_pause_s(result, failures + 1) for result in results.values() if isinstance(result, Failed | Wait))

    def _write(self, writer: Writer, found: Found, results: Results) -> None:
        ready = conditions.summary(PLAN, results)
        shown = [
            *overall.authentication(results),
            *conditions.from_results(PLAN, results),
            *([ready] if ready else []),
            pause_conditions.NOT_PAUSED,
        ]
        writer.report(lambda status: {**_facts(status, found), "conditions": self._merged(writer, status, shown)})

    def _show(self, writer: Writer, shown: Sequence[Condition]) -> None:
        if shown:
            writer.status(lambda status: {"conditions": self._merged(writer, status, shown)})

    def _merged(self, writer: Writer, status: Object, shown: Sequence[Condition]) -> list[dict[str, Any]]:
        now_s = self._deps.clock.wall()
        return conditions.merged(
            status.get("conditions") or (), shown, dropped=(), now_s=now_s, generation=writer.generation
        )


def _has_zone_of_machine(spec: Object) -> bool:
    """Return whether a volume of the machines will be in the zone of its machine."""
    devices = ((each.get("storage") or {}).get("volume") for each in spec.get("additionalBlockDevices") or ())
    zones = ((each or {}).get("availabilityZone") or {} for each in (spec.get("rootVolume"), *devices))
    return any(zone.get("from") == "Machine" for zone in zones)


def _image_of(orc: Object) -> str:
    """Return the id of an ORC Image once it is available, before that why it is not."""
    found = orc_images.image_id_of(orc)
    return found.message if isinstance(found, Wait) else found


def _shown(template: Object) -> Sequence[Object]:
    return (template.get("status") or {}).get("conditions") or ()


def _facts(status: Object, found: Found) -> Mapping[str, Any]:
    """Return capacity and nodeInfo as a merge patch; what is not known any more stays as it was reported."""
    facts: dict[str, Any] = {}
    if found.capacity is not None:
        facts["capacity"] = {**dict.fromkeys(status.get("capacity") or {}), **found.capacity}
    if found.node_info is not None:
        known = dict.fromkeys(status.get("nodeInfo") or {})
        facts["nodeInfo"] = {**known, **found.node_info} if found.node_info else None  # an empty object is not valid
    return facts


def _pause_s(result: Failed | Wait, failures: int) -> float:
    """Return the pause before a step runs again that is not done."""
    if isinstance(result, Wait):
        return result.after_s or min(CEILING_S, FIRST_S * 2.0 ** min(failures - 1, 10))
    return REFUSED_S if isinstance(result.error, IdentityError | NotAuthorizedError) else preflight.MISSING_S


def _creates_nothing(_create: object) -> Wait | None:
    raise AssertionError("no step of a template creates anything")
