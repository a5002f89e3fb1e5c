"""Rules of ``metadata``, which are the same for every kind.

Source: ``k8s.io/apiserver/pkg/registry/rest`` (create, update, delete) and apimachinery's ``ValidateObjectMeta``.
"""

from __future__ import annotations

import datetime
import functools
import json
import re
from collections.abc import Mapping
from typing import Any, Final

from capo.json_types import Json
from capo.kube.kinds import Kind
from e2e.simulation import refusals
from e2e.simulation.refusals import Cause

FOREGROUND: Final = "foregroundDeletion"
ORPHAN: Final = "orphan"
OTHER_NAMESPACE: Final = "the namespace of the provided object does not match the namespace sent on the request"
_FIXED: Final = ("name", "namespace", "uid", "deletionTimestamp", "deletionGracePeriodSeconds")
_NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_NAME_RULE: Final = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    r"'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)


@functools.lru_cache(maxsize=64)
def _timestamp(second: int) -> str:
    return datetime.datetime.fromtimestamp(second, datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def timestamp(now_s: float) -> str:
    """Format seconds since 1970 as Kubernetes does."""
    return _timestamp(int(now_s))


def for_created(given: Mapping[str, Any], *, kind: Kind, namespace: str, uid: str, now_s: float) -> Json:
    """Return the metadata of an object that is created with the given metadata.

    Raises:
        Refusal: the given metadata are invalid.
    """
    if given.get("resourceVersion"):
        # The real one gives no reason either: an error of the storage that is not translated.
        raise refusals.Refusal(500, "", "resourceVersion should not be set on objects to be created")
    if given.get("namespace", namespace) not in ("", namespace):
        raise refusals.bad_request(OTHER_NAMESPACE)
    name = given.get("name") or _generated(given, uid)
    metadata: Json = {"name": name} | ({"namespace": namespace} if kind.is_namespaced else {})
    metadata |= {"uid": uid, "creationTimestamp": timestamp(now_s)}
    for part in ("generateName", "labels", "annotations", "ownerReferences", "finalizers"):
        if given.get(part):
            metadata[part] = given[part]
    causes = _faults_of_owners(metadata)
    if not name:
        causes.append(Cause("metadata.name", "Required value: name or generateName is required", "FieldValueRequired"))
    elif len(name) > 253 or not _NAME.fullmatch(name):
        causes.append(Cause("metadata.name", f"Invalid value: {json.dumps(name)}: {_NAME_RULE}"))
    if causes:
        raise refusals.invalid(kind, name, *causes)
    return metadata


def for_updated(old: Mapping[str, Any], wanted: Mapping[str, Any], *, kind: Kind) -> Json:
    """Return the metadata of an updated object; the caller has compared the resourceVersion.

    Raises:
        Refusal: the write changes immutable fields, or adds a finalizer to an object that is being deleted.
    """
    metadata = {name: value for name, value in wanted.items() if value not in (None, [], {})}
    causes = []
    for name in _FIXED:
        if name in old:
            # An omitted field stays.
            if metadata.setdefault(name, old[name]) != old[name]:
                causes.append(_immutable(name, metadata[name]))
                metadata[name] = old[name]
        elif name in metadata:
            causes.append(_immutable(name, metadata[name]))
    metadata.pop("selfLink", None)
    metadata["creationTimestamp"] = old["creationTimestamp"]  # another value is ignored
    metadata["resourceVersion"] = old["resourceVersion"]
    if "generation" in old:
        metadata["generation"] = old["generation"]
    else:
        metadata.pop("generation", None)
    if "deletionTimestamp" in old:
        causes += _faults_of_new_finalizers(old, metadata)
    if metadata.get("ownerReferences") is not old.get("ownerReferences"):
        causes += _faults_of_owners(metadata)
    if causes:
        raise refusals.invalid(kind, str(old["name"]), *causes)
    return metadata


def for_deleted(
    old: Mapping[str, Any], propagation: str | None, now_s: float, *, has_grace_period: bool = True
) -> Json:
    """Return the metadata of an object under deletion: it stays while it has finalizers."""
    finalizers = old.get("finalizers") or []
    kept = [one for one in finalizers if one not in (FOREGROUND, ORPHAN)]
    match propagation:
        case "Foreground":
            kept.append(FOREGROUND)
        case "Orphan":
            kept.append(ORPHAN)
        case None:
            kept = finalizers
    metadata = {name: value for name, value in old.items() if name != "finalizers"}
    if kept:
        metadata["finalizers"] = finalizers if kept == finalizers else kept
    if "deletionTimestamp" not in old:
        metadata["deletionTimestamp"] = timestamp(now_s)
        if has_grace_period:
            metadata["deletionGracePeriodSeconds"] = 0
        if "generation" in old:
            metadata["generation"] = old["generation"] + 1
    return metadata


def is_finished(metadata: Mapping[str, Any]) -> bool:
    """Return whether an object under deletion has no finalizer left."""
    return "deletionTimestamp" in metadata and not metadata.get("finalizers")


def _generated(given: Mapping[str, Any], uid: str) -> str:
    prefix = given.get("generateName")
    # The uid is unique and comes from the seed, and so does a name that contains it.
    return f"{prefix}{uid.replace('-', '')[-5:]}" if prefix else ""


def _immutable(name: str, value: Any) -> Cause:
    return Cause(f"metadata.{name}", f"Invalid value: {json.dumps(value)}: field is immutable")


def _faults_of_new_finalizers(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[Cause]:
    known = old.get("finalizers") or []
    added = [one for one in new.get("finalizers") or [] if one not in known]
    if not added:
        return []
    listed = ", ".join(json.dumps(one) for one in sorted(added))
    message = (
        "Forbidden: no new finalizers can be added if the object is being deleted, "
        f"found new finalizers []string{{{listed}}}"
    )
    return [Cause("metadata.finalizers", message, "FieldValueForbidden")]


def _faults_of_owners(metadata: Mapping[str, Any]) -> list[Cause]:
    owners = metadata.get("ownerReferences") or []
    causes = []
    for owner in owners:
        for name in ("apiVersion", "kind", "name", "uid"):
            if not owner.get(name):
                causes.append(Cause(f"metadata.ownerReferences.{name}", 'Invalid value: "": must not be empty'))
    controllers = [f"{owner['kind']}/{owner['name']}" for owner in owners if owner.get("controller")]
    if len(controllers) > 1:
        shown = json.dumps(owners, separators=(",", ":"))
        message = (
            f"Invalid value: {shown}: Only one reference can have Controller set to true. "
            f'Found "true" in references for {controllers[0]} and {controllers[1]}'
        )
        causes.append(Cause("metadata.ownerReferences", message))
    return causes
