"""Every index of the product, with the largest bodies that are admitted: its values are no larger than the body."""

from __future__ import annotations

import ast
import gc
import importlib
import inspect
from collections.abc import Iterator
from functools import cache
from types import ModuleType
from typing import Any, Final

import pytest

from capo import names
from capo.engine import store
from capo.engine.beginnings import Beginnings
from capo.json_types import Json
from capo.kube.kinds import OPENSTACK_CLUSTER
from capo.names import Stamp
from capo.openstack import cloud_provider, resource_cache, resource_shapes
from capo.openstack.resource_cache import size_of
from environments import manager_launcher

AnyIndex = store.Index[Any] | resource_cache.Index
TEXTS: Final = [
    (mark * resource_shapes.MAX_TEXT)[: resource_shapes.MAX_TEXT] for mark in ("_", "a_", "a-", "a.", "a/", "a:", "a ")
]
"""The longest names, of nothing but what may separate their parts."""
MANY: Final = 200
ID: Final = "5d2d0b1e-6d6c-4a0e-9a4c-1f6b1a4c2f10"


def function_of(index: AnyIndex) -> Any:
    return getattr(index.values, "func", index.values)


@cache
def indices() -> dict[str, list[AnyIndex]]:
    """Return the indices of the product by the place of their function; several kinds may have the same."""
    for module in product():
        importlib.import_module(module)
    kept = store.Store()
    kept.owned_by(OPENSTACK_CLUSTER, ID)
    kept.by_label(OPENSTACK_CLUSTER, "default", "label", "value")
    has_own = (kept, Beginnings(OPENSTACK_CLUSTER, (), None, None, None))  # type: ignore[arg-type]  # not used here
    found: dict[str, list[AnyIndex]] = {}
    for each in gc.get_objects():
        if isinstance(each, store.Index | resource_cache.Index) and ".tests." not in function_of(each).__module__:
            function = function_of(each)
            found.setdefault(f"{function.__module__}:{function.__code__.co_firstlineno}", []).append(each)
    assert has_own  # alive until here, with the indices that are created with them
    return dict(sorted(found.items()))


def product() -> list[str]:
    return [module for module in manager_launcher.modules() if not module.endswith("__main__")]


def resources(text: str) -> Iterator[Json]:
    """Yield resources of a cloud as large as they may be, with all that any index reads."""
    long = text * 64
    parts = [{"id": f"{number}{text}", "subnet_id": f"{number}{text}", "ip_address": text} for number in range(MANY)]
    service = f"a/b from cluster {long}"
    plain = {
        "id": ID,
        "name": text,
        "description": f"{long}[{Stamp('aaaaaaaaaaaaa', 'role')}]",
        "tags": [each["id"] for each in parts],
        "security_groups": [each["id"] for each in parts],
        "metadata": {cloud_provider.VOLUME_CLUSTER: long},
        **dict.fromkeys(("members", "loadbalancers", "fixed_ips"), parts),
        **dict.fromkeys(("network_id", "vip_network_id", "device_id", "port_id", "router_id"), text),
        "floating_ip_address": "2001:db8::7",
    }
    yield plain
    yield plain | {"device_owner": "network:router_interface"}
    yield plain | {"device_owner": "Octavia", "device_id": f"lb-{ID}"}
    yield plain | {"name": f"{cloud_provider.PREFIX}{text}"}
    yield plain | {"description": f"Kubernetes external service {service}"}
    yield plain | {"description": f"Floating IP for Kubernetes external service {service}"}
    group = f"Security Group for a/b Service LoadBalancer in cluster {long}"
    yield plain | {"name": f"lb-sg-{text}-a-b", "description": group}
    yield {"id": "a", "name": text}
    yield {"id": "a", "name": f"{cloud_provider.PREFIX}{text}"}


