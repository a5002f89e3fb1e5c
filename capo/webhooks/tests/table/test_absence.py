"""Absent, null, empty and zero, for every optional field of every kind: on the real API server and in conversion.

Source: a field that is not nullable and null is dropped before defaults are filled in (Kubernetes documentation,
"Defaulting and Nullable"); what conversion keeps is listed in ``docs/reference/conversion.md``.
"""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, get_args

import pytest
import requests
from pydantic.fields import FieldInfo

from api import conversion, v1alpha1, v1beta2, validation
from api.conversion.annotation import ANNOTATION
from api.model import Model, json_name
from capo.json_types import Json
from capo.webhooks.tests.clients import Client
from capo.webhooks.tests.table import absence, changes, places
from capo.webhooks.tests.table.absence import Field
from capo.webhooks.tests.table.places import Version
from capo.webhooks.tests.table.test_bounds import VERSIONS, an, existing, sent

THREADS = 4
CONVERTED = [version for version in places.versions() if version.kind in conversion.KINDS]
MODELS = {kind: getattr(v1alpha1 if kind == "OpenStackServer" else v1beta2, kind) for kind in validation.KINDS}
STORED = [version for version in places.versions() if version.kind in MODELS and version.name != "v1beta1"]
FLAVOR = ("flavor.id", "flavor.filter.name")
ENDPOINT = ("controlPlaneEndpoint", "controlPlaneEndpoint.host", "controlPlaneEndpoint.port")
UNSAYABLE = {
    "OpenStackCluster v1beta2": {
        "spec.apiServer",
        *(f"spec.bastion.spec.{name}" for name in FLAVOR),
        "status.conditions[].observedGeneration",
    },
    "OpenStackCluster v1beta1": {
        *(f"spec.{name}" for name in ENDPOINT),
        "spec.externalRouterIPs",
        "status.conditions[].severity",
        "status.failureDomains{}.controlPlane",
        "status.failureMessage",
        "status.failureReason",
    },
    "OpenStackClusterTemplate v1beta2": {
        "spec.template.metadata.annotations",
        "spec.template.metadata.labels",
        "spec.template.spec.apiServer",
        *(f"spec.template.spec.bastion.spec.{name}" for name in FLAVOR),
    },
    "OpenStackClusterTemplate v1beta1": {
        *(f"spec.template.spec.{name}" for name in ENDPOINT),
        "spec.template.spec.externalRouterIPs",
    },
    "OpenStackMachine v1beta2": {*(f"spec.{name}" for name in FLAVOR), "status.conditions[].observedGeneration"},
    "OpenStackMachine v1beta1": {"status.conditions[].severity", "status.failureMessage", "status.failureReason"},
    "OpenStackMachineTemplate v1beta2": {
        *(f"spec.template.spec.{name}" for name in FLAVOR),
        "status.conditions[].observedGeneration",
    },
    "OpenStackMachineTemplate v1beta1": {"status.conditions[].severity"},
}
"""Fields whose empty or zero value the other version cannot express, so that only the annotation beside the object
restores it: those that the Go provider loses, too, and metadata of a template and a false ``controlPlane``, for
which v1beta1 has no field or no need.
"""
SAYS_NOTHING = "spec.apiServer"
"""Absent and empty are the same: v1beta1 cannot express the difference."""


@pytest.mark.integration
@VERSIONS
def test_null_is_the_same_as_absence(client: Client, version: Version) -> None:
    fields = list(absence.fields(version))
    pairs = answers(client, version, [parts for field in fields for parts in (field.absent(), field.null())])

    wrong = [
        f"{field}: {absent} {null}"
        for field, absent, null in zip(fields, pairs[::2], pairs[1::2], strict=True)
        if absent != null
    ]

    assert not wrong, "\n".join(wrong)


@pytest.mark.integration
@VERSIONS
def test_empty_and_zero_are_kept_where_no_bound_refuses_them(client: Client, version: Version) -> None:
    fields = list(absence.fields(version))
    told = answers(client, version, [field.nothing() for field in fields])

    wrong = [f"{field}: {answer}" for field, answer in zip(fields, told, strict=True) if not is_expected(field, answer)]

    assert not wrong, "\n".join(wrong)


