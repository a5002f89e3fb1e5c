"""The condition of a cluster that names its machine templates which refer to what does not exist; pure.

``clusterctl describe`` shows conditions of the OpenStackCluster, but none of templates.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from capo.contract import references
from capo.engine import conditions
from capo.engine.conditions import Condition
from capo.engine.store import Route, Store
from capo.json_types import Object
from capo.kube.kinds import CLUSTER, OPENSTACK_CLUSTER, OPENSTACK_MACHINE_TEMPLATE

TYPE: Final = "MachineTemplatesReady"
MISSING: Final = "ReferencesMissing"
OF_TEMPLATE: Final = "ReferencesReady"
"""The condition of an OpenStackMachineTemplate that is summarized."""
MAX_TEMPLATES: Final = 5
MAX_WORDS: Final = 300


def condition(owner: Object | None, store: Store) -> Condition | None:
    """Return the condition to show, None if no template of a Cluster is known to lack anything."""
    if owner is None:
        return None
    found = _messages(owner, store)
    if not found:
        return None
    told = [f"{OPENSTACK_MACHINE_TEMPLATE.kind} {name}: {_cut(found[name])}" for name in sorted(found)[:MAX_TEMPLATES]]
    more = len(found) - len(told)
    return Condition(TYPE, "False", MISSING, "; ".join([*told, *([f"and {more} more"] if more else [])]))


def _messages(owner: Object, store: Store) -> dict[str, str]:
    """Return the messages of the templates that lack something, by name."""
    found = {}
    for template in store.owned_by(OPENSTACK_MACHINE_TEMPLATE, owner["metadata"]["uid"]):
        metadata, given = template["metadata"], (template.get("status") or {}).get("conditions") or ()
        shown = conditions.find(given, OF_TEMPLATE)
        is_of_cluster = metadata["namespace"] == owner["metadata"]["namespace"]  # an owner reference may name any uid
        if is_of_cluster and shown and shown.get("status") == "False" and not metadata.get("deletionTimestamp"):
            found[str(metadata["name"])] = str(shown.get("message") or "")
    return found


def _cut(message: str) -> str:
    return message if len(message) <= MAX_WORDS else f"{message[:MAX_WORDS]}..."


def keys_for_template(template: Object, store: Store) -> Iterable[tuple[str, str]]:
    """Requeue the OpenStackCluster of a template if it shows something else than the templates."""
    namespace, name = template["metadata"]["namespace"], references.owner_cluster_name(template)
    owner = store.get(CLUSTER, namespace, name) if name else None
    infra_name = references.infrastructure_name(owner, OPENSTACK_CLUSTER.kind) if owner else None
    infra = store.get(OPENSTACK_CLUSTER, namespace, infra_name) if infra_name else None
    if infra is None:
        return []
    shown = conditions.find((infra.get("status") or {}).get("conditions") or (), TYPE)
    wanted = condition(owner, store)
    is_same = (shown or {}).get("message") == (wanted.message if wanted else None)
    return [] if is_same else [(namespace, infra["metadata"]["name"])]


ROUTE: Final = Route(OPENSTACK_MACHINE_TEMPLATE, keys_for_template)
