"""The management cluster and the cloud of each test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from capo.controllers.openstackcluster import dns
from capo.controllers.openstackcluster.tests.world import World
from capo.openstack import lookup_threads


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    made = World()
    monkeypatch.setattr(dns, "lookup", lambda _host: made.dns)
    monkeypatch.setattr(lookup_threads, "in_thread", lambda work: work())
    with made:
        yield made
