from __future__ import annotations

import re

import pytest
import yaml

from capo import components, flag_values, settings
from capo.components import deployment, manifest
from capo.components.deployment import Pod
from capo.crdgen import files
from capo.json_types import Json

TEXT = manifest.text(Pod(manifest.image()))
OBJECTS: list[Json] = list(yaml.safe_load_all(TEXT))
VARIABLE = re.compile(r"\$\{[^}]*}")


def one(kind: str, name: str = "") -> Json:
    (found,) = (obj for obj in OBJECTS if obj["kind"] == kind and name in obj["metadata"]["name"])
    return found


def container() -> Json:
    (found,) = one("Deployment")["spec"]["template"]["spec"]["containers"]
    return dict(found)


def test_every_object_carries_the_providers_label() -> None:
    label = {"cluster.x-k8s.io/provider": "infrastructure-openstack"}

    assert [o["metadata"]["name"] for o in OBJECTS if not label.items() <= o["metadata"]["labels"].items()] == []


def test_the_only_variables_are_the_two_gates_with_a_default_each() -> None:
    assert VARIABLE.findall(TEXT) == ["${EXP_CAPO_PRIORITY_QUEUE:=true}", "${EXP_CAPO_AUTOSCALE_FROM_ZERO:=true}"]


def test_what_is_needed_stands_before_what_needs_it() -> None:
    kinds = [obj["kind"] for obj in OBJECTS]

    assert kinds[0] == "Namespace"
    assert kinds.count("CustomResourceDefinition") == len(files.load())
    assert kinds.index("ServiceAccount") < kinds.index("Deployment")
    assert kinds[-1] == "ValidatingWebhookConfiguration"


def test_the_namespace_takes_restricted_pods_alone() -> None:
    labels = one("Namespace")["metadata"]["labels"]

    assert {mode: labels[f"pod-security.kubernetes.io/{mode}"] for mode in ("enforce", "warn", "audit")} == {
        "enforce": "restricted",
        "warn": "restricted",
        "audit": "restricted",
    }


def test_the_pod_is_restricted_and_writes_to_one_folder_alone() -> None:
    pod = one("Deployment")["spec"]["template"]["spec"]
    limits = container()["securityContext"]

    assert pod["securityContext"]["runAsNonRoot"]
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert (limits["allowPrivilegeEscalation"], limits["readOnlyRootFilesystem"]) == (False, True)
    assert limits["capabilities"] == {"drop": ["ALL"]}
    assert [m["mountPath"] for m in container()["volumeMounts"] if not m.get("readOnly")] == ["/tmp"]


def test_the_selector_is_that_of_the_go_provider_and_the_pods_have_its_labels() -> None:
    spec = one("Deployment")["spec"]

    assert spec["selector"]["matchLabels"] == {
        "cluster.x-k8s.io/provider": "infrastructure-openstack",
        "control-plane": "capo-controller-manager",
    }
    assert spec["template"]["metadata"]["labels"] == spec["selector"]["matchLabels"]
    assert {str(o["spec"]["selector"]) for o in OBJECTS if o["kind"] == "Service"} == {
        str(spec["selector"]["matchLabels"])
    }


def test_the_manager_takes_its_arguments_once_the_variables_have_their_defaults() -> None:
    arguments = [re.sub(r"\$\{\w+:=(\w+)}", r"\1", argument) for argument in container()["args"]]

    read = settings.read(arguments, {"POD_NAMESPACE": "elsewhere"})

    assert (read.leader_elect, read.verbosity) == (True, 2)
    assert read.feature_gates == flag_values.GATES
    assert read.pod_namespace == "elsewhere"


def test_ports_and_certificate_are_where_the_manager_looks_by_default() -> None:
    default = settings.Settings()
    ports = {port["name"]: port["containerPort"] for port in container()["ports"]}

    assert ports == {
        "healthz": int(default.health_address.lstrip(":")),
        "webhook-server": default.webhook_port,
        "metrics": int(default.diagnostics_address.lstrip(":")),
    }
    assert default.webhook_cert_dir.rstrip("/") == deployment.CERT_DIR
    assert {"httpGet": {"path": "/readyz", "port": "healthz"}}.items() <= container()["readinessProbe"].items()


def test_metrics_are_served_to_the_cluster_for_those_who_may_read_them() -> None:
    read = settings.read([a for a in container()["args"] if "diagnostics" in a], {})
    service, reader = one("Service", "metrics"), one("ClusterRole", "metrics-reader")

    assert (read.diagnostics_address, read.insecure_diagnostics) == (":8443", False)
    assert [port["targetPort"] for port in service["spec"]["ports"]] == ["metrics"]
    assert reader["rules"] == [{"nonResourceURLs": ["/metrics"], "verbs": ["get"]}]


def test_every_environment_variable_is_one_that_the_manager_reads() -> None:
    assert {variable["name"] for variable in container()["env"]} <= settings.VARIABLES.keys()


def test_webhooks_are_reached_by_a_service_whose_certificate_names_it() -> None:
    service = one("Service", "webhook")
    host = f"{service['metadata']['name']}.{service['metadata']['namespace']}.svc"
    certificate = one("Certificate")
    volumes = {v["name"]: v for v in one("Deployment")["spec"]["template"]["spec"]["volumes"]}

    assert host in certificate["spec"]["dnsNames"]
    assert volumes["cert"]["secret"]["secretName"] == certificate["spec"]["secretName"]
    assert service["spec"]["ports"] == [{"port": 443, "targetPort": "webhook-server"}]
    for webhook in one("ValidatingWebhookConfiguration")["webhooks"]:
        assert webhook["clientConfig"]["service"]["name"] == service["metadata"]["name"]


def test_the_authority_is_injected_wherever_the_service_is_called() -> None:
    calling = [
        obj
        for obj in OBJECTS
        if obj["kind"] == "ValidatingWebhookConfiguration"
        or obj.get("spec", {}).get("conversion", {}).get("strategy") == "Webhook"
    ]
    wanted = f"{components.NAMESPACE}/{one('Certificate')['metadata']['name']}"

    assert {o["metadata"]["annotations"]["cert-manager.io/inject-ca-from"] for o in calling} == {wanted}


def test_kinds_with_more_than_one_version_are_converted_by_the_service() -> None:
    for crd in (obj for obj in OBJECTS if obj["kind"] == "CustomResourceDefinition"):
        strategy = crd["spec"].get("conversion", {}).get("strategy", "None")

        assert (strategy == "Webhook") == (len(crd["spec"]["versions"]) > 1)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("registry.example.org/a/capo", "registry.example.org/a/capo:v1.2.3"),
        ("registry.example.org:5000/capo", "registry.example.org:5000/capo:v1.2.3"),
        ("registry.example.org/capo:edge", "registry.example.org/capo:edge"),
        ("localhost/capo", "localhost/capo:v1.2.3"),
    ],
)
def test_an_image_without_a_tag_gets_the_version(name: str, expected: str) -> None:
    assert manifest.image(name, "1.2.3") == expected
    assert manifest.image(name, "v1.2.3") == expected


def test_a_digest_is_as_good_as_a_tag() -> None:
    name = f"registry.example.org/capo@sha256:{'0' * 64}"

    assert manifest.image(name, "1.2.3") == name


@pytest.mark.parametrize("name", ["capo", "capo:v1", "org/capo:v1", "registry.example.org/"])
def test_an_image_that_clusterctl_cannot_read_is_refused(name: str) -> None:
    with pytest.raises(manifest.BadImageError, match=r"registry\.example\.org/capo:v1"):
        manifest.image(name, "1.0.0")
