"""The manifest that registers our webhooks with the API server, under the Go provider's names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from api.model import GROUP
from capo.json_types import Json
from capo.webhooks import admission
from capo.webhooks.application import admission_path

NAME: Final = "capo-validating-webhook-configuration"
SERVICE: Final = {"name": "capo-webhook-service", "namespace": "capo-system"}


def validating(service: Mapping[str, Any] = SERVICE) -> Json:
    """Return the ValidatingWebhookConfiguration.

    Args:
        service: name and namespace of the Service in front of the webhooks.
    """
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": NAME, "labels": {"cluster.x-k8s.io/provider": "infrastructure-openstack"}},
        "webhooks": [_webhook(kind, service) for kind in admission.VERSION_OF],
    }


def _webhook(kind: str, service: Mapping[str, Any]) -> Json:
    version = admission.VERSION_OF[kind]
    middle = f"{kind.lower()}.{version}" if version == "v1beta2" else kind.lower()
    return {
        "name": f"validation.{middle}.{GROUP}",
        "clientConfig": {"service": {**service, "path": admission_path(kind)}},
        "rules": [
            {
                "apiGroups": [GROUP],
                "apiVersions": [version],
                "operations": ["CREATE", "UPDATE"],
                "resources": [f"{kind.lower()}s"],
            }
        ],
        "failurePolicy": "Fail",
        "matchPolicy": "Equivalent",
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
    }
