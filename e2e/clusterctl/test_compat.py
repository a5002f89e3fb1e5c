"""Manifests written for the Go provider, its own and those of its users, on the real API server with our webhooks.

They are not part of the project: where ``../shared/compat`` is absent, the tests are skipped.
"""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
import yaml

from capo.components import release
from capo.json_types import Json
from capo.local.clusterctl import Clusterctl
from capo.local.errors import ApiError
from capo.local.rig import Rig
from e2e.clusterctl.objects import KUBERNETES, NAMESPACE, VARIABLES, dry_run, generated, is_ours

pytestmark = pytest.mark.integration


COMPAT = release.CHECKOUT.parent / "shared" / "compat"
SOME_ID = VARIABLES["OPENSTACK_NETWORK_ID"]
MORE_VARIABLES = {
    **VARIABLES,
    "OPENSTACK_FLATCAR_IMAGE_NAME": "flatcar",
    "OPENSTACK_IMAGE_NAME_UPGRADE_FROM": "older",
    "FLATCAR_IMAGE_NAME": "flatcar",
}
OTHER_VERSION = {"v1beta1": "v1beta2", "v1beta2": "v1beta1"}

REFUSED = {
    ("canonical-ck8s-template.yaml", "OpenStackCluster"): r'bastion\.enabled.*"?string"?.*boolean|expected.*bool',
    ("k0smotron-docs.yaml", "OpenStackMachineTemplate"): r"flavor.*(must be of type object|expected map)",
    ("kamaji-cp-provider-docs.yaml", "OpenStackCluster"): r"network\.id.*uuid.*REDACTED",
    ("kamaji-cp-provider-docs.yaml", "OpenStackMachineTemplate"): r"image\.id.*uuid.*REDACTED",
    (
        "openshift-docs-infracluster.yaml",
        "OpenStackCluster",
    ): r"controlPlaneEndpoint.*(must be of type object|expected map)",
    ("openshift-docs-machinetemplate.yaml", "OpenStackMachineTemplate"): r"metadata\.name.*<template_name>",
    ("safespring-talos-3.yaml", "OpenStackCluster"): r"network\.id.*uuid.*<external_network_id>",
}
"""Manifests that the Go provider refuses as well, and the refused field; all others are accepted."""
MENDED = {
    "canonical-ck8s-template.yaml": {"changeme": "true"},
    "k0smotron-docs.yaml": {"flavor: m1.medium": "flavor: {filter: {name: m1.medium}}"},
    "kamaji-cp-provider-docs.yaml": {"REDACTED": SOME_ID},
    "openshift-docs-infracluster.yaml": {
        "<api_service_network_id>": SOME_ID,
        "<floating_network_id>": SOME_ID,
        "<control_plane_endpoint_address>": "{host: api.example.org, port: 6443}",
        "<cluster_name>": "name",
    },
    "openshift-docs-machinetemplate.yaml": {"<template_name>": "name"},
    "safespring-talos-3.yaml": {"<external_network_id>": SOME_ID},
}
"""Manifests that are accepted once real values replace their placeholders."""


def files(folder: str, pattern: str = "*.yaml") -> list[Any]:
    """Return the files of a folder as parameters of a test; a skipped one if there are none."""
    found = sorted((COMPAT / folder).glob(pattern))
    absent = pytest.mark.skip(reason=f"{COMPAT / folder} is absent: manifests of others are not part of the project")
    return [pytest.param(path, id=path.name) for path in found] or [pytest.param(Path(), marks=absent, id="absent")]


def filled(clusterctl: Clusterctl, path: Path, name: str) -> list[Json]:
    """Return the objects of a template of clusters."""
    given = Clusterctl(clusterctl.rig, clusterctl.folder, MORE_VARIABLES)
    numbers = ("--control-plane-machine-count=3", "--worker-machine-count=2", f"--kubernetes-version={KUBERNETES}")
    return given.generate(name, f"--from={path}", f"--target-namespace={NAMESPACE}", *numbers)


def substituted(clusterctl: Clusterctl, path: Path, *, mended: bool = False) -> list[Json]:
    """Return our objects in a manifest that users published, with the values from the file beside it."""
    values = path.with_suffix(".vars")
    lines = values.read_text().split() if values.exists() else []
    given = Clusterctl(clusterctl.rig, clusterctl.folder, dict(line.split("=", 1) for line in lines))
    text = given("generate", "yaml", f"--from={path}", kubeconfig=False)
    for placeholder, value in MENDED.get(path.name, {}).items() if mended else ():
        text = text.replace(placeholder, value)
    objects = [document for document in yaml.safe_load_all(text) if document and is_ours(document)]
    for obj in objects:
        obj["metadata"]["namespace"] = NAMESPACE
    return objects


