"""Cluster API's kinds for addresses: which version of them the API server has.

Cluster API up to 1.10 serves only v1beta1; the fields that are used here are the same.
"""

from __future__ import annotations

from capo.json_types import Object
from capo.kube.client import Kube
from capo.kube.errors import Gone
from capo.kube.kinds import Kind


def get(kube: Kube, kind: Kind, namespace: str, name: str) -> Object | None:
    """Return an object in the version that is served; None if it does not exist in any version."""
    found = kube.get(kind, namespace, name)
    older = kind.in_older_version()
    return found if found is not None or older is None else kube.get(older, namespace, name)


def list_all(kube: Kube, kind: Kind, namespace: str) -> list[Object] | None:
    """Return the objects of a namespace in the version that is served; None if the API server serves none.

    None is no proof that there are no objects: a definition may be about to be replaced, or not loaded yet.
    """
    for version in (kind, kind.in_older_version()):
        try:
            if version is not None:
                return list(kube.list(version, namespace))
        except Gone:
            continue
    return None