def is_expected(field: Field, answer: Any) -> bool:
    if not field.takes_nothing():
        return isinstance(answer, list) and bool(answer)
    return isinstance(answer, dict) and field.found_in(answer) == field.as_kept()


def answers(client: Client, version: Version, objects: list[Json]) -> list[Any]:
    """Return for each object its parts as the API server stores them, or the refused fields; each is sent once."""
    texts = {json.dumps(parts, sort_keys=True) for parts in objects}
    base = existing(client, version)
    with ThreadPoolExecutor(THREADS) as pool:
        told = dict(zip(texts, pool.map(partial(asked, client, version, base), texts), strict=True))
    return [told[json.dumps(parts, sort_keys=True)] for parts in objects]


def asked(client: Client, version: Version, base: Json, text: str) -> Any:
    answer: requests.Response = sent(client, version, base, json.loads(text))
    if answer.ok:
        return {name: part for name, part in answer.json().items() if name in places.PARTS}
    return sorted(cause["field"] for cause in answer.json()["details"]["causes"])


@pytest.mark.parametrize("version", CONVERTED, ids=str)
def test_null_is_converted_as_absence(version: Version) -> None:
    for field in absence.fields(version):
        absent, null = (
            conversion.convert(an(version, parts), other(version)) for parts in (field.absent(), field.null())
        )

        assert null == absent, str(field)


@pytest.mark.parametrize("version", CONVERTED, ids=str)
def test_empty_and_zero_survive_a_client_of_the_other_version(version: Version) -> None:
    for field in absence.fields(version):
        obj = an(version, field.nothing())

        assert conversion.convert(conversion.convert(obj, other(version)), version.api_version) == obj, str(field)


@pytest.mark.parametrize("version", CONVERTED, ids=str)
def test_empty_and_zero_are_seen_in_the_other_version_but_for_what_it_cannot_say(version: Version) -> None:
    unseen = set()
    for field in filter(Field.takes_nothing, absence.fields(version)):
        there = conversion.convert(an(version, field.nothing()), other(version))
        there["metadata"].get("annotations", {}).pop(ANNOTATION, None)
        back = conversion.convert(there, version.api_version)
        try:
            seen = field.found_in(back)
        except (KeyError, IndexError):
            seen = ...
        if seen != absence.NOTHING[field.schema["type"]]:
            unseen.add(field.path)

    assert unseen == UNSAYABLE[str(version)]


@pytest.mark.parametrize("version", STORED, ids=str)
def test_an_update_takes_empty_and_zero_for_absence_only_where_they_mean_the_same(version: Version) -> None:
    for field in filter(Field.takes_nothing, absence.fields(version)):
        if not field.path.startswith("spec.") or field.path == SAYS_NOTHING or is_free(version, field.path):
            continue
        old, new = (an(version, parts) for parts in (field.absent(), field.nothing()))

        faults = validation.faults_of_update(version.kind, old, new, is_dry_run=False)

        assert bool(faults) == is_told_from_absence(version, field), (str(field), faults)


def is_free(version: Version, path: str) -> bool:
    """Return whether the field, or its parent, may change at any time."""
    free = (f"{place}.{name}" for place, names in changes.MAY[version.kind].items() for name in names)
    return f"{path}.".startswith(tuple(f"{start}{end}" for start in free for end in (".", "[")))


def is_told_from_absence(version: Version, field: Field) -> bool:
    """Return whether the model distinguishes zero from an absent field."""
    model = MODELS[version.kind]
    *parents, name = [step for step in places.steps(field.path) if step != "[]"]
    for parent in parents:
        model = model_of(info_of(model, parent).annotation)
    default = info_of(model, name).default
    return default is None or default == ... or default is True


def info_of(model: Any, name: str) -> FieldInfo:
    (info,) = [info for attribute, info in model.model_fields.items() if json_name(attribute) == name]
    found: FieldInfo = info
    return found


def model_of(annotation: Any) -> Any:
    """Return the model in an annotation, which may be a list or optional."""
    if isinstance(annotation, type) and issubclass(annotation, Model):
        return annotation
    return next(filter(None, map(model_of, get_args(annotation))), None)


def other(version: Version) -> str:
    return conversion.OLDER if version.name == "v1beta2" else conversion.NEWER
