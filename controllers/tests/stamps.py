"""Resources of the simulated cloud as the Go provider leaves them: without our stamps."""

from __future__ import annotations

from collections.abc import Iterator

from capo import names
from capo.json_types import Json
from capo.simulator.cloud import Cloud


def remove_all(cloud: Cloud, *, but: str = "") -> None:
    """Remove the stamp of every resource; call it in the simulator's thread.

    Args:
        but: the kind that keeps its stamps, as ``floatingips``.
    """
    for body in bodies(cloud, but=but):
        remove(body)


def bodies(cloud: Cloud, *, but: str = "") -> Iterator[Json]:
    """Yield every resource of the cloud, as its services store it, except those of one kind."""
    for service, kinds in cloud.inventory().items():
        for kind in kinds:
            if kind != but:
                yield from cloud.table(service, kind).values()


def remove(body: Json) -> Json:
    """Remove the stamp of a resource; return it."""
    if stamp := names.stamp_in(str(body.get("description") or "")):
        body["description"] = body["description"].removesuffix(f"[{stamp}]").rstrip()
    if isinstance(body.get("tags"), list):
        body["tags"] = [tag for tag in body["tags"] if not str(tag).startswith("capo:")]
    for key in ("metadata", "volume_metadata"):
        if isinstance(body.get(key), dict):
            body[key].pop(names.VOLUME_STAMP_KEY, None)
    return body
