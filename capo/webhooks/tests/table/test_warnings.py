"""Warnings reach the client of the real API server, and every warning in the code has a case."""

from __future__ import annotations

import ast
import inspect
from typing import Any

import pytest

from api import validation
from api.validation import warning
from api.validation.tests import test_warnings as given
from capo.json_types import Json
from capo.webhooks.tests.clients import Client, ok
from capo.webhooks.tests.table import places, samples
from capo.webhooks.tests.table.places import Version

TREE = ast.parse(inspect.getsource(warning))
NEWER = {version.kind: version for version in places.versions() if version.name != "v1beta1"}
CLUSTERS = ("OpenStackCluster", "OpenStackClusterTemplate")
MACHINES = ("OpenStackMachine", "OpenStackMachineTemplate", "OpenStackServer")
WELL: list[Any] = given.WELL


def spec_of(version: Version, change: Json) -> Json:
    """Return the least spec of a kind with a change, inside the template if the kind has one."""
    least: Json = samples.least(version.root["properties"]["spec"])
    if "template" in least:
        return {"template": least["template"] | {"spec": least["template"]["spec"] | change}}
    return least | change


def cases() -> list[tuple[Version, Json, str]]:
    """Return specs and the warning that each must cause."""
    plan: list[tuple[str, Any, Any]] = [("OpenStackCluster", {}, "no network")]
    plan += [("OpenStackServer", spec, text) for spec, text in given.SERVERS]
    plan += [(kind, case.values[0], case.values[2]) for case in given.CASES for kind in CLUSTERS]
    plan += [(kind, case.values[0], case.values[2]) for case in given.MACHINES for kind in MACHINES]
    return [(NEWER[kind], spec_of(NEWER[kind], spec), text) for kind, spec, text in plan]


def texts() -> set[str]:
    """Return all string constants of the module with more than one word, docstrings excluded: the parts of warnings."""
    documentation = {node.value for node in ast.walk(TREE) if isinstance(node, ast.Expr)}
    constants = (node for node in ast.walk(TREE) if isinstance(node, ast.Constant) and node not in documentation)
    return {node.value for node in constants if isinstance(node.value, str) and " " in node.value.strip()}


def test_every_warning_has_a_case() -> None:
    given_ones = [text for kind, spec, _ in cases() for text in validation.warnings_of(kind.kind, {"spec": spec})]

    assert {text for text in texts() if not any(text in each for each in given_ones)} == set()
    assert "type is Local" in texts()


@pytest.mark.integration
def test_what_has_no_effect_is_taken_with_a_warning(client: Client) -> None:
    for version, spec, text in cases():
        answer = client.create(an(version, spec), is_kept=False)

        assert answer.status_code == 201, (version.kind, spec, answer.text)
        assert text in answer.headers["Warning"].replace('\\"', '"'), (version.kind, spec)


@pytest.mark.integration
def test_an_edit_of_address_pairs_is_taken_without_a_warning(client: Client) -> None:
    for version in (NEWER["OpenStackMachine"], NEWER["OpenStackMachineTemplate"]):
        before, after = (
            spec_of(version, {"ports": [{"allowedAddressPairs": [{"ipAddress": address}]}]})
            for address in ("192.0.2.1", "192.0.2.2")
        )
        made = ok(client.create(an(version, before), is_kept=True))
        answer = client.try_put(made | {"spec": after})

        assert answer.status_code == 200, (version.kind, answer.text)
        assert "Warning" not in answer.headers, version.kind


@pytest.mark.integration
def test_what_has_an_effect_is_taken_without_a_warning(client: Client) -> None:
    version = NEWER["OpenStackCluster"]
    for spec in WELL:
        answer = client.create(an(version, spec_of(version, spec)), is_kept=False)

        assert answer.status_code == 201, answer.text
        assert "Warning" not in answer.headers, (spec, answer.headers["Warning"])


def an(version: Version, spec: Json) -> Json:
    return {"apiVersion": version.api_version, "kind": version.kind, "metadata": {"name": "tried"}, "spec": spec}
