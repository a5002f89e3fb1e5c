from __future__ import annotations

import gzip
import json
import re
from base64 import b64encode

import jsonschema
import yaml

from capo.components import chart, chart_values, deployment, release
from capo.version import VERSION
from capo.webhooks import server

FILES = chart.generated()


MEASURED = 402 * 2**20
"""Largest memory of the manager with 5,000 machines, without its webhook process."""


def test_the_values_file_is_the_defaults_and_obeys_the_schema() -> None:
    values = yaml.safe_load(FILES[chart.FOLDER / "values.yaml"])

    assert values == chart_values.defaults()
    jsonschema.validate(values, json.loads(FILES[chart.FOLDER / "values.schema.json"]))


def test_the_charts_version_has_no_v_and_the_apps_version_has_one() -> None:
    found = yaml.safe_load(FILES[chart.FOLDER / "Chart.yaml"])

    assert (found["version"], found["appVersion"]) == (VERSION, f"v{VERSION}")


def test_definitions_have_no_expression_but_the_namespace() -> None:
    text = FILES[chart.FOLDER / "templates" / "crds.yaml"]
    first, *inner, last = re.findall(r"\{\{.*?}}", text)

    assert (first, last) == ("{{- if .Values.crds.enabled }}", "{{- end }}")
    assert set(inner) <= {chart.RELEASE_NAMESPACE}


def test_a_release_of_the_chart_fits_into_the_secret_that_helm_keeps_it_in() -> None:
    """Helm packs chart and manifest into one Secret; the API server accepts no Secret of more than 1 MiB."""
    texts = [b64encode(text.encode()).decode() for text in FILES.values()]
    manifests = [text for path, text in FILES.items() if path.parent.name == "templates"]

    packed = b64encode(gzip.compress(json.dumps([texts, manifests]).encode()))

    assert len(b64encode(packed)) < 0.75 * 1024 * 1024


def test_the_chart_that_is_checked_in_is_current() -> None:
    stale = [path.name for path, text in FILES.items() if not path.is_file() or path.read_text() != text]

    assert stale == [], "run `capo crds --write`"


def test_the_container_has_a_memory_limit_with_room_for_the_webhooks_at_theirs() -> None:
    limit = deployment.RESOURCES["limits"]["memory"]

    assert limit == "1Gi"
    assert server.MEMORY + MEASURED <= 2**30


def test_the_page_of_values_is_the_values_in_their_order() -> None:
    page = (release.CHECKOUT / "docs" / "reference" / "chart.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `([\w.]+)` \| (`.*?`|empty) \| (.*) \|$", page, re.MULTILINE)

    assert rows == [(v.name, f"`{json.dumps(v.default)}`", v.text) for v in chart_values.VALUES]