def without_trace(obj: Json, api_version: str) -> Json:
    """Return the part of a read object that a user writes: without status and fields set by the API server."""
    metadata = {
        name: obj["metadata"][name]
        for name in ("name", "namespace", "annotations", "labels")
        if name in obj["metadata"]
    }
    return {"apiVersion": api_version, "kind": obj["kind"], "metadata": metadata, "spec": obj["spec"]}


def create(rig: Rig, obj: Json, **options: str) -> Json:
    """Create an object as `kubectl create` does; unknown fields are dropped unless `fieldValidation` says otherwise."""
    path = rig.api.path_of(obj).rpartition("/")[0]
    return rig.api.request("POST", path, json=obj, params={"fieldValidation": "Ignore", **options})


def renewed(rig: Rig, obj: Json, *, other: str) -> tuple[Json, Json]:
    """Store an object, delete it, and return it as read in its own and in another version."""
    here = rig.api.path_of(obj)
    create(rig, obj)
    there = here.replace(f"/{obj['apiVersion']}/", f"/{other}/")
    read, converted = rig.api.get(here), rig.api.get(there)
    rig.api.delete(here)
    return read, converted


def assert_round_trip(rig: Rig, obj: Json) -> None:
    """Read an object in the other version, store what was read there, and read it back in its own."""
    mine = obj["apiVersion"]
    group, _, version = mine.rpartition("/")
    other = f"{group}/{OTHER_VERSION[version]}"

    first, converted = renewed(rig, obj, other=other)
    again, back = renewed(rig, without_trace(converted, other), other=mine)

    assert back["spec"] == first["spec"]
    assert again["spec"] == converted["spec"]


@pytest.mark.parametrize("path", files("templates", "cluster-template*.yaml"))
def test_a_template_of_the_go_provider_is_accepted(clusterctl: Clusterctl, provider: Rig, path: Path) -> None:
    objects = filled(clusterctl, path, "theirs")

    assert {obj["kind"] for obj in objects} >= {"OpenStackCluster", "OpenStackMachineTemplate"}
    for obj in objects:
        assert dry_run(provider, obj)["metadata"]["name"] == obj["metadata"]["name"]


@pytest.mark.parametrize("path", files("templates", "cluster-template*.yaml"))
def test_every_object_of_a_template_survives_the_other_version(
    clusterctl: Clusterctl, provider: Rig, path: Path
) -> None:
    for obj in filter(is_ours, filled(clusterctl, path, f"trip-{path.stem}")):
        assert_round_trip(provider, obj)


@pytest.mark.parametrize("path", files("templates", "image-template*.yaml"))
def test_a_template_of_images_is_filled(clusterctl: Clusterctl, path: Path) -> None:
    text = clusterctl("generate", "yaml", f"--from={path}", kubeconfig=False)

    assert "${" not in text
    assert {obj["kind"] for obj in yaml.safe_load_all(text)} == {"Image"}


@pytest.mark.parametrize("path", files("wild"))
def test_a_manifest_of_users_is_accepted_or_refused_for_the_known_reason(
    clusterctl: Clusterctl, provider: Rig, path: Path
) -> None:
    for obj in substituted(clusterctl, path):
        reason = REFUSED.get((path.name, obj["kind"]))
        if reason is None:
            create(provider, obj, dryRun="All")
        else:
            with pytest.raises(ApiError, match=f"(?s){reason}"):
                create(provider, obj, dryRun="All")


@pytest.mark.parametrize("path", files("wild"))
def test_a_manifest_of_users_with_real_values_is_accepted_and_survives_the_other_version(
    clusterctl: Clusterctl, provider: Rig, path: Path
) -> None:
    for obj in substituted(clusterctl, path, mended=True):
        assert_round_trip(provider, obj)


@pytest.mark.parametrize("version", ["v1beta1", "v1beta2"])
def test_an_unknown_field_is_dropped_unless_the_client_is_strict(
    clusterctl: Clusterctl, provider: Rig, version: str
) -> None:
    (cluster,) = (obj for obj in generated(clusterctl, "strange") if obj["kind"] == "OpenStackCluster")
    cluster["apiVersion"] = f"infrastructure.cluster.x-k8s.io/{version}"
    cluster["spec"].pop("apiServer")  # has another name in v1beta1
    cluster["spec"]["managedSecurityGroups"] = {}
    plain = copy.deepcopy(cluster)
    cluster["spec"]["cloudsSecret"] = "of an older version"
    cluster["spec"]["managedSubnets"][0]["gateway"] = "10.6.0.1"

    taken = create(provider, cluster, dryRun="All")

    assert taken["spec"] == create(provider, plain, dryRun="All")["spec"]
    with pytest.raises(ApiError, match=r'unknown field "spec\.cloudsSecret".*"spec\.managedSubnets\[0\]\.gateway"'):
        create(provider, cluster, dryRun="All", fieldValidation="Strict")
