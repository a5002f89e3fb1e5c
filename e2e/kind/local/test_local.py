"""What of the local node is decided without building it. The rest is shown by `make e2e-kind NODE=local`."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest

from capo.local.errors import BuildFailedError
from e2e.kind import cloud
from e2e.kind.local import host, node, programs, providers
from e2e.kind.local.programs import NodeModule

PINS = {
    "kind": "sigs.k8s.io/kind",
    "kubernetes": "k8s.io/kubernetes",
    "containerd": "github.com/containerd/containerd/v2",
    "crictl": "sigs.k8s.io/cri-tools",
    "cni": "github.com/containernetworking/plugins",
    "coredns": "github.com/coredns/coredns",
    "cluster-api": "sigs.k8s.io/cluster-api",
    "cert-manager": "github.com/cert-manager/cert-manager",
    "chart": "helm.sh/helm/v3",
}
MODULES = (*programs.CLIENTS, *programs.NODE, *programs.PROVIDERS)


@pytest.mark.parametrize("module", [m for m in MODULES if m.folder != "pause"], ids=lambda module: module.folder)
def test_the_version_that_programs_print_is_the_pinned_one(module: NodeModule) -> None:
    lines = (module.source / "go.mod").read_text().splitlines()

    assert any(f"{PINS[module.folder]} {module.version}" in line for line in lines)


def test_every_module_of_the_folder_is_built() -> None:
    assert {path.name for path in programs.TOOLS.iterdir()} == {m.folder for m in MODULES if m.home == programs.TOOLS}


def test_tags_are_those_that_kubeadm_lists() -> None:
    listed = "registry.k8s.io/etcd:3.6.6-0\nregistry.k8s.io/coredns/coredns:v1.14.2\nregistry.k8s.io/pause:3.10.2\n"

    assert node.kubeadm_tags(listed) == {"etcd": "3.6.6-0", "coredns": "v1.14.2", "pause": "3.10.2"}


def test_containers_of_the_node_have_kinds_hook_and_no_limits() -> None:
    spec = node.base_spec({"process": {"rlimits": [1], "cwd": "/"}, "hooks": {}, "hostname": "x"})

    assert spec["process"] == {"cwd": "/"}
    assert spec["hooks"] == {"createContainer": [{"path": "/kind/bin/mount-product-files.sh"}]}
    assert spec["hostname"] == "x"


def test_a_file_of_another_release_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "kubelet").write_text("OTHER=\n")

    with pytest.raises(BuildFailedError, match="kubelet has no line"):
        node.edit(tmp_path / "kubelet", "^KUBELET_EXTRA_ARGS=", "")


def test_clusterctl_finds_every_provider_on_disk() -> None:
    configuration = providers.configuration(Path("/repository"))

    assert {each["type"] for each in configuration["providers"]} == {
        "CoreProvider",
        "BootstrapProvider",
        "ControlPlaneProvider",
    }
    assert all(each["url"].startswith("/repository/") for each in configuration["providers"])
    assert configuration["cert-manager"]["url"].startswith("/repository/cert-manager/")


def test_parameters_of_the_kernel_are_put_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host, "_PROC", tmp_path / "proc")
    (tmp_path / "proc/kernel").mkdir(parents=True)
    panic, store = tmp_path / "proc/kernel/panic", tmp_path / "store"
    panic.write_text("1\n")

    with host.kernel_kept(store):
        panic.write_text("10\n")

    assert panic.read_text() == "1"
    assert not store.exists()


def test_a_run_after_one_that_was_killed_puts_back_what_the_first_one_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(host, "_PROC", tmp_path / "proc")
    (tmp_path / "proc/kernel").mkdir(parents=True)
    panic, store = tmp_path / "proc/kernel/panic", tmp_path / "store"
    panic.write_text("10\n")
    store.write_text("kernel/panic 1\n")

    with host.kernel_kept(store):
        pass

    assert panic.read_text() == "1"


def test_the_manager_gets_the_address_of_the_service() -> None:
    text = base64.b64encode(b"auth_url: http://127.0.0.1:90/identity").decode()

    variables = cloud.for_manager({"OPENSTACK_CLOUD_YAML_B64": text, "A": "b"}, "http://127.0.0.1:90")

    assert variables["A"] == "b"
    assert cloud.SERVICE in base64.b64decode(variables["OPENSTACK_CLOUD_YAML_B64"]).decode()
