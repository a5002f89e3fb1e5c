"""Parts without an owner that an object of a plan will own; pure."""

from __future__ import annotations

from collections.abc import Iterable

from capo.openstack.kinds import KINDS
from capo.operations.adoption import facts
from capo.operations.adoption.plan import Resource
from capo.operations.adoption.search import Part
from capo.operations.errors import OperatorError


def refuse_owned(parts: Iterable[Part]) -> None:
    """Require that no part carries a stamp.

    Raises:
        OperatorError: one does.
    """
    for part in parts:
        if stamp := KINDS[part.kind].stamp_of(part.body):
            raise OperatorError(f"{part.kind} {part.body['id']} carries the stamp of owner {stamp.owner}")


def planned(part: Part, of: str) -> Resource:
    """Return a part as it is in a plan.

    Args:
        of: kind and name of its future owner.
    """
    return Resource(
        kind=part.kind,
        id=part.body["id"],
        role=part.stamp.role,
        of=of,
        stamp=str(part.stamp),
        is_to_stamp=True,
        seen=facts.of(part.kind, part.body),
    )
