"""Nova's refusals, word for word as the real one answered."""

from __future__ import annotations

from typing import Any

import pytest

from capo.simulator.testing import Client
from capo.simulator.tests.environment import NOBODY, NOVA, SimulatorEnvironment, stage

__all__ = ["stage"]
FIELD = "Invalid input for field/attribute"


@pytest.mark.parametrize(
    ("values", "message"),
    [
        pytest.param({"flavorRef": NOBODY}, f"Flavor {NOBODY} could not be found.", id="flavor"),
        pytest.param({"imageRef": NOBODY}, "Can not find requested image", id="image"),
        pytest.param({"imageRef": ""}, "Missing imageRef attribute", id="nothing to boot from"),
        pytest.param({"key_name": "nope"}, "Invalid key_name provided.", id="key"),
        pytest.param({"availability_zone": "nope"}, "The requested availability zone is not available", id="zone"),
        pytest.param({"networks": [{"port": NOBODY}]}, f"Port id {NOBODY} could not be found.", id="port"),
        pytest.param({"networks": [{"uuid": NOBODY}]}, f"Network {NOBODY} could not be found.", id="network"),
        pytest.param(
            {"networks": "weird"},
            f"{FIELD} networks. Value: weird. 'weird' is not valid under any of the given schemas",
            id="networks",
        ),
        pytest.param({"tags": ["a,b"]}, f"{FIELD} 0. Value: a,b. 'a,b' does not match '^[^,/]*$'", id="tag"),
        pytest.param({"user_data": "x"}, f"{FIELD} user_data. Value: x. 'x' is not a 'base64'", id="user data"),
        pytest.param(
            {"security_groups": [{"name": "nope"}]},
            "Unable to find security_group with name or id 'nope'",
            id="security group",
        ),
        pytest.param(
            {"block_device_mapping_v2": [{"boot_index": 1, "uuid": NOBODY, "source_type": "volume"}]},
            f"Volume {NOBODY} could not be found.",
            id="volume",
        ),
    ],
)
def test_a_bad_server_is_refused(stage: SimulatorEnvironment, values: dict[str, Any], message: str) -> None:
    status, body = stage.refused("POST", f"{NOVA}/servers", stage.body(**values))

    assert (status, body) == (400, {"badRequest": {"code": 400, "message": message}})


def test_tags_at_creation_need_their_microversion(stage: SimulatorEnvironment) -> None:
    old = {"OpenStack-API-Version": "compute 2.51"}

    status, body = stage.refused("POST", f"{NOVA}/servers", stage.body(tags=["a"]), headers=old)

    assert status == 400
    assert body["badRequest"]["message"].endswith("Additional properties are not allowed ('tags' was unexpected)")


@pytest.mark.parametrize(
    ("version", "status", "message"),
    [
        pytest.param(
            "2.105", 406, "Version 2.105 is not supported by the API. Minimum is 2.1 and maximum is 2.104.", id="high"
        ),
        pytest.param(
            "2.x", 400, "API Version String 2.x is of invalid format. Must be of format MajorNum.MinorNum.", id="bad"
        ),
    ],
)
def test_a_microversion_that_is_not_offered_is_refused(
    stage: SimulatorEnvironment, version: str, status: int, message: str
) -> None:
    found, body = stage.refused("GET", f"{NOVA}/servers", headers={"OpenStack-API-Version": f"compute {version}"})

    assert (found, next(iter(body.values()))["message"]) == (status, message)


@pytest.mark.parametrize(
    ("quota", "message"),
    [
        pytest.param(
            {"instances": 0}, "Quota exceeded for instances: Requested 1, but already used 0 of 0 instances", id="one"
        ),
        pytest.param(
            {"cores": 0, "ram": 10},
            "Quota exceeded for cores, ram: Requested 1, 1024, but already used 0, 0 of 0, 10 cores, ram",
            id="two",
        ),
    ],
)
def test_a_server_over_quota_is_forbidden(stage: SimulatorEnvironment, quota: dict[str, int], message: str) -> None:
    stage.admin.ask("PUT", f"{NOVA}/os-quota-sets/{stage.member.project_id}", {"quota_set": quota})

    status, body = stage.refused("POST", f"{NOVA}/servers", stage.body())

    assert (status, body["forbidden"]["message"]) == (403, message)


def test_a_port_in_use_is_a_conflict(stage: SimulatorEnvironment) -> None:
    port = stage.port(stage.network()[0])
    stage.built(networks=[{"port": port}])

    status, body = stage.refused("POST", f"{NOVA}/servers", stage.body(networks=[{"port": port}]))

    assert (status, body["conflictingRequest"]["message"]) == (409, f"Port {port} is still in use.")


def test_lists_are_strict_from_2_75(stage: SimulatorEnvironment) -> None:
    stage.built()
    lenient = {"OpenStack-API-Version": "compute 2.60"}

    assert len(stage.nova("GET", "/servers?foo=1", headers=lenient)["servers"]) == 1
    status, body = stage.refused("GET", f"{NOVA}/servers?foo=1")
    assert (status, body["badRequest"]["message"]) == (400, "'foo' does not match any of the regexes: '^_'")


def test_a_path_that_nova_does_not_know_is_a_page_of_html(stage: SimulatorEnvironment) -> None:
    answer = stage.member.request("GET", f"{NOVA}/nothing")

    assert (answer.status_code, answer.headers["Content-Type"]) == (404, "text/html; charset=UTF-8")


@pytest.mark.parametrize(
    ("method", "path", "rule"),
    [
        pytest.param("GET", "/servers?all_tenants=1", "os_compute_api:servers:index:get_all_tenants", id="all"),
        pytest.param("GET", "/os-availability-zone/detail", "os_compute_api:os-availability-zone:detail", id="hosts"),
        pytest.param("PUT", "/os-quota-sets/{project}", "os_compute_api:os-quota-sets:update", id="quota"),
    ],
)
def test_what_only_an_admin_may_do_is_forbidden(stage: SimulatorEnvironment, method: str, path: str, rule: str) -> None:
    member: Client = stage.member

    status, body = stage.refused(method, NOVA + path.format(project=member.project_id), {})

    assert (status, body["forbidden"]["message"]) == (403, f"Policy doesn't allow {rule} to be performed.")
