"""Manifests written for the Go provider, its own and those of its users, on the real API server with our webhooks.

The project has objects with the same fields (``capo/crdgen/tests/go_provider.json``), but not the manifests themselves;
where these are present, the same tests read them as well.
"""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
import yaml

from capo.crdgen.tests import go_provider
from capo.json_types import Json
from capo.local.clusterctl import Clusterctl
from capo.local.errors import ApiError
from capo.local.rig import Rig
from e2e import published
from e2e.clusterctl.objects import KUBERNETES, NAMESPACE, VARIABLES, dry_run, generated, is_ours

pytestmark = pytest.mark.integration


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


def sources(part: str, pattern: str = "*.yaml") -> list[Any]:
    """Return as parameters of a test the names of the known manifests, and the files that are present."""
    known = published.files(part)
    here = sorted((go_provider.FOLDER / part).glob(pattern))
    return [*known, *(pytest.param(path, id=f"{path.name}-itself") for path in here)]


def filled(clusterctl: Clusterctl, source: str | Path, name: str) -> list[Json]:
    """Return the objects of a template of clusters."""
    if isinstance(source, str):
        return substituted(clusterctl, source, part="templates")
    given = Clusterctl(clusterctl.rig, clusterctl.folder, VARIABLES)
    numbers = ("--control-plane-machine-count=3", "--worker-machine-count=2", f"--kubernetes-version={KUBERNETES}")
    return given.generate(name, f"--from={source}", f"--target-namespace={NAMESPACE}", *numbers)


def substituted(clusterctl: Clusterctl, source: str | Path, *, part: str = "wild", mended: bool = False) -> list[Json]:
    """Return our objects in a published manifest; a file's variables have the values from the file beside it."""
    if isinstance(source, str):
        name = source
        text = published.text(part, source)
    else:
        name, values = source.name, source.with_suffix(".vars")
        lines = values.read_text().split() if values.exists() else []
        given = Clusterctl(clusterctl.rig, clusterctl.folder, dict(line.split("=", 1) for line in lines))
        text = given("generate", "yaml", f"--from={source}", kubeconfig=False)
    whole = published.with_values(name, text) if mended else text
    objects = [document for document in yaml.safe_load_all(whole) if document and is_ours(document)]
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


@pytest.mark.parametrize("source", sources("templates", "cluster-template*.yaml"))
def test_a_template_of_the_go_provider_is_accepted(clusterctl: Clusterctl, provider: Rig, source: str | Path) -> None:
    objects = filled(clusterctl, source, "theirs")

    assert {obj["kind"] for obj in objects} >= {"OpenStackCluster", "OpenStackMachineTemplate"}
    for obj in objects:
        assert dry_run(provider, obj)["metadata"]["name"] == obj["metadata"]["name"]


@pytest.mark.parametrize("source", sources("templates", "cluster-template*.yaml"))
def test_every_object_of_a_template_survives_the_other_version(
    clusterctl: Clusterctl, provider: Rig, source: str | Path
) -> None:
    for obj in filter(is_ours, filled(clusterctl, source, "trip")):
        assert_round_trip(provider, obj)


@pytest.mark.compare
def test_templates_of_images_are_filled(clusterctl: Clusterctl) -> None:
    for path in sorted(go_provider.FOLDER.glob("templates/image-template*.yaml")):
        text = clusterctl("generate", "yaml", f"--from={path}", kubeconfig=False)

        assert "${" not in text
        assert {obj["kind"] for obj in yaml.safe_load_all(text)} == {"Image"}


@pytest.mark.parametrize("source", sources("wild"))
def test_a_manifest_of_users_is_accepted_or_refused_for_the_known_reason(
    clusterctl: Clusterctl, provider: Rig, source: str | Path
) -> None:
    file = source if isinstance(source, str) else source.name
    for obj in substituted(clusterctl, source):
        reason = REFUSED.get((file, obj["kind"]))
        if reason is None:
            create(provider, obj, dryRun="All")
        else:
            with pytest.raises(ApiError, match=f"(?s){reason}"):
                create(provider, obj, dryRun="All")


@pytest.mark.parametrize("source", sources("wild"))
def test_a_manifest_of_users_with_real_values_is_accepted_and_survives_the_other_version(
    clusterctl: Clusterctl, provider: Rig, source: str | Path
) -> None:
    for obj in substituted(clusterctl, source, mended=True):
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
