"""What each version cannot express: reduces an object to what survives without the annotation.

Listed independently of the code: whatever is not listed here must survive every conversion.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from capo.json_types import Json


def lost_from_newer(obj: Json) -> Json:
    """Return a v1beta2 object without what v1beta1 cannot express."""
    obj = _copy(obj)
    generation = 0 if obj["kind"] == "OpenStackMachineTemplate" else obj["metadata"].get("generation", 0)
    for condition in obj.get("status", {}).get("conditions", []):
        condition.pop("observedGeneration", None)
        if generation:
            condition["observedGeneration"] = generation
        if not condition.get("reason"):
            condition["reason"] = "Ready" if condition.get("status") == "True" else "NoReasonReported"
        condition.setdefault("message", "")
    domains = obj.get("status", {}).get("failureDomains")
    if domains is not None:
        obj["status"]["failureDomains"] = sorted(
            ({"controlPlane": False} | domain for domain in domains), key=lambda domain: str(domain["name"])
        )
    if obj.get("kind") == "OpenStackClusterTemplate":
        obj.get("spec", {}).get("template", {}).pop("metadata", None)
    _each_cluster(obj, _cluster_newer)
    _each_machine(obj, _machine_newer)
    for port in _resolved_ports(obj):
        port.setdefault("description", "")
    return obj


def _cluster_newer(spec: Json) -> None:
    for name in ("apiServer", "managedNetwork", "managedRouter"):
        if name in spec and not any(value != [] or name != "managedRouter" for value in spec[name].values()):
            del spec[name]
    _endpoint(spec)


def _machine_newer(spec: Json) -> None:
    flavor = spec.get("flavor", {})
    if not flavor.get("id") and not flavor.get("filter", {}).get("name"):
        spec.pop("flavor", None)


def lost_from_older(obj: Json) -> Json:
    """Return a v1beta1 object without what v1beta2 cannot express."""
    obj = _copy(obj)
    status = obj.get("status", {})
    for condition in status.get("conditions", []):
        condition.pop("severity", None)
        if not condition.get("reason"):
            condition["reason"] = "Ready" if condition.get("status") == "True" else "NoReasonReported"
        if not condition.get("message"):
            condition.pop("message", None)
    for name in ("failureReason", "failureMessage"):
        status.pop(name, None)
    if "status" in obj and obj["kind"] != "OpenStackMachineTemplate":
        ready = [c for c in status.get("conditions", []) if c.get("type") == "Ready" and c.get("status") == "True"]
        status["ready"] = bool(ready)
    for domain in status.get("failureDomains", {}).values():
        if domain.get("controlPlane") is False:
            del domain["controlPlane"]
    _each_cluster(obj, _cluster_older)
    _each_machine(obj, lambda spec: spec.pop("flavor", None) if spec.get("flavorID") else None)
    for port in _resolved_ports(obj):
        port.setdefault("description", "")
    if "spec" in obj:
        obj["spec"] = _small(obj["spec"])
    return obj


def _cluster_older(spec: Json) -> None:
    if spec.get("externalRouterIPs") == []:
        del spec["externalRouterIPs"]
    _endpoint(spec)
    if "controlPlaneEndpoint" in spec:
        spec["controlPlaneEndpoint"] = {"host": "", "port": 0} | spec["controlPlaneEndpoint"]


def _endpoint(spec: Json) -> None:
    endpoint = {name: value for name, value in spec.pop("controlPlaneEndpoint", {}).items() if value not in ("", 0)}
    if endpoint:
        spec["controlPlaneEndpoint"] = endpoint


def _each_cluster(obj: Json, change: Callable[[Json], object]) -> None:
    if obj["kind"].startswith("OpenStackCluster"):
        change(_inner_spec(obj))


def _each_machine(obj: Json, change: Callable[[Json], object]) -> None:
    spec = _inner_spec(obj)
    if obj["kind"].startswith("OpenStackCluster"):
        spec = spec.get("bastion", {}).get("spec", {})
    change(spec)


def _inner_spec(obj: Json) -> Json:
    spec: Json = obj.get("spec", {})
    return spec.get("template", {}).get("spec", {}) if obj["kind"].endswith("Template") else spec


def _resolved_ports(obj: Json) -> list[Json]:
    status = obj.get("status", {})
    if obj["kind"] == "OpenStackCluster":
        status = status.get("bastion", {})
    ports: list[Json] = status.get("resolved", {}).get("ports", [])
    return ports


def _small(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _small(child) for name, child in value.items()}
    if isinstance(value, list):
        return [_small(child) for child in value]
    if type(value) is int:
        return min(max(value, -(2**31)), 2**31 - 1)
    return value


def _copy(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _copy(child) for name, child in value.items()}
    if isinstance(value, list):
        return [_copy(child) for child in value]
    return value
