"""Credentials that end while a cloud uses them."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from capo.errors import IdentityError
from capo.openstack import identity
from capo.openstack.cloud import Cloud
from capo.openstack.clouds import Clouds
from capo.openstack.tests.builders import FakeClock
from capo.simulator.simulator import Simulator
from capo.simulator.testing import Client


@pytest.fixture
def simulator() -> Iterator[Simulator]:
    with Simulator.start() as running:
        yield running


def by_application_credential(simulator: Simulator) -> Cloud:
    clouds = Clouds(FakeClock(), lambda _key: None)
    return clouds.get(identity.parse(simulator.clouds_yaml.read_bytes(), "sim-appcred"))


def delete_application_credential(simulator: Simulator, cloud: Cloud) -> None:
    user_id = str(cloud._access().user_id)
    credential_id = cloud.credentials.entry["auth"]["application_credential_id"]
    client = Client(simulator)
    with client.session:
        client.ask("DELETE", f"/identity/v3/users/{user_id}/application_credentials/{credential_id}")


@pytest.mark.parametrize(
    "call",
    [
        pytest.param(lambda cloud: cloud.get("network", "/networks/some"), id="get"),
        pytest.param(lambda cloud: cloud.list_all("compute", "/servers", "servers"), id="list"),
        pytest.param(lambda cloud: cloud.remove("network", "/networks/some"), id="remove"),
        pytest.param(lambda cloud: cloud.post("network", "/networks", json={"network": {}}), id="post"),
    ],
)
def test_an_application_credential_that_was_deleted_makes_no_resource_seem_absent(
    simulator: Simulator, call: Callable[[Cloud], object]
) -> None:
    cloud = by_application_credential(simulator)
    cloud.authenticate()
    delete_application_credential(simulator, cloud)

    with pytest.raises(IdentityError, match="Could not find Application Credential"):
        call(cloud)
