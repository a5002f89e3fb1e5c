"""User tags of Neutron resources, which are set after the create.

Source: Networking API, "Standard Attributes Tag Extension".
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any

from capo.errors import NotFoundError, UnsupportedByCloudError
from capo.json_types import Body
from capo.openstack.cloud import Cloud

log = logging.getLogger(__name__)


def replace(cloud: Cloud, collection: str, body: Mapping[str, Any], wanted: Sequence[str]) -> Body:
    """Replace the tags of a resource; return its body with them.

    A cloud without the extension answers 404; the resource then stays without tags.
    """
    tags = sorted(set(wanted))
    try:
        answer = cloud.put("network", f"/{collection}/{body['id']}/tags", json={"tags": tags})
    except (NotFoundError, UnsupportedByCloudError) as error:
        cloud.get("network", f"/{collection}/{body['id']}")  # raises if it is the resource that does not exist
        log.info("The cloud has no tags for Neutron resources", extra={"err": error.message})
        return {**body, "tags": tags}
    return {**body, "tags": answer.get("tags", tags)}
