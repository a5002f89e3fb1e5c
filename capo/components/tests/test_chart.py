from __future__ import annotations

import gzip
import json
import operator
import re
import shutil
import subprocess
from base64 import b64encode
from typing import Any

import jsonschema
import pytest
import yaml

from capo.components import chart, deployment, manifest
from capo.components.deployment import Pod
from capo.components.tests import helm
from capo.version import VERSION
from capo.webhooks import server

Json = dict[str, Any]

FILES = chart.generated()
EMPTY_BY_DEFAULT = ("imagePullSecrets", "nodeSelector", "affinity", "priorityClassName")


MEASURED = 402 * 2**20
"""What the manager had at most with 5,000 machines, without its webhook process."""


def rendered(namespace: str = "capo-system", *, crds: bool = False, **values: Any) -> list[Json]:
    """Render the chart; without the definitions, which take long to read, unless they are what a test is about."""
    values["crds"] = {"enabled": crds}
    jsonschema.validate(values, chart.schema())
    return helm.template(FILES, namespace=namespace, values=values)


def one(objects: list[Json], kind: str) -> Json:
    (found,) = (obj for obj in objects if obj["kind"] == kind)
    return found


def container(objects: list[Json]) -> Json:
    (found,) = one(objects, "Deployment")["spec"]["template"]["spec"]["containers"]
    return dict(found)


def components() -> list[Json]:
    """The components as clusterctl applies them when no variable is set."""
    text = re.sub(r"\$\{\w+:=(\w+)}", r"\1", manifest.text(Pod(manifest.image())))
    return [obj for obj in yaml.safe_load_all(text) if obj["kind"] != "Namespace"]


def comparable(objects: list[Json]) -> list[Json]:
    """The objects without what the chart has beside: the wish to keep kinds, and fields that are empty by default."""
    for obj in objects:
        annotations = obj["metadata"].get("annotations", {})
        for name in chart.KEEP:
            annotations.pop(name, None)
        if annotations == {}:
            obj["metadata"].pop("annotations", None)
    pod = one(objects, "Deployment")["spec"]["template"]["spec"]
    for name in EMPTY_BY_DEFAULT:
        assert not pod.pop(name, None)
    return sorted(objects, key=lambda obj: (obj["kind"], obj["metadata"]["name"]))


def test_chart_and_components_are_the_same_objects() -> None:
    assert comparable(rendered(crds=True)) == comparable(components())


def test_in_another_namespace_nothing_is_left_of_ours() -> None:
    text = json.dumps(rendered("elsewhere", crds=True))

    assert "capo-system" not in text
    assert "elsewhere/capo-serving-cert" in text
    assert "capo-webhook-service.elsewhere.svc" in text


def test_kinds_are_kept_when_the_chart_is_uninstalled_and_can_be_left_out() -> None:
    objects = rendered(crds=True)
    crds = [obj for obj in objects if obj["kind"] == "CustomResourceDefinition"]

    assert crds
    assert all(crd["metadata"]["annotations"]["helm.sh/resource-policy"] == "keep" for crd in crds)
    assert rendered() == [obj for obj in objects if obj not in crds]


def test_values_reach_the_manager() -> None:
    objects = rendered(
        image={"repository": "registry.example.org/capo", "tag": "edge", "pullPolicy": "Always"},
        verbosity=4,
        featureGates={"autoscaleFromZero": True},
        extraArgs=["--namespace=team", '--watch-filter="a"'],
        extraEnv=[{"name": "CLUSTER_API_OPENSTACK_INSTANCE_CREATE_TIMEOUT", "value": "10"}],
        resources={"limits": {"memory": "2Gi"}},
    )

    found = container(objects)
    assert (found["image"], found["imagePullPolicy"]) == ("registry.example.org/capo:edge", "Always")
    assert {"--v=4", "--namespace=team", '--watch-filter="a"'} <= set(found["args"])
    assert "--feature-gates=PriorityQueue=true,AutoScaleFromZero=true" in found["args"]
    assert found["env"][-1] == {"name": "CLUSTER_API_OPENSTACK_INSTANCE_CREATE_TIMEOUT", "value": "10"}
    assert found["resources"] == {"requests": {"cpu": "100m", "memory": "256Mi"}, "limits": {"memory": "2Gi"}}


