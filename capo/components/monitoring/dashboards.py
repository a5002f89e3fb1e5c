"""The dashboards: the fleet, one cluster, whose queries need kube-state-metrics, and the provider."""

from __future__ import annotations

from typing import Final

from capo.components.monitoring.grafana import Dashboard, Panel, Variable, graph, stat, table
from capo.components.monitoring.state_metrics import prefix

_SERVICES: Final = {
    "compute": "server|flavor|keypair|limit|server_group|interface|availability_zone|quota",
    "network": "network|subnet|port|router|trunk|floatingip|security_group|security_group_rule|extension",
    "load balancer": "loadbalancer|listener|pool|member|healthmonitor|provider",
    "volume": "volume|volume_type",
    "image": "image",
    "identity": "token|application_credential",
}
"""Resources of requests by the service that mostly has them; quotas are those of three services."""
_REQUESTS: Final = "capo_openstack_api_requests_total"
_ERRORS: Final = "capo_openstack_api_request_errors_total"
_DURATION: Final = "capo_openstack_api_request_duration_seconds"
_RECONCILES: Final = "controller_runtime_reconcile"
_LEADERS: Final = 'sum(leader_election_master_status{name="controller-leader-election-capo"})'
_INTERVAL: Final = "$__rate_interval"


def _rate(metric: str, by: str) -> str:
    return f"sum by ({by}) (rate({metric}[{_INTERVAL}]))"


def _quantile(share: float, metric: str, by: str, window: str = _INTERVAL) -> str:
    return f"histogram_quantile({share}, sum by (le, {by}) (rate({metric}_bucket[{window}])))"


def _of_services() -> Panel:
    queries = [
        (f'sum(rate({_REQUESTS}{{request=~"({resources})_(create|update|delete|get|list)"}}[{_INTERVAL}]))', service)
        for service, resources in _SERVICES.items()
    ]
    return Panel("Requests by service", queries, "reqps")


def _longest(title: str, state: str) -> Panel:
    return graph(
        title, f'max by (kind) (capo_objects_longest_seconds{{state="{state}"}}) or vector(0)', "{{kind}}", "s"
    )


def _states(title: str, kind: str) -> Panel:
    return graph(title, f'sum by (state) (capo_objects{{kind="{kind}"}})', "{{state}}")


PROVIDER: Final = Dashboard(
    "provider",
    "CAPO / Provider",
    (
        (
            "Health",
            (
                stat("Leaders", _LEADERS),
                stat("Clouds that fail", "count(max by (host) (capo_clouds_failing)) or vector(0)"),
                stat("Watches silent", "max(capo_watch_silent_seconds)", "s"),
                stat("Pending creates", "sum(capo_pending_creates)"),
            ),
        ),
        (
            "OpenStack",
            (
                _of_services(),
                graph("Requests by kind", _rate(_REQUESTS, "request"), "{{request}}", "reqps"),
                graph("Errors by kind", _rate(_ERRORS, "request"), "{{request}}", "reqps"),
                graph("Duration, 95th percentile", _quantile(0.95, _DURATION, "request"), "{{request}}", "s"),
                graph(
                    "Rate limits",
                    f"sum(rate(capo_openstack_api_rate_limited_total[{_INTERVAL}])) or vector(0)",
                    "answers 429",
                    "reqps",
                ),
                graph(
                    "Creates whose answer was lost",
                    f"sum(increase(capo_ambiguous_creates_total[{_INTERVAL}])) or vector(0)",
                    "creates",
                ),
            ),
        ),
        (
            "Reconciles",
            (
                graph("Queue", "sum by (name) (workqueue_depth)", "{{name}}"),
                graph(
                    "Wait in the queue, 95th percentile",
                    _quantile(0.95, "workqueue_queue_duration_seconds", "name"),
                    "{{name}}",
                    "s",
                ),
                graph(
                    "Reconciles",
                    _rate(f"{_RECONCILES}_total", "controller, result"),
                    "{{controller}} {{result}}",
                    "ops",
                ),
                graph(
                    "Duration, 95th percentile",
                    _quantile(0.95, f"{_RECONCILES}_time_seconds", "controller"),
                    "{{controller}}",
                    "s",
                ),
                graph("Threads in use", "sum by (pool) (capo_pool_threads_used)", "{{pool}}"),
                graph(
                    "Threads of the fullest budget",
                    "max by (pool, budget) (capo_pool_threads_fullest)",
                    "{{pool}} {{budget}}",
                ),
            ),
        ),
        (
            "Process",
            (
                graph(
                    "Writes to Kubernetes",
                    _rate("capo_kubernetes_writes_total", "kind, verb"),
                    "{{kind}} {{verb}}",
                    "ops",
                ),
                graph("Watch events", _rate("capo_watch_events_total", "kind"), "{{kind}}", "ops"),
                graph("Memory", "sum by (instance) (process_resident_memory_bytes)", "{{instance}}", "bytes"),
                graph("CPU", _rate("process_cpu_seconds_total", "instance"), "{{instance}}"),
                graph("Entries of caches", "sum by (cache) (capo_cache_entries)", "{{cache}}"),
            ),
        ),
    ),
)

