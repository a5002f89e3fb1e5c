"""Every bound and CEL rule of every kind and version, on the real API server: a bad value is refused with its field."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest
import requests

from capo.json_types import Json
from capo.webhooks.tests.clients import Client, ok
from capo.webhooks.tests.table import bounds, places, rules, samples
from capo.webhooks.tests.table.bounds import Case
from capo.webhooks.tests.table.places import Version

THREADS = 4
SIDE_EFFECTS = re.compile(
    r"some validation rules were not checked because the object was invalid|\(anyOf\)|Checked value must be"
)
"""What the API server adds: that it did not evaluate the CEL rules, and some faults twice."""
REGIONS = [
    pytest.param(version, bound.path, id=f"{version} {bound.path}")
    for version in places.versions()
    for bound in places.bounds(version)
    if bound.detail == rules.REGION
]
VERSIONS = pytest.mark.parametrize("version", places.versions(), ids=str)


@VERSIONS
def test_every_bound_and_rule_has_a_bad_and_a_good_case(version: Version) -> None:
    """A new keyword, pattern, format or rule fails here until it has a case."""
    wanted = places.bounds(version)

    cases = bounds.cases(version)

    assert len(set(wanted)) == len(wanted)
    assert [case.bound for case in cases] == [bound for bound in wanted if bound.detail != rules.REGION]
    assert [case for case in cases if not case.goods and case.bound.path not in rules.FORBIDDEN] == []


def test_no_case_is_left_over() -> None:
    wanted = {bound for version in places.versions() for bound in places.bounds(version)}
    patterns = {schema.get("pattern") for version in places.versions() for _, schema in places.schemas(version)}

    assert {*rules.CASES, rules.REGION} == {bound.detail for bound in wanted if bound.keyword == rules.KEYWORD}
    assert {*bounds.KEYWORDS, rules.KEYWORD} == {bound.keyword for bound in wanted}
    assert {*samples.PATTERNS, None} == patterns


@pytest.mark.integration
@VERSIONS
def test_what_breaks_a_bound_is_refused_with_field_and_reason(client: Client, version: Version) -> None:
    tried = [case for case in bounds.cases(version) if case.bad is not None]
    base = existing(client, version)

    with ThreadPoolExecutor(THREADS) as pool:
        answers = list(pool.map(partial(sent, client, version, base), [case.bad for case in tried]))

    found = [text for case, answer in zip(tried, answers, strict=True) for text in surprises(case, answer)]
    assert not found, "\n".join(found)


@pytest.mark.integration
@VERSIONS
def test_what_just_keeps_a_bound_is_taken(client: Client, version: Version) -> None:
    """Objects that are good for several bounds are sent once."""
    goods = {json.dumps(good, sort_keys=True): case for case in bounds.cases(version) for good in case.goods}
    base = existing(client, version)

    with ThreadPoolExecutor(THREADS) as pool:
        answers = pool.map(partial(sent, client, version, base), map(json.loads, goods))
        refused = [
            f"{case.bound}: {answer.text}"
            for case, answer in zip(goods.values(), answers, strict=True)
            if not answer.ok
        ]

    assert not refused, "\n".join(refused)


@pytest.mark.integration
@pytest.mark.parametrize(("version", "path"), REGIONS)
def test_the_region_of_a_reference_cannot_be_added_changed_or_removed(
    client: Client, version: Version, path: str
) -> None:
    objects = {region: referring(version, path, region) for region in ("", "north", "south")}
    without, in_north = (ok(client.create(objects[region], is_kept=True)) for region in ("", "north"))

    refused = [
        client.try_put(base | {"spec": objects[region]["spec"]})
        for base, region in ((without, "south"), (in_north, "south"), (in_north, ""))
    ]
    taken = [
        client.try_put(base | {"metadata": base["metadata"] | {"labels": {"a": "b"}}}) for base in (without, in_north)
    ]

    changes = ('none to "south"', '"north" to "south"', '"north" to none')
    for answer, change in zip(refused, changes, strict=True):
        ((field, message),) = causes(answer)
        assert field == f"{places.concrete(path)}.region"
        assert message.endswith(f"{rules.REGION}: cannot change from {change}")
    assert [answer.status_code for answer in taken] == [200, 200]


def referring(version: Version, path: str, region: str) -> Json:
    def reference(schema: Json) -> Json:
        least: Json = samples.least(schema)
        return least | ({"region": region} if region else {})

    parts: Json = samples.having(version.root, places.steps(path), reference)
    return an(version, parts, name=f"in-{region or 'any'}")


def existing(client: Client, version: Version) -> Json:
    """Create an object without status and return it."""
    name = client.namespace  # objects without namespace would collide otherwise
    obj = an(version, {"spec": samples.least(version.root["properties"]["spec"])}, name=name)
    return ok(client.create(obj, is_kept=True))


def an(version: Version, parts: Json, *, name: str = "tried") -> Json:
    return {"apiVersion": version.api_version, "kind": version.kind, "metadata": {"name": name}, **parts}


def sent(client: Client, version: Version, base: Json, parts: Json) -> requests.Response:
    """Send a dry run with this spec, or with this status for the existing object."""
    if "status" in parts:
        return client.try_put(base | {"status": parts["status"]}, subresource="status")
    return client.create(an(version, parts), is_kept=False)


def surprises(case: Case, answer: requests.Response) -> Iterator[str]:
    """Yield deviations: the expected causes must be present, and no cause of another field."""
    if answer.status_code != 422:
        yield f"{case.bound}: {answer.status_code} {answer.text}"
        return
    told, its_own = causes(answer), (case.field, places.concrete(case.bound.path))
    others = [field for field, message in told if field not in its_own and not SIDE_EFFECTS.search(message)]
    wanted = ((case.field, case.message), *case.further)
    is_told = all(any(field == name and text in message for name, message in told) for field, text in wanted)
    if not is_told or sorted(others) != sorted(field for field, _ in case.further):
        yield f"{case.bound}: wanted {wanted}, got {told}"


def causes(answer: requests.Response) -> list[tuple[str, str]]:
    return [(cause["field"], cause["message"]) for cause in answer.json()["details"]["causes"]]
