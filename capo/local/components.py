"""The processes of a rig: binary, flags and readiness probe of each.

Flags and order were tested with these versions; ``docs/reference/rig.md`` has the reasons.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from capo.local import pki

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from capo.local.layout import Layout

_CONTROLLERS: Final = (
    "garbage-collector-controller",
    "namespace-controller",
    "clusterrole-aggregation-controller",
    "serviceaccount-controller",
    "serviceaccount-token-controller",
    "root-ca-certificate-publisher-controller",
)


@dataclass(frozen=True)
class Site:
    """The parts of a rig that a process's flags depend on."""

    layout: Layout
    ports: Mapping[str, int]

    def address(self, port_name: str) -> str:
        """Return ``127.0.0.1:<port>``."""
        return f"127.0.0.1:{self.ports[port_name]}"


@dataclass(frozen=True)
class Component:
    """One process.

    Attributes:
        flags: its command line after the binary.
        port_names: the ports it listens on.
        ready: URL that answers 200 when it is ready.
        env: variables beside those of the process that starts the rig.
    """

    name: str
    binary: str
    flags: Callable[[Site], list[str]]
    port_names: tuple[str, ...]
    ready: Callable[[Site], str]
    env: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Provider:
    """A Cluster API provider: the names of its manager and its manifests.

    Attributes:
        label: value of the label ``cluster.x-k8s.io/provider``.
        config: folder of its manifests in Cluster API's module.
        prefix: put before the names of its webhook configurations.
        type_and_name: kind of provider and its name in clusterctl's inventory.
    """

    name: str
    binary: str
    label: str
    config: str
    prefix: str
    namespace: str
    feature_gates: str
    type_and_name: tuple[str, str]


PROVIDERS: Final = (
    Provider(
        "core",
        "capi-core",
        "cluster-api",
        "core/config",
        "capi-",
        "capi-system",
        "ClusterTopology=true,MachinePool=true",
        ("CoreProvider", "cluster-api"),
    ),
    Provider(
        "bootstrap",
        "capi-bootstrap",
        "bootstrap-kubeadm",
        "bootstrap/kubeadm/config",
        "capi-kubeadm-bootstrap-",
        "capi-kubeadm-bootstrap-system",
        "MachinePool=true,KubeadmBootstrapFormatIgnition=true",
        ("BootstrapProvider", "kubeadm"),
    ),
    Provider(
        "controlplane",
        "capi-controlplane",
        "control-plane-kubeadm",
        "controlplane/kubeadm/config",
        "capi-kubeadm-control-plane-",
        "capi-kubeadm-control-plane-system",
        "ClusterTopology=true,KubeadmBootstrapFormatIgnition=true",
        ("ControlPlaneProvider", "kubeadm"),
    ),
)


def webhook_port_name(component: str) -> str:
    """Return the name of the port on which a component serves its webhooks."""
    return f"{component}-webhook"


def _etcd(site: Site) -> list[str]:
    client, peer = f"http://{site.address('etcd')}", f"http://{site.address('etcd-peer')}"
    return [
        "--name=rig",
        f"--data-dir={site.layout.etcd}",
        f"--listen-client-urls={client}",
        f"--advertise-client-urls={client}",
        f"--listen-peer-urls={peer}",
        f"--initial-advertise-peer-urls={peer}",
        f"--initial-cluster=rig={peer}",
        "--unsafe-no-fsync",  # no valuable data: after a power loss the rig is created again
        "--log-level=warn",
    ]


def _kube_apiserver(site: Site) -> list[str]:
    keys = site.layout.pki
    return [
        f"--etcd-servers=http://{site.address('etcd')}",
        "--bind-address=127.0.0.1",
        f"--secure-port={site.ports['kube-apiserver']}",
        "--endpoint-reconciler-type=none",  # a loopback address is not allowed in Endpoints
        f"--tls-cert-file={keys / 'server.crt'}",
        f"--tls-private-key-file={keys / 'server.key'}",
        f"--client-ca-file={keys / 'ca.crt'}",
        "--authorization-mode=RBAC",
        f"--requestheader-client-ca-file={keys / 'ca.crt'}",
        "--requestheader-allowed-names=front-proxy",
        "--requestheader-username-headers=X-Remote-User",
        "--requestheader-group-headers=X-Remote-Group",
        "--requestheader-extra-headers-prefix=X-Remote-Extra-",
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-account-key-file={keys / 'sa.pub'}",
        f"--service-account-signing-key-file={keys / 'sa.key'}",
        f"--service-cluster-ip-range={pki.SERVICE_CIDR}",
        "--disable-admission-plugins=ServiceAccount",
        "--enable-admission-plugins=OwnerReferencesPermissionEnforcement",
        f"--audit-policy-file={site.layout.audit_policy}",
        f"--audit-log-path={site.layout.log / 'audit.log'}",
    ]


