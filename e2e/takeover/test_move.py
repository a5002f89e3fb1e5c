"""A cluster gets to another management cluster and nothing is created again: by ``clusterctl move``, and by a restore.

The tests of this file follow one another on one cluster, with the commands of the pages on moves and on backups. On the
real services the project has a second one of the same name, in another namespace of the source, where it stays.
"""

from __future__ import annotations

import json
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from capo.components import release
from capo.json_types import Json
from e2e.install import page
from e2e.install.page import SHELL
from e2e.takeover.cloud import CloudUnderTest
from e2e.takeover.environment import (
    CLAIM,
    CLUSTER,
    NAMESPACE,
    POOL,
    RECORDED,
    SECOND_NAMESPACE,
    WORKER_SPEC,
    TakeoverEnvironment,
    is_known,
    takeover_environment,
)

pytestmark = [pytest.mark.integration, pytest.mark.incremental]

PAGES = release.CHECKOUT / "docs" / "how-to"


def commands(name: str, title: str) -> list[str]:
    """Return the blocks of commands of a section of a page."""
    return [block.text for block in page.sections(PAGES / name)[title].blocks if block.language == SHELL]


@pytest.fixture(scope="module")
def begun(rigs_folder: Path, cloud: CloudUnderTest) -> Iterator[TakeoverEnvironment]:
    """Yield a management cluster with a cluster that is being created."""
    with takeover_environment(rigs_folder, "move-source", cloud) as made:
        made.install()
        if cloud.has_second_cluster:
            made.create_second_cluster()
        made.create_pool()
        made.apply_cluster(worker={**WORKER_SPEC, "floatingIPPoolRef": POOL})
        yield made


@pytest.fixture(scope="module")
def empty(begun: TakeoverEnvironment, rigs_folder: Path) -> Iterator[TakeoverEnvironment]:
    """Yield another management cluster, which is started while the first one waits for its cluster."""
    with takeover_environment(rigs_folder, "move-target", begun.cloud) as made:
        made.before = begun.before
        made.install()
        yield made


@pytest.fixture(scope="module")
def source(begun: TakeoverEnvironment, empty: TakeoverEnvironment) -> TakeoverEnvironment:
    """Return the management cluster with a ready cluster; the other one knows nothing of it.

    It takes about a minute: Cluster API connects to a new cluster only after 30 s.
    """
    assert empty.reconciled() == {}
    begun.wait_until_running(workers=1)
    return begun


@pytest.fixture(scope="module")
def ids(source: TakeoverEnvironment) -> dict[str, set[str]]:
    """Return the ids of the cloud's resources before the move."""
    return source.ids()


@pytest.fixture(scope="module")
def addresses(source: TakeoverEnvironment) -> dict[str, str]:
    """Return the addresses of a claim without an owner and of the worker's, by the claims' names."""
    source.wait_until("both claims are answered", lambda: len(source.claimed_addresses()) == 2)
    return source.claimed_addresses()


@pytest.fixture(scope="module")
def recorded(source: TakeoverEnvironment, addresses: dict[str, str], ids: dict[str, set[str]]) -> set[str]:
    """Return the ids that must be recorded after a move: a pool finds its floating IPs by their stamps."""
    bodies = source.cloud.inventory()["network/floatingips"]
    of_pool = {id_ for id_, body in bodies.items() if body["floating_ip_address"] in addresses.values()}
    assert len(of_pool) == len(addresses)
    return set().union(*(ids[kind] for kind in RECORDED)) - of_pool


@pytest.fixture(scope="module")
def target(
    source: TakeoverEnvironment, empty: TakeoverEnvironment, addresses: dict[str, str], ids: dict[str, set[str]]
) -> TakeoverEnvironment:
    """Return the other management cluster, with the moved cluster."""
    assert ids
    assert CLAIM in addresses
    with source.counted("move there"):
        move(source, empty)
    return empty


@pytest.fixture(scope="module")
def returned(source: TakeoverEnvironment, target: TakeoverEnvironment) -> TakeoverEnvironment:
    """Return the source after the cluster was moved back; Cluster API connects to it only after 30 s."""
    with target.counted("move back"):
        move(target, source)
    return source


@pytest.fixture(scope="module")
def restored(returned: TakeoverEnvironment, target: TakeoverEnvironment) -> TakeoverEnvironment:
    """Return the target after the source was lost, and its cluster was restored from a backup."""
    (back_up,) = commands("backup-and-restore.md", "Back up")
    restore, count, resume = commands("backup-and-restore.md", "Restore")
    lost, terminal = returned.shell(), target.shell()
    lost.type(back_up)
    shutil.copyfile(lost.checkout / "teams.json", terminal.checkout / "teams.json")
    returned.rig.down()
    with target.counted("restore"):
        terminal.type(restore)
        assert int(terminal.type(count)) == backed_up(terminal.checkout / "teams.json")
        terminal.type(resume)
        arrive(target)
    return target


def backed_up(file: Path) -> int:
    """Return the number of the objects in a backup that the page counts."""
    kinds = {"Cluster", "Machine", "OpenStackCluster", "OpenStackMachine", "OpenStackServer"}
    items = json.loads(file.read_bytes())["items"]
    return sum(item["kind"] in kinds for item in items)


