"""Builds the seven CustomResourceDefinitions from the models of their versions; pure.

Labels are those of Cluster API's contract ("contract version: our versions that fulfil it"), so that Cluster API can
choose a version: a version is in a label only while it is served (C-53 to C-55).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from api import v1alpha1, v1beta1, v1beta2
from api.meta import KubernetesObject
from api.model import GROUP
from api.schema import Column
from capo.crdgen import schema
from capo.json_types import Json

CONTRACT_VERSIONS: Final = ("v1beta1", "v1beta2")
"""Versions of Cluster API's contract, which our versions of the same name fulfil."""
WEBHOOK_SERVICE: Final = {"name": "capo-webhook-service", "namespace": "capo-system"}
"""The Service of the provider's webhooks, as installed."""
MOVE_LABEL: Final = "clusterctl.cluster.x-k8s.io/move"
PROVIDER_LABEL: Final = {"cluster.x-k8s.io/provider": "infrastructure-openstack"}


@dataclass(frozen=True)
class Definition:
    """A kind with its served versions, the stored one first."""

    versions: tuple[type[KubernetesObject], ...]

    @property
    def stored(self) -> type[KubernetesObject]:
        """Return the model that objects are stored as."""
        return self.versions[0]

    @property
    def kind(self) -> str:
        """Return the kind's name."""
        return str(self.stored.model_fields["kind"].default)

    @property
    def name(self) -> str:
        """Return the name of the CustomResourceDefinition."""
        return f"{self.stored.names.plural}.{GROUP}"


DEFINITIONS: Final = (
    Definition((v1beta2.OpenStackCluster, v1beta1.OpenStackCluster)),
    Definition((v1beta2.OpenStackClusterTemplate, v1beta1.OpenStackClusterTemplate)),
    Definition((v1beta2.OpenStackMachine, v1beta1.OpenStackMachine)),
    Definition((v1beta2.OpenStackMachineTemplate, v1beta1.OpenStackMachineTemplate)),
    Definition((v1alpha1.OpenStackServer,)),
    Definition((v1alpha1.OpenStackFloatingIPPool,)),
    Definition((v1alpha1.OpenStackClusterIdentity,)),
)


def manifest(definition: Definition) -> Json:
    """Return the CustomResourceDefinition of a kind, with conversion by the installed provider."""
    crd = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": definition.name,
            "labels": PROVIDER_LABEL | _contract_labels(definition) | _move_label(definition),
        },
        "spec": {
            "group": GROUP,
            "names": _names(definition),
            "scope": definition.stored.names.scope,
            "versions": [_version(model, definition) for model in definition.versions],
        },
    }
    return with_conversion(crd, {"service": {**WEBHOOK_SERVICE, "path": "/convert"}})


def with_conversion(crd: Json, client_config: Mapping[str, Any]) -> Json:
    """Return the CustomResourceDefinition with a conversion webhook, unless it has one version only.

    Args:
        client_config: ``url`` or ``service``, and ``caBundle``, as in ``WebhookClientConfig``.
    """
    if len(crd["spec"]["versions"]) == 1:
        return crd
    webhook = {"clientConfig": dict(client_config), "conversionReviewVersions": ["v1", "v1beta1"]}
    return crd | {"spec": crd["spec"] | {"conversion": {"strategy": "Webhook", "webhook": webhook}}}


def version_name(model: type[KubernetesObject]) -> str:
    """Return the version of a model, without the group."""
    return str(model.model_fields["api_version"].default).rpartition("/")[2]


def _contract_labels(definition: Definition) -> dict[str, str]:
    served = {version_name(model) for model in definition.versions}
    return {f"cluster.x-k8s.io/{version}": version for version in CONTRACT_VERSIONS if version in served}


def _move_label(definition: Definition) -> dict[str, str]:
    """Return the label with which ``clusterctl move`` moves all objects of a kind.

    A pool owns IPAddresses and belongs to no Cluster: without it they would not be moved either.
    """
    return {MOVE_LABEL: ""} if definition.stored is v1alpha1.OpenStackFloatingIPPool else {}


def _names(definition: Definition) -> Json:
    names = definition.stored.names
    result: Json = {
        "kind": definition.kind,
        "listKind": f"{definition.kind}List",
        "plural": names.plural,
        "singular": definition.kind.lower(),
    }
    if names.short:
        result["shortNames"] = [names.short]
    if names.categories:
        result["categories"] = list(names.categories)
    return result


def _version(model: type[KubernetesObject], definition: Definition) -> Json:
    version: Json = {
        "name": version_name(model),
        "served": True,
        "storage": model is definition.stored,
        "schema": {"openAPIV3Schema": schema.kind_schema(model)},
    }
    if "status" in model.model_fields:
        version["subresources"] = {"status": {}}
    if model.columns:
        version["additionalPrinterColumns"] = [_column(column) for column in model.columns]
    return version


def _column(column: Column) -> Json:
    result: Json = {
        "name": column.name,
        "type": column.type,
        "jsonPath": column.json_path,
        "description": column.description,
    }
    return result | {"priority": column.priority} if column.priority else result