def test_values_reach_the_pod() -> None:
    objects = rendered(
        replicas=2,
        tolerations=[],
        nodeSelector={"disk": "ssd"},
        affinity={"nodeAffinity": {}},
        imagePullSecrets=[{"name": "registry"}],
        priorityClassName="system-cluster-critical",
    )

    spec = one(objects, "Deployment")["spec"]
    pod = spec["template"]["spec"]
    assert (spec["replicas"], pod["tolerations"], pod["nodeSelector"]) == (2, [], {"disk": "ssd"})
    assert (pod["affinity"], pod["imagePullSecrets"]) == ({"nodeAffinity": {}}, [{"name": "registry"}])
    assert pod["priorityClassName"] == "system-cluster-critical"


def test_the_values_file_is_the_defaults_and_obeys_the_schema() -> None:
    values = yaml.safe_load(FILES[chart.FOLDER / "values.yaml"])

    assert values == chart.defaults()
    jsonschema.validate(values, json.loads(FILES[chart.FOLDER / "values.schema.json"]))


@pytest.mark.parametrize(
    "values",
    [
        {"replica": 1},
        {"replicas": "two"},
        {"image": {"repository": "capo"}},
        {"image": {"tag": "a b"}},
        {"verbosity": 11},
        {"extraArgs": ["namespace=team"]},
        {"featureGates": {"AutoScaleFromZero": True}},
    ],
)
def test_the_schema_refuses_slips_of_the_pen(values: Json) -> None:
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(values, chart.schema())


def test_the_charts_version_has_no_v_and_the_apps_version_has_one() -> None:
    found = yaml.safe_load(FILES[chart.FOLDER / "Chart.yaml"])

    assert (found["version"], found["appVersion"]) == (VERSION, f"v{VERSION}")


def test_definitions_have_no_expression_but_the_namespace() -> None:
    text = FILES[chart.FOLDER / "templates" / "crds.yaml"]
    first, *inner, last = re.findall(r"\{\{.*?}}", text)

    assert (first, last) == ("{{- if .Values.crds.enabled }}", "{{- end }}")
    assert set(inner) <= {chart.RELEASE_NAMESPACE}


def test_a_release_of_the_chart_fits_into_the_secret_that_helm_keeps_it_in() -> None:
    """Helm packs chart and manifest into one Secret; the API server takes no Secret of more than 1 MiB."""
    texts = [b64encode(text.encode()).decode() for text in FILES.values()]
    manifests = [text for path, text in FILES.items() if path.parent.name == "templates"]

    packed = b64encode(gzip.compress(json.dumps([texts, manifests]).encode()))

    assert len(b64encode(packed)) < 0.75 * 1024 * 1024


@pytest.mark.skipif(shutil.which("helm") is None, reason="helm is not installed")
def test_helm_renders_what_these_tests_render() -> None:
    values = {"replicas": 2, "extraArgs": ["--namespace=team"], "extraEnv": [{"name": "A", "value": "b"}]}
    argv = ["helm", "template", "capo", str(chart.FOLDER), "--namespace=elsewhere", "--values=-"]

    done = subprocess.run(argv, input=json.dumps(values), capture_output=True, text=True, check=True)

    key = operator.itemgetter("kind", "metadata")
    theirs = sorted(yaml.safe_load_all(done.stdout), key=lambda obj: str(key(obj)))
    assert theirs == sorted(rendered("elsewhere", crds=True, **values), key=lambda obj: str(key(obj)))


def test_the_chart_that_is_checked_in_is_current() -> None:
    stale = [path.name for path, text in FILES.items() if not path.is_file() or path.read_text() != text]

    assert stale == [], "run `capo crds --write`"


def test_the_container_has_a_memory_limit_with_room_for_the_webhooks_at_theirs() -> None:
    limit = deployment.RESOURCES["limits"]["memory"]

    assert limit == "1Gi"
    assert server.MEMORY + MEASURED <= 2**30
