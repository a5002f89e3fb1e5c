"""Operators with few rights, on a real API server."""

from __future__ import annotations

from typing import Any

import pytest

from capo.crdgen import files
from capo.kube.kinds import OPENSTACK_CLUSTER
from capo.local.rig import Rig
from capo.operations import access
from capo.operations.access import Management
from capo.operations.errors import NotPermittedError
from environments import objects

pytestmark = pytest.mark.integration

PLACE = "operators"
ROLE: list[dict[str, Any]] = [
    {"apiGroups": [OPENSTACK_CLUSTER.group], "resources": [OPENSTACK_CLUSTER.plural], "verbs": ["get", "list"]}
]


def operator(rig: Rig, name: str, rules: list[dict[str, Any]]) -> Management:
    """Return the management cluster for a new user with these rights in the namespace."""
    role = "rbac.authorization.k8s.io/v1"
    subject = {"kind": "ServiceAccount", "name": name, "namespace": PLACE}
    rig.apply(
        [
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": PLACE}},
            {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": PLACE}},
            {"apiVersion": role, "kind": "Role", "metadata": {"name": name, "namespace": PLACE}, "rules": rules},
            {
                "apiVersion": role,
                "kind": "RoleBinding",
                "metadata": {"name": name, "namespace": PLACE},
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name},
                "subjects": [subject],
            },
        ]
    )
    user = f"system:serviceaccount:{PLACE}:{name}"
    rig.api.wait_allowed(user, "list", OPENSTACK_CLUSTER.group, OPENSTACK_CLUSTER.plural, namespace=PLACE)
    return access.connect(str(rig.service_account_kubeconfig(PLACE, name)))


def test_a_right_that_a_role_lacks_is_named_with_the_user(api_server: Rig) -> None:
    api_server.install_crds(files.load())
    management = operator(api_server, "reader", ROLE)
    api_server.apply([objects.in_namespace(objects.openstack_cluster("c"), PLACE)])

    assert [each["metadata"]["name"] for each in management.list(OPENSTACK_CLUSTER, PLACE)] == ["c"]
    with pytest.raises(NotPermittedError, match=r"user system:serviceaccount:operators:reader may not list .* in all"):
        management.list(OPENSTACK_CLUSTER)
    with pytest.raises(NotPermittedError, match="may not get secrets in namespace operators"):
        management.cloud_of(management.get(OPENSTACK_CLUSTER, PLACE, "c"))
    with pytest.raises(NotPermittedError, match="may not get namespaces"):
        _ = management.uid
