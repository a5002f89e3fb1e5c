"""Workload of the manager: its Deployment, its Service, and the certificate of the Service.

Names, labels, ports and arguments are those of the Go provider, so that patches of its Deployment still apply.
Selectors are immutable: a release that changed them could not be applied over the previous one. Source:
docs/explanation/go-provider.md, G-40, and docs/reference/contract.md, C-67.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

from capo.components import NAMESPACE, SERVICE_ACCOUNT
from capo.json_types import Json

NAME: Final = "capo-controller-manager"
PROVIDER_LABEL: Final = {"cluster.x-k8s.io/provider": "infrastructure-openstack"}
POD_LABELS: Final = {**PROVIDER_LABEL, "control-plane": NAME}
SERVICE: Final = {"name": "capo-webhook-service", "namespace": NAMESPACE}
CERTIFICATE: Final = "capo-serving-cert"
INJECT_CA: Final = {"cert-manager.io/inject-ca-from": f"{NAMESPACE}/{CERTIFICATE}"}
CERT_DIR: Final = "/tmp/k8s-webhook-server/serving-certs"  # noqa: S108 - the Go provider's default
USER_ID: Final = 65532

_ISSUER: Final = "capo-selfsigned-issuer"
_CERTIFICATE_SECRET: Final = "capo-webhook-service-cert"  # noqa: S105 - a name
WEBHOOK_PORT: Final = 9443
HEALTH_PORT: Final = 9440
METRICS_PORT: Final = 8443
_CONTROL_PLANE_TAINTS: Final = ("node-role.kubernetes.io/master", "node-role.kubernetes.io/control-plane")

TOLERATIONS: Final = [{"key": key, "effect": "NoSchedule"} for key in _CONTROL_PLANE_TAINTS]
RESOURCES: Final = {"requests": {"cpu": "100m", "memory": "256Mi"}, "limits": {"memory": "1Gi"}}
"""For up to 5,000 machines; measured in ``docs/how-to/install.md``."""


@dataclass(frozen=True)
class Pod:
    """Fields that may differ between two installations of the same version; the defaults are those of the components.

    Attributes:
        image: with registry, path and tag.
        priority_queue: value of the feature gate.
        autoscale_from_zero: value of the feature gate.
        verbosity: of the log.
        more_args: arguments after ours; of two equal flags the last is used.
        more_env: variables after ours.
        more_volumes: volumes after ours.
        more_mounts: mounts of these volumes in the container.
        more_fields: additional fields of the pod.
    """

    image: str
    pull_policy: str = "IfNotPresent"
    replicas: Any = 1
    priority_queue: str = "${EXP_CAPO_PRIORITY_QUEUE:=true}"
    autoscale_from_zero: str = "${EXP_CAPO_AUTOSCALE_FROM_ZERO:=true}"
    verbosity: str = "2"
    more_args: tuple[str, ...] = ()
    more_env: tuple[Any, ...] = ()
    more_volumes: tuple[Any, ...] = ()
    more_mounts: tuple[Any, ...] = ()
    resources: Any = field(default_factory=lambda: RESOURCES)
    tolerations: Any = field(default_factory=lambda: TOLERATIONS)
    more_fields: Json = field(default_factory=dict)


def namespace() -> Json:
    """Return the namespace, which enforces the restricted Pod Security Standard."""
    levels = {f"pod-security.kubernetes.io/{mode}": "restricted" for mode in ("enforce", "warn", "audit")}
    return {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": NAMESPACE, "labels": {**PROVIDER_LABEL, "control-plane": NAME, **levels}},
    }


def service() -> Json:
    """Return the Service in front of the webhooks."""
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {**SERVICE, "labels": PROVIDER_LABEL},
        "spec": {"ports": [{"port": 443, "targetPort": "webhook-server"}], "selector": POD_LABELS},
    }


def certificate() -> list[Json]:
    """Return the objects with which cert-manager issues and renews the webhooks' certificate."""
    host = f"{SERVICE['name']}.{NAMESPACE}.svc"
    return [
        {
            "apiVersion": "cert-manager.io/v1",
            "kind": "Issuer",
            "metadata": {"name": _ISSUER, "namespace": NAMESPACE, "labels": PROVIDER_LABEL},
            "spec": {"selfSigned": {}},
        },
        {
            "apiVersion": "cert-manager.io/v1",
            "kind": "Certificate",
            "metadata": {"name": CERTIFICATE, "namespace": NAMESPACE, "labels": PROVIDER_LABEL},
            "spec": {
                "dnsNames": [host, f"{host}.cluster.local"],
                "issuerRef": {"kind": "Issuer", "name": _ISSUER},
                "secretName": _CERTIFICATE_SECRET,
            },
        },
    ]


def deployment(pod: Pod) -> Json:
    """Return the Deployment of the manager."""
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": NAME, "namespace": NAMESPACE, "labels": POD_LABELS},
        "spec": {
            "replicas": pod.replicas,
            "selector": {"matchLabels": POD_LABELS},
            "template": {"metadata": {"labels": POD_LABELS}, "spec": _pod_spec(pod)},
        },
    }


def _pod_spec(pod: Pod) -> Json:
    return {
        "serviceAccountName": SERVICE_ACCOUNT,
        "terminationGracePeriodSeconds": 10,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": USER_ID,
            "runAsGroup": USER_ID,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [_container(pod)],
        "tolerations": pod.tolerations,
        "volumes": [
            {"name": "cert", "secret": {"secretName": _CERTIFICATE_SECRET}},
            # The root file system is read-only, and Python needs a folder for temporary files.
            {"name": "tmp", "emptyDir": {}},
            *pod.more_volumes,
        ],
        **pod.more_fields,
    }


def _container(pod: Pod) -> Json:
    return {
        "name": "manager",
        "image": pod.image,
        "imagePullPolicy": pod.pull_policy,
        "command": ["/manager"],
        "args": _args(pod),
        "env": [
            {"name": "POD_NAMESPACE", "valueFrom": {"fieldRef": {"fieldPath": "metadata.namespace"}}},
            *pod.more_env,
        ],
        "ports": [
            {"name": "healthz", "containerPort": HEALTH_PORT, "protocol": "TCP"},
            {"name": "webhook-server", "containerPort": WEBHOOK_PORT, "protocol": "TCP"},
            {"name": "metrics", "containerPort": METRICS_PORT, "protocol": "TCP"},
        ],
        "readinessProbe": {"httpGet": {"path": "/readyz", "port": "healthz"}},
        # Python takes seconds to start on a slow processor; a probe must not kill it during that time.
        "livenessProbe": {"httpGet": {"path": "/healthz", "port": "healthz"}, "initialDelaySeconds": 30},
        "resources": pod.resources,
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "privileged": False,
            "readOnlyRootFilesystem": True,
            "runAsUser": USER_ID,
            "runAsGroup": USER_ID,
        },
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": [
            {"name": "tmp", "mountPath": "/tmp"},  # noqa: S108 - in the container
            {"name": "cert", "mountPath": CERT_DIR, "readOnly": True},
            *pod.more_mounts,
        ],
    }


def _args(pod: Pod) -> list[str]:
    return [
        "--leader-elect",
        f"--v={pod.verbosity}",
        f"--diagnostics-address=:{METRICS_PORT}",
        "--insecure-diagnostics=false",
        f"--feature-gates=PriorityQueue={pod.priority_queue},AutoScaleFromZero={pod.autoscale_from_zero}",
        *pod.more_args,
    ]
