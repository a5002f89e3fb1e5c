"""What counts as an orphan, by what proof, and what speaks against its deletion."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Final, cast

import pytest

from capo import names
from capo.json_types import Json, Object
from capo.kube.kinds import NAMESPACE, OPENSTACK_CLUSTER, OPENSTACK_MACHINE, OPENSTACK_SERVER, Kind
from capo.kube.tests.fake_apiserver import BUILT_IN, FakeApiServer
from capo.operations import access
from capo.operations.access import Management
from capo.operations.errors import NotPermittedError, NotServedError, OperatorError
from capo.operations.inventory import project
from capo.operations.inventory.project import Project
from capo.operations.inventory.resource import Resource
from capo.operations.orphans import evidence, findings
from capo.operations.orphans.evidence import Evidence, Witness
from capo.operations.orphans.findings import Orphan
from capo.operations.owners import annotated_ids, of_object
from capo.operations.tests.environment import OperatorsEnvironment
from controllers.openstackcluster.tests.environment import FULL

LOST: Final = "abcdefghijklm"
HERE: Final = "cloud/project/region"
OLD_S: Final = 7200.0


def resource(kind: str, id_: str, *, age_s: float = OLD_S, **body: Any) -> Resource:
    return Resource(kind, HERE, {"id": id_, **body}, age_s)


def stamped(
    kind: str, id_: str, *, owner: str = LOST, age_s: float = OLD_S, more: Json | None = None, **body: Any
) -> Resource:
    """Return a resource with a stamp.

    Args:
        more: fields whose names are no identifiers.
    """
    role = kind.replace("_", "-")
    stamp = f"capo:{owner}:{role}"
    places: dict[str, Json] = {
        "server": {"tags": [stamp]},
        "load_balancer": {"tags": [stamp]},
        "volume": {"metadata": {"capo-owner": stamp}},
        "server_group": {"name": f"group [{stamp}]"},
    }
    return resource(
        kind, id_, age_s=age_s, **{**places.get(kind, {"description": f"[{stamp}]"}), **body, **(more or {})}
    )


def an_object(kind: Kind = OPENSTACK_CLUSTER, name: str = "shop", *, owner: str = "nnnnnnnnnnnnn", **more: Any) -> Json:
    annotation = names.restored_owner_id(owner, kind.kind, "team-a", name) if owner else ""
    annotations = {names.OWNER_ID_ANNOTATION: annotation} if owner else {}
    metadata = {"name": name, "namespace": "team-a", "uid": f"{kind.kind}-{name}", "annotations": annotations}
    return {"metadata": metadata, "spec": {}, **more}


def known(*objects: tuple[Kind, Object], locations: Sequence[str] = (HERE,)) -> Evidence:
    """Return what one management cluster knows, which has an object in the project."""
    found = [of_object("mgmt", kind, obj) for kind, obj in objects]
    ids = annotated_ids(obj for _, obj in objects)
    return Evidence([Witness("mgmt", "uid", len(found))], found, frozenset(ids), frozenset(locations))


def orphans(*resources: Resource, by: Evidence | None = None, singly: Sequence[str] = ()) -> dict[str, Orphan]:
    found = findings.find(Project(HERE, resources), by or known(), singly=singly)
    return {each.resource.id: each for each in found}


def doubts(orphan: Orphan, *, deleted: Sequence[tuple[str, str]] = ()) -> str:
    return "; ".join(orphan.left_doubts(deleted))


# -- proofs ----------------------------------------------------------------------------------------------------------


def test_a_stamp_of_an_owner_without_an_object_is_the_proof() -> None:
    found = orphans(stamped("network", "1"), by=known((OPENSTACK_CLUSTER, an_object())))

    assert found["1"].proof == f"stamp of owner {LOST}, which no object in mgmt has"
    assert doubts(found["1"]) == ""


@pytest.mark.parametrize(
    "obj",
    [
        pytest.param(an_object(owner=LOST), id="its owner"),
        pytest.param(an_object(owner=LOST, name="shop") | {"spec": {"paused": True}}, id="a paused owner"),
        pytest.param(
            {"metadata": {**an_object()["metadata"], "annotations": {names.OWNER_ID_ANNOTATION: f"{LOST}.0000"}}},
            id="a copied annotation",
        ),
        pytest.param(
            an_object(owner="", status={"resources": {"records": [{"kind": "network", "role": "network", "id": "1"}]}}),
            id="a record of an object that lost its owner id",
        ),
    ],
)
def test_what_any_object_knows_is_no_orphan(obj: Json) -> None:
    assert orphans(stamped("network", "1"), by=known((OPENSTACK_CLUSTER, obj))) == {}


def test_a_server_that_a_provider_id_names_is_no_orphan() -> None:
    machine = an_object(OPENSTACK_SERVER, "m", owner="", status={"instanceID": "1"})

    assert orphans(stamped("server", "1", status="ERROR"), by=known((OPENSTACK_SERVER, machine))) == {}


def test_what_has_neither_stamp_nor_name_nor_mark_is_no_orphan() -> None:
    assert orphans(resource("network", "1", name="of-a-user"), resource("server", "2", status="ERROR")) == {}


def test_a_name_or_a_mark_alone_is_deleted_only_singly() -> None:
    group = resource("security_group", "1", name="k8s-cluster-team-a-gone-secgroup-worker")
    volume = resource("volume", "2", metadata={"cinder.csi.openstack.org/cluster": "team-a.gone"}, status="available")

    found = orphans(group, volume)

    assert "no proof" in doubts(found["1"])
    assert "no proof" in doubts(found["2"])
    assert found["2"].proof.startswith("mark of the workloads of cluster team-a.gone")


@pytest.mark.parametrize("name", ["kubernetes", ""])
def test_a_mark_that_clusters_share_is_no_proof_at_all(name: str) -> None:
    volume = resource("volume", "1", metadata={"cinder.csi.openstack.org/cluster": name}, status="available")

    assert orphans(volume) == {}


def test_a_shared_mark_on_a_volume_of_a_lost_server_is_no_proof() -> None:
    server = stamped("server", "s", status="ERROR")
    network = stamped("network", "n", name="k8s-clusterapi-cluster-team-a-gone")
    marked = {"cinder.csi.openstack.org/cluster": "kubernetes"}
    volume = resource("volume", "1", metadata=marked, status="in-use", attachments=[{"server_id": "s"}])

    assert orphans(server, network, volume).keys() == {"s", "n"}


def test_leftovers_of_a_cluster_that_exists_are_no_orphans() -> None:
    volume = resource("volume", "1", metadata={"cinder.csi.openstack.org/cluster": "team-a.shop"}, status="available")
    group = resource("security_group", "2", name="k8s-cluster-team-a-shop-secgroup-worker")

    assert orphans(volume, group, by=known((OPENSTACK_CLUSTER, an_object()))) == {}


# -- doubts ----------------------------------------------------------------------------------------------------------


def test_a_running_server_is_a_sign_of_life_of_its_whole_cluster() -> None:
    text = "Created by cluster-api-provider-openstack cluster team-a-gone"
    network = stamped("network", "n", name="k8s-clusterapi-cluster-team-a-gone")
    server = stamped("server", "s", owner="nnnnnnnnnnnnn", status="ACTIVE")
    port = stamped("port", "p", owner="nnnnnnnnnnnnn", device_id="s", network_id="n")
    port = Resource("port", HERE, {**port.body, "description": f"{text} [capo:nnnnnnnnnnnnn:port-0]"}, OLD_S)

    found = orphans(network, server, port)

    assert "it is ACTIVE" in doubts(found["s"])
    assert "a kubeconfig may be missing" in doubts(found["n"])
    named = orphans(network, server, port, singly=["s"])
    assert doubts(named["n"], deleted=[("port", "p"), ("server", "s")]) == ""


@pytest.mark.parametrize("status", ["ERROR", "SHUTOFF"])
def test_a_server_that_does_not_run_is_deleted_with_its_owner(status: str) -> None:
    assert doubts(orphans(stamped("server", "1", status=status))["1"]) == ""


def test_a_load_balancer_that_works_is_deleted_only_singly() -> None:
    found = orphans(
        stamped("load_balancer", "1", provisioning_status="ACTIVE"),
        stamped("load_balancer", "2", provisioning_status="ERROR", operating_status="ERROR"),
    )

    assert "it is ACTIVE" in doubts(found["1"])
    assert doubts(found["2"]) == ""


@pytest.mark.parametrize(
    ("state", "is_in_use"),
    [
        ("ONLINE", True),
        ("DEGRADED", True),
        ("DRAINING", True),
        ("NO_MONITOR", True),
        ("", True),
        ("ERROR", False),
        ("OFFLINE", False),
    ],
)
def test_a_load_balancer_in_error_that_may_have_traffic_is_deleted_only_singly(state: str, is_in_use: bool) -> None:
    found = orphans(stamped("load_balancer", "1", provisioning_status="ERROR", operating_status=state))

    assert ("it is ERROR" in doubts(found["1"])) is is_in_use


def test_a_server_in_error_that_runs_nevertheless_is_deleted_only_singly() -> None:
    found = orphans(stamped("server", "2", status="ERROR", more={"OS-EXT-STS:power_state": 1}))

    assert "it is ERROR, and it runs" in doubts(found["2"])


def test_a_name_that_several_clusters_have_makes_no_orphan() -> None:
    volume = resource("volume", "1", metadata={"cinder.csi.openstack.org/cluster": "shop"}, status="available")
    other = an_object()
    other["metadata"]["namespace"] = "team-b"
    by = known((OPENSTACK_CLUSTER, an_object()), (OPENSTACK_CLUSTER, other))

    assert orphans(volume, by=by) == {}
    assert orphans(volume).keys() == {"1"}


def test_an_object_of_the_same_name_raises_a_doubt() -> None:
    network = stamped("network", "1", name="k8s-clusterapi-cluster-team-a-shop")
    server = stamped("server", "2", name="m", status="ERROR")
    port = stamped("port", "3", name="m-0")
    by = known((OPENSTACK_CLUSTER, an_object()), (OPENSTACK_SERVER, an_object(OPENSTACK_SERVER, "m")))

    found = orphans(network, server, port, by=by)

    assert "a Cluster team-a/shop exists" in doubts(found["1"])
    assert "an object with the name of its server exists" in doubts(found["2"])
    assert "an object with the name of its server exists" in doubts(found["3"])


def test_in_a_project_without_any_object_everything_is_in_doubt() -> None:
    found = orphans(stamped("network", "1"), by=known(locations=()))

    assert "mgmt has no object in this project: a kubeconfig may be missing" in doubts(found["1"])


def test_what_is_young_may_belong_to_an_object_on_its_way() -> None:
    assert "younger than an hour" in doubts(orphans(stamped("network", "1", age_s=600))["1"])


@pytest.mark.parametrize(
    ("used", "user", "key"),
    [
        (stamped("volume", "1", status="in-use", attachments=[{"server_id": "9"}]), None, ("server", "9")),
        (stamped("floating_ip", "1", port_id="9"), resource("port", "9"), ("port", "9")),
        (
            stamped("floating_ip", "1", port_id="9"),
            resource("port", "9", device_owner="Octavia", device_id="lb-8"),
            ("load_balancer", "8"),
        ),
        (stamped("port", "1", device_id="9", device_owner="compute:az1"), None, ("server", "9")),
        (stamped("port", "1"), resource("floating_ip", "9", port_id="1"), ("floating_ip", "9")),
        (stamped("port", "1"), resource("trunk", "9", port_id="1"), ("trunk", "9")),
        (stamped("port", "1"), resource("trunk", "9", port_id="8", sub_ports=[{"port_id": "1"}]), ("trunk", "9")),
        (stamped("trunk", "1", sub_ports=[{"port_id": "9"}]), None, ("port", "9")),
        (stamped("network", "1"), resource("port", "9", network_id="1"), ("port", "9")),
        (stamped("subnet", "1"), resource("port", "9", fixed_ips=[{"subnet_id": "1"}]), ("port", "9")),
        (stamped("security_group", "1"), resource("port", "9", security_groups=["1"]), ("port", "9")),
        (
            stamped("security_group", "1"),
            resource("security_group", "9", security_group_rules=[{"remote_group_id": "1"}]),
            ("security_group", "9"),
        ),
        (stamped("server_group", "1", members=["9"]), None, ("server", "9")),
        (
            stamped(
                "server",
                "1",
                status="ERROR",
                more={"os-extended-volumes:volumes_attached": [{"id": "9", "delete_on_termination": True}]},
            ),
            None,
            ("volume", "9"),
        ),
    ],
)
def test_what_is_used_is_deleted_only_with_its_user_or_singly(
    used: Resource, user: Resource | None, key: tuple[str, str]
) -> None:
    found = orphans(used, *([user] if user else []))["1"]

    assert doubts(found) != ""
    assert doubts(found, deleted=[key]) == ""


def test_a_router_is_used_by_what_is_on_its_networks() -> None:
    interface = resource("port", "i", network_id="n", device_id="1", device_owner="network:router_interface")
    other = resource("port", "o", network_id="n")

    found = orphans(stamped("router", "1"), interface, other)["1"]

    assert doubts(found) == "port o uses it"
    assert doubts(found, deleted=[("port", "o")]) == ""


def test_ports_of_dhcp_use_nothing() -> None:
    dhcp = resource("port", "9", network_id="1", device_owner="network:dhcp")

    assert doubts(orphans(stamped("network", "1"), dhcp)["1"]) == ""


@pytest.mark.parametrize(
    "changing",
    [
        stamped("server", "1", status="UNKNOWN"),
        stamped("server", "1", status="ERROR", more={"OS-EXT-STS:task_state": "rebuilding"}),
        stamped("load_balancer", "1", provisioning_status="PENDING_UPDATE"),
        stamped("volume", "1", status="creating"),
    ],
)
def test_what_changes_or_cannot_be_read_is_not_deleted_by_anyone(changing: Resource) -> None:
    assert orphans(changing)["1"].refusal


# -- management clusters ---------------------------------------------------------------------------------------------


def test_nothing_of_a_cluster_with_its_objects_is_an_orphan_and_all_of_it_is_without(
    world: OperatorsEnvironment,
) -> None:
    world.up(**FULL)
    world.clock.advance(OLD_S)
    found = project.read(world.named_cloud(), lambda _text: None)

    with world.management() as management:
        assert findings.find(found, evidence.read([management])) == []
    world.kube.objects.clear()
    with world.management() as management:
        lost = findings.find(found, evidence.read([management]))

    assert {each.resource.kind for each in lost} == {
        "floating_ip",
        "load_balancer",
        "server",
        "port",
        "router",
        "subnet",
        "network",
        "security_group",
    }
    assert len({each.attribution.owner_id for each in lost}) == 2


def test_what_the_go_provider_left_is_found_by_names_and_all_of_it_is_in_doubt(world: OperatorsEnvironment) -> None:
    world.up(**FULL)
    world.unstamp()
    world.clock.advance(OLD_S)
    found = project.read(world.named_cloud(), lambda _text: None)
    world.kube.objects.clear()

    with world.management() as management:
        left = findings.find(found, evidence.read([management]))

    kinds = {each.resource.kind for each in left}
    assert {"server", "port", "network", "subnet", "router", "load_balancer", "floating_ip", "security_group"} == kinds
    assert all(any("no proof" in text for text in each.doubts) for each in left)


def test_a_kind_that_cannot_be_listed_ends_the_search(world: OperatorsEnvironment) -> None:
    with world.served() as api:
        management = access.of_connection(api.connection(), name="mgmt")
        api.forbids = lambda _method, path: "Forbidden" if path.endswith("openstackservers") else ""
        with pytest.raises(NotPermittedError, match="may not list openstackservers"):
            evidence.read([management])
        api.forbids = lambda _method, _path: ""
        api.kinds = [each for each in api.kinds if each != OPENSTACK_SERVER]
        with pytest.raises(NotServedError, match="does not serve OpenStackServer"):
            evidence.read([management])


def test_a_management_cluster_of_an_older_go_provider_is_read() -> None:
    served = [replace(each, version="v1beta1") for each in (OPENSTACK_CLUSTER, OPENSTACK_MACHINE)]
    with FakeApiServer((*served, *BUILT_IN)).running() as api:
        api.put(NAMESPACE, {"metadata": {"name": "kube-system", "uid": "1"}})
        api.put(served[0], an_object(owner=""))
        found = evidence.read([access.of_connection(api.connection(), name="mgmt")])

    assert [str(each) for each in found.owners] == ["OpenStackCluster team-a/shop"]


def test_without_a_management_cluster_there_are_no_orphans() -> None:
    with pytest.raises(OperatorError, match="no management cluster"):
        evidence.distinct([])


class Scripted:
    """A management cluster whose lists change from read to read."""

    def __init__(self, name: str, *reads: Sequence[Json]) -> None:
        self.name = self.uid = name
        self._reads = list(reads)
        self._now: Sequence[Json] = ()

    def list(self, kind: Kind, _namespace: str | None) -> Sequence[Json]:
        if kind != OPENSTACK_CLUSTER:
            return []
        self._now = self._reads.pop(0)
        return self._now


def test_an_object_that_moves_during_the_reads_is_not_missed() -> None:
    moving = an_object(owner=LOST)
    target, source = Scripted("target", [], [moving]), Scripted("source", [], [])

    found = evidence.read(cast("list[Management]", [target, source]))

    assert LOST in found.owner_ids
    assert orphans(stamped("network", "1"), by=found) == {}


def test_two_kubeconfigs_of_one_management_cluster_are_one() -> None:
    same = cast("Callable[..., list[Management]]", list)((Scripted("a"), Scripted("a")))

    assert len(evidence.distinct(same)) == 1
