"""Status and conditions (G-5, G-18, C-3, C-5, C-33)."""

from __future__ import annotations

from typing import Any

import pytest

from api.v1beta2.openstackclusterstatus import NetworkStatus, Subnet
from capo.contract.clusters import Endpoint
from capo.engine.steps import Blocked, Done, Failed, NotNeeded, Result, Wait
from capo.errors import CloudUnavailableError, QuotaExceededError
from capo.ledger import Ledger
from controllers.openstackcluster import status
from controllers.openstackcluster.scope import Found
from controllers.openstackcluster.tests.objects import model
from controllers.roles import NETWORK

FULL = Failed(QuotaExceededError("none left"))
WAIT = Wait("Building", "it is being built")
NET = NetworkStatus(name="net", id="n1")
SUB = Subnet(name="sub", id="s1", cidr="10.6.0.0/24")
MANAGED: dict[str, Any] = {"managedSubnets": [{"cidr": "10.6.0.0/24"}]}


def results(**changed: Result) -> dict[str, Result]:
    done: dict[str, Result] = {
        "NetworkReady": Done(),
        "RouterReady": Done(),
        "LoadBalancerReady": NotNeeded(),
        "SecurityGroupsReady": Done(),
        "APIEndpointReady": Done(),
        "FailureDomainsReady": Done(),
        "BastionReady": NotNeeded(),
        "MachinesGone": NotNeeded(),
    }
    return {**done, **changed}


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        pytest.param({"id": "n", "name": "x", "tags": ["t"]}, {"id": "n", "name": "x", "tags": ["t"]}, id="whole"),
        pytest.param(
            {"id": "n", "name": ""}, {"id": "n", "name": "n", "tags": []}, id="W-54: the id for a missing name"
        ),
    ],
)
def test_a_network_is_shown_so_that_the_strict_schema_takes_it(body: dict[str, Any], expected: dict[str, Any]) -> None:
    assert status.network(body).model_dump(mode="json") == expected


def test_a_router_shows_its_addresses() -> None:
    gateway = {"external_fixed_ips": [{"ip_address": "192.0.2.5"}]}

    assert status.router({"id": "r", "name": "r", "external_gateway_info": gateway}).ips == ("192.0.2.5",)
    assert status.router({"id": "r", "name": "r", "external_gateway_info": None}).ips == ()


def test_a_block_is_written_whole_and_clears_what_is_empty_now() -> None:
    fields = status.after_reconcile(Found(network=NET, subnets=(SUB,)), model(MANAGED), results())

    assert fields["network"] == {
        "id": "n1",
        "name": "net",
        "tags": None,
        "subnets": [{"id": "s1", "name": "sub", "cidr": "10.6.0.0/24"}],
    }
    assert fields["externalNetwork"] is None


@pytest.mark.parametrize("result", [FULL, WAIT, Blocked("X")])
def test_a_block_whose_step_is_not_done_stays_as_it_is_w_83(result: Result) -> None:
    fields = status.after_reconcile(
        Found(), model(MANAGED), results(NetworkReady=result, RouterReady=Blocked("NetworkReady"))
    )

    assert not {"network", "externalNetwork", "router"} & fields.keys()


BALANCER = {"id": "lb", "name": "lb-name", "vip_address": "10.6.0.5", "tags": ["t"]}


@pytest.mark.parametrize(
    ("floating_ip", "expected"),
    [
        pytest.param("198.51.100.9", "198.51.100.9", id="floating IP"),
        pytest.param(None, "10.6.0.5", id="W-54: the VIP where there is none"),
    ],
)
def test_the_load_balancer_is_shown_when_it_is_complete(floating_ip: str | None, expected: str) -> None:
    found = Found(load_balancer=BALANCER, floating_ip=floating_ip, vip_network=(NET, (SUB,)))

    block = status.after_reconcile(found, model(MANAGED), results(LoadBalancerReady=Done()))[
        "apiServerManagedLoadBalancer"
    ]

    assert (block["ip"], block["internalIP"], block["id"]) == (expected, "10.6.0.5", "lb")
    assert block["loadBalancerNetwork"]["subnets"][0]["id"] == "s1"


