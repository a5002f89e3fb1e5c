"""Answers an AdmissionReview.

Source: Kubernetes documentation, "Dynamic Admission Control"; the status is what the API server itself returns when it
refuses an object, so that ``kubectl`` shows both alike.
"""

from __future__ import annotations

from typing import Final

from api import server_build_timeout, validation
from api.model import GROUP as OUR_GROUP
from api.validation import Fault
from capo.json_types import Json
from capo.webhooks import review

GROUP: Final = "admission.k8s.io"
KIND: Final = "AdmissionReview"
VERSION_OF: Final = {kind: "v1alpha1" if kind == "OpenStackServer" else "v1beta2" for kind in validation.KINDS}
"""The version in which each kind is validated; the API server converts objects of other versions."""


class MisfitError(Exception):
    """An object is not of the kind and version that the path validates; the message names what it is."""


def answer(body: bytes, kind: str) -> Json:
    """Return the review with its verdict, and with warnings if a spec is new.

    Args:
        kind: what the path validates.

    Raises:
        MalformedReviewError: the body is no AdmissionReview.
    """
    version, request = review.read(body, group=GROUP, kind=KIND)
    response = {"uid": request["uid"], **verdict(request, kind)}
    return {"apiVersion": version, "kind": KIND, "response": response}


def verdict(request: Json, kind: str) -> Json:
    """Return the response to a request, without its uid.

    Args:
        kind: the kind that the request must be about.
    """
    if request.get("operation") not in ("CREATE", "UPDATE"):
        return {"allowed": True}
    try:
        new = _object(request, "object", kind)
        if request["operation"] == "CREATE":
            if faults := validation.faults_of_create(kind, new):
                return _refused(_invalid(kind, review.name_in(request, new), faults))
            return _allowed(validation.warnings_of(kind, new))
        old = _object(request, "oldObject", kind)
    except MisfitError as error:
        return _refused(review.bad_request(str(error)))
    if faults := validation.faults_of_update(kind, old, new, is_dry_run=request.get("dryRun") is True):
        return _refused(_invalid(kind, review.name_in(request, new), faults))
    return _allowed(validation.warnings_of(kind, new) if _is_edited(old, new) else [])


def _is_edited(old: Json, new: Json) -> bool:
    """Return whether an update may be a user's: status and finalizers alone are controllers' work."""
    return old.get("spec") != new.get("spec") or server_build_timeout.text_in(old) != server_build_timeout.text_in(new)


def _object(request: Json, field: str, kind: str) -> Json:
    """Return the object in this field, which must be of the kind and in the version that is validated."""
    obj = request.get(field)
    if not isinstance(obj, dict) or not isinstance(obj.get("metadata") or {}, dict):
        raise MisfitError(f"{field}: must be an object of kind {kind}")
    wanted = f"{OUR_GROUP}/{VERSION_OF[kind]}"
    if obj.get("kind") != kind or obj.get("apiVersion") != wanted:
        found = f"{obj.get('apiVersion')} {obj.get('kind')}"
        raise MisfitError(f"{field}: is {found}, this path is for {wanted} {kind}")
    return obj


def _allowed(warnings: list[str]) -> Json:
    return {"allowed": True} | ({"warnings": warnings} if warnings else {})


def _refused(status: Json) -> Json:
    return {"allowed": False, "status": status}


def _invalid(kind: str, name: str, faults: list[Fault]) -> Json:
    """Return the ``metav1.Status`` of an invalid object."""
    texts = [f"{fault.field}: {fault.message}" for fault in faults]
    told = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
    causes = [{"reason": fault.reason, "message": fault.message, "field": fault.field} for fault in faults]
    return {
        "apiVersion": "v1",
        "kind": "Status",
        "status": "Failure",
        "reason": "Invalid",
        "code": 422,
        "message": f'{kind}.{OUR_GROUP} "{name}" is invalid: {told}',
        "details": {"name": name, "group": OUR_GROUP, "kind": kind, "causes": causes},
    }
