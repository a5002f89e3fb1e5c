"""Files with objects: read, and applied to the API server of a plan as ``kubectl apply`` would apply them."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from api import conversion, validation
from api.conversion import ConversionError
from capo import names
from capo.json_types import Json
from capo.kube import kinds
from capo.kube.kinds import Key, Kind
from capo.operations import files
from capo.operations.errors import OperatorError
from capo.operations.plan import field_check
from capo.operations.plan.kubernetes import PlannedKube
from capo.webhooks import admission

LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
_KINDS: Final = {
    (each.group, each.kind): each
    for each in (
        *kinds.OURS,
        kinds.CLUSTER,
        kinds.MACHINE,
        kinds.MACHINE_DEPLOYMENT,
        kinds.MACHINE_SET,
        kinds.KUBEADM_CONTROL_PLANE,
        kinds.SECRET,
        kinds.NAMESPACE,
    )
}


def read(path: str) -> list[Json]:
    """Return the objects of a file; ``-`` is stdin.

    Raises:
        OperatorError: it cannot be read, or is not YAML of Kubernetes objects.
    """
    return [obj for document in files.documents(path) for obj in _objects(document, path)]


def _objects(document: Any, path: str) -> Iterator[Json]:
    if document is None:
        return
    if isinstance(document, dict) and str(document.get("kind")).endswith("List"):
        items = document.get("items") or ()
        for each in items if isinstance(items, list) else [items]:
            yield from _objects(each, path)
        return
    metadata = document.get("metadata") if isinstance(document, dict) else None
    if not isinstance(metadata, dict) or not _are_texts(
        document.get("apiVersion"), document.get("kind"), metadata.get("name")
    ):
        raise OperatorError(f"{path}: a document is no Kubernetes object with apiVersion, kind and metadata.name")
    if found := list(field_check.shape_faults(document)):
        raise OperatorError(f"{path}: the API server would refuse {_named(document)}: {', '.join(found)}")
    yield document


def _are_texts(*values: Any) -> bool:
    return all(isinstance(each, str) and each for each in values)


def is_of_use(obj: Json) -> bool:
    """Return whether the controllers or Cluster API's part of a plan read objects of this kind."""
    group = str(obj["apiVersion"]).rpartition("/")[0]
    spec = obj.get("spec")
    return (group, str(obj["kind"])) in _KINDS or (isinstance(spec, dict) and "machineTemplate" in spec)


def namespaces(wanted: Iterable[Json], default: str) -> Iterator[str]:
    """Yield the namespaces of objects."""
    for obj in wanted:
        known = _KINDS.get((str(obj["apiVersion"]).rpartition("/")[0], str(obj["kind"])))
        if known is None or known.is_namespaced:
            yield obj["metadata"].get("namespace") or default


def apply(kube: PlannedKube, obj: Json, namespace: str) -> tuple[Key, Json | None]:
    """Apply an object to the API server of a plan; return its key, and the object as it was before.

    Raises:
        OperatorError: the API server or a webhook would refuse it.
    """
    if found := list(field_check.faults(obj)):
        raise OperatorError(f"the API server would refuse {_named(obj)}: {', '.join(found)}")
    kind, wanted = _in_version(kube, obj)
    metadata = {**wanted["metadata"]}
    if kind.is_namespaced:
        metadata.setdefault("namespace", namespace)
    wanted = {**wanted, "metadata": metadata}
    key = Key(kind, metadata.get("namespace", "") if kind.is_namespaced else "", metadata["name"])
    before = kube.take_version(key, str(wanted["apiVersion"]))
    if before is None:
        _check("CREATE", wanted, None)
        kube.put(kind, wanted)
        return key, None
    patch = three_way(_last_applied(kube, before), wanted, before)
    after = kube.edit(*key, {name: value for name, value in patch.items() if name != "status"})
    try:
        _check("UPDATE", after, before)
    except OperatorError:
        kube.objects[key] = before
        raise
    return key, before


def _in_version(kube: PlannedKube, obj: Json) -> tuple[Kind, Json]:
    """Return an object in the version that the controllers read."""
    group, _, version = str(obj["apiVersion"]).rpartition("/")
    known = _KINDS.get((group, str(obj["kind"])))
    if known is None:
        return _other(kube, group, version, str(obj["kind"])), obj
    if known == kinds.SECRET:
        return known, _encoded(obj)
    if known.group != names.GROUP or version == known.version:
        return known, obj
    try:
        return known, conversion.convert(obj, known.api_version)
    except ConversionError as error:
        raise OperatorError(f"{_named(obj)}: {error}") from error


def _encoded(secret: Json) -> Json:
    """Return a Secret as the API server stores it: what is in ``stringData`` is a part of ``data``."""
    plain: Mapping[str, Any] = secret.get("stringData") or {}
    encoded = {name: base64.b64encode(str(value).encode()).decode() for name, value in plain.items()}
    rest = {name: value for name, value in secret.items() if name != "stringData"}
    return {**rest, "data": {**(secret.get("data") or {}), **encoded}}


def _other(kube: PlannedKube, group: str, version: str, kind: str) -> Kind:
    """Return a kind that the provider neither defines nor watches."""
    served = kube.served(group, kind) if group else None
    return served or Kind(group, version, f"{kind.lower()}s", kind)


def _check(operation: str, new: Json, old: Json | None) -> None:
    kind = str(new.get("kind"))
    if kind not in validation.KINDS or not str(new.get("apiVersion")).startswith(f"{names.GROUP}/"):
        return
    verdict = admission.verdict({"operation": operation, "object": new, "oldObject": old}, kind)
    if not verdict["allowed"]:
        raise OperatorError(f"the webhook would refuse {_named(new)}: {verdict['status']['message']}")


def _last_applied(kube: PlannedKube, obj: Mapping[str, Any]) -> Json:
    """Return what was applied last, in the version that the controllers read; empty if that is not known."""
    text = (obj["metadata"].get("annotations") or {}).get(LAST_APPLIED)
    try:
        found = json.loads(text) if text else {}
        return _in_version(kube, found)[1] if found else {}
    except (ValueError, LookupError, TypeError, AttributeError, OperatorError, RecursionError):
        return {}  # others may have written it


def three_way(former: Any, wanted: Any, present: Any) -> Json:
    """Return the merge patch of ``kubectl apply``: what is wanted, without the fields that were applied before; pure.

    Source: Kubernetes documentation, "How apply calculates differences and merges changes"; lists are replaced as a
    whole, as of every custom resource.
    """
    patch: Json = {}
    for name, value in wanted.items():
        if isinstance(value, Mapping) and isinstance(present.get(name), Mapping):
            known = former.get(name) if isinstance(former, Mapping) else None
            patch[name] = three_way(known if isinstance(known, Mapping) else {}, value, present[name])
        else:
            patch[name] = value
    removed = former.keys() - wanted.keys() if isinstance(former, Mapping) else set()
    return {**patch, **{name: None for name in removed if name in present}}


def _named(obj: Mapping[str, Any]) -> str:
    return f"{obj.get('kind')} {obj['metadata'].get('name')}"
