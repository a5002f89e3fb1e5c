"""One row on a running object: the edit, its outcome, and the state after it is reverted."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from api.model import Model
from api.v1alpha1 import OpenStackServerSpec
from api.v1beta2 import OpenStackClusterSpec, OpenStackMachineSpec
from api.validation import difference
from capo.json_types import Json
from capo.webhooks.tests.table import places
from e2e.misoperation import admission, snapshot, values
from e2e.misoperation.admission import Verdict
from e2e.misoperation.environment import RunningObjectEnvironment
from e2e.misoperation.rows import EMPTY, WRONG, Row
from e2e.misoperation.snapshot import Snapshot

WRONG_S: Final = 210.0
"""Duration of an edit: the longest backoff, and the resync."""
BACK_S: Final = 300.0
SLOW_KINDS: Final = {"OpenStackClusterIdentity": 700.0}
"""Duration of an edit and of its removal for these kinds: credentials are read again at the resync of ten minutes."""
MODELS: Final[dict[str, type[Model]]] = {
    "OpenStackCluster": OpenStackClusterSpec,
    "OpenStackClusterTemplate": OpenStackClusterSpec,
    "OpenStackMachine": OpenStackMachineSpec,
    "OpenStackMachineTemplate": OpenStackMachineSpec,
    "OpenStackServer": OpenStackServerSpec,
}
REFUSED, SAME, SHOWN, NOTED, REPLACED = "refused", "same", "shown", "noted", "replaced"
EFFECTIVE, HEALED, WARNED, SILENT = "effective", "healed", "warned", "silent"
UNNAMED, UNSEEN = "unnamed", "unseen"
VAGUE: Final = frozenset({"id", "name", "filter", "type", "apiGroup", "ovsHWOffload", "trustedVF"})
"""Names of fields that identify little without their parent object."""
PLACES: Final = frozenset({"spec", "bastion", "template"})
"""Objects with so many fields that their name does not identify one of them."""


@dataclass
class Result:
    """The outcome of a row.

    Args:
        outcome: one of the words above.
        where: the fields that the refusal names.
        problems: violations that no row may cause.
        texts: messages, for a reader.
    """

    outcome: str
    where: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        """Return the text for the table."""
        return " ".join([self.outcome, *self.where])


def review(row: Row, old: Json) -> tuple[Verdict, Result | None]:
    """Return the verdict on the edit, and the outcome of the row if it is already known."""
    verdict = admission.update(row.version, old, old | {"spec": row.applied(old["spec"])})
    if not verdict.is_admitted:
        return verdict, _refused(row, verdict)
    if means_the_same(row.kind, old["spec"], verdict.obj["spec"]):
        return verdict, Result(SAME)
    return verdict, None


def means_the_same(kind: str, old: Json, new: Json) -> bool:
    """Return whether two specs differ only in absent and empty or default values."""
    if kind not in MODELS:
        return old == new
    parts = [difference.inside(spec, "template", "spec") if kind.endswith("Template") else spec for spec in (old, new)]
    before, after = difference.normal(MODELS[kind], *parts)
    is_alike = difference.inside(old, "template", "metadata") == difference.inside(new, "template", "metadata")
    return before == after and (is_alike or not kind.endswith("Template"))


def _refused(row: Row, verdict: Verdict) -> Result:
    fields = [cause.field for cause in verdict.causes]
    texts = [f"{cause.field}: {cause.message}" for cause in verdict.causes]
    is_named = any(_is_about(row, cause.field, cause.message) for cause in verdict.causes)
    return Result(REFUSED, sorted(set(fields)), [] if is_named else ["the refusal does not name the field"], texts)


def _is_about(row: Row, path: str, message: str) -> bool:
    """Return whether a cause names the field, its parent or its children."""
    if path == "spec":
        return row.leaf in message
    ends = (".", "[")
    return f"{row.field}.".startswith(tuple(path + end for end in ends)) or path.startswith(
        tuple(row.field + end for end in ends)
    )


def names_it(row: Row, text: str) -> bool:
    """Return whether a message names the field, or its value.

    The field by its name, in the spelling of Kubernetes, OpenStack (``port_range_min``) or people (``availability
    zone``); an empty field, and an unspecific name (``id``), also by its parent object.
    """
    value = row.value.strip('"')
    if value not in ("", "{}", "[]", "true", "false") and re.search(rf"(?<![\w-]){re.escape(value)}(?!\w)", text):
        return True
    *parents, leaf = [step for step in places.steps(row.path) if step not in ("[]", "{}")]
    if any(place in text for place in _ancestors(row)):
        return True
    is_vague = row.edit == EMPTY or (leaf in VAGUE and parents[-1] not in VAGUE)
    words = [leaf, parents[-1]] if is_vague else [leaf]
    return any(re.search(rf"\b{spelling}(_ids?)?\b", text) for word in words for spelling in _spellings(word))


def _ancestors(row: Row) -> list[str]:
    """Return the paths of the field's parent objects, as far as they are specific."""
    parts = row.field.split(".")
    return [".".join(parts[:length]) for length in range(len(parts), 1, -1) if parts[length - 1] not in PLACES]