def move(origin: TakeoverEnvironment, destination: TakeoverEnvironment) -> None:
    """Move the cluster, and wait until all its objects are recorded in the destination."""
    origin.wait_until("clusterctl agrees to a move", lambda: all(map(_is_movable, origin.list("clusters"))))
    prepare(origin)
    (command,) = commands("move.md", "Move")
    program, *arguments = shlex.split(command.replace("target.kubeconfig", str(destination.rig.kubeconfig)))
    assert program == "clusterctl"
    origin.clusterctl(*arguments)
    arrive(destination)


def prepare(origin: TakeoverEnvironment) -> None:
    """Type what the page has before the move; the cluster is as the page shows one that may be moved."""
    label, show = commands("move.md", "Prepare")
    (shown,) = (block.text for block in page.sections(PAGES / "move.md")["Prepare"].blocks if block.language != SHELL)
    origin.shell().type(label)
    assert page.pattern(shown).fullmatch(origin.shell().type(show).strip())


def arrive(destination: TakeoverEnvironment) -> None:
    """Wait until all objects of the cluster are known, and for late actions of the provider."""
    # capo-workload dropped this workload cluster when the origin's machines vanished.
    destination.rig.restart("workload")
    destination.wait_until("every object is known", lambda: all(map(is_known, destination.reconciled().values())))
    destination.wait_until_running(workers=1)
    destination.stay_idle()


def _is_movable(cluster: Json) -> bool:
    """Return whether clusterctl moves a Cluster: one that was moved here lacks the condition until it is reconciled."""
    status = cluster.get("status") or {}
    reached = {condition["type"]: condition["status"] for condition in status.get("conditions") or ()}
    initialization = status.get("initialization") or {}
    return reached.get("ControlPlaneInitialized") == "True" and all(
        initialization.get(name) for name in ("infrastructureProvisioned", "controlPlaneInitialized")
    )


def test_the_source_forgets_the_cluster_and_the_cloud_keeps_it(
    source: TakeoverEnvironment, target: TakeoverEnvironment, ids: dict[str, set[str]]
) -> None:
    assert source.reconciled() == {}
    assert target.ids() == ids


def test_the_target_knows_everything_and_builds_or_changes_nothing(
    target: TakeoverEnvironment, ids: dict[str, set[str]]
) -> None:
    assert target.writes() == []
    assert target.ids() == ids
    assert target.changed_strangers() == []


def test_what_the_target_knows_is_recorded_by_its_id(target: TakeoverEnvironment, recorded: set[str]) -> None:
    assert recorded <= target.recorded()


def test_claims_keep_the_addresses_of_their_pool(
    source: TakeoverEnvironment, target: TakeoverEnvironment, addresses: dict[str, str]
) -> None:
    target.wait_until("the claims have their addresses", lambda: target.claimed_addresses() == addresses)
    assert source.list("ipaddressclaims") == source.list("ipaddresses") == []


def test_describe_shows_the_cluster_available(target: TakeoverEnvironment) -> None:
    text = target.clusterctl("describe", "cluster", CLUSTER, f"--namespace={NAMESPACE}", "--echo")

    assert f"OpenStackCluster {NAMESPACE}/{CLUSTER}" in text


def test_moved_back_everything_is_known_again_and_nothing_is_built_or_changed(
    returned: TakeoverEnvironment, target: TakeoverEnvironment, ids: dict[str, set[str]], recorded: set[str]
) -> None:
    assert target.reconciled() == {}
    assert returned.writes() == []
    assert returned.ids() == ids
    assert returned.changed_strangers() == []
    assert recorded <= returned.recorded()
    if returned.cloud.has_second_cluster:
        returned.wait_until_running(workers=1, namespace=SECOND_NAMESPACE)


def test_restored_without_status_everything_is_adopted_and_nothing_is_built_or_changed(
    restored: TakeoverEnvironment, ids: dict[str, set[str]], recorded: set[str], addresses: dict[str, str]
) -> None:
    assert restored.writes() == []
    assert restored.ids() == ids
    assert restored.changed_strangers() == []
    assert recorded <= restored.recorded()
    restored.wait_until("the claims have their addresses", lambda: restored.claimed_addresses() == addresses)


def test_restored_machines_have_their_owners_again(restored: TakeoverEnvironment) -> None:
    owned = ("machines", "openstackclusters", "openstackmachines", "openstackservers")

    def have_owners() -> bool:
        return all(obj["metadata"].get("ownerReferences") for plural in owned for obj in restored.list(plural))

    restored.wait_until("all objects have owners", have_owners)


def test_deletion_leaves_nothing_of_the_first_cluster_and_all_of_the_second(restored: TakeoverEnvironment) -> None:
    with restored.counted("deletion after moves and restore"):
        restored.delete("clusters", CLUSTER)
        restored.delete("ipaddressclaims", CLAIM)
        restored.delete("openstackfloatingippools", POOL["name"])
        restored.wait_until("everything is gone", restored.is_gone)
    restored.wait_until("nothing is left in the cloud", lambda: not restored.created())
    assert restored.changed_strangers() == []
