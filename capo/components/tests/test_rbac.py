from __future__ import annotations

import re
from typing import Any, Final

import pytest

from capo import components
from capo.components.release import CHECKOUT
from capo.engine import lease
from capo.kube import kinds

OURS = "infrastructure.cluster.x-k8s.io"


def manifest(kind: str) -> dict[str, Any]:
    (found,) = (manifest for manifest in components.rbac() if manifest["kind"] == kind)
    return found


def verbs(group: str, resource: str, *, kind: str = "ClusterRole") -> set[str]:
    rules = manifest(kind)["rules"]
    return {
        verb for rule in rules if group in rule["apiGroups"] and resource in rule["resources"] for verb in rule["verbs"]
    }


READ = {"get", "list", "watch"}
IPAM = "ipam.cluster.x-k8s.io"
CONTROL_PLANES = ("ck8s", "hosted", "k0s", "k0smotron", "kamaji", "kthrees", "microk8s", "rke2", "talos")
MAY = {
    (OURS, "openstackclusters"): READ | {"patch"},
    (OURS, "openstackclusters/status"): {"patch"},
    (OURS, "openstackclusters/finalizers"): {"update"},
    (OURS, "openstackmachines"): READ | {"patch"},
    (OURS, "openstackmachines/status"): {"patch"},
    (OURS, "openstackmachines/finalizers"): {"update"},
    (OURS, "openstackservers"): READ | {"create", "delete", "patch"},
    (OURS, "openstackservers/status"): {"patch"},
    (OURS, "openstackservers/finalizers"): {"update"},
    (OURS, "openstackfloatingippools"): READ | {"patch"},
    (OURS, "openstackfloatingippools/status"): {"patch"},
    (OURS, "openstackfloatingippools/finalizers"): {"update"},
    # Stored objects of any kind are rewritten when their storage version changes.
    (OURS, "openstackclustertemplates"): {"list", "patch"},
    (OURS, "openstackmachinetemplates"): READ | {"patch"},
    (OURS, "openstackmachinetemplates/status"): {"patch"},
    (OURS, "openstackclusteridentities"): READ | {"patch"},
    (OURS, "openstackclusteridentities/status"): {"patch"},
    ("cluster.x-k8s.io", "clusters"): READ,
    ("cluster.x-k8s.io", "machines"): READ,
    ("cluster.x-k8s.io", "machinedeployments"): READ,
    ("cluster.x-k8s.io", "machinesets"): READ,
    ("controlplane.cluster.x-k8s.io", "kubeadmcontrolplanes"): READ,
    # What has no machines of ours gets no floating IP: the object is read once, before the endpoint is chosen.
    **{("controlplane.cluster.x-k8s.io", f"{kind}controlplanes"): {"get"} for kind in CONTROL_PLANES},
    (IPAM, "ipaddressclaims"): READ | {"create", "delete", "patch"},
    (IPAM, "ipaddressclaims/status"): {"patch"},
    (IPAM, "ipaddressclaims/finalizers"): {"update"},
    (IPAM, "ipaddresses"): READ | {"create", "delete", "patch"},
    ("openstack.k-orc.cloud", "images"): READ,
    ("", "secrets"): {"get"},
    ("", "namespaces"): {"get"},
    ("apiextensions.k8s.io", "customresourcedefinitions"): {"get", "patch"},
    ("apiextensions.k8s.io", "customresourcedefinitions/status"): {"patch"},
    ("events.k8s.io", "events"): {"create", "patch"},
    ("authentication.k8s.io", "tokenreviews"): {"create"},
    ("authorization.k8s.io", "subjectaccessreviews"): {"create"},
}
"""All rights of the manager; a right that is added here is used by the code that comes with it."""


def test_the_manager_may_do_what_it_does_and_nothing_else() -> None:
    rules = manifest("ClusterRole")["rules"]
    granted = {
        (group, resource): verbs(group, resource)
        for rule in rules
        for group in rule["apiGroups"]
        for resource in rule["resources"]
    }

    assert granted == MAY


