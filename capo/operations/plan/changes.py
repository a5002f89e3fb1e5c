"""The writes of a plan: what is created, changed and deleted, by whom and why."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from capo.json_types import Json
from capo.kube.kinds import Key

CREATE: Final = "create"
UPDATE: Final = "update"
DELETE: Final = "delete"
CONCEALED: Final = frozenset(
    {"user_data", "adminPass", "admin_pass", "personality", "key", "public_key", "data", "stringData"}
)
"""Fields whose values are never shown: they carry secrets, or whole files."""
CLOUD: Final = "OpenStack"
KUBERNETES: Final = "Kubernetes"


@dataclass
class Change:
    """One write.

    Args:
        system: the cloud or the management cluster.
        action: create, update or delete.
        kind: of the resource, in words.
        name: of the resource, or its id if it has none.
        method: of the request.
        path: of the request, relative to the endpoint of the service.
        fields: the fields that the request sets, with their former value; of a create only the latter.
        actor: the object in whose reconcile it is sent, as ``OpenStackCluster default/demo``.
        step: the condition of the step that sends it; empty outside of one.
        cause: why, in the words of the condition; empty if the spec alone is the reason.
    """

    system: str
    action: str
    kind: str
    name: str
    method: str
    path: str
    id: str = ""
    fields: Mapping[str, tuple[Any, Any]] = field(default_factory=dict)
    actor: str = ""
    step: str = ""
    cause: str = ""

    def to_json(self, assigned: Mapping[str, str]) -> Json:
        """Return it for programs; what the cloud would choose is named in words."""
        shown = {
            "system": self.system,
            "action": self.action,
            "kind": self.kind,
            "name": self.name,
            "id": self.id,
            "method": self.method,
            "path": self.path,
            "object": self.actor,
            "step": self.step,
            "cause": self.cause,
            "fields": {name: {"before": before, "after": after} for name, (before, after) in self.fields.items()},
        }
        return dict(with_words(shown, assigned))


def with_words(value: Any, assigned: Mapping[str, str]) -> Any:
    """Return a value in which words stand for ids and addresses that the cloud would choose."""
    if isinstance(value, Mapping):
        return {name: with_words(each, assigned) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [with_words(each, assigned) for each in value]
    if isinstance(value, str):
        for placeholder, words in assigned.items():
            if placeholder in value:
                value = value.replace(placeholder, words)
    return value


def difference(before: Mapping[str, Any], sent: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
    """Return the fields that a request sets, with their former value; unchanged ones are left out."""
    return {
        name: (_shown(name, before.get(name)), _shown(name, value))
        for name, value in sent.items()
        if before.get(name) != value
    }


def _shown(name: str, value: Any) -> Any:
    if name in CONCEALED and value is not None:
        return "<not shown>"
    if isinstance(value, Mapping):
        return {key: _shown(key, each) for key, each in value.items()}
    if isinstance(value, list):
        return [_shown(name, each) for each in value]
    return value


@dataclass
class Recorder:
    """Collects the writes of a plan in their order.

    Args:
        actor: the object that is being reconciled.
        step: the step that runs.
        causes: why objects are created or deleted, by kind and name.
        failure: the first read that failed: the plan cannot be completed.
    """

    changes: list[Change] = field(default_factory=list)
    actor: Key | None = None
    step: str = ""
    causes: dict[str, str] = field(default_factory=dict)
    failure: Exception | None = None
    on_change: Callable[[], None] = lambda: None

    def add(self, change: Change) -> None:
        """Record a write; what is done for an object that was created or deleted for a cause has the same cause."""
        if self.actor:
            change.actor = f"{self.actor.kind.kind} {self.actor.namespace}/{self.actor.name}"
            change.step = self.step if change.action != UPDATE or change.system == CLOUD else ""
        change.cause = change.cause or self.causes.get(change.actor, "")
        self.changes.append(change)
        if change.system != CLOUD and change.action != UPDATE and change.cause:
            self.causes[f"{change.kind} {change.name}"] = change.cause
        self.on_change()

    def fail(self, error: Exception) -> None:
        """Note that a read failed; the first failure is the reason of the plan's."""
        self.failure = self.failure or error

    def explain(self, since: int, step: str, cause: str) -> None:
        """Give the writes that a step sent in a reconcile their cause."""
        for change in self.changes[since:]:
            if change.step == step and not change.cause:
                change.cause = cause
                if change.system != CLOUD:
                    self.causes[f"{change.kind} {change.name}"] = cause
