"""The step that passes on edits of allowed address pairs: from the template to the machine, and on to its server.

Each is one write to one object: the pairs and the record of what was passed on change together. See
:mod:`controllers.address_pairs`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from api.v1beta2.port import PortOpts
from capo import names
from capo.contract import references
from capo.engine import refused_writes
from capo.engine.steps import NotNeeded, Outcome
from capo.engine.store import Store
from capo.json_types import Json, Object
from capo.kube import patches
from capo.kube.errors import Conflict, KubeError
from capo.kube.kinds import OPENSTACK_MACHINE, OPENSTACK_MACHINE_TEMPLATE, OPENSTACK_SERVER, Kind
from controllers import address_pairs, cloned_from, server_child
from controllers.address_pairs import Change
from controllers.openstackmachine.scope import MachineScope


def ensure(scope: MachineScope) -> Outcome:
    """Pass on edits of the template and of the machine; a failure of the ports is shown in the server's words."""
    obj, store = scope.context.obj, scope.context.deps.store
    if not obj["spec"].get("ports"):
        return NotNeeded()
    template = cloned_from.template_of(obj, store)
    if template and from_template(obj, template):
        fresh = _read(scope, OPENSTACK_MACHINE_TEMPLATE, template)
        _write(scope, OPENSTACK_MACHINE, obj, from_template(obj, fresh) if fresh else {})
    server = scope.server_object
    if server is None or not references.is_owned_by(server, obj) or server["metadata"].get("deletionTimestamp"):
        return NotNeeded()
    if to_server(obj, server):
        fresh = _read(scope, OPENSTACK_MACHINE, obj)
        _write(scope, OPENSTACK_SERVER, server, to_server(fresh, server) if fresh else {})
    return server_child.not_ready_reason(server, (address_pairs.CONDITION,)) or NotNeeded()


def first_annotations(obj: Object, store: Store) -> dict[str, str]:
    """Return the record of the template's pairs for a machine that has none, to be written with its owner id."""
    template = cloned_from.template_of(obj, store)
    return address_pairs.template_annotation(_ports(template)) if template and _is_unrecorded(obj, template) else {}


def is_due(obj: Object, template: Object) -> bool:
    """Return whether a machine was cloned from a template and does not have its pairs; pure."""
    return cloned_from.is_clone(obj, template["metadata"]["name"]) and bool(from_template(obj, template))


def from_template(obj: Object, template: Object) -> Json:
    """Return the parts of a machine to replace after an edit of its template; empty if there was none; pure.

    Without a record of the template's pairs they are recorded, and nothing is changed. A port of the machine that
    differs from the template's in another field is another port: its pairs are kept.
    """
    ports = _ports(template)
    if not ports:
        return {}
    annotations = {**_annotations(obj), **address_pairs.template_annotation(ports)}
    recorded = address_pairs.of_template(obj)
    if recorded is None:
        return {"metadata": {"annotations": annotations}}
    present = address_pairs.of_ports(ports)
    if address_pairs.is_same(recorded, present):
        return {}
    changes = [Change.between(*each) for each in zip(recorded, present, strict=False)]
    own = obj["spec"].get("ports") or []
    edited = [_edited(*each) for each in zip(own, ports, changes, strict=False)]
    return {"metadata": {"annotations": annotations}, "spec": {"ports": [*edited, *own[len(edited) :]]}}


def _edited(port: Object, in_template: Object, change: Change) -> Object:
    if not change or _without_pairs(port) != _without_pairs(in_template):
        return port
    (pairs,) = address_pairs.of_ports([port])
    return address_pairs.with_pairs(port, change.apply(pairs))


def _without_pairs(port: Object) -> PortOpts:
    return PortOpts.model_validate(address_pairs.with_pairs(port, ()))


def to_server(obj: Object, server: Object) -> Json:
    """Return the parts of an OpenStackServer to replace after an edit of its machine; empty if there was none; pure.

    Without a record of the machine's pairs they are recorded, and nothing is changed.
    """
    ports = obj["spec"].get("ports") or ()
    recorded, present = address_pairs.record_of(server), address_pairs.of_ports(ports)
    if recorded is not None and address_pairs.is_same(recorded.pairs, present):
        return {}
    edited = recorded.edited(present).encoded() if recorded else None
    annotation = {names.ADDRESS_PAIRS_ANNOTATION: edited} if edited else address_pairs.server_annotation(ports)
    return {"metadata": {"annotations": {**_annotations(server), **annotation}}}


def _read(scope: MachineScope, kind: Kind, known: Object) -> Object | None:
    """Return an object as it is now, None if it was deleted.

    A store that lags behind what a former leader passed on shows the edit backwards.
    """
    found: Object | None = scope.context.deps.kube.get(kind, scope.namespace, known["metadata"]["name"])
    return found if found and found["metadata"]["uid"] == known["metadata"]["uid"] else None


def _write(scope: MachineScope, kind: Kind, obj: Object, wanted: Mapping[str, Any]) -> None:
    """Replace parts of an object; if another client changed them since, its watch event requeues the machine.

    Raises:
        WriteRefusedError: the API server refuses it.
    """
    if not wanted:
        return
    metadata = obj["metadata"]
    uid = {"uid": metadata["uid"]}
    old = {
        "metadata": {**uid, "annotations": metadata.get("annotations") or {}},
        "spec": {"ports": obj["spec"]["ports"]},
    }
    new = {"metadata": {**uid, **wanted["metadata"]}, "spec": wanted.get("spec", old["spec"])}
    # A record that is added overwrites none that the store does not show yet.
    is_current = {"op": "test", "path": "/metadata/resourceVersion", "value": metadata["resourceVersion"]}
    operations = [is_current, *patches.precise(old, new)]
    try:
        changed = scope.context.deps.kube.json_patch(kind, scope.namespace, metadata["name"], operations)
    except Conflict:
        return
    except KubeError as error:
        if not refused_writes.is_one(error):
            raise
        raise refused_writes.failure(error, f"allowed address pairs of {kind.kind} {metadata['name']}").error from error
    # The watch event of an edited machine requeues it: the edit is passed on to the server then.
    if "spec" not in wanted:
        scope.context.deps.store.apply_own(kind, changed, by=scope.context.key)


def _is_unrecorded(obj: Object, template: Object) -> bool:
    has_ports = bool(_ports(template)) and bool(obj["spec"].get("ports"))
    return has_ports and address_pairs.of_template(obj) is None


def _ports(template: Object) -> Sequence[Object]:
    spec = ((template.get("spec") or {}).get("template") or {}).get("spec") or {}
    return spec.get("ports") or ()


def _annotations(obj: Object) -> Mapping[str, str]:
    return obj["metadata"].get("annotations") or {}
