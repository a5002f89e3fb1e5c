from __future__ import annotations

from capo.webhooks import configuration

GROUP = "infrastructure.cluster.x-k8s.io"


def test_the_webhooks_have_the_names_of_the_go_providers() -> None:
    manifest = configuration.validating()

    assert manifest["metadata"]["name"] == "capo-validating-webhook-configuration"
    assert [webhook["name"] for webhook in manifest["webhooks"]] == [
        f"validation.openstackcluster.v1beta2.{GROUP}",
        f"validation.openstackclustertemplate.v1beta2.{GROUP}",
        f"validation.openstackmachine.v1beta2.{GROUP}",
        f"validation.openstackmachinetemplate.v1beta2.{GROUP}",
        f"validation.openstackserver.{GROUP}",
    ]


def test_each_webhook_asks_the_service_about_creates_and_updates_of_one_resource() -> None:
    server = configuration.validating()["webhooks"][4]

    assert server["clientConfig"]["service"] == {
        "name": "capo-webhook-service",
        "namespace": "capo-system",
        "path": "/validate-infrastructure-cluster-x-k8s-io-v1alpha1-openstackserver",
    }
    assert server["rules"] == [
        {
            "apiGroups": [GROUP],
            "apiVersions": ["v1alpha1"],
            "operations": ["CREATE", "UPDATE"],
            "resources": ["openstackservers"],
        }
    ]
    assert [server[name] for name in ("failurePolicy", "matchPolicy", "sideEffects", "admissionReviewVersions")] == [
        "Fail",
        "Equivalent",
        "None",
        ["v1"],
    ]
