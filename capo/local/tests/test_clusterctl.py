from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from capo.local.clusterctl import Clusterctl, ClusterctlError
from capo.local.rig import Rig
from capo.version import VERSION


@pytest.fixture
def clusterctl(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Clusterctl:
    """Return clusterctl; the components' contents do not matter here, and take a second to write."""
    monkeypatch.setattr("capo.components.manifest.text", lambda _pod: "")
    return Clusterctl(Rig(tmp_path / "rig"), tmp_path / "clusterctl")


def test_the_configuration_names_our_repository_and_what_runs_already(clusterctl: Clusterctl) -> None:
    clusterctl.prepare()

    document = yaml.safe_load(clusterctl.config.read_text())
    urls = {
        provider["name"]: Path(provider["url"]) for provider in document["providers"] if provider["name"] != "kubeadm"
    }
    assert urls["openstack"].parts[-2:] == ("latest", "infrastructure-components.yaml")
    assert urls["cluster-api"].is_file()
    assert document["cert-manager"]["externallyProvisioned"] == "true"


def test_two_versions_stand_side_by_side(clusterctl: Clusterctl) -> None:
    clusterctl.prepare()
    clusterctl.prepare(version="v1.0.7")

    folder = clusterctl.repository / "infrastructure-openstack"
    assert {path.name for path in folder.iterdir()} == {f"v{VERSION}", "v1.0.7"}


def test_a_version_that_the_metadata_does_not_know_is_one_clear_line(clusterctl: Clusterctl) -> None:
    with pytest.raises(ClusterctlError, match=r"metadata\.yaml has no series 7\.3"):
        clusterctl.prepare(version="v7.3.0")
