"""Objects of Kubernetes' own kinds by the official client's models, as the JSON to send.

Objects that are read stay plain JSON: the models drop unknown fields.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any

from kubernetes import client

from capo.json_types import Json
from capo.kube.kinds import Kind


def to_json(value: Any) -> Any:
    """Return a model as JSON, without unset fields."""
    if isinstance(value, datetime.datetime):
        # The API server requires six digits in a MicroTime; the client's own serialization omits zeros.
        return value.astimezone(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    if isinstance(value, Mapping):
        return {name: to_json(item) for name, item in value.items() if item is not None}
    if isinstance(value, list):
        return [to_json(item) for item in value]
    return to_json(value.to_dict(serialize=True)) if hasattr(value, "to_dict") else value


def lease_spec(
    holder: str, *, duration_s: float, transitions: int, renewed: datetime.datetime, acquired: datetime.datetime | None
) -> Json:
    """Return the fields of a Lease's spec that an election writes; without ``acquired`` the acquire time is omitted."""
    spec = client.V1LeaseSpec(
        holder_identity=holder,
        lease_duration_seconds=max(1, round(duration_s)),
        lease_transitions=transitions,
        renew_time=renewed,
        acquire_time=acquired,
    )
    return dict(to_json(spec))


def token_review(token: str) -> Json:
    """Return the spec of a TokenReview."""
    return dict(to_json(client.V1TokenReviewSpec(token=token)))


def access_review(user: Mapping[str, Any], *, path: str, verb: str) -> Json:
    """Return the spec of a SubjectAccessReview for a non-resource path.

    Args:
        user: as in the status of a TokenReview.
    """
    spec = client.V1SubjectAccessReviewSpec(
        user=user.get("username") or "",
        uid=user.get("uid") or "",
        groups=list(user.get("groups") or ()),
        extra=dict(user.get("extra") or {}),
        non_resource_attributes=client.V1NonResourceAttributes(path=path, verb=verb),
    )
    return dict(to_json(spec))


def self_access_review(kind: Kind, verb: str, namespace: str | None) -> Json:
    """Return the spec of a SelfSubjectAccessReview for a kind.

    Args:
        namespace: None means all.
    """
    attributes = client.V1ResourceAttributes(
        group=kind.group, version=kind.version, resource=kind.plural, verb=verb, namespace=namespace or ""
    )
    return dict(to_json(client.V1SelfSubjectAccessReviewSpec(resource_attributes=attributes)))
