"""Manifests of Cluster API's providers, adapted for managers that run outside of the cluster.

Cluster API's module contains them as kustomize folders. ``render`` applies what its kustomizations specify, and leaves
the webhooks' Services as they are; ``point_at`` replaces these by the URL where a rig's manager listens.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any, Final

import yaml

from capo.local.components import PROVIDERS, webhook_port_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    from capo.json_types import Json
    from capo.local.components import Provider

PROVIDER_LABEL: Final = "cluster.x-k8s.io/provider"
CLUSTERCTL_LABEL: Final = "clusterctl.cluster.x-k8s.io"
_WEBHOOK_CONFIGURATIONS: Final = frozenset({"MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"})
_LOADER: Final[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # five times as fast with libyaml


def load(path: Path) -> list[Json]:
    """Return the documents of a YAML file."""
    with path.open(encoding="utf-8") as text:
        return [document for document in yaml.load_all(text, _LOADER) if document]


def render(source: Path, *, version: str) -> dict[str, list[Json]]:
    """Return the manifests of each provider by its name, and clusterctl's own under ``clusterctl``.

    Args:
        source: folder of the module ``sigs.k8s.io/cluster-api``.
        version: the installed version for clusterctl's inventory.
    """
    rendered = {provider.name: _render(source / provider.config, provider) for provider in PROVIDERS}
    inventory = load(source / "cmd/clusterctl/config/manifest/clusterctl-api.yaml")
    rendered["clusterctl"] = inventory + [inventory_entry(provider, version) for provider in PROVIDERS]
    return rendered


def inventory_entry(provider: Provider, version: str) -> Json:
    """Return the object by which clusterctl detects an installed provider."""
    kind, name = provider.type_and_name
    labels = {CLUSTERCTL_LABEL: "", "clusterctl.cluster.x-k8s.io/core": "inventory", PROVIDER_LABEL: provider.label}
    return {
        "apiVersion": "clusterctl.cluster.x-k8s.io/v1alpha3",
        "kind": "Provider",
        "metadata": {"name": provider.label, "namespace": provider.namespace, "labels": labels},
        "providerName": name,
        "type": kind,
        "version": version,
    }


def namespace(name: str) -> Json:
    """Return a namespace."""
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


def point_at(manifests: Iterable[Json], *, url: str, ca: str) -> list[Json]:
    """Return copies of the manifests in which webhooks and conversions are called by URL.

    Args:
        url: where the manager serves webhooks, without a path.
        ca: base64 of the PEM of the authority that signed its certificate.
    """
    changed = copy.deepcopy(list(manifests))
    for manifest in changed:
        for client in _client_configs(manifest):
            path = client.pop("service", {}).get("path", "/")
            client |= {"url": f"{url}{path}", "caBundle": ca}
    return changed


def without_conversion(crds: Iterable[Json]) -> list[Json]:
    """Return copies of the CRDs without conversion webhooks, for tests without a running manager.

    They have the stored version alone: without a webhook objects in another one would be wrong.
    """
    changed = copy.deepcopy(list(crds))
    for crd in changed:
        crd["spec"]["conversion"] = {"strategy": "None"}
        crd["spec"]["versions"] = [version for version in crd["spec"]["versions"] if version["storage"]]
    return changed


def for_rig(rendered: Mapping[str, list[Json]], *, ports: Mapping[str, int], ca: str) -> list[Json]:
    """Return all manifests of Cluster API with the URLs of one rig."""
    wanted = [namespace(provider.namespace) for provider in PROVIDERS]
    for provider in PROVIDERS:
        url = f"https://127.0.0.1:{ports[webhook_port_name(provider.name)]}"
        wanted += point_at(rendered[provider.name], url=url, ca=ca)
    return wanted + rendered["clusterctl"]


def _client_configs(manifest: Json) -> Iterator[Json]:
    """Yield each part that defines how a webhook is called."""
    if manifest["kind"] in _WEBHOOK_CONFIGURATIONS:
        for webhook in manifest.get("webhooks", []):
            yield webhook["clientConfig"]
    if manifest["kind"] == "CustomResourceDefinition":
        webhook = manifest["spec"].get("conversion", {}).get("webhook")
        if webhook:
            yield webhook["clientConfig"]


def _render(config: Path, provider: Provider) -> list[Json]:
    return _crds(config / "crd", provider) + _webhooks(config / "webhook", provider)


def _crds(folder: Path, provider: Provider) -> list[Json]:
    (kustomization,) = load(folder / "kustomization.yaml")
    labels = {PROVIDER_LABEL: provider.label, CLUSTERCTL_LABEL: ""}
    for group in kustomization.get("labels", []):
        labels |= group["pairs"]
    conversions = {
        patch["metadata"]["name"]: patch["spec"]["conversion"]
        for entry in kustomization.get("patches", [])
        for patch in load(folder / entry["path"])
    }
    crds = [crd for path in kustomization["resources"] for crd in load(folder / path)]
    for crd in crds:
        crd["metadata"].setdefault("labels", {}).update(labels)
        crd.pop("status", None)
        if crd["metadata"]["name"] in conversions:
            crd["spec"]["conversion"] = conversions[crd["metadata"]["name"]]
    return crds


def _webhooks(folder: Path, provider: Provider) -> list[Json]:
    configurations = load(folder / "manifests.yaml")
    for configuration in configurations:
        configuration["metadata"]["name"] = provider.prefix + configuration["metadata"]["name"]
        configuration["metadata"]["labels"] = {PROVIDER_LABEL: provider.label}
    return configurations
