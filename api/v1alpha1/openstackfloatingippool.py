"""OpenStackFloatingIPPool: floating IPs for Cluster API's IPAddressClaims."""

from __future__ import annotations

from typing import ClassVar, Literal

from api import printer_columns
from api.meta import Condition, KubernetesObject
from api.model import Model
from api.schema import Address, Column, Defaulted, Names
from api.v1beta2.conditions import ConditionType
from api.v1beta2.identity import OpenStackIdentityReference
from api.v1beta2.network import NetworkParam
from api.v1beta2.openstackclusterstatus import NetworkStatus
from api.v1beta2.resources import ResourceLedger


class OpenStackFloatingIPPoolSpec(Model):
    """Desired state of the pool."""

    pre_allocated_floating_ips: tuple[Address, ...] = ()
    """Addresses of existing floating IPs, allocated first, never changed and never deleted. Default: none. May change
    at any time.
    """
    max_ips: int | None = None
    """How many addresses may be claimed before no floating IP is created any more; -1 for no limit. Existing floating
    IPs are allocated beyond it. Default: no limit. May change at any time.
    """
    identity_ref: OpenStackIdentityReference
    """Credentials. May change, but for the region."""
    floating_ip_network: NetworkParam | None = None
    """External network of new floating IPs. Default: the only external network. May change at any time; existing
    floating IPs stay.
    """
    reclaim_policy: Literal["Retain", "Delete"]
    """What happens to a floating IP that was created for the pool, when its claim or the pool is deleted: `Retain`
    keeps it, for the next claim, `Delete` deletes it. May change at any time.
    """


class OpenStackFloatingIPPoolStatus(Model):
    """Observed state of the pool."""

    claimed_ips: Defaulted[tuple[str, ...]] = ()
    """Addresses that are claimed, in order."""
    available_ips: Defaulted[tuple[str, ...]] = ()
    """Addresses that can be allocated, in order."""
    failed_ips: tuple[str, ...] = ()
    """Preallocated addresses that cannot be allocated at present: they are missing, in use or of somebody else."""
    floating_ip_network: NetworkStatus | None = None
    """The external network, once resolved."""
    conditions: tuple[Condition, ...] = ()
    """Conditions of the pool."""
    resources: ResourceLedger | None = None
    """Resources that were created for the pool."""


class OpenStackFloatingIPPool(KubernetesObject):
    """A pool of floating IPs that machines claim from."""

    names: ClassVar[Names] = Names("openstackfloatingippools", categories=())
    columns: ClassVar[tuple[Column, ...]] = (
        Column("Network", ".status.floatingIPNetwork.name", "External network of new floating IPs"),
        Column("Max IPs", ".spec.maxIPs", "How many addresses may be claimed"),
        Column("Reclaim", ".spec.reclaimPolicy", "What happens to a floating IP whose claim is deleted"),
        printer_columns.state(ConditionType.FLOATING_IP_POOL_READY),
        Column("Claimed", ".status.claimedIPs[0]", "First address that is claimed", priority=1),
        Column("Available", ".status.availableIPs[0]", "First address that can be allocated", priority=1),
        printer_columns.changed(ConditionType.FLOATING_IP_POOL_READY),
        printer_columns.AGE,
    )

    api_version: Literal["infrastructure.cluster.x-k8s.io/v1alpha1"] = "infrastructure.cluster.x-k8s.io/v1alpha1"
    """Group and version of the kind."""
    kind: Literal["OpenStackFloatingIPPool"] = "OpenStackFloatingIPPool"
    """Kind of the object."""
    spec: OpenStackFloatingIPPoolSpec = OpenStackFloatingIPPoolSpec(
        identity_ref=OpenStackIdentityReference(name="", cloud_name=""),
        reclaim_policy="Retain",
    )
    """Desired state of the pool."""
    status: OpenStackFloatingIPPoolStatus = OpenStackFloatingIPPoolStatus()
    """Observed state of the pool."""
