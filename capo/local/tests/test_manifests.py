from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from capo.local import manifests
from capo.local.components import PROVIDERS

if TYPE_CHECKING:
    from pathlib import Path

SERVICE = {"namespace": "system", "name": "webhook-service", "path": "/convert"}
CORE = PROVIDERS[0]


def crd(name: str, **spec: Any) -> dict[str, Any]:
    return {"kind": "CustomResourceDefinition", "metadata": {"name": name}, "spec": spec}


def converted_by_webhook(name: str) -> dict[str, Any]:
    webhook = {"clientConfig": {"service": dict(SERVICE)}, "conversionReviewVersions": ["v1", "v1beta1"]}
    return crd(name, conversion={"strategy": "Webhook", "webhook": webhook})


def webhooks(kind: str, *paths: str) -> dict[str, Any]:
    hooks = [{"name": path, "clientConfig": {"service": {**SERVICE, "path": path}}} for path in paths]
    return {"kind": kind, "metadata": {"name": "configuration"}, "webhooks": hooks}


def write(path: Path, *documents: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(yaml.safe_dump_all(documents))


@pytest.fixture
def module(tmp_path: Path) -> Path:
    """Return a folder with the layout of Cluster API's module."""
    for provider in PROVIDERS:
        config = tmp_path / provider.config
        patch = converted_by_webhook("converted")
        write(config / "crd/bases/converted.yaml", {**crd("converted", group="g"), "status": {"conditions": None}})
        write(config / "crd/bases/plain.yaml", crd("plain", group="g"))
        write(config / "crd/patches/listed.yaml", patch)
        write(config / "crd/patches/stale.yaml", {**patch, "metadata": {"name": "plain"}})
        write(
            config / "crd/kustomization.yaml",
            {
                "resources": ["bases/converted.yaml", "bases/plain.yaml"],
                "patches": [{"path": "patches/listed.yaml"}],
                "labels": [{"pairs": {"cluster.x-k8s.io/v1beta2": "v1beta2"}}],
            },
        )
        write(config / "webhook/manifests.yaml", webhooks("MutatingWebhookConfiguration", "/mutate"))
    write(tmp_path / "cmd/clusterctl/config/manifest/clusterctl-api.yaml", crd("providers"))
    return tmp_path


def test_rendered_kinds_carry_the_labels_of_their_provider_and_contract(module: Path) -> None:
    rendered = manifests.render(module, version="v1.2.3")

    assert rendered["core"][0]["metadata"]["labels"] == {
        "cluster.x-k8s.io/v1beta2": "v1beta2",
        "cluster.x-k8s.io/provider": "cluster-api",
        "clusterctl.cluster.x-k8s.io": "",
    }
    assert "status" not in rendered["core"][0]


def test_only_patches_that_the_kustomization_lists_give_a_conversion(module: Path) -> None:
    converted, plain, _ = manifests.render(module, version="v1.2.3")["core"]

    assert converted["spec"]["conversion"]["strategy"] == "Webhook"
    assert "conversion" not in plain["spec"]


def test_webhook_configurations_get_the_prefix_of_their_provider(module: Path) -> None:
    rendered = manifests.render(module, version="v1.2.3")

    names = {provider: objects[-1]["metadata"]["name"] for provider, objects in rendered.items()}

    assert names["core"] == "capi-configuration"
    assert names["controlplane"] == "capi-kubeadm-control-plane-configuration"


def test_the_inventory_of_clusterctl_names_every_provider_and_its_version(module: Path) -> None:
    _, *entries = manifests.render(module, version="v1.2.3")["clusterctl"]

    assert {(entry["type"], entry["providerName"], entry["version"]) for entry in entries} == {
        ("CoreProvider", "cluster-api", "v1.2.3"),
        ("BootstrapProvider", "kubeadm", "v1.2.3"),
        ("ControlPlaneProvider", "kubeadm", "v1.2.3"),
    }


def test_all_of_cluster_api_is_pointed_at_the_ports_of_one_rig(module: Path) -> None:
    ports = {f"{provider.name}-webhook": 20000 + number for number, provider in enumerate(PROVIDERS)}

    wanted = manifests.for_rig(manifests.render(module, version="v1.2.3"), ports=ports, ca="Q0E=")

    urls = {w["clientConfig"]["url"] for manifest in wanted for w in manifest.get("webhooks", [])}
    assert urls == {f"https://127.0.0.1:{20000 + number}/mutate" for number in range(len(PROVIDERS))}
    assert [m["metadata"]["name"] for m in wanted if m["kind"] == "Namespace"] == [p.namespace for p in PROVIDERS]


@pytest.mark.parametrize("kind", ["MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"])
def test_webhooks_are_called_by_url_with_our_authority(kind: str) -> None:
    (pointed,) = manifests.point_at([webhooks(kind, "/a", "/b")], url="https://127.0.0.1:20001", ca="Q0E=")

    assert [webhook["clientConfig"] for webhook in pointed["webhooks"]] == [
        {"url": "https://127.0.0.1:20001/a", "caBundle": "Q0E="},
        {"url": "https://127.0.0.1:20001/b", "caBundle": "Q0E="},
    ]


def test_conversion_is_called_by_url_and_keeps_its_review_versions() -> None:
    (pointed,) = manifests.point_at([converted_by_webhook("kind")], url="https://127.0.0.1:20001", ca="Q0E=")

    assert pointed["spec"]["conversion"]["webhook"] == {
        "clientConfig": {"url": "https://127.0.0.1:20001/convert", "caBundle": "Q0E="},
        "conversionReviewVersions": ["v1", "v1beta1"],
    }


@pytest.mark.parametrize("manifest", [crd("no-conversion"), {"kind": "Namespace"}], ids=["crd", "namespace"])
def test_what_calls_no_webhook_stays_as_it_is(manifest: dict[str, Any]) -> None:
    assert manifests.point_at([manifest], url="https://127.0.0.1:1", ca="Q0E=") == [manifest]


def test_stripping_conversion_leaves_the_stored_version_and_the_original_alone() -> None:
    original = converted_by_webhook("kind")
    stored, served = {"name": "v2", "storage": True}, {"name": "v1", "storage": False}
    original["spec"]["versions"] = [stored, served]
    before = copy.deepcopy(original)

    (stripped,) = manifests.without_conversion([original])

    assert stripped["spec"]["conversion"] == {"strategy": "None"}
    assert stripped["spec"]["versions"] == [stored]
    assert original == before


def test_inventory_entries_are_named_as_clusterctl_names_them() -> None:
    entry = manifests.inventory_entry(CORE, "v1.14.2")

    assert (entry["metadata"]["namespace"], entry["metadata"]["name"]) == ("capi-system", "cluster-api")
