"""Which updates the webhooks refuse on the real API server, and with which messages."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import pytest
import requests

from api import conversion, validation
from api.validation import machines, openstackcluster
from api.validation.tests import test_updates
from capo.json_types import Json
from capo.webhooks.tests.clients import Client, ok
from capo.webhooks.tests.table import changes, places
from capo.webhooks.tests.table.changes import Update
from capo.webhooks.tests.table.places import Version

THREADS = 4
STORED = [version for version in places.versions() if version.kind in validation.KINDS and version.name != "v1beta1"]
CLIENTS = pytest.mark.parametrize("client_version", ["v1beta1", "v1beta2"])


def test_every_kind_with_a_webhook_and_every_advice_has_a_case() -> None:
    told = {text for _, text in openstackcluster.ADVICE} | {openstackcluster.FIXED}
    told |= {machines.REPLACE, machines.NEW_TEMPLATE, machines.NEW_SERVER}
    refused = {update.advice for version in STORED for update in changes.updates(version)} - {None}

    assert {version.kind for version in STORED} == {*validation.KINDS} == {*changes.MAY}
    assert refused == told - {changes.UNTIL_HOST}


@pytest.mark.integration
@pytest.mark.parametrize("version", STORED, ids=str)
def test_a_field_changes_if_it_may_and_is_named_if_it_may_not(client: Client, version: Version) -> None:
    updates = changes.updates(version)

    with ThreadPoolExecutor(THREADS) as pool:
        answers = pool.map(partial(tried, client, version), range(len(updates)), updates)
        wrong = [text for update, answer in zip(updates, answers, strict=True) if (text := surprise(update, answer))]

    assert not wrong, "\n".join(wrong)


def tried(client: Client, version: Version, number: int, update: Update) -> requests.Response:
    made = {"apiVersion": version.api_version, "kind": version.kind, "metadata": {"name": f"object-{number}"}}
    base = ok(client.create(made | {"spec": update.before}, is_kept=True))
    return client.try_put(base | {"spec": update.after})


def surprise(update: Update, answer: requests.Response) -> str:
    what = f"{update.change} {update.path}"
    if update.advice is None:
        return "" if answer.status_code == 200 else f"{what}: wanted to be taken, got {answer.text}"
    if answer.status_code != 422:
        return f"{what}: wanted to be refused, got {answer.status_code} {answer.text}"
    told = causes(answer)
    is_well = all(
        (field + "[").startswith((f"{update.path}.", f"{update.path}["))
        and message.startswith(update.opening)
        and message.endswith(f"; {update.advice}")
        for field, message in told
    )
    return "" if is_well and told else f"{what}: wanted {update.opening} {update.advice}, got {told}"


@pytest.mark.integration
@CLIENTS
@pytest.mark.parametrize(("old", "new"), test_updates.PERMITTED)
def test_what_may_change_under_a_condition_changes(client: Client, client_version: str, old: Json, new: Json) -> None:
    answer = updated(client, client_version, old, new)

    assert answer.status_code == 200, answer.text


@pytest.mark.integration
@CLIENTS
@pytest.mark.parametrize(("old", "new", "field", "message"), test_updates.REFUSED)
def test_what_may_not_change_is_refused_in_either_version_by_its_newer_name(
    client: Client, client_version: str, old: Json, new: Json, field: str, message: str
) -> None:
    answer = updated(client, client_version, old, new)

    assert answer.status_code == 422, answer.text
    assert [text for name, text in causes(answer) if name == field and message in text]


def updated(client: Client, client_version: str, old: Json, new: Json) -> requests.Response:
    """Send a change of a cluster that has a status."""
    before, after = (
        {"apiVersion": conversion.NEWER, "kind": "OpenStackCluster", **test_updates.cluster(spec)}
        for spec in (old, new)
    )
    made = ok(client.create(before, is_kept=True))
    ok(client.put("v1beta2", "OpenStackCluster", made | {"status": test_updates.STATUS}, subresource="status"))
    spec: Any = after["spec"]
    if client_version == "v1beta1":
        spec = conversion.convert(after, conversion.OLDER)["spec"]
    return client.try_put(client.read(client_version, "OpenStackCluster", "one") | {"spec": spec})


def causes(answer: requests.Response) -> list[tuple[str, str]]:
    return [(cause["field"], cause["message"]) for cause in answer.json()["details"]["causes"]]
