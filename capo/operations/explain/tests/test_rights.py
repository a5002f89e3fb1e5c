"""Explanations by users with the documented rights, on a real API server and a simulated cloud."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from capo.crdgen import files
from capo.local.rig import Rig
from capo.local.testing import core_definitions
from capo.operations.tests import environment, rights
from capo.simulator.simulator import Simulator
from environments import objects

pytestmark = pytest.mark.integration

PLACE = "explain"
SELECTOR = {"matchLabels": {"kubernetes.io/metadata.name": PLACE}}
SHARED = {"type": "ClusterIdentity", "name": "explain", "cloudName": "sim"}


@pytest.fixture(scope="module")
def simulator() -> Iterator[Simulator]:
    with Simulator.start() as running:
        yield running


@pytest.fixture(scope="module")
def server(api_server: Rig, simulator: Simulator) -> Iterator[Rig]:
    """Yield an API server with a cluster and a machine whose credentials are shared."""
    core = core_definitions()
    api_server.install_crds([*files.load(), *(core[f"{name}.cluster.x-k8s.io"] for name in ("clusters", "machines"))])
    identity = {
        "apiVersion": "infrastructure.cluster.x-k8s.io/v1alpha1",
        "kind": "OpenStackClusterIdentity",
        "metadata": {"name": "explain"},
        "spec": {"secretRef": {"name": "cloud", "namespace": PLACE}, "namespaceSelector": SELECTOR},
    }
    wanted = [
        objects.secret("cloud", {"clouds.yaml": simulator.clouds_yaml.read_bytes()}),
        *objects.cluster_objects("c", identityRef=SHARED),
        *objects.machine_objects("m", "c"),
    ]
    placed = [objects.in_namespace(each, PLACE) for each in wanted]
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": PLACE}}
    api_server.apply([namespace, identity, *placed])
    network = {"network": {"id": "absent", "name": "absent"}}
    api_server.api.patch(f"{api_server.api.path_of(placed[2])}/status", {"status": network})
    yield api_server
    for each in (identity, *placed):  # other tests read all namespaces
        api_server.api.delete(api_server.api.path_of(each))


def test_the_documented_rights_are_enough_and_all_of_them_are_used(
    server: Rig, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    role = rights.documented("explain")
    kubeconfig = rights.user(server, role, PLACE)
    asked = rights.record_requests(monkeypatch)

    statuses = [
        environment.capo("explain", name, "-n", PLACE, "--kubeconfig", kubeconfig)
        for name in ("cluster/c", "machine/m", "openstackmachine/m")
    ]

    printed = capsys.readouterr()
    # The network of the status does not exist, and the OpenStackMachine has no owner: no manager runs.
    assert (statuses, printed.err) == ([3, 3, 3], "")
    assert re.search(r"network network +absent +does not exist", printed.out)
    assert asked == rights.granted(role)


def test_without_the_rights_on_credentials_the_cloud_alone_is_missing(
    server: Rig, capsys: pytest.CaptureFixture[str]
) -> None:
    role = rights.documented("explain")
    role["metadata"]["name"] = "capo-explain-without-credentials"
    role["rules"] = [rule for rule in role["rules"] if "secrets" not in rule["resources"]]
    kubeconfig = rights.user(server, role, PLACE)
    arguments = ("explain", "cluster/c", "-n", PLACE, "--kubeconfig", kubeconfig)

    assert environment.capo(*arguments) == 4
    assert "capo explain: not read: the cloud: user system:serviceaccount:explain:capo-explain-without" in (
        capsys.readouterr().err
    )
    assert environment.capo(*arguments, "--no-cloud") == 0
    assert capsys.readouterr().err == ""
