from __future__ import annotations

import base64
import gzip
import hashlib
import json
import re
from pathlib import Path

import pytest
import yaml

from capo.__main__ import main
from capo.components import manifest, release
from capo.version import VERSION

pytestmark = pytest.mark.slow

DIGEST = f"sha256:{'0' * 64}"


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
        "cluster-template-flatcar.yaml",
        "cluster-template-flatcar-sysext.yaml",
        "cluster-template-capi-v1beta1.yaml",
        "cluster-template-workers.yaml",
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
    used = set(re.findall(r"(?<!\$)\$\{(\w+)", body))

    _, _, comment = comment.partition("# Variables")
    assert used == set(
        re.findall(r"\b(?:CLUSTER|KUBERNETES|CONTROL_PLANE|WORKERS?|OPENSTACK|FLATCAR)_[A-Z0-9_]+\b", comment)
    )


@pytest.mark.parametrize("path", release.templates(), ids=lambda path: path.name)
def test_no_object_of_a_template_names_a_namespace(path: Path) -> None:
    assert [o for o in yaml.safe_load_all(path.read_text()) if "namespace" in o["metadata"]] == []


def test_an_identity_is_moved_with_its_cluster() -> None:
    for path in release.templates():
        for secret in (o for o in yaml.safe_load_all(path.read_text()) if o["kind"] == "Secret"):
            assert "clusterctl.cluster.x-k8s.io/move" in secret["metadata"]["labels"]


def test_a_release_has_the_air_gap_config_map_and_the_checksums_of_all_files(tmp_path: Path) -> None:
    folder, _ = release.publish(tmp_path, version="v1.0.7", image="registry.example.org/capo:v1.0.7")

    lines = (folder / "SHA256SUMS").read_text().splitlines()
    sums = {name: digest for digest, name in (line.split() for line in lines)}
    names = {path.name for path in folder.iterdir()} - {"SHA256SUMS"}
    assert sums.keys() == names
    assert {"air-gap.yaml", "infrastructure-components.yaml", "cluster-template.yaml"} <= names
    assert all(hashlib.sha256((folder / name).read_bytes()).hexdigest() == digest for name, digest in sums.items())


def test_the_air_gap_config_map_has_the_components_and_fits_into_one(tmp_path: Path) -> None:
    folder, _ = release.publish(tmp_path, version="v1.0.7", image=f"registry.example.org/capo@{DIGEST}")
    found = yaml.safe_load((folder / "air-gap.yaml").read_text())

    packed = base64.b64decode(found["binaryData"]["components"])
    assert gzip.decompress(packed).decode() == (folder / "infrastructure-components.yaml").read_text()
    assert f"image: registry.example.org/capo@{DIGEST}\n" in gzip.decompress(packed).decode()
    assert found["data"]["metadata"] == (folder / "metadata.yaml").read_text()
    assert found["metadata"]["labels"] == {
        "provider.cluster.x-k8s.io/name": "openstack",
        "provider.cluster.x-k8s.io/type": "infrastructure",
        "provider.cluster.x-k8s.io/version": "v1.0.7",
    }
    assert found["metadata"]["annotations"] == {"provider.cluster.x-k8s.io/compressed": "true"}
    # Repeated by `kubectl apply` in an annotation, which may have 256 KiB.
    assert len(json.dumps(found)) < 256 * 1024


def test_two_runs_yield_the_same_bytes(tmp_path: Path) -> None:
    for base in ("one", "two"):
        release.publish(tmp_path / base, version="v1.0.7", image="registry.example.org/capo:v1.0.7")

    def contents(base: str) -> dict[Path, bytes]:
        root = tmp_path / base
        return {path.relative_to(root): path.read_bytes() for path in root.rglob("*") if path.is_file()}

    assert contents("one") == contents("two")


def test_an_artifact_has_each_file_as_a_titled_layer(tmp_path: Path) -> None:
    folder, digest = release.publish(tmp_path, version="v1.0.7", image="registry.example.org/capo:v1.0.7")

    def blob(name: str) -> bytes:
        content = (tmp_path / "oci" / "blobs" / Path(*name.split(":"))).read_bytes()
        assert f"sha256:{hashlib.sha256(content).hexdigest()}" == name
        return content

    manifest_of = json.loads(blob(digest))
    titles = {layer["annotations"]["org.opencontainers.image.title"]: layer for layer in manifest_of["layers"]}
    assert {"metadata.yaml", "infrastructure-components.yaml"} <= titles.keys()
    for title, layer in titles.items():
        assert blob(layer["digest"]) == (folder / title).read_bytes()
        assert layer["size"] == len(blob(layer["digest"]))
    assert blob(manifest_of["config"]["digest"]) == b"{}"
    assert json.loads((tmp_path / "oci" / "oci-layout").read_text()) == {"imageLayoutVersion": "1.0.0"}


def test_a_layout_has_one_artifact_for_each_version(tmp_path: Path) -> None:
    image = "registry.example.org/capo:edge"
    digests = [release.publish(tmp_path, version=version, image=image)[1] for version in ("v1.0.7", "v1.0.8", "v1.0.7")]

    index = json.loads((tmp_path / "oci" / "index.json").read_text())

    tags = {entry["annotations"]["org.opencontainers.image.ref.name"]: entry["digest"] for entry in index["manifests"]}
    assert len(index["manifests"]) == 2
    assert tags == {"v1.0.7": digests[0], "v1.0.8": digests[1]}
    assert digests[2] == digests[0]
