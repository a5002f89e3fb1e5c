"""The admission chain in process has the verdicts of a real kube-apiserver with the webhooks, row by row."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest
import requests

from capo.json_types import Json
from capo.webhooks.tests.clients import Client, ok
from capo.webhooks.tests.table import places
from capo.webhooks.tests.table.places import Version
from e2e.misoperation import admission, cel, rows, structure
from e2e.misoperation.admission import Verdict
from e2e.misoperation.rows import Row
from e2e.misoperation.test_table import MODE

THREADS = 4
STORED = pytest.mark.parametrize("version", rows.STORED, ids=str)
ASKED = [v for v in rows.STORED if MODE or not v.kind.endswith("Template")]
"""Templates have the fields of their kinds, and are left out when time is short."""


def test_every_cel_rule_has_a_predicate_and_every_keyword_is_checked() -> None:
    schemas = [schema for version in rows.STORED for path, schema in places.schemas(version) if path.startswith("spec")]
    found = {rule["rule"] for schema in schemas for rule in schema.get("x-kubernetes-validations", ())}

    assert found == {*cel.PREDICATES}
    assert {keyword for schema in schemas for keyword in schema} <= {*structure.BOUNDS, *structure.OTHERS}


@STORED
def test_the_spec_of_a_running_object_is_valid(version: Version) -> None:
    spec = rows.base_of(version)

    assert structure.causes(version.root["properties"]["spec"], spec, "spec") == []


@pytest.mark.integration
@pytest.mark.parametrize("version", ASKED, ids=str)
def test_a_real_api_server_gives_the_same_verdicts(client: Client, version: Version) -> None:
    base = rows.base_of(version)
    metadata = {"name": client.namespace}  # objects without namespace would collide otherwise
    made = {"apiVersion": version.api_version, "kind": version.kind, "metadata": metadata, "spec": base}
    old = ok(client.create(made, is_kept=True))
    assert old["spec"] == base

    table = rows.rows(version, base)
    with ThreadPoolExecutor(THREADS) as pool:
        found = list(pool.map(partial(surprise, client, old), table))

    assert not any(found), "\n".join(filter(None, found))


def surprise(client: Client, old: Json, row: Row) -> str:
    """Return how the verdict of the API server differs; empty when it is the same."""
    new = old | {"spec": row.applied(old["spec"])}
    verdict = admission.update(row.version, old, new)
    answer = client.try_put(new)
    if verdict.is_admitted != answer.ok:
        return f"{row}: {answer.status_code} {answer.text}, in process: {verdict.causes or 'admitted'}"
    return as_stored(row, verdict, answer) if verdict.is_admitted else causes(row, verdict, answer)


def as_stored(row: Row, verdict: Verdict, answer: requests.Response) -> str:
    stored = answer.json()["spec"]
    return "" if stored == verdict.obj["spec"] else f"{row}: stored {stored}, in process: {verdict.obj['spec']}"


def causes(row: Row, verdict: Verdict, answer: requests.Response) -> str:
    """Compare the named fields; the API server names some more than once, and of int32 only the type."""
    named = {cause.get("field", "") for cause in answer.json()["details"]["causes"]} - {"<nil>"}
    own = {cause.field for cause in verdict.causes}
    return "" if not named or named & own else f"{row}: {named}, in process: {own}"