def test_the_load_balancer_is_not_shown_before_its_address_is_known() -> None:
    fields = status.after_reconcile(
        Found(load_balancer=BALANCER), model(MANAGED), results(LoadBalancerReady=Done(), APIEndpointReady=FULL)
    )

    assert "apiServerManagedLoadBalancer" not in fields


@pytest.mark.parametrize(
    ("changed", "of_object", "expected"),
    [
        pytest.param({}, {}, True, id="all done"),
        pytest.param({"LoadBalancerReady": WAIT}, {}, False, id="load balancer is on its way"),
        pytest.param({"BastionReady": FULL}, {}, True, id="the bastion does not count"),
        pytest.param({"FailureDomainsReady": FULL}, {}, False, id="zones were never known"),
        pytest.param(
            {"FailureDomainsReady": FULL}, {"failureDomains": [{"name": "az1"}]}, True, id="zones were known once"
        ),
        pytest.param(
            {"FailureDomainsReady": FULL}, {"initialization": {"provisioned": True}}, True, id="it was provisioned"
        ),
    ],
)
def test_when_the_first_machine_may_be_made(
    changed: dict[str, Result], of_object: dict[str, Any], expected: bool
) -> None:
    assert status.is_provisioned(model(MANAGED, of_object), results(**changed)) is expected


def test_provisioned_is_never_taken_back_c_5() -> None:
    fields = status.after_reconcile(
        Found(), model(MANAGED, {"initialization": {"provisioned": True}}), results(RouterReady=FULL)
    )

    assert "initialization" not in fields


@pytest.mark.parametrize(
    ("result", "expected"),
    [
        pytest.param(Done(), {"controlPlaneEndpoint": {"host": "h", "port": 443}}, id="done"),
        pytest.param(FULL, {}, id="not before the step is done"),
    ],
)
def test_the_endpoint_is_written_when_its_step_is_done(result: Result, expected: dict[str, Any]) -> None:
    assert status.spec(Found(endpoint=Endpoint("h", 443)), results(APIEndpointReady=result)) == expected


def shown(cluster: Any, ledger: Ledger | None = None, **changed: Result) -> dict[str, tuple[str, str]]:
    found = status.shown(cluster, ledger or Ledger(), results(**changed))
    return {condition.type: (condition.status, condition.reason) for condition in found}


def test_the_reason_names_what_of_the_network_failed() -> None:
    made = Ledger()
    made.record("network", NETWORK, "n1")

    assert shown(model(MANAGED), NetworkReady=FULL)["NetworkReady"] == ("False", "NetworkCreateFailed")
    assert shown(model(MANAGED), made, NetworkReady=FULL)["NetworkReady"] == ("False", "SubnetCreateFailed")
    assert shown(model(), NetworkReady=FULL)["NetworkReady"] == ("False", "OpenStackError")


def test_what_holds_up_the_load_balancer_is_shown_on_the_endpoint_too() -> None:
    held = Blocked("LoadBalancerReady")

    assert shown(model(MANAGED), LoadBalancerReady=FULL, APIEndpointReady=held) == {
        "APIEndpointReady": ("False", "APIEndpointConfigFailed")
    }
    assert shown(model(MANAGED), LoadBalancerReady=WAIT, APIEndpointReady=held) == {
        "APIEndpointReady": ("False", "Building")
    }


def test_ready_waits_for_the_zones_until_the_cluster_is_provisioned() -> None:
    failed = Failed(CloudUnavailableError("Nova is down"))

    assert shown(model(MANAGED), FailureDomainsReady=failed)["Ready"] == ("False", "OpenStackError")
    assert "Ready" not in shown(model(MANAGED, {"initialization": {"provisioned": True}}), FailureDomainsReady=failed)


def test_conditions_of_steps_with_nothing_to_do_are_dropped() -> None:
    assert status.dropped(results()) == ["LoadBalancerReady", "BastionReady", "MachinesGone"]
