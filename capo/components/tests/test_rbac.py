from __future__ import annotations

from typing import Any

import pytest

from capo import components
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


@pytest.mark.parametrize("kind", [k for k in vars(kinds).values() if isinstance(k, kinds.Kind) and k.group == OURS])
def test_our_kinds_may_be_watched_and_their_status_written(kind: kinds.Kind) -> None:
    assert {"get", "list", "watch", "patch"} <= verbs(OURS, kind.plural)
    assert verbs(OURS, f"{kind.plural}/status") == {"get", "patch", "update"}
    assert verbs(OURS, f"{kind.plural}/finalizers") == {"update"}


@pytest.mark.parametrize("group", ["", "events.k8s.io"])
def test_events_may_be_written_in_both_groups(group: str) -> None:
    assert {"create", "patch"} <= verbs(group, "events")


def test_secrets_may_be_read_one_at_a_time_only() -> None:
    assert verbs("", "secrets") == {"get"}


@pytest.mark.parametrize("resource", ["clusters", "machines", "machinesets"])
def test_kinds_of_cluster_api_may_only_be_read(resource: str) -> None:
    assert verbs("cluster.x-k8s.io", resource) == {"get", "list", "watch"}


@pytest.mark.parametrize("resource", ["ipaddressclaims", "ipaddresses"])
def test_addresses_may_be_claimed_and_given_back(resource: str) -> None:
    assert {"create", "delete", "get", "list", "patch", "watch"} <= verbs("ipam.cluster.x-k8s.io", resource)


def test_images_of_orc_may_only_be_read() -> None:
    assert verbs("openstack.k-orc.cloud", "images") == {"get", "list", "watch"}


def test_leases_may_be_written_in_our_own_namespace_only() -> None:
    assert verbs("coordination.k8s.io", "leases") == set()
    assert {"create", "get", "update", "patch"} <= verbs("coordination.k8s.io", "leases", kind="Role")
    assert manifest("Role")["metadata"]["namespace"] == components.NAMESPACE


def test_no_rule_has_a_wildcard() -> None:
    rules = [rule for found in components.rbac() for rule in found.get("rules", [])]

    assert not [rule for rule in rules if any("*" in values for values in rule.values())]


def test_cluster_wide_objects_are_named_so_that_clusterctl_deletes_them() -> None:
    names = {m["metadata"]["name"] for m in components.rbac() if "namespace" not in m["metadata"]}

    assert names
    assert all(name.startswith(f"{components.NAMESPACE}-") for name in names)


@pytest.mark.parametrize("kind", ["ClusterRoleBinding", "RoleBinding"])
def test_roles_are_bound_to_our_service_account(kind: str) -> None:
    assert manifest(kind)["subjects"] == [
        {"kind": "ServiceAccount", "name": components.SERVICE_ACCOUNT, "namespace": components.NAMESPACE}
    ]
    role = manifest(kind.removesuffix("Binding"))
    assert manifest(kind)["roleRef"]["name"] == role["metadata"]["name"]
