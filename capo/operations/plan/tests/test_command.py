"""The command over real connections: arguments, exit statuses, and that neither side gets a write."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from api import conversion
from capo.__main__ import main
from capo.kube.kinds import CLUSTER, OPENSTACK_CLUSTER, OURS, SECRET, Kind
from capo.kube.tests.fake_apiserver import BUILT_IN, KINDS, FakeApiServer
from capo.operations.errors import ExitStatus
from capo.operations.plan import manifest
from capo.simulator.simulator import Simulator
from environments import objects

NAME = "shop"


class Command:
    """``capo plan`` for an API server and a cloud."""

    def __init__(self, api: FakeApiServer, simulator: Simulator, folder: Path) -> None:
        self.api, self.simulator, self.folder = api, simulator, folder
        self.kubeconfig = folder / "kubeconfig"
        cluster = {"name": "c", "cluster": {"server": api.url}}
        context = {"name": "c", "context": {"cluster": "c", "user": "u", "namespace": "teams"}}
        config = {"clusters": [cluster], "contexts": [context], "users": [{"name": "u"}], "current-context": "c"}
        self.kubeconfig.write_text(yaml.safe_dump({"apiVersion": "v1", "kind": "Config", **config}))
        content = {"clouds.yaml": simulator.clouds_yaml.read_bytes()}
        api.put(SECRET, objects.in_namespace(objects.secret("cloud", content), "teams"))

    def run(self, *arguments: str) -> int:
        """Return the exit status."""
        return main(["plan", *arguments, "--kubeconfig", str(self.kubeconfig)])

    def file(self, *documents: object) -> str:
        """Return the path of a file with documents."""
        path = self.folder / "objects.yaml"
        path.write_text(yaml.safe_dump_all(documents))
        return str(path)

    def writes(self) -> list[str]:
        """Return all writes that either side got."""
        calls = self.simulator.cloud.counter.log()
        sent = [f"{each['method']} {each['path']}" for each in calls if each["method"] != "GET"]
        return [each for each in sent if not each.endswith("/auth/tokens")] + [str(each) for each in self.api.writes()]


def serving(*kinds: Kind) -> FakeApiServer:
    """Return an API server with these kinds."""
    return FakeApiServer(tuple(dict.fromkeys((*kinds, *KINDS, *BUILT_IN, *OURS))))


@pytest.fixture
def command(tmp_path: Path) -> Iterator[Command]:
    with serving().running() as api, Simulator.start() as simulator:
        simulator.cloud.counter.reset()
        yield Command(api, simulator, tmp_path)


def test_a_file_with_a_new_cluster_has_status_3_and_nothing_is_written(
    command: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command.run("-f", command.file(*objects.cluster_objects(NAME))) == ExitStatus.FOUND
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["ACTION", "KIND", "NAME", "OBJECT", "STEP", "CAUSE"]
    assert any(line.startswith("create   network") and "NetworkReady" in line for line in lines)
    assert lines[-1] == "plan: 4 to create, 2 to update, 0 to delete"
    assert command.writes() == []


def test_a_live_cluster_is_planned_by_its_name(command: Command, capsys: pytest.CaptureFixture[str]) -> None:
    cluster = command.api.put(CLUSTER, objects.in_namespace(objects.cluster(NAME), "teams"))
    infra = objects.in_namespace(objects.openstack_cluster(NAME, owner=cluster), "teams")
    command.api.put(OPENSTACK_CLUSTER, infra)
    assert command.run(NAME, "-o", "yaml") == ExitStatus.FOUND
    shown = yaml.safe_load(capsys.readouterr().out)
    assert shown["summary"] == {"create": 4, "update": 2, "delete": 0}
    assert command.writes() == []


@pytest.mark.parametrize("text", ["[" * 5000, '{"a":' * 5000, "[]", "5", '{"apiVersion": 5}'])
def test_what_others_wrote_into_the_annotation_of_kubectl_ends_no_plan(command: Command, text: str) -> None:
    cluster = command.api.put(CLUSTER, objects.in_namespace(objects.cluster(NAME), "teams"))
    infra = objects.in_namespace(objects.openstack_cluster(NAME, owner=cluster), "teams")
    annotations = {manifest.LAST_APPLIED: text}
    for kind, obj in ((CLUSTER, cluster), (OPENSTACK_CLUSTER, infra)):
        command.api.put(kind, {**obj, "metadata": {**obj["metadata"], "annotations": annotations}})
    assert command.run("-f", command.file(*objects.cluster_objects(NAME))) == ExitStatus.FOUND


def test_a_cluster_that_does_not_exist_has_status_1(command: Command, capsys: pytest.CaptureFixture[str]) -> None:
    assert command.run("nothing") == ExitStatus.FAILED
    error = capsys.readouterr().err
    assert error.startswith("capo plan: no Cluster or OpenStackCluster teams/nothing in ")
    assert error.count("\n") == 1


def test_before_a_takeover_objects_are_read_in_the_older_version(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    older = replace(OPENSTACK_CLUSTER, version="v1beta1")
    with serving(older).running() as api, Simulator.start() as simulator:
        command = Command(api, simulator, tmp_path)
        cluster = api.put(CLUSTER, objects.in_namespace(objects.cluster(NAME), "teams"))
        infra = objects.in_namespace(objects.openstack_cluster(NAME, owner=cluster), "teams")
        api.put(older, conversion.convert(infra, older.api_version))
        assert command.run(NAME) == ExitStatus.FOUND
    assert "NetworkReady" in capsys.readouterr().out


@pytest.mark.parametrize("arguments", [(), ("shop", "-f", "file.yaml")], ids=["neither", "both"])
def test_either_a_cluster_or_files_are_planned(command: Command, arguments: tuple[str, ...]) -> None:
    with pytest.raises(SystemExit) as ended:
        command.run(*arguments)
    assert ended.value.code == ExitStatus.USAGE
