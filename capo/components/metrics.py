"""Access of Prometheus to the managers' metrics: a Service with a port for each pod, and a role for readers.

The manager serves them over HTTPS and has the API server authenticate each token, as Cluster API's own managers do. The
role has no binding here: the installation decides which account scrapes.
"""

from __future__ import annotations

from typing import Final

from capo.components import NAMESPACE
from capo.components.deployment import METRICS_PORT, POD_LABELS, PROVIDER_LABEL
from capo.json_types import Json

SERVICE: Final = "capo-metrics-service"
# Names of cluster-scoped objects begin with the namespace, else `clusterctl delete` leaves them behind.
READER: Final = f"{NAMESPACE}-capo-metrics-reader"
PORT: Final = "metrics"
LABELS: Final = {**PROVIDER_LABEL, "app.kubernetes.io/component": "metrics"}
"""Label of the Service: the webhooks' Service has the provider's label as well, and a ServiceMonitor selects by
labels.
"""


def service() -> Json:
    """Return the headless Service in front of the managers' metrics, so that each pod is scraped."""
    port = {"name": PORT, "port": METRICS_PORT, "targetPort": PORT}
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": SERVICE, "namespace": NAMESPACE, "labels": LABELS},
        "spec": {"clusterIP": "None", "ports": [port], "selector": POD_LABELS},
    }


def reader() -> Json:
    """Return the role for reading metrics, to be bound to the ServiceAccount of Prometheus."""
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": READER, "labels": PROVIDER_LABEL},
        "rules": [{"nonResourceURLs": ["/metrics"], "verbs": ["get"]}],
    }
