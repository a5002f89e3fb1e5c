"""Resources with our names that are not ours: they are left alone and reported.

Another management cluster, or a user, may have created them in the same project. Names decide nothing (ADR 0001), but
two routers of the same name confuse users of the project.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Final

from capo.engine.conditions import Condition
from capo.openstack.cloud_view import CloudView
from capo.openstack.resource_cache import Item

log = logging.getLogger(__name__)

TYPE: Final = "NamesUnique"
REASON: Final = "NamesTaken"
DUPLICATE: Final = "DuplicateResource"
MAX_NAMED: Final = 5


def condition(
    cloud_view: CloudView, others: Mapping[str, Sequence[Item]], *, is_shared: bool
) -> tuple[list[Condition], list[str]]:
    """Return the condition about resources that have our names or our stamp and are left alone; or the type to drop.

    Makes no request; until all kinds have been listed for other reasons, the former condition is kept.

    Args:
        others: by kind, what has our name and is not this object's.
        is_shared: other namespaces share the credentials: ids and owners are only logged.
    """
    duplicates = [text for _, text in sorted(cloud_view.duplicates.left_alone.items())]
    if duplicates:
        return [_of_duplicates(duplicates)], []
    found = [(kind, item) for kind, items in others.items() for item in items]
    if found:
        full = sorted(_described(kind, item) for kind, item in found)
        if not is_shared:
            return [_condition(full)], []
        log.info("Resources of others have the names of an object", extra={"resources": full[:MAX_NAMED]})
        return [_condition(sorted(_named(kind, item) for kind, item in found))], []
    return [], [TYPE] if all(cloud_view.was_listed(kind) for kind in others) else []


def _of_duplicates(found: Sequence[str]) -> Condition:
    text = f"carries the stamp of this object and is not deleted, because others may use it: {'; '.join(found)}"
    return Condition(TYPE, "False", DUPLICATE, f"{text}. Delete it if nothing uses it.")


def _condition(named: Sequence[str]) -> Condition:
    more = f"; and {len(named) - MAX_NAMED} more" if len(named) > MAX_NAMED else ""
    text = f"not created for this object, and not changed: {'; '.join(named[:MAX_NAMED])}{more}"
    return Condition(TYPE, "False", REASON, f"{text}. Rename or remove them if they are not wanted.")


def _described(kind: str, item: Item) -> str:
    whose = f"of owner {item.stamp.owner}" if item.stamp else "without an owner"
    return f"{kind.replace('_', ' ')} {item.body['id']} {item.body.get('name')!r} {whose}"


def _named(kind: str, item: Item) -> str:
    return f"{kind.replace('_', ' ')} {item.body.get('name')!r}"
