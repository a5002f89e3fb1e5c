"""Objects that exist in management clusters: what they own is not lost."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from capo.json_types import Object
from capo.operations import owners
from capo.operations.access import Management
from capo.operations.owners import Owner


@dataclass(frozen=True)
class Living:
    """An object that may own resources.

    Args:
        resource_ids: ids that its status and its provider ID name, also those that the Go provider writes.
    """

    management: Management
    owner: Owner
    resource_ids: frozenset[str]

    def __str__(self) -> str:
        """Return kind, name and management cluster."""
        return f"{self.owner} of {self.management.name}"


def find(managements: Iterable[Management]) -> Iterator[Living]:
    """Yield all objects that may own resources in the cloud, of all namespaces.

    Raises:
        OperatorError: they cannot be listed as a whole.
    """
    for each in managements:
        for owner, obj in owners.read(each):
            ids = {id_ for _, id_ in owner.recorded} | set(_reported(obj))
            yield Living(each, owner, frozenset(ids))


def _reported(obj: Object) -> Iterator[str]:
    """Yield the ids that the Go provider shows in a status."""
    status = obj.get("status") or {}
    yield from (port["id"] for port in (status.get("resources") or {}).get("ports") or ())
    blocks = (value for value in status.values() if isinstance(value, dict))
    yield from (str(block["id"]) for block in blocks if block.get("id"))
