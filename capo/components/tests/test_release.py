from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from capo.__main__ import main
from capo.components import manifest, release
from capo.version import VERSION


def test_a_repository_has_all_files_of_the_version_in_one_folder(tmp_path: Path) -> None:
    folder = release.lay_out(tmp_path, version=VERSION, image=manifest.image())

    assert folder == tmp_path / "infrastructure-openstack" / f"v{VERSION}"
    assert {path.name for path in folder.iterdir()} == {
        "infrastructure-components.yaml",
        "metadata.yaml",
        "cluster-template.yaml",
        "cluster-template-without-lb.yaml",
        "cluster-template-existing-network.yaml",
        "cluster-template-topology.yaml",
        "clusterclass-openstack.yaml",
    }


def test_a_version_whose_series_is_not_in_the_metadata_is_refused(tmp_path: Path) -> None:
    with pytest.raises(release.ReleaseError, match=r"no series 7\.3"):
        release.lay_out(tmp_path, version="v7.3.0", image=manifest.image())

    assert not list(tmp_path.iterdir())


def test_the_command_writes_the_repository_with_the_image(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status = main(["release", "--output", str(tmp_path), "--image", "registry.example.org/capo", "--version", "v1.0.7"])

    components = tmp_path / "infrastructure-openstack" / "v1.0.7" / "infrastructure-components.yaml"
    assert status == 0
    assert "image: registry.example.org/capo:v1.0.7\n" in components.read_text()
    assert f"url: {components}" in capsys.readouterr().out


def test_components_are_printed_with_the_image(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["components", "--image", "registry.example.org/capo:edge"]) == 0
    assert "image: registry.example.org/capo:edge\n" in capsys.readouterr().out


@pytest.mark.parametrize("command", ["components", "release"])
def test_a_short_name_of_an_image_is_one_line_and_no_traceback(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([command, "--image", "capo"]) == 2
    assert capsys.readouterr().err.startswith(f"capo {command}: 'capo' is no full name")


@pytest.mark.parametrize("path", release.templates(), ids=lambda path: path.name)
def test_a_template_says_which_variables_it_has_and_has_those(path: Path) -> None:
    comment, _, body = path.read_text().partition("---" if path.name.startswith("cluster-") else "apiVersion")
    used = set(re.findall(r"\$\{(\w+)", body))

    _, _, comment = comment.partition("# Variables")
    assert used == set(re.findall(r"\b(?:CLUSTER|KUBERNETES|CONTROL_PLANE|WORKER|OPENSTACK)_[A-Z0-9_]+\b", comment))


@pytest.mark.parametrize("path", release.templates(), ids=lambda path: path.name)
def test_no_object_of_a_template_names_a_namespace(path: Path) -> None:
    assert [o for o in yaml.safe_load_all(path.read_text()) if "namespace" in o["metadata"]] == []


def test_an_identity_is_moved_with_its_cluster() -> None:
    for path in release.templates():
        for secret in (o for o in yaml.safe_load_all(path.read_text()) if o["kind"] == "Secret"):
            assert "clusterctl.cluster.x-k8s.io/move" in secret["metadata"]["labels"]
