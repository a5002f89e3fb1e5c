"""What an operator's client reads, and that it sends nothing else."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml

from capo.errors import CapoError, IdentityError
from capo.json_types import Json
from capo.kube import kinds
from capo.kube.errors import ReadOnlyError
from capo.kube.kinds import MACHINE, OPENSTACK_CLUSTER, OPENSTACK_CLUSTER_IDENTITY, SECRET
from capo.kube.tests.fake_apiserver import BUILT_IN, KINDS, FakeApiServer
from capo.openstack import transport
from capo.operations import access
from capo.operations.access import CloudAccess, Management, Mode
from capo.operations.errors import NotPermittedError, NotServedError, OperatorError
from capo.simulator.simulator import Simulator
from environments import objects

MODES = pytest.mark.parametrize("mode", Mode)


@pytest.fixture
def api() -> Iterator[FakeApiServer]:
    with FakeApiServer((*KINDS, *BUILT_IN, OPENSTACK_CLUSTER_IDENTITY)).running() as running:
        yield running


@pytest.fixture
def management(api: FakeApiServer) -> Management:
    return access.of_connection(api.connection(), name="mgmt")


@pytest.fixture(scope="module")
def simulator() -> Iterator[Simulator]:
    with Simulator.start() as running:
        yield running


def put(api: FakeApiServer, *wanted: Json) -> None:
    known = {each.kind: each for each in (*kinds.OURS, SECRET, MACHINE)}
    for each in wanted:
        api.put(known[each["kind"]], objects.in_namespace(each, "team-a"))


def put_credentials(api: FakeApiServer, content: bytes) -> None:
    put(api, objects.secret("cloud", {"clouds.yaml": content}))


def test_a_client_that_only_reads_sends_no_write(api: FakeApiServer, management: Management) -> None:
    put(api, objects.openstack_cluster("c"))
    kube = management.kube

    writes: tuple[Callable[[], object], ...] = (
        lambda: kube.patch(OPENSTACK_CLUSTER, "team-a", "c", {}),
        lambda: kube.delete(OPENSTACK_CLUSTER, "team-a", "c"),
        lambda: kube.create(OPENSTACK_CLUSTER, objects.in_namespace(objects.openstack_cluster("d"), "team-a")),
        lambda: kube.review(kinds.LEASE, {}),
    )
    for write in writes:
        with pytest.raises(ReadOnlyError, match="not sent"):
            write()

    assert api.writes() == []


def test_a_command_that_requests_it_may_write(api: FakeApiServer) -> None:
    put(api, objects.openstack_cluster("c"))
    management = access.of_connection(api.connection(), mode=Mode.WRITE)

    management.kube.patch(OPENSTACK_CLUSTER, "team-a", "c", {"metadata": {"labels": {"a": "b"}}})

    assert management.get(OPENSTACK_CLUSTER, "team-a", "c")["metadata"]["labels"] == {"a": "b"}


def test_objects_of_one_or_all_namespaces_are_listed(api: FakeApiServer, management: Management) -> None:
    put(api, objects.openstack_cluster("c"))
    api.put(OPENSTACK_CLUSTER, objects.in_namespace(objects.openstack_cluster("d"), "team-b"))

    assert [each["metadata"]["name"] for each in management.list(OPENSTACK_CLUSTER)] == ["c", "d"]
    assert [each["metadata"]["name"] for each in management.list(OPENSTACK_CLUSTER, "team-b")] == ["d"]


@pytest.mark.parametrize("version", ["v1beta1", "v1beta2"])
def test_machines_are_read_in_the_version_that_is_served(version: str) -> None:
    served = kinds.Kind(MACHINE.group, version, MACHINE.plural, MACHINE.kind)
    with FakeApiServer((served, *BUILT_IN)).running() as api:
        api.put(served, objects.in_namespace(objects.machine("m", "c"), "team-a"))
        management = access.of_connection(api.connection())

        assert [each["apiVersion"] for each in management.list(MACHINE)] == [f"{MACHINE.group}/{version}"]
        assert management.get(MACHINE, "team-a", "m")["apiVersion"] == f"{MACHINE.group}/{version}"


def test_a_kind_that_is_not_served_is_an_error_and_no_empty_list() -> None:
    with FakeApiServer(BUILT_IN).running() as api:
        management = access.of_connection(api.connection(), name="mgmt")

        with pytest.raises(NotServedError, match="mgmt does not serve OpenStackCluster"):
            management.list(OPENSTACK_CLUSTER)


def test_an_object_that_must_exist_is_named_when_it_does_not(management: Management) -> None:
    with pytest.raises(OperatorError, match="OpenStackCluster team-a/c does not exist in mgmt"):
        management.get(OPENSTACK_CLUSTER, "team-a", "c")


def test_a_missing_right_names_verb_resource_and_namespace(api: FakeApiServer, management: Management) -> None:
    api.forbids = lambda _method, _path: "Forbidden"

    with pytest.raises(NotPermittedError, match=r"may not list openstackclusters\.infrastructure\S+ in all namespaces"):
        management.list(OPENSTACK_CLUSTER)
    with pytest.raises(NotPermittedError, match="may not get secrets in namespace team-a;"):
        management.find(SECRET, "team-a", "cloud")
    with pytest.raises(NotPermittedError, match=r"may not get openstackclusteridentities\S+;"):
        management.find(OPENSTACK_CLUSTER_IDENTITY, "", "shared")


def test_the_cloud_of_an_object_is_opened_by_its_own_secret(
    api: FakeApiServer, management: Management, simulator: Simulator
) -> None:
    put_credentials(api, simulator.clouds_yaml.read_bytes())
    put(api, objects.openstack_cluster("c"), objects.openstack_cluster("d"))

    first, second = (management.cloud_of(each) for each in management.list(OPENSTACK_CLUSTER, "team-a"))

    assert first is second
    assert first.list_all("network", "/networks", "networks")


def test_the_cloud_of_an_object_is_opened_by_a_shared_identity(
    api: FakeApiServer, management: Management, simulator: Simulator
) -> None:
    put_credentials(api, simulator.clouds_yaml.read_bytes())
    spec = {"secretRef": {"name": "cloud", "namespace": "team-a"}}
    api.put(OPENSTACK_CLUSTER_IDENTITY, {"metadata": {"name": "shared"}, "spec": spec})
    ref = {"type": "ClusterIdentity", "name": "shared", "cloudName": "sim"}
    cluster = objects.in_namespace(objects.openstack_cluster("c", identityRef=ref), "team-b")

    assert management.cloud_of(cluster).project_id


def test_credentials_that_cannot_be_used_are_named(api: FakeApiServer, management: Management) -> None:
    cluster = objects.in_namespace(objects.openstack_cluster("c"), "team-a")

    with pytest.raises(IdentityError, match="Secret team-a/cloud does not exist"):
        management.cloud_of(cluster)
    put_credentials(api, b"clouds: {}")
    with pytest.raises(IdentityError, match="no cloud 'sim'"):
        management.cloud_of(cluster)


def test_a_cloud_that_is_only_read_gets_no_write(simulator: Simulator, tmp_path: Path) -> None:
    cloud = CloudAccess().open(access.credentials_in(simulator.clouds_yaml, "sim"))
    before = simulator.call(lambda: len(simulator.cloud.counter.log()))

    writes: tuple[Callable[[], object], ...] = (
        lambda: cloud.post("network", "/networks", json={"network": {"name": "n"}}),
        lambda: cloud.put("network", "/networks/1", json={}),
        lambda: cloud.delete("network", "/networks/1"),
    )
    for write in writes:
        with pytest.raises(transport.ReadOnlyError, match="not sent"):
            write()

    log = simulator.call(simulator.cloud.counter.log)[before:]
    assert {each["method"] for each in log if "tokens" not in each["path"]} <= {"GET"}


def test_a_cloud_with_write_access_is_written(simulator: Simulator) -> None:
    cloud = CloudAccess.of(Mode.WRITE).open(access.credentials_in(simulator.clouds_yaml, "sim"))

    made = cloud.post("network", "/networks", json={"network": {"name": "n"}})["network"]

    cloud.delete("network", f"/networks/{made['id']}")


def test_an_entry_of_the_users_own_file_may_name_a_bundle_beside_it(tmp_path: Path) -> None:
    auth = {"auth_url": "https://cloud.example/v3", "username": "u", "password": "p", "project_name": "p"}
    path = tmp_path / "clouds.yaml"
    path.write_text(yaml.safe_dump({"clouds": {"here": {"auth": auth, "cacert": "ca.pem"}}}))

    with pytest.raises(OperatorError, match=r"ca\.pem"):
        access.credentials_in(path, "here")
    (tmp_path / "ca.pem").write_text("nothing")
    with pytest.raises(CapoError, match="PEM"):
        access.credentials_in(path, "here")


def test_a_kubeconfig_that_cannot_be_used_is_an_error_of_the_command(tmp_path: Path) -> None:
    with pytest.raises(OperatorError, match="nothing-here"):
        access.connect(str(tmp_path / "nothing-here"))


def test_several_management_clusters_share_their_clouds(
    simulator: Simulator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = []
    for name in ("one", "two"):
        config = {
            "current-context": name,
            "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
            "clusters": [{"name": name, "cluster": {"server": f"http://127.0.0.1:1/{name}"}}],
            "users": [{"name": name, "user": {"token": base64.b64encode(name.encode()).decode()}}],
        }
        (tmp_path / name).write_text(yaml.safe_dump(config))
        paths.append(str(tmp_path / name))

    one, two = access.connect_all(paths)

    assert (one.server, two.server) == ("http://127.0.0.1:1/one", "http://127.0.0.1:1/two")
    assert one.clouds is two.clouds
