"""Users of an API server who have exactly the rights that the page about the commands lists."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

import capo
from capo.crdgen import files
from capo.json_types import Json
from capo.kube.kinds import OPENSTACK_CLUSTER, Kind
from capo.local.rig import Rig
from capo.operations.access import Management
from capo.simulator.simulator import Simulator
from environments import objects

PAGE: Final = Path(capo.__file__).parents[1] / "docs" / "reference" / "cli.md"
ANY_NAMED: Final = {"matchExpressions": [{"key": "kubernetes.io/metadata.name", "operator": "Exists"}]}
"""Selects each namespace, by its labels."""
_GROUP: Final = "rbac.authorization.k8s.io"
_PATH: Final = re.compile(
    r"/(?:api|apis/(?P<group>[^/]+))/v[^/]+/(?:namespaces/(?P<namespace>[^/]+)/)?(?P<resource>[a-z]+)(?:/(?P<name>[^/]+))?"
)
_BLOCK: Final = re.compile(r"(?:^    .*\n|^\n)+", re.MULTILINE)


def documented(command: str) -> Json:
    """Return the ClusterRole of a command, as its page has it."""
    blocks = [textwrap.dedent(each) for each in _BLOCK.findall(PAGE.read_text()) if "kind: ClusterRole" in each]
    roles = {obj["metadata"]["name"]: obj for text in blocks for obj in yaml.safe_load_all(text) if obj}
    found: Json = roles[f"capo-{command}"]
    return found


def granted(role: Json) -> set[tuple[str, str]]:
    """Return the verbs and resources of a role."""
    return {(verb, name) for rule in role["rules"] for verb in rule["verbs"] for name in rule["resources"]}


def refuser(rules: list[Json], namespace: str | None) -> Callable[[str, str], str]:
    """Return what refuses requests that a role does not permit.

    Args:
        namespace: of the RoleBinding; None: a ClusterRoleBinding.
    """

    def why(method: str, path: str) -> str:
        found = _PATH.fullmatch(path)
        if found is None:
            return ""  # discovery
        group, resource = found["group"] or "", found["resource"]
        # The API server takes one Namespace for an object in itself.
        place = found["name"] if (group, resource) == ("", "namespaces") else found["namespace"]
        verb = {"GET": "get" if found["name"] else "list"}.get(method, method)
        is_named = any(
            group in rule["apiGroups"]
            and resource in rule["resources"]
            and verb in rule["verbs"]
            and found["name"] in rule.get("resourceNames", [found["name"]])
            for rule in rules
        )
        is_allowed = is_named and namespace in (None, place)
        return "" if is_allowed else f'{resource} is forbidden: User "jane" cannot {verb} resource'

    return why


def user(rig: Rig, role: Json, place: str, *, namespace: str | None = None) -> str:
    """Return the path of a kubeconfig of a new user with the rules of a role.

    Args:
        place: namespace of the ServiceAccount.
        namespace: where the rules apply; None: in all.
    """
    name = role["metadata"]["name"]
    subjects = [{"kind": "ServiceAccount", "name": name, "namespace": place}]
    kind = "RoleBinding" if namespace else "ClusterRoleBinding"
    reference = {"apiGroup": _GROUP, "kind": "ClusterRole", "name": name}
    where = {"namespace": namespace} if namespace else {}
    rig.apply(
        [
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": place}},
            {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": place}},
            role,
            {
                "apiVersion": f"{_GROUP}/v1",
                "kind": kind,
                "metadata": {"name": f"{name}-{place}", **where},
                "roleRef": reference,
                "subjects": subjects,
            },
        ]
    )
    rule = role["rules"][-1]
    who, group = f"system:serviceaccount:{place}:{name}", rule["apiGroups"][0]
    rig.api.wait_allowed(who, rule["verbs"][0], group, rule["resources"][0], namespace=namespace or place)
    return str(rig.service_account_kubeconfig(place, name))


@contextmanager
def two_clusters(rig: Rig, simulator: Simulator, identity: str, places: tuple[str, str]) -> Iterator[Rig]:
    """Yield an API server with two OpenStackClusters, one with a Secret, one with a shared identity.

    Args:
        identity: name of the OpenStackClusterIdentity.
        places: namespaces of the clusters ``own`` and ``shared``; the Secret is in the first.
    """
    rig.install_crds(files.load())
    secret = objects.secret("cloud", {"clouds.yaml": simulator.clouds_yaml.read_bytes()})
    shared = {
        "apiVersion": "infrastructure.cluster.x-k8s.io/v1alpha1",
        "kind": "OpenStackClusterIdentity",
        "metadata": {"name": identity},
        "spec": {"secretRef": {"name": "cloud", "namespace": places[0]}, "namespaceSelector": ANY_NAMED},
    }
    ref = {"type": "ClusterIdentity", "name": identity, "cloudName": "sim"}
    rig.apply(
        [
            *({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}} for name in dict.fromkeys(places)),
            shared,
            objects.in_namespace(secret, places[0]),
            objects.in_namespace(objects.openstack_cluster("own"), places[0]),
            objects.in_namespace(objects.openstack_cluster("shared", identityRef=ref), places[1]),
        ]
    )
    yield rig
    delete_clusters(rig, (places[0], "own"), (places[1], "shared"))


def delete_clusters(rig: Rig, *clusters: tuple[str, str]) -> None:
    """Delete OpenStackClusters, given by namespace and name: commands that read all namespaces see what tests leave."""
    for namespace, name in clusters:
        group = f"/apis/{OPENSTACK_CLUSTER.api_version}/namespaces/{namespace}"
        rig.api.delete(f"{group}/{OPENSTACK_CLUSTER.plural}/{name}")


def record_requests(monkeypatch: pytest.MonkeyPatch) -> set[tuple[str, str]]:
    """Return a set that gets verb and resource of each request of an operator's client."""
    asked: set[tuple[str, str]] = set()
    for method, verb in (("list", "list"), ("find", "get")):
        original: Any = getattr(Management, method)

        def recorded(
            self: Management, kind: Kind, *more: Any, _do: Any = original, _verb: str = verb, **named: Any
        ) -> Any:
            asked.add((_verb, kind.plural))
            return _do(self, kind, *more, **named)

        monkeypatch.setattr(Management, method, recorded)
    return asked
