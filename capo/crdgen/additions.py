"""What our schema has beyond the Go provider's: optional status fields, whose absence does no harm.

Another provider's CRDs prune them. ``docs/reference/additions.md`` tells users; a test compares both with the CRDs.
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
_RESOURCES: Final = "`pending` and `records`, as on the other kinds."
_FAILURE_DOMAIN: Final = "Availability zone of the server, which Cluster API copies to the Machine."

ADDITIONS: Final = (
    Addition("OpenStackCluster", "v1beta2", "status.resources", _RESOURCES),
    Addition("OpenStackMachine", "v1beta2", "status.failureDomain", _FAILURE_DOMAIN),
    Addition("OpenStackMachine", "v1beta2", "status.resources.pending", _PENDING),
    Addition("OpenStackMachine", "v1beta2", "status.resources.records", _RECORDS),
    Addition("OpenStackServer", "v1alpha1", "status.resources.pending", _PENDING),
    Addition("OpenStackServer", "v1alpha1", "status.resources.records", _RECORDS),
    Addition("OpenStackFloatingIPPool", "v1alpha1", "status.resources", _RESOURCES),
)
