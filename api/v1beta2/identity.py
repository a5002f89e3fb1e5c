"""References to credentials."""

from __future__ import annotations

from typing import ClassVar, Literal

from api.model import Model
from api.schema import CloudText, Defaulted, EntryName, NonEmptyObjectName, Rule, Schema


class OpenStackIdentityReference(Model):
    """The credentials to use: an entry of a clouds.yaml that a Secret holds."""

    crd: ClassVar[Schema] = Schema(
        rules=(
            Rule(
                "has(self.region) == has(oldSelf.region) && (!has(self.region) || self.region == oldSelf.region)",
                "region is immutable",
                told="'region is immutable: cannot change from '"
                " + (has(oldSelf.region) ? '\"' + oldSelf.region + '\"' : 'none')"
                " + ' to ' + (has(self.region) ? '\"' + self.region + '\"' : 'none')",
                field="region",
            ),
        )
    )

    type: Defaulted[Literal["Secret", "ClusterIdentity"]] = "Secret"
    """Kind of the object that `name` refers to: `Secret`, a Secret in the namespace of this object; `ClusterIdentity`,
    an OpenStackClusterIdentity, which must allow this namespace. Default: Secret. May change at any time.
    """
    name: NonEmptyObjectName
    """Name of the Secret or of the OpenStackClusterIdentity. May change at any time, to renew credentials."""
    cloud_name: EntryName
    """Name of the entry in clouds.yaml. May change at any time."""
    region: CloudText = ""
    """OpenStack region; takes precedence over `region_name` of clouds.yaml, and is part of the provider ID when set on
    a machine. Default: that of clouds.yaml. Cannot change.
    """
