"""The real helm installs, upgrades and uninstalls the chart on a real API server; the manager runs as a process.

It has the arguments of the installed Deployment and the token of its ServiceAccount.

The tests build on one another, in their order.
"""

from __future__ import annotations

import pytest

from capo import components
from capo.components import deployment, manifest
from capo.json_types import Json
from capo.local import clusterctl, installed
from capo.local.helm import RELEASE, Helm, HelmError
from capo.local.rig import Rig
from environments.manager_process import wait_until

pytestmark = [pytest.mark.integration, pytest.mark.incremental]


PLACE = f"--namespace={components.NAMESPACE}"
VALUES = {
    "replicas": 2,
    "verbosity": 4,
    "resources": {"limits": {"memory": "2Gi"}},
    "proxy": {"https": "http://proxy.example.org:3128", "noProxy": ["10.0.0.0/8"]},
    "networkPolicy": {"enabled": True},
    "metrics": {"readers": [{"name": "prometheus", "namespace": "monitoring"}]},
    "extraVolumes": [{"name": "authorities", "configMap": {"name": "openstack-ca"}}],
    "extraVolumeMounts": [{"name": "authorities", "mountPath": "/etc/openstack-ca", "readOnly": True}],
}
OPTIONAL = {
    "PodDisruptionBudget": "policy/v1",
    "NetworkPolicy": "networking.k8s.io/v1",
}
IDENTITY = {
    "apiVersion": "infrastructure.cluster.x-k8s.io/v1alpha1",
    "kind": "OpenStackClusterIdentity",
    "metadata": {"name": "kept"},
    "spec": {"secretRef": {"name": "cloud", "namespace": "default"}},
}


def rig_of(helm: Helm) -> Rig:
    assert helm.rig is not None
    return helm.rig


def there(helm: Helm, kind: str, api_version: str, name: str = deployment.NAME) -> Json | None:
    """Return an object of the installation, None if it does not exist."""
    api = rig_of(helm).api
    metadata = {"name": name, "namespace": components.NAMESPACE}
    return api.find(api.path_of({"apiVersion": api_version, "kind": kind, "metadata": metadata}))


def manager(helm: Helm) -> tuple[Json, Json]:
    """Return the spec of the Deployment and that of its container."""
    found = there(helm, "Deployment", "apps/v1")
    assert found is not None
    (container,) = found["spec"]["template"]["spec"]["containers"]
    return found["spec"], container


def test_install_puts_the_manager_into_a_cluster_where_it_leads_under_its_own_role(installing: Helm) -> None:
    installing("install", RELEASE, str(installing.chart), PLACE, "--create-namespace")
    rig = rig_of(installing)
    installed.start(rig)

    rig.apply([IDENTITY])
    installed.settle(rig)  # it holds the lease, and may read and write what it migrates
    lease = there(installing, "Lease", "coordination.k8s.io/v1", "controller-leader-election-capo")

    assert lease is not None
    assert lease["spec"]["holderIdentity"]
    assert "deployed" in installing("status", RELEASE, PLACE)
    assert [kind for kind, version in OPTIONAL.items() if there(installing, kind, version)] == []


def test_upgrade_changes_what_the_values_change(installing: Helm) -> None:
    installing("upgrade", RELEASE, str(installing.chart), PLACE, values=VALUES)

    spec, container = manager(installing)
    env = {entry["name"]: entry.get("value") for entry in container["env"]}
    assert spec["replicas"] == 2
    assert spec["template"]["spec"]["topologySpreadConstraints"][0]["topologyKey"] == "kubernetes.io/hostname"
    assert "--v=4" in container["args"]
    assert container["resources"]["limits"] == {"memory": "2Gi"}
    assert env["HTTPS_PROXY"] == "http://proxy.example.org:3128"
    assert {"name": "authorities", "mountPath": "/etc/openstack-ca", "readOnly": True} in container["volumeMounts"]
    assert [kind for kind, version in OPTIONAL.items() if there(installing, kind, version)] == list(OPTIONAL)


def test_a_service_monitor_without_its_kind_is_refused_and_nothing_is_changed(installing: Helm) -> None:
    before = manager(installing)

    with pytest.raises(HelmError, match=r'no matches for kind "ServiceMonitor"'):
        installing(
            *("upgrade", RELEASE, str(installing.chart), PLACE),
            values={**VALUES, "replicas": 3, "metrics": {"serviceMonitor": {"enabled": True}}},
        )

    assert manager(installing) == before


def test_a_rollback_brings_the_first_values_back(installing: Helm) -> None:
    installing("rollback", RELEASE, "1", PLACE)

    spec, container = manager(installing)
    assert spec["replicas"] == 1
    assert "topologySpreadConstraints" not in spec["template"]["spec"]
    assert "--v=2" in container["args"]
    assert [entry["name"] for entry in container["env"]] == ["POD_NAMESPACE"]
    assert [kind for kind, version in OPTIONAL.items() if there(installing, kind, version)] == []


def test_uninstall_keeps_kinds_and_objects_and_takes_everything_else(installing: Helm) -> None:
    rig = rig_of(installing)
    rig.stop(installed.MANAGER)
    path = rig.api.path_of(IDENTITY)
    before = rig.api.get(path)

    installing("uninstall", RELEASE, PLACE)

    def kinds_left() -> bool:
        return {left.partition(" ")[0] for left in installed.left(rig)} == {"customresourcedefinitions"}

    wait_until("only the kinds are left", kinds_left)
    assert there(installing, "Deployment", "apps/v1") is None
    assert len(clusterctl.definitions(rig)) == len(manifest.crds())
    assert rig.api.get(path) == before


def test_a_second_install_takes_the_kinds_that_the_first_one_left(installing: Helm) -> None:
    rig = rig_of(installing)
    path = rig.api.path_of(IDENTITY)
    before = rig.api.get(path)

    installing("install", RELEASE, str(installing.chart), PLACE)

    assert rig.api.get(path) == before
    assert manager(installing)[0]["replicas"] == 1
