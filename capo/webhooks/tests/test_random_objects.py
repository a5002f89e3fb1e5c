"""Random objects of the Go provider's schemas survive a round trip through the real answer of ``/convert``.

``CONVERSION_OBJECTS`` is the number of each kind and version; ``make test-full`` uses 10,000.
"""

from __future__ import annotations

import os
from itertools import islice
from random import Random

import pytest

from api import conversion
from api.conversion.tests import test_random_objects as builder
from capo.crdgen.tests import go_provider
from capo.json_types import Json
from capo.webhooks.application import CONVERT
from capo.webhooks.tests.serving import WebhookServer

pytestmark = pytest.mark.slow

AMOUNT = int(os.environ.get("CONVERSION_OBJECTS", "500"))
PAGE = 250


def converted(served: WebhookServer, objects: list[Json], wanted: str) -> list[Json]:
    request = {"uid": "one", "desiredAPIVersion": wanted, "objects": objects}
    review = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview", "request": request}
    response = served.post(CONVERT, review).json()["response"]
    assert response["result"] == {"status": "Success"}
    done: list[Json] = response["convertedObjects"]
    return done


@builder.KINDS
@builder.VERSIONS
def test_objects_go_there_and_back_through_the_server(served: WebhookServer, kind: str, version: str) -> None:
    left = builder.left_of(version)
    randoms = (Random(f"{kind}/{version}/{number}") for number in range(AMOUNT))
    while page := [builder.made(kind, version, random) for random in islice(randoms, PAGE)]:
        there = converted(served, page, builder.other(version))
        back = converted(served, there, builder.this(version))
        without = converted(served, [builder.bare(obj) for obj in there], builder.this(version))

        assert back == page
        assert [left(builder.bare(obj)) for obj in without] == [left(obj) for obj in page]


def test_all_kinds_that_the_go_provider_converts_are_converted() -> None:
    theirs = {kind for kind in go_provider.kinds() if len(go_provider.crd(kind)["spec"]["versions"]) == 2}

    assert {*conversion.KINDS} == theirs
