"""Glance images: looked up, never created.

Source: Image API v2, "List images".
"""

from __future__ import annotations

from api.v1beta2.server import ImageFilter, ImageParam
from capo.errors import AmbiguousMatchError, ImageNotFoundError, InvalidSpecError
from capo.openstack.cloud import Cloud


def resolve(cloud: Cloud, wanted: ImageParam) -> str:
    """Return the id of the named image; one given by id is not looked up.

    Raises:
        ImageNotFoundError: none matches.
        AmbiguousMatchError: more than one does.
    """
    if wanted.id:
        return wanted.id
    if wanted.filter is None:
        raise InvalidSpecError("the image is named neither by id nor by filter")
    query = wanted.filter
    found: str = cloud.lookups.get(("image", query.name, query.tags), lambda: _found(cloud, query))
    return found


def _found(cloud: Cloud, query: ImageFilter) -> str:
    params = {**({"name": query.name} if query.name else {}), **({"tag": list(query.tags)} if query.tags else {})}
    images = cloud.list_all("image", "/images", "images", params=params)
    what = ", ".join(f"{name} {value}" for name, value in params.items()) or "no filter at all"
    if not images:
        raise ImageNotFoundError(f"no image matches {what}")
    if len(images) > 1:
        ids = ", ".join(sorted(image["id"] for image in images)[:5])
        raise AmbiguousMatchError(f"{len(images)} images match {what}: {ids}")
    return str(images[0]["id"])
