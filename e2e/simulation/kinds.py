"""Differences between kinds in the simulated API server."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Final

from capo.kube.event_objects import CORE_EVENT, EVENT
from capo.kube.kinds import (
    CLUSTER,
    CRD,
    IP_ADDRESS,
    IP_ADDRESS_CLAIM,
    KUBEADM_CONTROL_PLANE,
    LEASE,
    MACHINE,
    MACHINE_DEPLOYMENT,
    MACHINE_SET,
    NAMESPACE,
    OPENSTACK_CLUSTER_TEMPLATE,
    ORC_IMAGE,
    OURS,
    SECRET,
    Kind,
)

DEFAULT: Final = (
    *OURS,
    CLUSTER,
    MACHINE,
    MACHINE_DEPLOYMENT,
    MACHINE_SET,
    KUBEADM_CONTROL_PLANE,
    IP_ADDRESS_CLAIM,
    IP_ADDRESS,
    ORC_IMAGE,
    SECRET,
    NAMESPACE,
    LEASE,
    CRD,
    EVENT,
    CORE_EVENT,
)
"""Every kind that the manager reads or writes; Events of the two groups are two kinds here."""

_BUILT_IN_GROUPS: Final = frozenset(
    {"", "apps", "batch", "coordination.k8s.io", "events.k8s.io", "apiextensions.k8s.io", "policy", "autoscaling"}
)
_WITHOUT_STATUS: Final = (OPENSTACK_CLUSTER_TEMPLATE, IP_ADDRESS)
_BUILT_IN_WITH_STATUS: Final = (NAMESPACE, CRD)
_CREATED_BY_PUT: Final = (LEASE, EVENT, CORE_EVENT)
_NEEDS_VERSION: Final = (LEASE, CRD)


@dataclass(frozen=True)
class Traits:
    """Rules for writes of a kind.

    Attributes:
        is_custom: a CustomResourceDefinition defines the kind.
        has_status: status is written only through its subresource.
        has_generation: changes outside of metadata and status are counted.
        is_created_by_put: a PUT creates what is missing.
        needs_version: a PUT must carry a resourceVersion.
    """

    is_custom: bool
    has_status: bool
    has_generation: bool
    is_created_by_put: bool
    needs_version: bool


@functools.cache
def traits(kind: Kind) -> Traits:
    """Return the traits of a kind; of an unknown one, those of most custom resources."""
    is_custom = kind.group not in _BUILT_IN_GROUPS
    return Traits(
        is_custom=is_custom,
        has_status=kind not in _WITHOUT_STATUS if is_custom else kind in _BUILT_IN_WITH_STATUS,
        has_generation=is_custom or kind == CRD,
        is_created_by_put=kind in _CREATED_BY_PUT,
        needs_version=is_custom or kind in _NEEDS_VERSION,
    )
