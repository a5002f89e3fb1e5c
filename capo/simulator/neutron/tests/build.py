"""Builders with good defaults for the tests of Neutron."""

from __future__ import annotations

from typing import Any

from capo.simulator.testing import Client

V2 = "/network/v2.0"
NOWHERE = "11111111-1111-1111-1111-111111111111"


def network(client: Client, **values: Any) -> Any:
    return client.make(f"{V2}/networks", "network", **values)


def subnet(client: Client, network_id: str, **values: Any) -> Any:
    values = {"ip_version": 4, "cidr": "10.0.0.0/24", **values}
    return client.make(f"{V2}/subnets", "subnet", network_id=network_id, **values)


def port(client: Client, network_id: str, **values: Any) -> Any:
    return client.make(f"{V2}/ports", "port", network_id=network_id, **values)


def group(client: Client, **values: Any) -> Any:
    return client.make(f"{V2}/security-groups", "security_group", **values)


def rule(client: Client, group_id: str, **values: Any) -> Any:
    values = {"direction": "ingress", **values}
    return client.make(f"{V2}/security-group-rules", "security_group_rule", security_group_id=group_id, **values)


def router(client: Client, **values: Any) -> Any:
    return client.make(f"{V2}/routers", "router", **values)


def external(client: Client) -> str:
    found = client.ask("GET", f"{V2}/networks?router:external=true")["networks"]
    return str(found[0]["id"])


def interface(client: Client, router_id: str, subnet_id: str) -> Any:
    return client.ask("PUT", f"{V2}/routers/{router_id}/add_router_interface", {"subnet_id": subnet_id})


class Plan:
    """A network with a subnet behind a router with a gateway."""

    def __init__(self, client: Client) -> None:
        self.network = network(client, name="inner")
        self.subnet = subnet(client, self.network["id"])
        self.router = router(client, external_gateway_info={"network_id": external(client)})
        interface(client, self.router["id"], self.subnet["id"])


def refusal(answer: Any) -> tuple[int, str, str]:
    """Return status, type and message of a refusal."""
    error = answer.json()["NeutronError"]
    return answer.status_code, error["type"], error["message"]
