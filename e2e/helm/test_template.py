"""Output of the real helm for the chart: the components by default, and each value in its place."""

from __future__ import annotations

import copy
import functools
import json
import re
from typing import Any

import pytest
import yaml

from capo.components import chart, chart_options, deployment, manifest, metrics
from capo.components.deployment import Pod
from capo.components.monitoring import alerts, grafana
from capo.components.monitoring.dashboards import DASHBOARDS
from capo.json_types import Json
from capo.local.helm import Helm, HelmError

pytestmark = pytest.mark.integration


EMPTY_BY_DEFAULT = ("imagePullSecrets", "nodeSelector", "affinity", "priorityClassName")
DIGEST = f"sha256:{'0' * 64}"
SPREAD = {"maxSkew": 1, "topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "ScheduleAnyway"}


def rendered(helm: Helm, **values: Any) -> list[Json]:
    """Render the chart without the CRDs, which are slow to parse."""
    return helm.template(values={**values, "crds": {"enabled": False}})


@functools.cache
def _all(helm: Helm, namespace: str) -> str:
    return json.dumps(helm.template(namespace=namespace))


def everything(helm: Helm, namespace: str = "capo-system") -> list[Json]:
    """Return all objects of the chart without values."""
    return list(json.loads(_all(helm, namespace)))


def one(objects: list[Json], kind: str, name: str = "") -> Json:
    (found,) = (obj for obj in objects if obj["kind"] == kind and obj["metadata"]["name"].endswith(name))
    return found


def pod(objects: list[Json]) -> Json:
    return dict(one(objects, "Deployment")["spec"]["template"]["spec"])


def container(objects: list[Json]) -> Json:
    (found,) = pod(objects)["containers"]
    return dict(found)


def components() -> list[Json]:
    """Return the components as clusterctl applies them when no variable is set."""
    text = re.sub(r"\$\{\w+:=(\w+)}", r"\1", manifest.text(Pod(manifest.image())))
    return [obj for obj in yaml.safe_load_all(text) if obj["kind"] != "Namespace"]


def comparable(objects: list[Json]) -> list[Json]:
    """Return the objects without the policy that keeps kinds and without fields that are empty by default."""
    objects = copy.deepcopy(objects)
    for obj in objects:
        annotations = obj["metadata"].get("annotations", {})
        for name in chart.KEEP:
            annotations.pop(name, None)
        if annotations == {}:
            obj["metadata"].pop("annotations", None)
    for name in EMPTY_BY_DEFAULT:
        assert not one(objects, "Deployment")["spec"]["template"]["spec"].pop(name, None)
    return sorted(objects, key=lambda obj: (obj["kind"], obj["metadata"]["name"]))


def test_helm_finds_no_fault_in_the_chart(helm: Helm) -> None:
    assert "0 chart(s) failed" in helm("lint", "--strict", str(helm.chart))


def test_chart_and_components_are_the_same_objects(helm: Helm) -> None:
    assert comparable(everything(helm)) == comparable(components())


def test_in_another_namespace_no_object_names_the_default_one(helm: Helm) -> None:
    text = json.dumps(everything(helm, "elsewhere"))

    assert "capo-system" not in text
    assert "elsewhere/capo-serving-cert" in text
    assert "capo-webhook-service.elsewhere.svc" in text


def test_kinds_are_kept_when_the_chart_is_uninstalled_and_can_be_left_out(helm: Helm) -> None:
    objects = everything(helm)
    crds = [obj for obj in objects if obj["kind"] == "CustomResourceDefinition"]

    assert crds
    assert all(crd["metadata"]["annotations"]["helm.sh/resource-policy"] == "keep" for crd in crds)
    assert rendered(helm) == [obj for obj in objects if obj not in crds]


def test_values_reach_the_manager(helm: Helm) -> None:
    objects = rendered(
        helm,
        image={"repository": "registry.example.org/capo", "tag": "edge", "pullPolicy": "Always"},
        verbosity=4,
        featureGates={"autoscaleFromZero": False},
        extraArgs=["--namespace=team", '--watch-filter="a"'],
        extraEnv=[{"name": "CLUSTER_API_OPENSTACK_INSTANCE_CREATE_TIMEOUT", "value": "10"}],
        resources={"limits": {"memory": "2Gi"}},
    )

    found = container(objects)
    assert (found["image"], found["imagePullPolicy"]) == ("registry.example.org/capo:edge", "Always")
    assert {"--v=4", "--namespace=team", '--watch-filter="a"'} <= set(found["args"])
    assert "--feature-gates=PriorityQueue=true,AutoScaleFromZero=false" in found["args"]
    assert found["env"][-1] == {"name": "CLUSTER_API_OPENSTACK_INSTANCE_CREATE_TIMEOUT", "value": "10"}
    assert found["resources"] == {"requests": {"cpu": "100m", "memory": "256Mi"}, "limits": {"memory": "2Gi"}}


def test_a_digest_wins_over_the_tag(helm: Helm) -> None:
    found = container(rendered(helm, image={"repository": "registry.example.org/capo", "tag": "v1", "digest": DIGEST}))

    assert found["image"] == f"registry.example.org/capo@{DIGEST}"


def test_values_reach_the_pod(helm: Helm) -> None:
    objects = rendered(
        helm,
        tolerations=[],
        nodeSelector={"disk": "ssd"},
        affinity={"nodeAffinity": {}},
        imagePullSecrets=[{"name": "registry"}],
        priorityClassName="system-cluster-critical",
    )

    found = pod(objects)
    assert (found["tolerations"], found["nodeSelector"]) == ([], {"disk": "ssd"})
    assert (found["affinity"], found["imagePullSecrets"]) == ({"nodeAffinity": {}}, [{"name": "registry"}])
    assert found["priorityClassName"] == "system-cluster-critical"


def test_certificate_authorities_are_mounted_from_further_volumes(helm: Helm) -> None:
    volume = {"name": "authorities", "configMap": {"name": "openstack-ca"}}
    mount = {"name": "authorities", "mountPath": "/etc/openstack-ca", "readOnly": True}

    objects = rendered(
        helm, extraVolumes=[volume], extraVolumeMounts=[mount], extraArgs=["--ca-certs=/etc/openstack-ca/ca.crt"]
    )

    assert volume in pod(objects)["volumes"]
    assert mount in container(objects)["volumeMounts"]
    assert container(objects)["args"][-1] == "--ca-certs=/etc/openstack-ca/ca.crt"


def test_proxies_are_variables_and_the_api_server_is_reached_directly(helm: Helm) -> None:
    proxy = {"http": "http://proxy:3128", "https": "http://proxy:3129", "noProxy": ["10.0.0.0/8", "cloud.example.org"]}

    env = {entry["name"]: entry.get("value", "") for entry in container(rendered(helm, proxy=proxy))["env"]}

    assert (env["HTTP_PROXY"], env["HTTPS_PROXY"]) == ("http://proxy:3128", "http://proxy:3129")
    assert env["NO_PROXY"].split(",") == [
        *("$(KUBERNETES_SERVICE_HOST)", "localhost", "127.0.0.1", ".svc", ".cluster.local"),
        *("10.0.0.0/8", "cloud.example.org"),
    ]


def test_without_a_proxy_there_is_no_variable_of_one(helm: Helm) -> None:
    assert [entry["name"] for entry in container(everything(helm))["env"]] == ["POD_NAMESPACE"]


def test_several_managers_are_spread_and_evicted_one_at_a_time(helm: Helm) -> None:
    objects = rendered(helm, replicas=2)

    spread = {**SPREAD, "labelSelector": {"matchLabels": deployment.POD_LABELS}}
    assert one(objects, "Deployment")["spec"]["replicas"] == 2
    assert pod(objects)["topologySpreadConstraints"] == [spread]
    assert one(objects, "PodDisruptionBudget")["spec"] == {
        "maxUnavailable": 1,
        "selector": {"matchLabels": deployment.POD_LABELS},
    }


def test_the_budget_of_evictions_can_be_changed_and_left_out(helm: Helm) -> None:
    half = rendered(helm, replicas=4, podDisruptionBudget={"maxUnavailable": "50%"})
    none = rendered(helm, replicas=4, podDisruptionBudget={"enabled": False})

    assert one(half, "PodDisruptionBudget")["spec"]["maxUnavailable"] == "50%"
    assert "PodDisruptionBudget" not in {obj["kind"] for obj in none}


def test_a_selector_of_ones_own_stays_in_a_spread_constraint(helm: Helm) -> None:
    own = {**SPREAD, "labelSelector": {"matchLabels": {"control-plane": "other"}}}

    (found,) = pod(rendered(helm, replicas=2, topologySpreadConstraints=[own]))["topologySpreadConstraints"]

    assert found["labelSelector"]["matchLabels"]["control-plane"] == "other"


def test_readers_of_metrics_are_bound_to_the_role(helm: Helm) -> None:
    objects = rendered(helm, metrics={"readers": [{"name": "prometheus", "namespace": "monitoring"}]})

    role = one(objects, "ClusterRole", "metrics-reader")
    binding = one(objects, "ClusterRoleBinding", "metrics-reader")
    assert role["rules"] == [{"nonResourceURLs": ["/metrics"], "verbs": ["get"]}]
    assert binding["roleRef"]["name"] == role["metadata"]["name"]
    assert binding["subjects"] == [{"kind": "ServiceAccount", "name": "prometheus", "namespace": "monitoring"}]


def test_a_service_monitor_is_made_for_those_who_want_it_and_selects_the_metrics_service(helm: Helm) -> None:
    wanted = {"serviceMonitor": {"enabled": True, "interval": "30s", "labels": {"release": "prometheus"}}}
    objects = rendered(helm, metrics=wanted)

    monitor, service = one(objects, "ServiceMonitor"), one(objects, "Service", metrics.SERVICE)
    (endpoint,) = monitor["spec"]["endpoints"]
    selected = monitor["spec"]["selector"]["matchLabels"]
    matching = [o for o in objects if o["kind"] == "Service" and selected.items() <= o["metadata"]["labels"].items()]
    assert matching == [service]
    assert endpoint["port"] in {port["name"] for port in service["spec"]["ports"]}
    assert (endpoint["scheme"], endpoint["interval"]) == ("https", "30s")
    assert monitor["metadata"]["labels"] == {**deployment.PROVIDER_LABEL, "release": "prometheus"}


def test_the_alerts_are_a_prometheus_rule_for_those_who_want_them(helm: Helm) -> None:
    objects = rendered(helm, metrics={"prometheusRule": {"enabled": True, "labels": {"release": "prometheus"}}})

    rule = one(objects, "PrometheusRule")
    assert rule["spec"] == alerts.groups()
    assert rule["metadata"]["labels"] == {**deployment.PROVIDER_LABEL, "release": "prometheus"}


@pytest.mark.parametrize("dashboard", DASHBOARDS, ids=lambda dashboard: dashboard.name)
def test_a_dashboard_is_a_config_map_for_the_sidecar_of_grafana(helm: Helm, dashboard: grafana.Dashboard) -> None:
    objects = rendered(helm, metrics={"dashboards": {"enabled": True, "annotations": {"grafana_folder": "CAPO"}}})

    found = one(objects, "ConfigMap", f"capo-dashboard-{dashboard.name}")
    assert found["data"] == {f"capo-{dashboard.name}.json": grafana.text(dashboard).rstrip("\n")}
    assert found["metadata"]["labels"]["grafana_dashboard"] == "1"
    assert found["metadata"]["annotations"] == {"grafana_folder": "CAPO"}


def test_a_network_policy_opens_the_three_ports_and_nothing_else(helm: Helm) -> None:
    scrapers = [{"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "monitoring"}}}]
    objects = rendered(helm, networkPolicy={"enabled": True, "metricsFrom": scrapers})

    policy = one(objects, "NetworkPolicy")["spec"]
    opened = {port["port"] for rule in policy["ingress"] for port in rule["ports"]}
    assert opened == {port["name"] for port in container(objects)["ports"]}
    assert policy["ingress"][1] == {"ports": [{"port": "metrics"}], "from": scrapers}
    assert (policy["policyTypes"], policy["egress"]) == (["Ingress"], [])


def test_outgoing_connections_are_limited_once_there_are_rules(helm: Helm) -> None:
    rule = {"to": [{"ipBlock": {"cidr": "192.0.2.0/24"}}]}

    policy = one(rendered(helm, networkPolicy={"enabled": True, "egress": [rule]}), "NetworkPolicy")["spec"]

    assert (policy["policyTypes"], policy["egress"]) == (["Ingress", "Egress"], [rule])


def test_by_default_there_is_no_object_that_a_value_asks_for(helm: Helm) -> None:
    optional = {option.obj["kind"] for option in chart_options.options()} - {"ClusterRoleBinding"}

    assert not optional & {obj["kind"] for obj in everything(helm)}


@pytest.mark.parametrize(
    ("values", "named"),
    [
        ({"replica": 1}, "replica"),
        ({"replicas": "two"}, "/replicas"),
        ({"image": {"repository": "capo"}}, "/image/repository"),
        ({"image": {"tag": "a b"}}, "/image/tag"),
        ({"image": {"digest": "sha256:0"}}, "/image/digest"),
        ({"verbosity": 11}, "/verbosity"),
        ({"extraArgs": ["namespace=team"]}, "/extraArgs/0"),
        ({"featureGates": {"AutoScaleFromZero": True}}, "AutoScaleFromZero"),
        ({"proxy": {"https": "proxy:3128"}}, "/proxy/https"),
        ({"proxy": {"noProxy": ["a,b"]}}, "/proxy/noProxy/0"),
        ({"metrics": {"readers": ["prometheus"]}}, "/metrics/readers/0"),
        ({"podDisruptionBudget": {"maxUnavailable": "half"}}, "/podDisruptionBudget/maxUnavailable"),
    ],
)
def test_helm_refuses_values_that_the_schema_does_not_know(helm: Helm, values: Json, named: str) -> None:
    with pytest.raises(HelmError, match=re.escape(named)):
        rendered(helm, **values)