def _kube_controller_manager(site: Site) -> list[str]:
    keys, kubeconfig = site.layout.pki, site.layout.kubeconfig
    return [
        f"--kubeconfig={kubeconfig}",
        f"--authentication-kubeconfig={kubeconfig}",
        f"--authorization-kubeconfig={kubeconfig}",
        "--bind-address=127.0.0.1",
        f"--secure-port={site.ports['kube-controller-manager']}",
        f"--tls-cert-file={keys / 'server.crt'}",
        f"--tls-private-key-file={keys / 'server.key'}",
        "--leader-elect=false",
        "--use-service-account-credentials=false",
        f"--service-account-private-key-file={keys / 'sa.key'}",
        f"--root-ca-file={keys / 'ca.crt'}",
        f"--controllers={','.join(_CONTROLLERS)}",
    ]


def _workload(site: Site) -> list[str]:
    return [f"--kubeconfig={site.layout.kubeconfig}", f"--health-addr={site.address('workload-health')}"]


def _manager(provider: Provider) -> Component:
    webhook, health, metrics = (f"{provider.name}-{use}" for use in ("webhook", "health", "metrics"))

    def flags(site: Site) -> list[str]:
        return [
            f"--kubeconfig={site.layout.kubeconfig}",
            f"--webhook-port={site.ports[webhook]}",
            f"--webhook-cert-dir={site.layout.pki / 'webhook'}",
            f"--health-addr={site.address(health)}",
            f"--diagnostics-address={site.address(metrics)}",
            "--insecure-diagnostics=true",
            f"--feature-gates={provider.feature_gates}",
            "--v=2",
        ]

    return Component(
        provider.name,
        provider.binary,
        flags,
        (webhook, health, metrics),
        lambda site: f"http://{site.address(health)}/readyz",
        {"POD_NAMESPACE": provider.namespace, "POD_NAME": f"rig-{provider.name}"},
    )


ETCD: Final = Component(
    "etcd", "etcd", _etcd, ("etcd", "etcd-peer"), lambda site: f"http://{site.address('etcd')}/readyz"
)
KUBE_APISERVER: Final = Component(
    "kube-apiserver",
    "kube-apiserver",
    _kube_apiserver,
    ("kube-apiserver",),
    lambda site: f"https://{site.address('kube-apiserver')}/readyz",
)
KUBE_CONTROLLER_MANAGER: Final = Component(
    "kube-controller-manager",
    "kube-controller-manager",
    _kube_controller_manager,
    ("kube-controller-manager",),
    lambda site: f"https://{site.address('kube-controller-manager')}/healthz",
)
WORKLOAD: Final = Component(
    "workload",
    "capo-workload",
    _workload,
    ("workload-health",),
    lambda site: f"http://{site.address('workload-health')}/healthz",
)

API: Final = (ETCD, KUBE_APISERVER)
MANAGERS: Final = (*(_manager(provider) for provider in PROVIDERS), KUBE_CONTROLLER_MANAGER, WORKLOAD)
OUR_PORTS: Final = ("capo-webhook", "capo-health", "capo-metrics", "simulator")

AUDIT_POLICY: Final = """\
# One line for each write, so that writes can be counted by who made them.
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Metadata
  verbs: [create, update, patch, delete, deletecollection]
- level: None
"""


def port_names() -> list[str]:
    """Return the names of all ports of a rig, including those of our own manager."""
    return [name for component in (*API, *MANAGERS) for name in component.port_names] + list(OUR_PORTS)
