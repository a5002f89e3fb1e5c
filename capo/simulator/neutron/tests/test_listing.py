from __future__ import annotations

import pytest

from capo.simulator.neutron.tests import build
from capo.simulator.neutron.tests.build import NOWHERE, V2, refusal
from capo.simulator.testing import Client


@pytest.fixture
def mine(member: Client) -> str:
    """Five networks, c to g; the query that finds them all."""
    for name in "gfedc":
        build.network(member, name=name)
    return f"{V2}/networks?project_id={member.project_id}"


def test_pages_follow_each_other_by_their_links(member: Client, mine: str) -> None:
    names, sizes, url = [], [], f"{mine}&sort_key=name&sort_dir=asc&limit=2"
    while url:
        page = member.ask("GET", url)
        names += [network["name"] for network in page["networks"]]
        sizes.append(len(page["networks"]))
        following = [link["href"] for link in page["networks_links"] if link["rel"] == "next"]
        url = following[0].removeprefix(member.url) if following else ""

    assert (names, sizes) == (list("cdefg"), [2, 2, 1])


def test_a_page_is_read_backwards(member: Client, mine: str) -> None:
    everything = member.ask("GET", f"{mine}&sort_key=name&sort_dir=asc")["networks"]
    marker = everything[4]["id"]

    page = member.ask("GET", f"{mine}&sort_key=name&sort_dir=asc&limit=2&page_reverse=True&marker={marker}")

    assert [network["name"] for network in page["networks"]] == ["e", "f"]


def test_without_a_limit_there_are_no_links(member: Client, mine: str) -> None:
    assert set(member.ask("GET", mine)) == {"networks"}


def test_lists_are_sorted_by_id_unless_said(member: Client, mine: str) -> None:
    ids = [network["id"] for network in member.ask("GET", mine)["networks"]]
    names = [network["name"] for network in member.ask("GET", f"{mine}&sort_key=name&sort_dir=desc")["networks"]]

    assert ids == sorted(ids)
    assert names == list("gfedc")


def test_only_the_fields_asked_for_are_shown(member: Client, mine: str) -> None:
    shown = member.ask("GET", f"{mine}&fields=name&fields=nope&name=c")["networks"]

    assert shown == [{"name": "c"}]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        pytest.param(
            "limit=-1",
            (400, "BadRequest", "Bad limit request: Limit must be an integer 0 or greater and not '-1'."),
            id="limit",
        ),
        pytest.param(
            "sort_key=name", (400, "HTTPBadRequest", "The number of sort_keys and sort_dirs must be same"), id="no dir"
        ),
        pytest.param(
            "sort_key=name&sort_dir=up",
            (400, "HTTPBadRequest", "['up'] is invalid value for sort_dirs, valid value is 'asc' and 'desc'"),
            id="bad dir",
        ),
        pytest.param(
            "sort_key=subnets&sort_dir=asc",
            (400, "HTTPBadRequest", "['subnets'] is invalid attribute for sort_keys"),
            id="bad key",
        ),
        pytest.param(
            f"limit=2&marker={NOWHERE}",
            (404, "NetworkNotFound", f"Network {NOWHERE} could not be found."),
            id="unknown marker",
        ),
    ],
)
def test_a_bad_page_is_refused(member: Client, query: str, expected: tuple[int, str, str]) -> None:
    assert refusal(member.request("GET", f"{V2}/networks?{query}")) == expected


@pytest.mark.parametrize(
    ("query", "found"),
    [
        pytest.param("tags=red", ["c", "d"], id="one tag"),
        pytest.param("tags=red,blue", ["c"], id="all tags"),
        pytest.param("tags-any=blue,green", ["c", "e"], id="any tag"),
        pytest.param("not-tags=red,blue", ["d", "e", "f", "g"], id="not all tags"),
        pytest.param("not-tags-any=red,green", ["f", "g"], id="none of the tags"),
    ],
)
def test_resources_are_found_by_tag(member: Client, mine: str, query: str, found: list[str]) -> None:
    tags = {"c": ["red", "blue"], "d": ["red"], "e": ["green"]}
    for network in member.ask("GET", mine)["networks"]:
        if network["name"] in tags:
            member.ask("PUT", f"{V2}/networks/{network['id']}/tags", {"tags": tags[network["name"]]})

    networks = member.ask("GET", f"{mine}&{query}")["networks"]

    assert sorted(network["name"] for network in networks) == found


def test_tags_are_replaced_added_and_removed(member: Client) -> None:
    path = f"{V2}/networks/{build.network(member)['id']}/tags"

    replaced = member.ask("PUT", path, {"tags": ["b", "a"]})["tags"]
    added = member.ask("POST", path, {"tags": ["c"]})["tags"]
    put = member.request("PUT", f"{path}/d")
    removed = member.request("DELETE", f"{path}/a")
    left = member.ask("GET", path)["tags"]
    cleared = member.request("DELETE", path)

    assert (replaced, added, left) == (["a", "b"], ["a", "b", "c"], ["b", "c", "d"])
    assert (put.status_code, removed.status_code, cleared.status_code) == (201, 204, 204)
    assert member.ask("GET", path)["tags"] == []


@pytest.mark.parametrize(
    ("body", "message"),
    [
        pytest.param({}, "Invalid tags body.", id="nothing"),
        pytest.param({"tags": "x"}, "'x' is not a list.", id="no list"),
        pytest.param({"tags": ["a", "a"]}, "Duplicate items in the list: 'a'.", id="twice"),
        pytest.param({"tags": [5]}, "'5' is not a valid string.", id="no string"),
    ],
)
def test_bad_tags_are_refused(member: Client, body: object, message: str) -> None:
    path = f"{V2}/networks/{build.network(member)['id']}/tags"

    answer = member.request("PUT", path, body)

    assert refusal(answer) == (400, "InvalidInput", f"Invalid input for operation: {message}")


def test_a_tag_that_is_not_there_is_not_found(member: Client) -> None:
    path = f"{V2}/networks/{build.network(member)['id']}/tags/x"

    assert refusal(member.request("GET", path)) == (404, "TagNotFound", "Tag x could not be found.")
    assert refusal(member.request("DELETE", path)) == (404, "TagNotFound", "Tag x could not be found.")


def test_tags_of_what_is_not_there_end_in_this_release_s_own_error(member: Client) -> None:
    answer = member.request("PUT", f"{V2}/ports/{NOWHERE}/tags", {"tags": []})

    assert refusal(answer)[:2] == (500, "HTTPInternalServerError")