@pytest.mark.parametrize("kind", [k for k in vars(kinds).values() if isinstance(k, kinds.Kind)], ids=str)
def test_every_kind_that_the_code_knows_may_be_read_or_is_the_lease(kind: kinds.Kind) -> None:
    assert {"get", "list"} & verbs(kind.group, kind.plural) or kind == kinds.LEASE


def names(resource: str, *, kind: str = "ClusterRole") -> dict[str, set[str]]:
    """Return the names to which each verb is limited."""
    rules = [rule for rule in manifest(kind)["rules"] if resource in rule["resources"]]
    return {verb: set(rule.get("resourceNames", ["*"])) for rule in rules for verb in rule["verbs"]}


def test_definitions_other_than_ours_may_neither_be_read_nor_changed() -> None:
    ours = {f"{kind.plural}.{kind.group}" for kind in kinds.OURS}

    assert names("customresourcedefinitions") == {"get": ours, "patch": ours}
    assert names("customresourcedefinitions/status") == {"patch": ours}


def test_leases_other_than_ours_may_neither_be_read_nor_changed() -> None:
    assert names("leases", kind="Role") == {"create": {"*"}, "get": {lease.NAME}, "update": {lease.NAME}}


def test_secrets_may_be_read_one_at_a_time_only() -> None:
    assert verbs("", "secrets") == {"get"}


def test_leases_may_be_written_in_our_own_namespace_only() -> None:
    assert verbs("coordination.k8s.io", "leases") == set()
    assert verbs("coordination.k8s.io", "leases", kind="Role") == {"create", "get", "update"}
    assert manifest("Role")["metadata"]["namespace"] == components.NAMESPACE


def test_no_rule_has_a_wildcard() -> None:
    rules = [rule for found in components.rbac() for rule in found.get("rules", [])]

    assert not [rule for rule in rules if any("*" in values for values in rule.values())]


PAGES: Final = tuple(
    path
    for folder in ("README.md", "docs", "charts", "templates", "capo/local", "e2e")
    for path in (CHECKOUT / folder, *(CHECKOUT / folder).rglob("*"))
    if path.suffix in (".md", ".yaml", ".tpl", ".json", ".txt")
)
WILDCARD: Final = re.compile(
    r"""\b(?:apiGroups|resources|verbs|nonResourceURLs)["']?\s*:\s*(?:\[[^\]]*["']\*["']|\n(?:\s*-[^\n]*\n)*?\s*-\s*["']?\*)"""
)


@pytest.mark.lint
def test_no_role_that_is_installed_or_documented_has_a_wildcard() -> None:
    with_rules = [path for path in PAGES if "apiGroups" in path.read_text(encoding="utf-8")]

    assert {"cli.md", "monitor.md", "adopt.md", "provider.yaml"} <= {path.name for path in with_rules}
    assert not [str(path) for path in with_rules if WILDCARD.search(path.read_text(encoding="utf-8"))]


@pytest.mark.parametrize(
    "text",
    ['resources: ["*"]', "verbs: [get, '*']", '{"resources":["*"],"verbs":["list"]}', "apiGroups:\n  - a\n  - '*'\n"],
)
def test_a_wildcard_is_found_however_a_role_is_written(text: str) -> None:
    assert WILDCARD.search(text)


def test_cluster_wide_objects_are_named_so_that_clusterctl_deletes_them() -> None:
    found = {m["metadata"]["name"] for m in components.rbac() if "namespace" not in m["metadata"]}

    assert found
    assert all(name.startswith(f"{components.NAMESPACE}-") for name in found)


@pytest.mark.parametrize("kind", ["ClusterRoleBinding", "RoleBinding"])
def test_roles_are_bound_to_our_service_account(kind: str) -> None:
    assert manifest(kind)["subjects"] == [
        {"kind": "ServiceAccount", "name": components.SERVICE_ACCOUNT, "namespace": components.NAMESPACE}
    ]
    role = manifest(kind.removesuffix("Binding"))
    assert manifest(kind)["roleRef"]["name"] == role["metadata"]["name"]
