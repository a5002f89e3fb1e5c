"""Parts of the Helm chart that the components lack: optional objects, and blocks that depend on values.

A block is represented in an object by a mark (``@name``), which ``chart`` replaces by the block's lines.
"""

from __future__ import annotations

import json
from typing import Final, NamedTuple

from capo.components import NAMESPACE, deployment, metrics
from capo.components.monitoring import dashboards
from capo.json_types import Json
from capo.kube import SERVICE_ACCOUNT

_POD_LABELS: Final = json.dumps(json.dumps(deployment.POD_LABELS))
_PROVIDER_LABEL: Final = json.dumps(json.dumps(deployment.PROVIDER_LABEL))
# $(KUBERNETES_SERVICE_HOST) is expanded by kubelet: the API server is never reached through a proxy.
_DIRECT: Final = 'list "$(KUBERNETES_SERVICE_HOST)" "localhost" "127.0.0.1" ".svc" ".cluster.local"'
_SEVERAL: Final = "gt (int .Values.replicas) 1"


def _each(name: str) -> str:
    return f"{{{{- range .Values.{name} }}}}\n- {{{{ toJson . }}}}\n{{{{- end }}}}"


def _variable(name: str, value: str) -> str:
    return f"{{{{- with .Values.{value} }}}}\n- name: {name}\n  value: {{{{ toJson . }}}}\n{{{{- end }}}}"


def _dashboard_data(name: str) -> str:
    file = f"capo-{name}.json"
    return f'data:\n  {file}: |-\n{{{{- .Files.Get "files/{file}" | nindent 4 }}}}'


_NO_PROXY: Final = f"""\
{{{{- if or .Values.proxy.http .Values.proxy.https }}}}
- name: NO_PROXY
  value: {{{{ join "," (concat ({_DIRECT}) .Values.proxy.noProxy) | toJson }}}}
{{{{- end }}}}"""
_SPREAD: Final = f"""\
{{{{- if {_SEVERAL} }}}}
topologySpreadConstraints:
{{{{- range .Values.topologySpreadConstraints }}}}
- {{{{ toJson (merge (deepCopy .) (dict "labelSelector" (dict "matchLabels" (fromJson {_POD_LABELS})))) }}}}
{{{{- end }}}}
{{{{- end }}}}"""
_READERS: Final = """\
{{- range .Values.metrics.readers }}
- {{ toJson (merge (dict "kind" "ServiceAccount") .) }}
{{- end }}"""
_MONITOR_LABELS: Final = (
    f"labels: {{{{ toJson (merge (fromJson {_PROVIDER_LABEL}) .Values.metrics.serviceMonitor.labels) }}}}"
)
_INTERVAL: Final = "{{- with .Values.metrics.serviceMonitor.interval }}\ninterval: {{ toJson . }}\n{{- end }}"
_RULES: Final = 'spec:\n{{- .Files.Get "files/alerts.yaml" | nindent 2 }}'
_RULE_LABELS: Final = (
    f"labels: {{{{ toJson (merge (fromJson {_PROVIDER_LABEL}) .Values.metrics.prometheusRule.labels) }}}}"
)
_DASHBOARD_LABELS: Final = (
    f"labels: {{{{ toJson (merge (fromJson {_PROVIDER_LABEL}) .Values.metrics.dashboards.labels) }}}}"
)
_POLICY_TYPES: Final = 'policyTypes: ["Ingress"{{ if .Values.networkPolicy.egress }}, "Egress"{{ end }}]'