def _spellings(word: str) -> set[str]:
    parts = [part.lower() for part in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z0-9]+", word)]
    return {re.escape(word), "_".join(parts), " ".join(parts)}


def run(row: Row, environment: RunningObjectEnvironment) -> Result:
    """Edit the running object, revert the edit, and return the outcome."""
    before, old = snapshot.take(environment), environment.object()
    verdict, known = review(row, old)
    if known and known.outcome == REFUSED:
        return known
    events = len(environment.events.seen)
    pause_s = SLOW_KINDS.get(row.kind, WRONG_S)
    environment.write(verdict.obj)
    environment.wait(pause_s)
    during, shown = snapshot.take(environment), [*_shown(environment), *_notes(environment)]
    result = known or _outcome(row, verdict, environment, before, during)
    if result.outcome == SILENT and environment.object()["spec"] == old["spec"]:
        result.outcome = HEALED
    result.texts += [*verdict.warnings, *(f"{type_}: {text}" for type_, text in shown if text), *before.changes(during)]
    result.texts += [f"event {reason}: {text}" for _, reason, text in environment.events.seen[events:]]
    result.problems += _harm(row, before, during)
    result.problems += _taken_back(row, environment, old, max(BACK_S, pause_s))
    result.problems += _traces(before, snapshot.take(environment), environment)
    return result


def idle(row: Row, verdict: Verdict) -> Result:
    """Return the outcome of an admitted edit that no controller reconciles."""
    return Result(WARNED if _is_warned(row, verdict) else SILENT, texts=list(verdict.warnings))


def _is_warned(row: Row, verdict: Verdict) -> bool:
    return any(_is_about(row, *warning.split(": ", 1)) for warning in verdict.warnings)


def _outcome(
    row: Row, verdict: Verdict, environment: RunningObjectEnvironment, before: Snapshot, during: Snapshot
) -> Result:
    """Return the outcome of an admitted edit; a condition takes precedence over the cloud."""
    shown = _shown(environment)
    if any(names_it(row, text) for _, text in shown):
        return Result(SHOWN)
    if shown:
        return Result(UNNAMED)
    if any(names_it(row, text) for _, text in _notes(environment)):
        return Result(NOTED)
    changes, moved = before.changes(during), before.bastion != during.bastion
    if not changes:
        return Result(SILENT) if moved else idle(row, verdict)
    effect = REPLACED if moved else EFFECTIVE
    return Result(effect if _has_value(row, changes) else UNSEEN)


def _has_value(row: Row, changes: list[str]) -> bool:
    """Return whether the changes contain the wrong value, if that is a unique text."""
    value = row.value.strip('"')
    is_telling = row.edit == WRONG and value.startswith(values.NO_SUCH)
    return not is_telling or any(value in change for change in changes if change.startswith("+"))


def _shown(environment: RunningObjectEnvironment) -> list[tuple[str, str]]:
    """Return the conditions that are not True, with reason and message."""
    return [
        (c["type"], f"{c['reason']}: {c.get('message', '')}")
        for c in _conditions(environment)
        if c["status"] != "True" and c["type"] != "Paused"
    ]


def _notes(environment: RunningObjectEnvironment) -> list[tuple[str, str]]:
    """Return the messages of conditions that are True."""
    return [(c["type"], c.get("message", "")) for c in _conditions(environment) if c["status"] == "True"]


def _conditions(environment: RunningObjectEnvironment) -> list[Json]:
    objects = [obj for obj in environment.kube.objects.values() if obj["apiVersion"].startswith("infrastructure")]
    return [c for obj in objects for c in (obj.get("status") or {}).get("conditions") or ()]


def _harm(row: Row, before: Snapshot, during: Snapshot) -> Iterator[str]:
    """Yield violations: effects on existing resources that no edit of this field may have."""
    for what in before.lost(during):
        yield f"lost while edited: {what}"
    if not row.path.startswith("spec.bastion") and before.bastion != during.bastion:
        yield "the bastion was replaced"


def _taken_back(row: Row, environment: RunningObjectEnvironment, old: Json, pause_s: float) -> Iterator[str]:
    """Revert the edit, and let time pass; yield why it cannot be reverted."""
    now = environment.object()
    verdict = admission.update(row.version, now, now | {"spec": old["spec"]})
    if not verdict.is_admitted:
        yield f"cannot be taken back: {', '.join(cause.field for cause in verdict.causes)}"
    environment.write(now | {"spec": old["spec"]})
    environment.wait(pause_s)
    if not environment.is_well():
        yield f"does not recover: {'; '.join(environment.messages()) or 'something is under way'}"


def _traces(before: Snapshot, after: Snapshot, environment: RunningObjectEnvironment) -> Iterator[str]:
    """Yield the differences to the state before."""
    for sign, found in (("lost", before.lost(after)), ("left behind", before.gained(after))):
        yield from (f"{sign}: {what}" for what in found)
    yield from (f"differs afterwards: {change}" for change in before.changes(after))
