"""Runs each test on both clouds: on the simulator, and with the marker ``lab`` on the real services."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from capo.crdgen import files
from capo.local.rig import Rig
from capo.local.testing import core_definitions
from e2e.servers.environment import USER_DATA, ServersEnvironment, servers_environment
from environments import objects
from environments.targets import LAB, SIMULATOR


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Parametrize each test that uses a cloud with both; those marked ``lab`` run only on the real services."""
    if "ground" in metafunc.fixturenames:
        is_for_lab = metafunc.definition.get_closest_marker("lab") is not None
        clouds = [*([] if is_for_lab else [SIMULATOR]), pytest.param(LAB, marks=pytest.mark.lab)]
        metafunc.parametrize("ground", clouds, indirect=True, scope="session")


@pytest.fixture(scope="session")
def ground(
    request: pytest.FixtureRequest, api_server: Rig, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ServersEnvironment]:
    """A project, a namespace and a manager of our own."""
    api_server.install_crds(files.load(), strip_conversion=True)
    ipam = [each for name, each in core_definitions().items() if name.endswith(".ipam.cluster.x-k8s.io")]
    api_server.install_crds(ipam, strip_conversion=True)
    kubeconfig = api_server.install_provider_account()
    with servers_environment(api_server, kubeconfig, request.param, tmp_path_factory.mktemp("servers")) as made:
        made.apply(objects.secret("user-data", {"value": USER_DATA}))
        yield made
