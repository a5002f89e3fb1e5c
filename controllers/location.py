"""Check that credentials are for the location of an object's resources; elsewhere all would seem to be deleted.

Source of the rules: ADR 0005.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from capo import names
from capo.errors import CapoError, IdentityError
from capo.ledger import Ledger, Location
from capo.openstack.cloud_view import CloudView
from capo.openstack.kinds import KINDS, ResourceKind
from capo.openstack.resource_cache import Selection, either, with_ids


def accepted(obj: Mapping[str, Any]) -> str | None:
    """Return the location that the admin accepts as new location of an object's resources; pure."""
    value: str | None = (obj["metadata"].get("annotations") or {}).get(names.ACCEPT_LOCATION_ANNOTATION)
    return value


def settle(
    stored: Location | None,
    present: Location,
    *,
    accepted: str | None,
    is_proven: Callable[[], bool],
    may_lack: bool = False,
) -> Location | None:
    """Return the location of the recorded resources, once it is proven.

    Args:
        stored: the location so far; None if unknown.
        present: the location of the credentials.
        accepted: the location that the admin accepts.
        is_proven: returns whether anything recorded is observed at ``present``; called only if that decides.
        may_lack: if ``stored`` is None and nothing is observed, return None instead of raising.

    Raises:
        IdentityError: the resources are elsewhere, or it is not proven that they are here.
        NotYetObserved: that is not known yet; the poller requeues the object.
    """
    if present == stored or str(present) == accepted:
        return present
    refuse_elsewhere(stored, present, accepted)
    if is_proven():
        return present
    if stored is None and may_lack:
        return None
    raise unproven(stored, present)


def refuse_elsewhere(stored: Location | None, present: Location, accepted: str | None) -> None:
    """Refuse credentials of another project or region.

    Raises:
        IdentityError: they are of another one, and the admin did not accept it.
    """
    if stored is None or str(present) == accepted:
        return
    if (stored.project_id, stored.region) != (present.project_id, present.region):
        text = f"the credentials lead to {_told(present)}, what was created for the object is in {_told(stored)}"
        raise IdentityError(text, next_step=_next_step(present))


def unproven(stored: Location | None, present: Location) -> IdentityError:
    """Return the error for credentials of a location where none of the recorded resources was found."""
    where = f"; it was created in {_told(stored)}" if stored else ""
    text = (
        f"the credentials lead to {_told(present)}, where nothing of what is recorded for the object was found{where}"
    )
    return IdentityError(text, next_step=_next_step(present))


def is_anything_seen(cloud_view: CloudView, ledger: Ledger, owner: str) -> bool:
    """Return whether the cloud has anything that is recorded, or has the owner's stamp.

    Ids are random, so an id proves where a resource is; stamps prove elsewhere whose it is. Existing lists are searched
    first, then one recorded kind after the other is listed.

    Raises:
        NotYetObserved: a list is not complete yet; the poller requeues the object.
        CapoError: nothing was found, and a list failed.
    """
    kinds = _kinds(ledger)
    if any(cloud_view.peek(kind.name, among=_belonging(kind, ledger, owner)) for kind in kinds):
        return True
    failure: CapoError | None = None
    for kind in kinds:
        try:
            if cloud_view.list_matching(kind.name, among=_belonging(kind, ledger, owner)):
                return True
        except CapoError as error:
            failure = error
    if failure:
        raise failure
    return False


def _kinds(ledger: Ledger) -> list[ResourceKind]:
    wanted = {record.kind for record in ledger.records.values()} | {each.kind for each in ledger.pending.values()}
    return [kind for kind in KINDS.values() if kind.name in wanted]


def _belonging(kind: ResourceKind, ledger: Ledger, owner: str) -> Selection:
    recorded = [record.id for record in ledger.records_of_kind(kind.name)]
    return either(with_ids(recorded), lambda cache: cache.of_owner(owner))


def _told(location: Location) -> str:
    region = f" in region {location.region}" if location.region else ""
    return f"project {location.project_id}{region} of {location.auth_host}"


def _next_step(present: Location) -> str:
    return (
        "Put back the credentials, which are read again every 10 s; if the resources themselves were moved, "
        f"annotate the object with {names.ACCEPT_LOCATION_ANNOTATION}={present}."
    )
