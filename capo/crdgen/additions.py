"""What our schema has beyond the Go provider's: optional status fields, rules that it checks elsewhere, clearer rules.

Absence does no harm: another provider's CRDs prune the fields. ``docs/reference/additions.md`` tells users; a test
compares both with the CRDs.
"""

from __future__ import annotations

from typing import Final, NamedTuple


class Addition(NamedTuple):
    """A field with everything below it."""

    kind: str
    version: str
    path: str
    purpose: str


_PENDING: Final = "Creations that were begun, so that a crash or a lost answer leaves nothing behind."
_RECORDS: Final = "Ids by role, so that deletion and the next pass find what was made."
_LOCATION: Final = "Where all of it is; credentials that lead to another project or region are refused."
_RESOURCES: Final = "`pending`, `records` and `location`, as on the other kinds."
_FAILURE_DOMAIN: Final = "Availability zone of the server, which Cluster API copies to the Machine."
_ZONE: Final = "Availability zone that Nova chose, which the OpenStackMachine shows as its failure domain."

ADDITIONS: Final = (
    Addition("OpenStackCluster", "v1beta2", "status.resources", _RESOURCES),
    Addition("OpenStackMachine", "v1beta2", "status.failureDomain", _FAILURE_DOMAIN),
    Addition("OpenStackMachine", "v1beta2", "status.resources.pending", _PENDING),
    Addition("OpenStackMachine", "v1beta2", "status.resources.records", _RECORDS),
    Addition("OpenStackMachine", "v1beta2", "status.resources.location", _LOCATION),
    Addition("OpenStackCluster", "v1beta1", "status.resources", _RESOURCES),
    Addition("OpenStackMachine", "v1beta1", "status.failureDomain", _FAILURE_DOMAIN),
    Addition("OpenStackMachine", "v1beta1", "status.resources.pending", _PENDING),
    Addition("OpenStackMachine", "v1beta1", "status.resources.records", _RECORDS),
    Addition("OpenStackMachine", "v1beta1", "status.resources.location", _LOCATION),
    Addition("OpenStackServer", "v1alpha1", "status.availabilityZone", _ZONE),
    Addition("OpenStackServer", "v1alpha1", "status.resources.pending", _PENDING),
    Addition("OpenStackServer", "v1alpha1", "status.resources.records", _RECORDS),
    Addition("OpenStackServer", "v1alpha1", "status.resources.location", _LOCATION),
    Addition("OpenStackFloatingIPPool", "v1alpha1", "status.resources", _RESOURCES),
)


class AddedRule(NamedTuple):
    """A CEL rule that the Go provider does not have.

    Args:
        place: end of the paths that have it.
    """

    place: str
    message: str
    instead_of: str


RULES: Final = (
    AddedRule(
        "SecurityGroupRules[]",
        "at most one of remoteManagedGroups, remoteGroupID and remoteIPPrefix can be set",
        "Its webhook for clusters, which does not look at templates.",
    ),
    AddedRule(
        ".ports[]",
        "securityGroups cannot be set when enablePortSecurity is false",
        "Its webhooks for machines and servers, which do not look at templates and bastions.",
    ),
    AddedRule(
        ".ports[]",
        "securityGroups cannot be set when disablePortSecurity is true",
        "The same in v1beta1.",
    ),
    AddedRule(
        ".additionalBlockDevices[]",
        "root is the name of the disk to boot from",
        "Its webhooks when there is a root volume, and its controller, which refuses the name always.",
    ),
    AddedRule("spec.template", "providerID cannot be set in templates", "Its webhook for templates."),
)


class ClearerRule(NamedTuple):
    """A CEL rule of the Go provider with the same verdict and message, which says more.

    Args:
        place: end of the paths that have it.
    """

    place: str
    message: str
    reason: str


CLEARER: Final = (
    ClearerRule(
        "identityRef",
        "region is immutable",
        "Names field, old and new region; theirs ends in `no such key: region` when one is added or removed.",
    ),
)
