"""Which OpenStackMachineTemplates are requeued when another object changes; pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from capo.contract import references
from capo.engine.store import Index, Route, Store
from capo.json_types import Object
from capo.kube.kinds import CLUSTER, OPENSTACK_CLUSTER, OPENSTACK_MACHINE_TEMPLATE, ORC_IMAGE
from controllers.openstackmachinetemplate import referrers

Idents = Iterable[tuple[str, str]]


def keys_for_referrer(obj: Object, _store: Store) -> Idents:
    """Requeue the template that a MachineDeployment, MachineSet or control plane refers to."""
    name = referrers.template_name(obj)
    return [(obj["metadata"]["namespace"], name)] if name else []


def keys_for_cluster(cluster: Object, store: Store) -> Idents:
    """Requeue the templates of a Cluster: its pause or its infrastructure may have changed."""
    return referrers.of_cluster(cluster["metadata"]["namespace"], cluster["metadata"]["name"], store)


def keys_for_openstack_cluster(infra: Object, store: Store) -> Idents:
    """Requeue the templates of a cluster: its credentials may be others."""
    name = references.owner_cluster_name(infra) or references.cluster_name(infra)
    return referrers.of_cluster(infra["metadata"]["namespace"], name, store) if name else []


def keys_for_image(image: Object, store: Store) -> Idents:
    """Requeue the templates that name an ORC Image."""
    namespace = image["metadata"]["namespace"]
    for template in store.find(_OF_IMAGE, (namespace, image["metadata"]["name"])):
        yield namespace, template["metadata"]["name"]


def _image(template: Object) -> Idents:
    wanted = template["spec"]["template"]["spec"].get("image") or {}
    name = (wanted.get("imageRef") or {}).get("name")
    return [(template["metadata"]["namespace"], name)] if name else []


_OF_IMAGE: Final = Index(OPENSTACK_MACHINE_TEMPLATE, _image)

ROUTES: Final = (
    *(Route(kind, keys_for_referrer) for kind in referrers.KINDS),
    Route(CLUSTER, keys_for_cluster),
    Route(OPENSTACK_CLUSTER, keys_for_openstack_cluster),
    Route(ORC_IMAGE, keys_for_image),
)