BLOCKS: Final = {
    "@args": _each("extraArgs"),
    "@env": "\n".join(
        (
            _variable("HTTP_PROXY", "proxy.http"),
            _variable("HTTPS_PROXY", "proxy.https"),
            _NO_PROXY,
            _each("extraEnv"),
        )
    ),
    "@volumes": _each("extraVolumes"),
    "@mounts": _each("extraVolumeMounts"),
    "@spread": _SPREAD,
    "@readers": _READERS,
    "@labels": _MONITOR_LABELS,
    "@interval": _INTERVAL,
    "@rules": _RULES,
    "@ruleLabels": _RULE_LABELS,
    "@dashboardLabels": _DASHBOARD_LABELS,
    **{f"@{each.name}": _dashboard_data(each.name) for each in dashboards.DASHBOARDS},
    "@policyTypes": _POLICY_TYPES,
}
"""Lines that replace each mark, without their indentation; a line that begins with ``{{-`` is not indented."""


class Option(NamedTuple):
    """An object that exists if a condition in Helm's language holds."""

    condition: str
    obj: Json


def options() -> list[Option]:
    """Return the objects that the components do not have."""
    return [
        Option(f"and .Values.podDisruptionBudget.enabled ({_SEVERAL})", _disruption_budget()),
        Option(".Values.networkPolicy.enabled", _network_policy()),
        Option(".Values.metrics.readers", _readers()),
        Option(".Values.metrics.serviceMonitor.enabled", _service_monitor()),
        Option(".Values.metrics.prometheusRule.enabled", _prometheus_rule()),
        *(Option(".Values.metrics.dashboards.enabled", _dashboard(each.name)) for each in dashboards.DASHBOARDS),
    ]


def value(name: str) -> str:
    """Return the expression for a whole value."""
    return f"{{{{ toJson .Values.{name} }}}}"


def _metadata() -> Json:
    return {"name": deployment.NAME, "namespace": NAMESPACE, "labels": deployment.PROVIDER_LABEL}


def _disruption_budget() -> Json:
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": _metadata(),
        "spec": {
            "maxUnavailable": value("podDisruptionBudget.maxUnavailable"),
            "selector": {"matchLabels": deployment.POD_LABELS},
        },
    }


def _network_policy() -> Json:
    # The API server and kubelet are not pods: no selector matches them, so their two ports are open to all.
    everywhere = {"ports": [{"port": "webhook-server"}, {"port": "healthz"}]}
    scraped = {"ports": [{"port": metrics.PORT}], "from": value("networkPolicy.metricsFrom")}
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": _metadata(),
        "spec": {
            "podSelector": {"matchLabels": deployment.POD_LABELS},
            "policyTypes": "@policyTypes",
            "ingress": [everywhere, scraped],
            "egress": value("networkPolicy.egress"),
        },
    }


def _readers() -> Json:
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": metrics.READER, "labels": deployment.PROVIDER_LABEL},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": metrics.READER},
        "subjects": ["@readers"],
    }


def _service_monitor() -> Json:
    endpoint = {
        "port": metrics.PORT,
        "path": "/metrics",
        "scheme": "https",
        "interval": "@interval",
        # Else `namespace`, that of credentials, would be renamed.
        "honorLabels": True,
        "bearerTokenFile": str(SERVICE_ACCOUNT / "token"),
        # The manager creates the certificate at its start, self-signed, as Cluster API's managers do.
        "tlsConfig": {"insecureSkipVerify": True},
    }
    return {
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "ServiceMonitor",
        "metadata": {"name": deployment.NAME, "namespace": NAMESPACE, "labels": "@labels"},
        "spec": {"selector": {"matchLabels": metrics.LABELS}, "endpoints": [endpoint]},
    }


def _prometheus_rule() -> Json:
    return {
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "PrometheusRule",
        "metadata": {"name": deployment.NAME, "namespace": NAMESPACE, "labels": "@ruleLabels"},
        "spec": "@rules",
    }


def _dashboard(name: str) -> Json:
    metadata = {"name": f"capo-dashboard-{name}", "namespace": NAMESPACE, "labels": "@dashboardLabels"}
    annotations = value("metrics.dashboards.annotations")
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {**metadata, "annotations": annotations},
        "data": f"@{name}",
    }
