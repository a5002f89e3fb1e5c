"""References to credentials."""

from __future__ import annotations

from typing import Annotated, Literal

from api import v1beta2
from api.schema import Schema


class OpenStackIdentityReference(v1beta2.OpenStackIdentityReference):
    """The credentials to use: an entry of a clouds.yaml that a Secret holds."""

    type: Annotated[Literal["Secret", "ClusterIdentity"], Schema(is_required=True, is_default_served=True)] = "Secret"
    """Kind of the object that `name` refers to: `Secret`, a Secret in the namespace of this object; `ClusterIdentity`,
    an OpenStackClusterIdentity, which must allow this namespace. Default: Secret. May change at any time.
    """