def objects(text: str) -> Iterator[Json]:
    """Yield objects as large as they may be, with all that any index reads."""
    long = text * 64
    named = {"name": text, "namespace": text, "uid": ID, "resourceVersion": "1"}
    owners = [
        {"kind": "Cluster", "apiVersion": "cluster.x-k8s.io/v1beta2", "uid": f"{number}{ID}", "name": f"{number}{text}"}
        for number in range(MANY)
    ]
    labels = {names.CLUSTER_NAME_LABEL: text, "cluster.x-k8s.io/control-plane": "", "label": text}
    cloned = {
        names.CLONED_FROM_NAME_ANNOTATION: long,
        names.CLONED_FROM_KIND_ANNOTATION: "OpenStackMachineTemplate.infrastructure.cluster.x-k8s.io",
    }
    ref = {"name": long, "cloudName": long, "region": long, "type": "ClusterIdentity"}
    spec = {
        "identityRef": ref,
        "image": {"imageRef": {"name": long}},
        "serverGroup": {"id": long},
        "poolRef": {"kind": "OpenStackFloatingIPPool", "name": long},
        "clusterName": long,
        "address": "2001:db8::7",
        "antiAffinity": "soft",
        "workloadLeftovers": {"clusterName": long},
    }
    status = {
        "resolved": {"serverGroupID": text},
        "claimedIPs": [f"192.0.{number >> 8}.{number & 255}" for number in range(MANY)],
        "availableIPs": [f"{number}{text}" for number in range(MANY)],
        "resources": {"records": [{"id": f"{number}{text}"} for number in range(MANY)]},
    }
    metadata = named | {"ownerReferences": owners, "labels": labels, "annotations": cloned}
    whole = {"metadata": metadata, "spec": spec, "status": status}
    yield whole
    yield whole | {"spec": spec | {"template": {"spec": spec}}}
    yield whole | {"status": {}}
    location = dict.fromkeys(("authHost", "projectID", "region"), text)
    yield whole | {"status": {"bastionReplacement": {"name": text}, "resources": {"location": location}}}
    yield {"metadata": named, "spec": {}}


@cache
def bodies(*, are_objects: bool) -> list[tuple[Json, int]]:
    """Return what an index is tried with, and its size."""
    return [(body, size_of(body)) for text in TEXTS for body in (objects if are_objects else resources)(text)]


def values_of(index: AnyIndex, body: Json) -> list[Any]:
    try:
        return list(index.values(body))
    except KeyError:
        return []  # the body of another kind


@pytest.mark.parametrize("place", indices())
def test_the_values_of_an_index_are_no_larger_than_the_body(place: str) -> None:
    has_found = False
    for index in indices()[place]:
        for body, size in bodies(are_objects=isinstance(index, store.Index)):
            values = values_of(index, body)
            assert sum(map(size_of, values)) <= size
            has_found = has_found or bool(values)

    assert has_found, "no body above has what this index reads: add it there"


@pytest.mark.parametrize("value", [7, {}, {"id": {}}, [[]], [{}], [{"id": {}, "subnet_id": []}], {"a": [1]}], ids=str)
def test_an_index_of_resources_fails_at_no_answer_that_is_admitted(value: Any) -> None:
    among = [each for found in indices().values() for each in found if isinstance(each, resource_cache.Index)]
    bodies = [
        changed
        for body in resources("a_")
        for field in body.keys() - {"id"}
        if resource_shapes.strange_field({"ports": [changed := body | {field: value}]}) is None
    ]

    assert {frozenset(index.values(body)) for index in among for body in bodies}


def test_no_module_has_an_index_that_is_not_tested() -> None:
    creating = {module for module in product() if has_index(importlib.import_module(module))}

    # The indices of parts are created in `capo.openstack.resource_cache`.
    assert creating | {"capo.parts"} == {place.rpartition(":")[0] for place in indices()}
    assert creating >= {"capo.openstack.cloud_provider", "capo.engine.store", "controllers.openstackcluster.router"}


def has_index(module: ModuleType) -> bool:
    """Return whether the source of a module creates an index."""
    source = inspect.getsource(module)
    tree = ast.walk(ast.parse(source)) if "Index(" in source else ()
    calls = (each.func for each in tree if isinstance(each, ast.Call))
    return any(getattr(each, "id", getattr(each, "attr", "")) in ("Index", "ResourceIndex") for each in calls)
