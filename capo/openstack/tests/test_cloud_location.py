"""Where credentials lead to: the project of their token, the region of the endpoints in use, the host they name."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from capo.ledger import Location
from capo.openstack import identity
from capo.openstack.cloud import Cloud
from capo.openstack.clouds import Clouds
from capo.simulator.keystone import service as keystone
from capo.simulator.keystone.service import catalog, service_id
from capo.simulator.simulator import Simulator
from capo.simulator.testing import Client


def cloud_of(simulator: Simulator, clouds: Clouds, **fields: Any) -> Cloud:
    entry = yaml.safe_load(simulator.clouds_yaml.read_text())["clouds"]["sim"]
    text = yaml.safe_dump({"clouds": {"sim": {**entry, **fields}}}).encode()
    return clouds.get(identity.parse(text, "sim"))


def add_region(simulator: Simulator, *kinds: str) -> None:
    """Add endpoints of services in another region."""

    def add() -> None:
        for kind in kinds:
            simulator.cloud.table("identity", "endpoints")[kind] = {
                "id": kind,
                "interface": "public",
                "region_id": "Two",
                "region": "Two",
                "service_id": service_id(kind),
                "url": f"{simulator.url}/{kind}",
                "enabled": True,
            }

    simulator.call(add)


def test_project_region_and_host_are_told_after_one_login(simulator: Simulator, clouds: Clouds) -> None:
    cloud = cloud_of(simulator, clouds)
    client = Client(simulator)
    simulator.cloud.counter.reset()

    found = {cloud.location for _ in range(3)}

    host = simulator.url.removeprefix("http://")
    assert found == {Location(host, client.project_id, "RegionOne")}
    assert [call["path"] for call in simulator.cloud.counter.log()] == ["/v3/auth/tokens"]
    client.session.close()


def test_without_a_region_it_is_that_of_the_end_points_in_use(simulator: Simulator, clouds: Clouds) -> None:
    assert cloud_of(simulator, clouds, region_name="").location.region == "RegionOne"


def test_of_several_regions_the_one_in_use_is_told(simulator: Simulator, clouds: Clouds) -> None:
    add_region(simulator, "compute", "image")

    cloud = cloud_of(simulator, clouds, region_name="")

    assert cloud.location.region == "RegionOne"


def test_services_in_several_regions_are_told_with_all_of_them(
    simulator: Simulator, clouds: Clouds, monkeypatch: pytest.MonkeyPatch
) -> None:
    def spread(*args: Any) -> list[dict[str, Any]]:
        found = catalog(*args)
        for endpoint in next(each["endpoints"] for each in found if each["type"] == "network"):
            endpoint |= {"region": "Two", "region_id": "Two"}
        return found

    monkeypatch.setattr(keystone, "catalog", spread)

    assert cloud_of(simulator, clouds, region_name="").location.region == "RegionOne,Two"


@pytest.mark.parametrize(
    ("auth_url", "expected"),
    [
        ("https://Keystone.Example:5000/v3", "keystone.example:5000"),
        ("https://keystone.example:443/identity/v3", "keystone.example"),
        ("http://keystone.example:80", "keystone.example"),
        ("https://keystone.example:80", "keystone.example:80"),
        ("https://user:secret@keystone.example", "keystone.example"),
        ("http://[2001:db8::1]:5000/v3", "[2001:db8::1]:5000"),
    ],
)
def test_a_host_is_told_without_what_does_not_distinguish_it(auth_url: str, expected: str) -> None:
    auth = {"auth_url": auth_url, "username": "u", "password": "p", "project_id": "1"}
    text = yaml.safe_dump({"clouds": {"sim": {"auth": auth}}}).encode()

    assert identity.parse(text, "sim").auth_host == expected
