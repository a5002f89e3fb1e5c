"""The file of an adoption: which objects are created for which resources, for a person to review.

It is no manifest: ``kubectl apply`` refuses the file as a whole, so that its objects exist only after its checks.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, Literal

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic.alias_generators import to_camel

from api.v1beta2.openstackcluster import Bastion as BastionSpec
from capo import flag_values, names
from capo.json_types import Json
from capo.kube.kinds import CLUSTER, MACHINE, OPENSTACK_CLUSTER, OPENSTACK_MACHINE, OPENSTACK_SERVER, Kind
from capo.ledger import Location
from capo.operations import files
from capo.operations.errors import OperatorError
from capo.operations.plan import field_check
from controllers import roles

API_VERSION: Final = "adoption.capo/v1alpha1"
KIND: Final = "AdoptionPlan"
OBJECT_KINDS: Final[Mapping[str, Kind]] = {
    kind.kind: kind for kind in (OPENSTACK_CLUSTER, OPENSTACK_MACHINE, OPENSTACK_SERVER, MACHINE, CLUSTER)
}
"""Kinds of the objects of a plan."""
_ROLES: Final = {OPENSTACK_CLUSTER.kind: roles.is_of_cluster, OPENSTACK_SERVER.kind: roles.is_of_server}
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
        return _HEAD + files.to_yaml(data)


def read(path: Path) -> Plan:
    """Return the plan in a file.

    Raises:
        OperatorError: the file cannot be read, or is none.
    """
    data = files.document(path)
    try:
        found = Plan.model_validate(data)
        fault = next(_faults(found), None)
    except ValidationError as error:
        fault = _first(error)
    if fault is not None:
        raise OperatorError(f"{path} is no plan of an adoption: {fault}")
    return found


def _first(error: ValidationError, part: str = "") -> str:
    first = error.errors(include_url=False, include_input=False)[0]
    where = ".".join(map(str, (*filter(None, [part]), *first["loc"]))) or "file"
    return f"{where[:200]}: {first['msg']}"


def _faults(plan: Plan) -> Iterator[str]:
    """Yield what no plan that was written by a command has, and an edit must not bring."""
    for index, each in enumerate(plan.resources):
        yield from (f"resources.{index}: {text}" for text in _faults_of_resource(each))
    for index, obj in enumerate(plan.objects):
        yield from (f"objects.{index}: {text}" for text in _faults_of_object(obj))
    if plan.bastion is not None:
        yield from _faults_of_bastion(plan.bastion)
    elif OPENSTACK_CLUSTER.kind not in [each["kind"] for each in plan.objects]:
        yield "objects: there is neither an OpenStackCluster nor a bastion"


def _faults_of_resource(resource: Resource) -> Iterator[str]:
    kind, _, name = resource.of.partition(" ")
    if not files.ID.fullmatch(resource.id):
        yield "the id is none"
    if kind not in _ROLES or not _is_name(name):
        yield "of names no OpenStackCluster and no OpenStackServer"
    elif not _ROLES[kind](resource.kind, resource.role):
        yield "kind and role are not those of a resource that it can own"
    stamp = names.stamp_in(resource.stamp)
    if resource.stamp and (stamp is None or str(stamp) != resource.stamp or stamp.role != resource.role):
        yield "the stamp is none of its role"


def _faults_of_object(obj: Json) -> Iterator[str]:
    kind, metadata = OBJECT_KINDS.get(str(obj.get("kind"))), obj.get("metadata")
    if kind is None or obj.get("apiVersion") != kind.api_version:
        yield "the object is of a kind that cannot be adopted"
        return
    if not isinstance(metadata, dict) or not _is_name(metadata.get("name")) or not _is_name(metadata.get("namespace")):
        yield "the object has no valid name and namespace"
        return
    yield from field_check.shape_faults(obj)
    if not isinstance(obj.get("spec"), dict):
        yield "the object has no spec"
    yield from field_check.faults(obj)


def _faults_of_bastion(bastion: Bastion) -> Iterator[str]:
    if not _is_name(bastion.cluster) or not _is_name(bastion.namespace):
        yield "bastion: it has no valid cluster and namespace"
    try:
        BastionSpec.model_validate(bastion.spec)
    except ValidationError as error:
        yield _first(error, "bastion.spec")


def _is_name(value: object) -> bool:
    try:
        return isinstance(value, str) and bool(flag_values.object_name(value))
    except ValueError:
        return False
