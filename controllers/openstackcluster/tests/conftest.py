"""The management cluster and the cloud of each test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from capo.openstack import lookup_threads
from controllers.openstackcluster import dns
from controllers.openstackcluster.tests.environment import ClusterEnvironment
from controllers.openstackmachine.controller import MachineController


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Iterator[ClusterEnvironment]:
    made = ClusterEnvironment()
    monkeypatch.setattr(dns, "lookup", lambda _host: made.dns)
    monkeypatch.setattr(lookup_threads, "in_thread", lambda work: work())
    with made:
        yield made


@pytest.fixture
def fleet(monkeypatch: pytest.MonkeyPatch) -> Iterator[ClusterEnvironment]:
    """Yield an environment that has the controller of machines, too."""
    monkeypatch.setattr(lookup_threads, "in_thread", lambda work: work())
    with ClusterEnvironment(MachineController) as made:
        yield made
