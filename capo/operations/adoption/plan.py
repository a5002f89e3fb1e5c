"""The file of an adoption: which objects are created for which resources, for a person to review.

It is no manifest: ``kubectl apply`` refuses the file as a whole, so that its objects exist only after its checks.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final, Literal

import yaml
from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic.alias_generators import to_camel

from capo.json_types import Json
from capo.ledger import Location
from capo.operations.errors import OperatorError

API_VERSION: Final = "adoption.capo/v1alpha1"
KIND: Final = "AdoptionPlan"
_HEAD: Final = """\
# What `capo adopt apply` creates for resources that exist. It deletes none of them, and changes nothing but stamps.
# findings:   what the cloud does not show, or what differs: read each of them.
# toComplete: what you have to create yourself.
# resources:  what was read; each is read again, and nothing is done if one has changed. isToStamp: it gets the stamp.
# objects:    may be edited before they are applied, except for names, owner ids and provider IDs.
"""


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True, alias_generator=to_camel)


class Place(_Part):
    """Where all resources of a plan are; see :class:`capo.ledger.Location`."""

    auth_host: str
    project_id: str
    region: str

    @classmethod
    def of(cls, location: Location) -> Place:
        """Return the place of a location."""
        return cls(auth_host=location.auth_host, project_id=location.project_id, region=location.region)


class Resource(_Part):
    """A resource that an object will own.

    Args:
        of: kind and name of that object.
        seen: what was read of the resource, by name.
        stamp: that it carries when the plan is applied; empty: the controllers take it over by its name.
        is_to_stamp: it carries none yet.
    """

    kind: str
    id: str
    role: str
    of: str
    stamp: str
    is_to_stamp: bool = False
    seen: dict[str, Any]


class Bastion(_Part):
    """The edit of an OpenStackCluster that gets a bastion.

    Args:
        uid: of the OpenStackCluster.
        spec: ``spec.bastion``.
    """

    cluster: str
    namespace: str
    uid: str
    spec: Json


class Plan(_Part):
    """The whole file."""

    api_version: Literal["adoption.capo/v1alpha1"] = API_VERSION
    kind: Literal["AdoptionPlan"] = KIND
    location: Place
    findings: list[str]
    to_complete: list[str]
    resources: list[Resource]
    objects: list[Json]
    bastion: Bastion | None = None

    def to_yaml(self) -> str:
        """Return the file."""
        data = self.model_dump(mode="json", by_alias=True, exclude_defaults=True)
        data = {"apiVersion": self.api_version, "kind": self.kind, **data}
        return _HEAD + yaml.safe_dump(data, sort_keys=False, width=120, allow_unicode=True)


def read(path: Path) -> Plan:
    """Return the plan in a file.

    Raises:
        OperatorError: the file cannot be read, or is none.
    """
    try:
        data = yaml.safe_load(path.read_bytes())
    except (OSError, yaml.YAMLError) as error:
        raise OperatorError(f"{path} cannot be read: {error}") from error
    try:
        return Plan.model_validate(data)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, first["loc"])) or "file"
        raise OperatorError(f"{path} is no plan of an adoption: {where}: {first['msg']}") from error
