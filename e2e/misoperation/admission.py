"""The admission chain of a write, in process: defaults, schema, CEL rules, conversion, validating webhook."""

from __future__ import annotations

import json
from dataclasses import dataclass

from api import conversion, validation
from capo.json_types import Json
from capo.webhooks import admission
from capo.webhooks.tests.table.places import Version
from e2e.misoperation import structure
from e2e.misoperation.structure import Cause


@dataclass(frozen=True)
class Verdict:
    """The result of the admission of a write.

    Args:
        obj: as stored, with defaults and in the version of the request.
        causes: why it is refused; empty when it is admitted.
    """

    obj: Json
    causes: tuple[Cause, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def is_admitted(self) -> bool:
        """Return whether the write is admitted."""
        return not self.causes


def create(version: Version, obj: Json) -> Verdict:
    """Return the verdict on a new object."""
    return _verdict(version, None, obj)


def update(version: Version, old: Json, new: Json) -> Verdict:
    """Return the verdict on an update of an object, both in the same version."""
    return _verdict(version, old, new)


def _verdict(version: Version, old: Json | None, new: Json) -> Verdict:
    schema = version.root["properties"]["spec"]
    obj = new | {"spec": structure.defaulted(schema, new["spec"])}
    if causes := structure.causes(schema, obj["spec"], "spec", old=old["spec"] if old else None):
        return Verdict(obj, tuple(causes))
    if version.kind not in validation.KINDS:
        return Verdict(obj)
    return _reviewed(version, old, obj)


def _reviewed(version: Version, old: Json | None, new: Json) -> Verdict:
    """Call the webhook; it gets the objects in the version that it handles."""
    wanted = f"{version.crd['spec']['group']}/{admission.VERSION_OF[version.kind]}"
    shown = [obj and (obj if obj["apiVersion"] == wanted else conversion.convert(obj, wanted)) for obj in (old, new)]
    operation = "UPDATE" if old else "CREATE"
    request = {"uid": "one", "operation": operation, "name": "one", "oldObject": shown[0], "object": shown[1]}
    review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}
    response = admission.answer(json.dumps(review).encode(), version.kind)["response"]
    if response["allowed"]:
        return Verdict(new, warnings=tuple(response.get("warnings", ())))
    found = response["status"]["details"]["causes"]
    return Verdict(new, tuple(Cause(cause["field"], cause["message"]) for cause in found))
