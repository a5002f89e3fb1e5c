"""A management cluster and a cloud as the Go provider leaves them.

Its kinds have the fields of ``capo/crdgen/tests/go_provider.json``: other fields that we wrote are lost. Its resources
in a cloud have its names, descriptions and tags, and no stamp of ours. Some of its objects are stored in v1beta1,
because they were last written by one of its older versions.
"""

from __future__ import annotations

import datetime
from typing import Any, Final

from capo import components, names
from capo.crdgen.tests import go_provider as facts
from capo.engine.migration import OBSERVED_GENERATION
from capo.json_types import Json
from capo.local.rig import Rig
from capo.local.testing import in_etcd
from capo.simulator.simulator import Simulator
from controllers.tests import stamps
from environments.manager_process import wait_until

VERSION: Final = "v0.15.0"
OLD: Final = "v1beta1"
_DEFINITIONS: Final = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_LEASE: Final = f"/apis/coordination.k8s.io/v1/namespaces/{components.NAMESPACE}/leases/controller-leader-election-capo"
_OUR_ANNOTATIONS: Final = (
    names.OWNER_ID_ANNOTATION,
    names.BASTION_HASH_ANNOTATION,
    names.TAKEN_OVER_ANNOTATION,
    names.ADOPTED_ANNOTATION,
)
_OUR_CONDITIONS: Final = frozenset(
    {
        "AddressClaimed",
        "BastionReady",
        "DependenciesResolved",
        "FailureDomainsReady",
        "LeftoversGone",
        "LoadBalancerReady",
        "MachinesGone",
        "Paused",
        "PortsReady",
        "TrunksReady",
        "VolumesReady",
    }
)


def definitions() -> list[Json]:
    """Return its CustomResourceDefinitions without descriptions, and without rules that differ from ours."""
    return [facts.installable(kind) for kind in facts.kinds()]


def install_definitions(rig: Rig, *, storage: str | None = None) -> None:
    """Replace our definitions by its own; the conversion webhook stays.

    Args:
        rig: where they are installed.
        storage: storage version from now on of kinds that have it; None keeps the definitions' own.
    """
    for wanted in definitions():
        versions = wanted["spec"]["versions"]
        if storage in [version["name"] for version in versions]:
            for version in versions:
                version["storage"] = version["name"] == storage

        def changed(present: Json, versions: Json = versions) -> Json:
            present["metadata"].get("annotations", {}).pop(OBSERVED_GENERATION, None)
            present["spec"]["versions"] = versions
            return present

        rig.api.change(f"{_DEFINITIONS}/{wanted['metadata']['name']}", changed)


def lead(rig: Rig) -> None:
    """Acquire the lease for it, for an hour."""
    now = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    _hold(rig, {"holderIdentity": "go-provider_1", "leaseDurationSeconds": 3600, "acquireTime": now, "renewTime": now})


def end(rig: Rig) -> None:
    """Release the lease, as it does when it ends."""
    _hold(rig, {"holderIdentity": "", "leaseDurationSeconds": 1})


def _hold(rig: Rig, spec: Json) -> None:
    rig.api.patch(_LEASE, {"spec": spec})


def rewrite(rig: Rig, path: str) -> None:
    """Remove our additions from an object and its status, written in the version of its path."""
    for where in (path, f"{path}/status"):
        rig.api.change(where, without_ours)


def without_ours(obj: Json) -> Json:
    """Remove our annotations and conditions from an object in place; return it."""
    for annotation in _OUR_ANNOTATIONS:
        (obj["metadata"].get("annotations") or {}).pop(annotation, None)
    status = obj.get("status") or {}
    for conditions in (status.get("conditions"), _v1beta2(status).get("conditions")):
        if conditions:
            conditions[:] = [c for c in conditions if c["type"] not in _OUR_CONDITIONS]
    return obj


def pruned(value: Any, schema: Json) -> Any:
    """Return a value without the fields that a structural schema does not have, as its API server would store it."""
    if schema.get("x-kubernetes-preserve-unknown-fields"):
        return value
    if isinstance(value, list):
        return [pruned(each, schema.get("items", {})) for each in value]
    if not isinstance(value, dict):
        return value
    fields, others = schema.get("properties", {}), schema.get("additionalProperties")
    known = {name: pruned(each, fields[name]) for name, each in value.items() if name in fields}
    more = {name: pruned(each, others) for name, each in value.items() if name not in fields} if others else {}
    return known | more


def _v1beta2(status: Json) -> Json:
    found: Json = status.get("v1beta2") or {}
    return found


def wait_stored_as(rig: Rig, path: str, version: str) -> None:
    """Write an object until etcd holds it in a version: an API server notices a new definition after a moment."""
    _, _, group, _, _, namespace, plural, name = path.split("/")

    def is_stored() -> bool:
        rewrite(rig, path)
        return bool(in_etcd(rig, f"{group}/{plural}", namespace, name)["apiVersion"] == f"{group}/{version}")

    wait_until(f"{path} is stored as {version}", is_stored, every_s=0.5)


def unstamp(simulator: Simulator, *, project: str | None = None) -> None:
    """Remove our stamps from everything in the cloud, or in one of its projects."""

    def change() -> None:
        for body in stamps.bodies(simulator.cloud):
            if project is None or project in (body.get("project_id"), body.get("tenant_id")):
                stamps.remove(body)

    simulator.call(change)