FLEET: Final = Dashboard(
    "fleet",
    "CAPO / Fleet",
    (
        (
            "Objects",
            (
                stat("Clusters", 'sum(capo_objects{kind="OpenStackCluster"})'),
                stat("Machines", 'sum(capo_objects{kind="OpenStackMachine"})'),
                stat("Not ready", 'sum(capo_objects{state="not_ready"})'),
                stat("Being deleted", 'sum(capo_objects{state="deleting"})'),
            ),
        ),
        (
            "States",
            (
                _states("Clusters by state", "OpenStackCluster"),
                _states("Machines by state", "OpenStackMachine"),
                graph("Waits by reason", "sum by (reason) (capo_objects_waiting)", "{{reason}}"),
                graph("Waits for a quota", "sum by (resource) (capo_quota_waiting) or vector(0)", "{{resource}}"),
                graph(
                    "Quotas that are used most",
                    "topk(10, max by (host, project, resource) "
                    "(capo_openstack_quota_used / (capo_openstack_quota_limit > 0)))",
                    "{{host}} {{project}} {{resource}}",
                    "percentunit",
                ),
                _longest("Longest not ready", "not_ready"),
                _longest("Longest deletion", "deleting"),
            ),
        ),
        (
            "Time to ready",
            (
                graph("Median", _quantile(0.5, "capo_provisioning_seconds", "kind", "1h"), "{{kind}}", "s"),
                graph("95th percentile", _quantile(0.95, "capo_provisioning_seconds", "kind", "1h"), "{{kind}}", "s"),
                graph(
                    "Provisioned within an hour",
                    "sum by (kind) (increase(capo_provisioning_seconds_count[1h]))",
                    "{{kind}}",
                ),
            ),
        ),
        (
            "Credentials",
            (
                table(
                    "Time until they expire",
                    "sort(capo_credentials_expiry_timestamp_seconds - time())",
                    ("type", "namespace", "name", "cloud", "region"),
                    "s",
                ),
            ),
        ),
    ),
)


_NOT_TRUE: Final = 'status!="True"'


def _of(kind: str, metric: str, *more: str) -> str:
    """Return the selector of a metric of the objects of the chosen cluster."""
    labels = ('namespace="$namespace"', 'cluster="$cluster"', *more)
    return f"{prefix(kind)}_{metric}{{{','.join(labels)}}}"


def _not_true(title: str, kind: str) -> Panel:
    expression = f"{_of(kind, 'status_condition', _NOT_TRUE)} == 1"
    return table(title, expression, ("name", "type", "status", "reason"))


_READY: Final = 'type="Ready"'
_TRUE: Final = 'status="True"'
_CREATED: Final = f"{prefix('OpenStackCluster')}_created"
CLUSTER: Final = Dashboard(
    "cluster",
    "CAPO / Cluster",
    (
        (
            "Cluster",
            (
                stat("Ready", f"max({_of('OpenStackCluster', 'status_condition', _READY, _TRUE)})"),
                stat("Machines", f"count({_of('OpenStackMachine', 'created')})"),
                stat(
                    "Machines not ready",
                    f"sum({_of('OpenStackMachine', 'status_condition', _READY, _NOT_TRUE)})",
                ),
                stat("Being deleted", f"count({_of('OpenStackMachine', 'deleted')}) or vector(0)"),
            ),
        ),
        (
            "Conditions that are not True",
            (
                _not_true("Cluster", "OpenStackCluster"),
                _not_true("Machines", "OpenStackMachine"),
                _not_true("Servers", "OpenStackServer"),
            ),
        ),
        (
            "Inventory",
            (
                table("Cluster", _of("OpenStackCluster", "info")),
                table("Machines", _of("OpenStackMachine", "info")),
                table("Servers", _of("OpenStackServer", "info")),
            ),
        ),
        ("Age", (graph("Age of machines", f"time() - {_of('OpenStackMachine', 'created')}", "{{name}}", "s"),)),
    ),
    (
        Variable("namespace", "Namespace", f"label_values({_CREATED}, namespace)"),
        Variable("cluster", "Cluster", f'label_values({_CREATED}{{namespace="$namespace"}}, cluster)'),
    ),
)

DASHBOARDS: Final = (FLEET, CLUSTER, PROVIDER)
