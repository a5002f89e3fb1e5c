"""The real clusterctl upgrades and downgrades the provider in the middle, with conversion and Cluster API's managers.

The tests of this file follow one another on one cluster.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from capo.local import clusterctl as ctl
from capo.local import installed
from capo.local.testing import in_etcd
from e2e.takeover.cloud import SimulatedCloud, running
from e2e.takeover.environment import CLUSTER, NAMESPACE, TakeoverEnvironment, is_known, takeover_environment
from e2e.upgrade.environment import duplicates
from e2e.upgrade.installation import Installation, Version
from environments import targets

pytestmark = [pytest.mark.integration, pytest.mark.timeout(1800), pytest.mark.incremental]


NEXT: Final = "1.0.99"
"""The number of the present version here: clusterctl needs another one."""


@pytest.fixture(scope="module")
def place(rigs_folder: Path, installations: dict[Version, Installation]) -> Iterator[TakeoverEnvironment]:
    """Yield a management cluster with the released version."""
    released = installations["released"]
    with running(targets.SIMULATOR) as cloud, takeover_environment(rigs_folder, "upgrade", cloud) as made:
        made.clusterctl.prepare()
        made.clusterctl.prepare(version=NEXT)
        released.lay_out_release(made.clusterctl.repository)
        installed.install(made.clusterctl, released.number)
        installed.start(made.rig, python=released.python)
        made.rig.apply([{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}])
        yield made


def deletions(place: TakeoverEnvironment) -> list[str]:
    """Return the requests since the last reset that deleted a resource in the cloud."""
    assert isinstance(place.cloud, SimulatedCloud)
    simulator = place.cloud.simulator
    calls = simulator.call(lambda: list(simulator.cloud.counter.calls))
    return [f"{call.method} {call.path}" for call in calls if call.deleted]


def require_one_stored_version(place: TakeoverEnvironment) -> None:
    """Require that all objects of a kind are stored in the one version that its definition names."""
    for crd in ctl.definitions(place.rig):
        storage = next(version["name"] for version in crd["spec"]["versions"] if version["storage"])
        assert crd["status"]["storedVersions"] == [storage]
    for path in place.ours():
        _, _, group, version, _, _, plural, name = path.split("/")
        assert in_etcd(place.rig, f"{group}/{plural}", NAMESPACE, name)["apiVersion"] == f"{group}/{version}"


def test_upgrade_while_a_cluster_is_created(
    place: TakeoverEnvironment, installations: dict[Version, Installation]
) -> None:
    """Takes a minute: clusterctl upgrades the provider, and Cluster API connects to a new cluster only after 30 s."""
    place.apply_cluster()
    place.wait_until("the load balancer is being created", lambda: "load-balancer/loadbalancers" in place.created())
    begun = place.ids()

    installed.upgrade(place.clusterctl, NEXT)
    installed.start(place.rig, python=installations["present"].python)
    installed.settle(place.rig)
    place.wait_until_running(workers=1)
    place.wait_until("every object is ready", lambda: all(map(is_known, place.reconciled().values())))

    assert all(ids <= place.ids()[kind] for kind, ids in begun.items())
    assert deletions(place) == []
    assert duplicates(place.created()) == []
    require_one_stored_version(place)


def test_downgrade_while_a_bastion_is_replaced(
    place: TakeoverEnvironment, installations: dict[Version, Installation]
) -> None:
    released, ids = installations["released"], place.ids()
    old = place.get("openstackclusters", CLUSTER)["status"]["bastion"]
    place.patch("openstackclusters", CLUSTER, {"spec": {"bastion": {"spec": {"sshKeyName": None}}}})
    place.wait_until("the bastion is being replaced", lambda: old["id"] not in place.ids()["compute/servers"])

    installed.upgrade(place.clusterctl, released.number)
    installed.start(place.rig, python=released.python)
    installed.settle(place.rig)

    def is_replaced() -> bool:
        bastion = place.get("openstackclusters", CLUSTER)["status"].get("bastion") or {}
        return bastion.get("id") not in (None, old["id"]) and bastion.get("floatingIP") == old["floatingIP"]

    place.wait_until("the bastion is another server with the same address", is_replaced)
    place.wait_until_running(workers=1)
    place.wait_until("every object is ready", lambda: all(map(is_known, place.reconciled().values())))
    now = place.ids()
    assert ids["compute/servers"] - now["compute/servers"] == {old["id"]}
    assert len(now["compute/servers"]) == len(ids["compute/servers"])
    assert duplicates(place.created()) == []
    require_one_stored_version(place)


def test_upgrade_while_the_cluster_is_deleted(
    place: TakeoverEnvironment, installations: dict[Version, Installation]
) -> None:
    servers = place.ids()["compute/servers"]
    place.delete("clusters", CLUSTER)
    place.wait_until("a server is deleted", lambda: servers - place.ids().get("compute/servers", set()))

    installed.upgrade(place.clusterctl, NEXT)
    installed.start(place.rig, python=installations["present"].python)

    place.wait_until("everything is gone", place.is_gone)
    place.wait_until("nothing is left in the cloud", lambda: not place.created())
