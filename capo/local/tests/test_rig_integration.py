"""Real rigs: each test starts processes."""

from __future__ import annotations

import base64
import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
import requests
import yaml

from capo import components as shipped
from capo.local import components
from capo.local.errors import ApiError, ProcessDiedError
from capo.local.rig import Rig
from capo.local.testing import session_folder
from environments.manager_process import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from capo.json_types import Json

pytestmark = pytest.mark.integration


@pytest.fixture
def own_rig(rigs_folder: Path) -> Iterator[Rig]:
    """Yield a rig that was not started yet, for tests that stop it or kill its processes."""
    made = Rig(session_folder(rigs_folder, "own"), say=print)
    yield made
    made.down(wipe=True)


def config_map(name: str, data: dict[str, str]) -> Json:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default"}, "data": data}


def test_all_processes_of_a_whole_rig_are_ready(rig: Rig) -> None:
    expected = {component.name for component in (*components.API, *components.MANAGERS)}

    wait_until(
        "all are ready", lambda: {state.name for state in rig.status() if state.condition == "ready"} == expected
    )


def test_everything_that_a_rig_starts_listens_on_loopback_only(rig: Rig) -> None:
    pids = {state.pid for state in rig.status()}

    listening = {address for pid in pids if pid for address in listening_addresses(pid)}

    assert len(listening) > len(components.MANAGERS)
    assert all(address.startswith("127.") for address in listening)


def test_webhooks_of_cluster_api_answer(rig: Rig) -> None:
    cluster = {
        "apiVersion": "cluster.x-k8s.io/v1beta2",
        "kind": "Cluster",
        "metadata": {"name": "bad-network", "namespace": "default"},
        "spec": {"clusterNetwork": {"pods": {"cidrBlocks": ["not-a-network"]}}},
    }

    with pytest.raises(ApiError, match=r"admission webhook .* invalid CIDR address"):
        rig.apply([cluster])


def test_kinds_of_cluster_api_are_converted(rig: Rig) -> None:
    rig.apply([machine_drain_rule("convert-me")])

    old = rig.api.get("/apis/cluster.x-k8s.io/v1beta1/namespaces/default/machinedrainrules/convert-me")

    assert old["apiVersion"] == "cluster.x-k8s.io/v1beta1"


def test_a_deleted_namespace_goes_away(rig: Rig) -> None:
    rig.apply([{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "short-lived"}}])

    rig.api.delete("/api/v1/namespaces/short-lived")

    wait_until("it is gone", lambda: is_absent(rig, "/api/v1/namespaces/short-lived"))


def test_the_provider_account_may_do_what_its_role_says_and_no_more(api_server: Rig) -> None:
    kubeconfig = api_server.install_provider_account()

    allowed = {question: may(kubeconfig, *question) for question in QUESTIONS}

    assert allowed == QUESTIONS


QUESTIONS = {
    ("get", "", "secrets", "default"): True,
    ("list", "", "secrets", "default"): False,
    ("create", "infrastructure.cluster.x-k8s.io", "openstackservers", "default"): True,
    ("patch", "infrastructure.cluster.x-k8s.io", "openstackclusters/status", "default"): True,
    ("patch", "cluster.x-k8s.io", "clusters", "default"): False,
    ("delete", "infrastructure.cluster.x-k8s.io", "openstackservers", "default"): True,
    ("delete", "infrastructure.cluster.x-k8s.io", "openstackclusters", "default"): False,
    ("create", "infrastructure.cluster.x-k8s.io", "openstackmachines", "default"): False,
    ("create", "events.k8s.io", "events", "default"): True,
    ("create", "coordination.k8s.io", "leases", shipped.NAMESPACE): True,
    ("create", "coordination.k8s.io", "leases", "default"): False,
    ("get", "", "pods", "default"): False,
}


def test_a_rig_keeps_ports_and_data_over_a_restart(own_rig: Rig) -> None:
    own_rig.up("api")
    ports = dict(own_rig.ports)
    own_rig.apply([config_map("kept", {"a": "b"})])

    own_rig.down()
    stopped = own_rig.status()
    own_rig.up("api")

    assert stopped == []
    assert own_rig.ports == ports
    assert own_rig.api.get("/api/v1/namespaces/default/configmaps/kept")["data"] == {"a": "b"}


def test_two_rigs_run_side_by_side(api_server: Rig, own_rig: Rig) -> None:
    own_rig.up("api")
    own_rig.apply([config_map("only-here", {})])

    assert not set(own_rig.ports.values()) & set(api_server.ports.values())
    assert is_absent(api_server, "/api/v1/namespaces/default/configmaps/only-here")


def test_a_killed_process_is_reported_with_the_end_of_its_log(own_rig: Rig) -> None:
    own_rig.up("api")
    pid = own_rig.processes.pid("etcd")
    assert pid is not None

    os.kill(pid, signal.SIGKILL)
    wait_until("etcd has ended", lambda: own_rig.processes.pid("etcd") is None)

    with pytest.raises(ProcessDiedError, match="etcd was ended by signal 9"):
        own_rig.check()
    (dead,) = (state for state in own_rig.status() if state.condition == "died")
    assert dead.name == "etcd"
    assert '"level":"warn"' in dead.tail


def test_a_process_that_cannot_start_fails_the_start_at_once(own_rig: Rig) -> None:
    own_rig.up("api")
    own_rig.down()
    (own_rig.layout.pki / "server.key").write_text("not a key")

    with pytest.raises(ProcessDiedError, match="kube-apiserver ended with exit status 1") as caught:
        own_rig.up("api")

    assert "tls" in caught.value.tail


def test_the_command_starts_shows_and_stops_a_rig(own_rig: Rig) -> None:
    def capo(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "capo", "local", *arguments, "--state", str(own_rig.layout.root)]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    started = capo("up", "--only", "api")
    env, status, stopped, after = capo("env"), capo("status"), capo("down"), capo("status")

    assert started.returncode == 0, started.stderr
    assert f"export KUBECONFIG={own_rig.kubeconfig}" in env.stdout
    assert status.returncode == 0
    assert "kube-apiserver" in status.stdout
    assert stopped.returncode == 0
    assert after.returncode == 1


def listening_addresses(pid: int) -> set[str]:
    listed = subprocess.run(["ss", "-Hltnp"], capture_output=True, text=True, check=True).stdout
    return {line.split()[3] for line in listed.splitlines() if f"pid={pid}," in line}


def machine_drain_rule(name: str) -> Json:
    return {
        "apiVersion": "cluster.x-k8s.io/v1beta2",
        "kind": "MachineDrainRule",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"drain": {"behavior": "Skip"}},
    }


def is_absent(rig: Rig, path: str) -> bool:
    return rig.api.find(path) is None


def may(kubeconfig: Path, verb: str, group: str, resource: str, namespace: str) -> bool:
    """Return whether the API server allows this to the user of a kubeconfig's token."""
    config = yaml.safe_load(kubeconfig.read_text())
    cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
    ca = kubeconfig.with_suffix(".ca")
    ca.write_bytes(base64.b64decode(cluster["certificate-authority-data"]))
    resource, _, subresource = resource.partition("/")
    attributes = {
        "verb": verb,
        "group": group,
        "resource": resource,
        "subresource": subresource,
        "namespace": namespace,
    }
    answer = requests.post(
        f"{cluster['server']}/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
        json={
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            "spec": {"resourceAttributes": attributes},
        },
        headers={"Authorization": f"Bearer {user['token']}"},
        verify=str(ca),
        timeout=60,
    )
    return bool(answer.json()["status"]["allowed"])
