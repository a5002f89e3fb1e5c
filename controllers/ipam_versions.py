"""Cluster API's kinds for addresses: which version of them the API server has.

Cluster API up to 1.10 serves only v1beta1; the fields that are used here are the same.
"""

from __future__ import annotations

from capo.json_types import Object
from capo.kube.client import Kube
from capo.kube.kinds import Kind


def get(kube: Kube, kind: Kind, namespace: str, name: str) -> Object | None:
    """Return an object in the version that is served; None if it does not exist in any version."""
    found = kube.get(kind, namespace, name)
    older = kind.in_older_version()
    return found if found is not None or older is None else kube.get(older, namespace, name)
