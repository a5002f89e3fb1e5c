"""A hand-written OpenStackServer with two ports and a root volume, its manager killed at every write to OpenStack.

On a real kube-apiserver (conversion and webhooks stripped, no managers of Cluster API) and the simulator, with the real
``capo run`` as a process under the ServiceAccount that ships.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import pytest

from capo import names
from capo.crdgen import files
from capo.local.rig import Rig
from e2e.crash.world import World, inventory, world

pytestmark = pytest.mark.integration

WAYS: Final = ("before", "after_effect", "after_answer")
SERVER: Final = ("v1alpha1", "openstackservers", "crashed")
Inventory = Mapping[str, Mapping[str, Any]]


def server_object(made: World) -> dict[str, Any]:
    network = made.network()
    return {
        "apiVersion": "infrastructure.cluster.x-k8s.io/v1alpha1",
        "kind": "OpenStackServer",
        "metadata": {"name": "crashed"},
        "spec": {
            "identityRef": {"name": "cloud", "cloudName": "sim"},
            "flavor": "m1.small",
            "image": {"filter": {"name": "tiny-image"}},
            "sshKeyName": "lab",
            "rootVolume": {"sizeGiB": 1},
            "ports": [{"network": {"id": network}}, {"network": {"id": network}, "nameSuffix": "second"}],
        },
    }


def make_and_delete(made: World, wanted: dict[str, Any]) -> int:
    """Make the server, look at what there is, delete it, look again; return the number of writes."""
    before = inventory(made.simulator)
    made.apply(wanted)
    made.until("the server is ready", lambda: is_ready(made))
    assert_each_exists_once(made, before)
    made.delete(*SERVER)
    made.until("the server is gone", lambda: made.get(*SERVER) is None)
    assert new(before, inventory(made.simulator)) == {}
    return made.writes()


def is_ready(made: World) -> bool:
    found = made.get(*SERVER)
    return bool(found and found.get("status", {}).get("ready"))


def new(before: Inventory, after: Inventory) -> dict[str, list[str]]:
    """Return the ids of what is there now and was not before, by kind."""
    found = {kind: sorted(items.keys() - before.get(kind, {}).keys()) for kind, items in after.items()}
    return {kind: ids for kind, ids in found.items() if ids}


def assert_each_exists_once(made: World, before: Inventory) -> None:
    """The same resources as an undisturbed run, each once, all stamped and recorded."""
    after = inventory(made.simulator)
    found = new(before, after)
    assert {kind: len(ids) for kind, ids in found.items() if kind in EXPECTED} == EXPECTED
    obj = made.get(*SERVER)
    assert obj is not None
    owner = obj["metadata"]["annotations"][names.OWNER_ID_ANNOTATION].partition(".")[0]
    resources = obj["status"]["resources"]
    assert resources.get("pending", []) == []
    assert sorted(record["id"] for record in resources["records"]) == sorted(
        id_ for kind in EXPECTED for id_ in found[kind]
    )
    for kind in EXPECTED:
        for id_ in found[kind]:
            assert f"capo:{owner}:" in str(after[kind][id_]), f"{kind} {id_} is not stamped"


EXPECTED: Final = {"compute/servers": 1, "network/ports": 2, "volume/volumes": 1}


@pytest.fixture(scope="module")
def kubeconfig(api_server: Rig) -> Path:
    api_server.install_crds(files.load(), strip_conversion=True)
    return api_server.install_provider_account()


@pytest.fixture(scope="module")
def undisturbed_writes(api_server: Rig, kubeconfig: Path, tmp_path_factory: pytest.TempPathFactory) -> int:
    with world(api_server, kubeconfig, tmp_path_factory.mktemp("undisturbed")) as made:
        return make_and_delete(made, server_object(made))


def test_an_undisturbed_server_is_made_and_deleted_in_few_writes(undisturbed_writes: int) -> None:
    assert 4 <= undisturbed_writes <= 7


@pytest.mark.parametrize("when", WAYS)
def test_a_manager_killed_at_every_write_leaves_nothing_twice_and_nothing_behind(
    when: str, api_server: Rig, kubeconfig: Path, undisturbed_writes: int, tmp_path: Path
) -> None:
    kills = 0
    for write in range(1, undisturbed_writes + 1):
        with world(api_server, kubeconfig, tmp_path) as made:
            wanted = server_object(made)
            order = made.kill_at(write, when)
            make_and_delete(made, wanted)
            kills += order.struck

    assert kills == undisturbed_writes
