"""Glance images: looked up, never created.

Source: Image API v2, "List images".
"""

from __future__ import annotations

from urllib.parse import quote

from api.v1beta2.server import ImageFilter, ImageParam
from capo.errors import AmbiguousMatchError, CloudUnavailableError, ImageNotFoundError, InvalidSpecError, NotFoundError
from capo.json_types import Body
from capo.openstack.cloud import Cloud
from capo.openstack.view import View, text


class Image(View):
    """An image, with the properties that describe the machine that boots from it."""

    id = text("id")
    architecture = text("hw_architecture")
    os_type = text("os_type")
    os_distro = text("os_distro")


def resolve(cloud: Cloud, wanted: ImageParam) -> str:
    """Return the id of the named image; one given by id is not looked up.

    Raises:
        ImageNotFoundError: none matches.
        AmbiguousMatchError: more than one does.
    """
    return wanted.id or find(cloud, wanted).id


def find(cloud: Cloud, wanted: ImageParam) -> Image:
    """Return the named image.

    Raises:
        ImageNotFoundError: none matches.
        AmbiguousMatchError: more than one does.
    """
    if wanted.id:
        return get(cloud, wanted.id)
    if wanted.filter is None:
        raise InvalidSpecError("the image is named neither by id nor by filter")
    query = wanted.filter
    found: Body = cloud.lookups.get(("image", query.name, query.tags), lambda: _found(cloud, query))
    return Image(found)


def get(cloud: Cloud, image_id: str) -> Image:
    """Return the image with an id.

    Raises:
        ImageNotFoundError: the project sees none, neither by its id nor in the list.
    """
    found: Body = cloud.lookups.get(("image", image_id), lambda: _by_id(cloud, image_id))
    return Image(found)


def _by_id(cloud: Cloud, image_id: str) -> Body:
    try:
        return Image.kept(cloud.get("image", f"/images/{quote(image_id, safe='')}"))
    except NotFoundError as error:
        if cloud.list_all("image", "/images", "images", params={"id": f"in:{image_id}", "visibility": "all"}):
            raise CloudUnavailableError(f"image {image_id} is listed, and yet not found: {error.message}") from error
        raise ImageNotFoundError(f"no image has the id {image_id}", request_id=error.request_id) from error


def _found(cloud: Cloud, query: ImageFilter) -> Body:
    params = {**({"name": query.name} if query.name else {}), **({"tag": list(query.tags)} if query.tags else {})}
    images = cloud.list_all("image", "/images", "images", params=params)
    what = ", ".join(f"{name} {value}" for name, value in params.items()) or "no filter at all"
    if not images:
        raise ImageNotFoundError(f"no image matches {what}")
    if len(images) > 1:
        ids = ", ".join(sorted(image["id"] for image in images)[:5])
        text = f"{len(images)} images match {what}"
        raise AmbiguousMatchError(f"{text}: {ids}", if_shared=text)
    return Image.kept(images[0])
