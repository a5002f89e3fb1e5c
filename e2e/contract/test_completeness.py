"""The suite covers the provider's routes, lists all differences, and receives all recorded answers."""

from __future__ import annotations

import ast
import inspect
from pathlib import Path

import pytest

from capo.openstack.cloud import Cloud
from capo.openstack.kinds import KINDS
from e2e.contract import differences, provider, recordings
from e2e.contract.environment import ContractEnvironment

HERE = Path(__file__).parent


def _named_entries() -> set[str]:
    """Return the headings that tests name."""
    found: set[str] = set()
    for path in HERE.glob("test_*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "not_on":
                found.add(ast.literal_eval(node.args[1]))
    return found


def test_the_list_of_differences_has_what_tests_name_and_nothing_else() -> None:
    assert set(differences.headings()) == _named_entries()


def test_each_difference_says_what_would_close_it() -> None:
    silent = [name for name, text in differences.headings().items() if "Closed by:" not in text]

    assert not silent


# -- the provider's routes -------------------------------------------------------------------------------------------


def test_every_route_of_the_provider_is_recorded_with_what_it_reads() -> None:
    shapes = recordings.shapes_by_route()

    missing = sorted(
        {f"{use.service} {use.route} {use.key} ({use.where})" for use in provider.uses() if not use.is_covered(shapes)}
    )

    assert missing == []


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        pytest.param('cloud.get("network", "/agents")', "GET /v2.0/agents", id="constant"),
        pytest.param(
            'self._cloud.post("compute", f"/servers/{id_}/migrations")', "POST /v2.1/servers/{}/migrations", id="id"
        ),
        pytest.param('scope.cloud.list_all("image", "/tasks", "tasks")', "GET /v2/tasks", id="list"),
    ],
)
def test_route_that_the_suite_does_not_have_is_found_in_the_source(call: str, expected: str) -> None:
    (use,) = provider.uses_in(f"def f(): {call}", "it.py")

    assert use.route == expected
    assert not use.is_covered(recordings.shapes_by_route())


def test_every_way_of_a_cloud_to_send_is_known() -> None:
    sending = {
        name
        for name, method in inspect.getmembers(Cloud, inspect.isfunction)
        if not name.startswith("_") and list(inspect.signature(method).parameters)[1:3] == ["service", "path"]
    }

    assert sending == set(provider.METHODS)


def test_removal_reads_as_well() -> None:
    found = provider.uses_in('def f(): cloud.remove("network", f"/ports/{port_id}")', "it.py")

    assert [use.route for use in found] == ["DELETE /v2.0/ports/{}", "GET /v2.0/ports/{}"]


def test_path_of_a_variable_is_read() -> None:
    (use,) = provider.uses_in(
        'def f():\n  path = f"/ports/{port_id}"\n  return cloud.get("network", path)["port"]', "it.py"
    )

    assert (use.route, use.key, use.where) == ("GET /v2.0/ports/{}", "port", "it.py:3")


def test_answer_of_another_kind_does_not_cover() -> None:
    (use,) = provider.uses_in('def f(): cloud.post("network", "/ports")["port_list"]', "it.py")

    assert not use.is_covered(recordings.shapes_by_route())


def test_call_of_any_kind_is_one_of_each() -> None:
    found = provider.uses_in("def f(): cloud.get(kind.service, kind.path(id_))", "it.py")

    routes = {use.route for use in found}
    assert len(routes) == len(KINDS)
    assert {"GET /v2.1/servers/{}", "GET /v3/volumes/{}", "GET /v2/lbaas/pools/{}"} <= routes


@pytest.mark.parametrize(
    "call",
    [
        pytest.param('cloud.get("network", where())', id="path"),
        pytest.param('cloud.get(service, "/ports")', id="service"),
        pytest.param('cloud.get("network", path)', id="variable that is not set"),
    ],
)
def test_call_that_cannot_be_read_is_told(call: str) -> None:
    with pytest.raises(ValueError, match=r"it\.py:1"):
        provider.uses_in(f"def f(path): {call}", "it.py")


# -- the whole run ---------------------------------------------------------------------------------------------------


@pytest.mark.looks_back
def test_everything_that_is_recorded_comes(world: ContractEnvironment, request: pytest.FixtureRequest) -> None:
    if request.session.testsfailed:
        pytest.skip("needs all others")

    assert not world.ground.recorder.look_back()
