"""A cluster, its cloud, and an operator."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from capo.openstack import lookup_threads
from capo.operations.tests.environment import OperatorsEnvironment
from controllers.openstackcluster import dns


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Iterator[OperatorsEnvironment]:
    made = OperatorsEnvironment()
    monkeypatch.setattr(dns, "lookup", lambda _host: made.dns)
    monkeypatch.setattr(lookup_threads, "in_thread", lambda work: work())
    with made:
        yield made
