"""The admission of a write of our kinds before the storage: schema and rules of the definitions, then the webhooks.

Both are the project's own: the generated definitions, and the function that the webhook server calls.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any, Final

import yaml

from capo.crdgen import files
from capo.json_types import Json
from capo.kube.kinds import OURS, Kind
from capo.webhooks import admission as webhooks
from capo.webhooks import configuration
from e2e.simulation import refusals
from e2e.simulation.refusals import Refusal
from e2e.simulation.registry import CREATE, UPDATE, UPDATE_STATUS
from e2e.simulation.schema import MISSING, Faults, Node

_LOADER: Final[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class Admission:
    """Admits writes as an API server with the installed provider does; other kinds are admitted unchanged.

    Args:
        has_webhooks: False to skip the manager's webhooks.
    """

    def __init__(self, *, has_webhooks: bool = True) -> None:
        self.has_webhooks = has_webhooks

    def __call__(self, operation: str, kind: Kind, old: Json | None, new: Json) -> tuple[Json, Refusal | str | None]:
        """Return the object as stored, and why it is refused."""
        if kind not in OURS:
            return new, None
        schema = _schema(kind)
        new = _completed(schema, old, new)
        faults = _faults(schema, operation, old, new)
        if causes := faults.settled():
            return new, refusals.invalid(kind, new["metadata"]["name"], *causes)
        if self.has_webhooks and operation in (CREATE, UPDATE) and kind.kind in _webhooks():
            return new, _asked(operation, kind, old, new)
        return new, None


def _completed(schema: Node, old: Json | None, new: Json) -> Json:
    """Return the object without unknown fields and with defaults."""
    known = old or {}
    made = {
        name: value if value is known.get(name, MISSING) or name in _HEAD else schema.properties[name].completed(value)
        for name, value in new.items()
        if name in schema.properties
    }
    if len(made) == len(new) and all(made[name] is value for name, value in new.items()):
        return new
    return made


def _faults(schema: Node, operation: str, old: Json | None, new: Json) -> Faults:
    faults = Faults(skipped="status." if operation == UPDATE_STATUS else "")
    known = old or {}
    for name, value in new.items():
        if name not in _HEAD:
            schema.properties[name].check(value, known.get(name, MISSING), name, faults)
    return faults


def _asked(operation: str, kind: Kind, old: Json | None, new: Json) -> Refusal | None:
    """Call the webhook of a kind."""
    if old and old.get("spec") is new.get("spec"):
        return None  # our webhooks handle nothing else
    request = {"operation": operation, "object": new, "oldObject": old, "name": new["metadata"]["name"]}
    verdict = webhooks.verdict(request, kind.kind)
    if verdict["allowed"]:
        return None
    status = verdict["status"]
    message = f'admission webhook "{_webhooks()[kind.kind]}" denied the request: {status["message"]}'
    return Refusal(status["code"], status["reason"], message, status.get("details"))


@functools.cache
def _webhooks() -> Mapping[str, str]:
    """Return the name of each kind's webhook."""
    names = [webhook["name"] for webhook in configuration.validating()["webhooks"]]
    return dict(zip(webhooks.VERSION_OF, names, strict=True))


@functools.cache
def _schema(kind: Kind) -> Node:
    """Return the schema of a kind in the stored version."""
    text = (files.FOLDER / f"{kind.plural}.{kind.group}.yaml").read_text()
    definition = yaml.load(text, _LOADER)  # a quarter of the time of generating it from the models
    (stored,) = (version for version in definition["spec"]["versions"] if version["storage"])
    return Node(stored["schema"]["openAPIV3Schema"])


_HEAD: Final = ("apiVersion", "kind", "metadata")
