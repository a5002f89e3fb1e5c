"""A cluster is moved by ``clusterctl move`` to another management cluster: nothing is built anew, and all goes with it.

The tests of this file follow one another on one cluster.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from e2e.takeover.world import CLUSTER, NAMESPACE, RECORDED, World, is_known, world

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def source(rigs_folder: Path) -> Iterator[World]:
    """Yield a management cluster with a cluster that is up."""
    with world(rigs_folder, "move-source") as made:
        made.install()
        made.make_cluster()
        yield made


@pytest.fixture(scope="module")
def ids(source: World) -> dict[str, set[str]]:
    """Return the ids of what is in the cloud before the cluster is moved."""
    return source.ids()


@pytest.fixture(scope="module")
def target(source: World, ids: dict[str, set[str]], rigs_folder: Path) -> Iterator[World]:
    """Yield another management cluster, to which the cluster was moved."""
    with world(rigs_folder, "move-target", simulator=source.simulator) as made:
        made.before = source.before
        made.install()
        assert ids
        source.count_anew()
        source.clusterctl("move", f"--namespace={NAMESPACE}", f"--to-kubeconfig={made.rig.kubeconfig}")
        # What stands in for workload clusters dropped this one when the source's machines vanished.
        made.rig.restart("workload")
        yield made


def test_the_source_forgets_the_cluster_and_the_cloud_keeps_it(
    source: World, target: World, ids: dict[str, set[str]]
) -> None:
    assert source.reconciled() == {}
    assert target.ids() == ids


def test_the_target_knows_everything_and_builds_or_changes_nothing(target: World, ids: dict[str, set[str]]) -> None:
    target.until("every object is known", lambda: all(map(is_known, target.reconciled().values())))
    target.until_running(workers=1)

    assert target.writes() == []
    assert target.ids() == ids


def test_what_the_target_knows_is_recorded_by_its_id(target: World, ids: dict[str, set[str]]) -> None:
    assert set().union(*(ids[kind] for kind in RECORDED)) <= target.recorded()


def test_describe_shows_the_cluster_available(target: World) -> None:
    text = target.clusterctl("describe", "cluster", CLUSTER, f"--namespace={NAMESPACE}", "--echo")

    assert f"OpenStackCluster {NAMESPACE}/{CLUSTER}" in text


def test_deletion_leaves_nothing(target: World) -> None:
    target.objects.delete("clusters", CLUSTER)

    target.until("everything is gone", target.is_gone)
    assert target.made() == {}
