"""Roles of resources: stored in status and cloud, so their text is fixed."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from controllers import roles

PAGE: Final = Path(__file__).parents[2] / "docs/reference/openstackcluster.md"


@pytest.mark.parametrize(
    ("role", "expected"),
    [
        (roles.NETWORK, "network"),
        (roles.SUBNET, "subnet"),
        (roles.ADDITIONAL_SUBNET, "subnet-2"),
        (roles.ROUTER, "router"),
        (roles.ROUTER_INTERFACE, "router-interface"),
        (roles.ADDITIONAL_ROUTER_INTERFACE, "router-interface-2"),
        (roles.LOAD_BALANCER, "lb-api"),
        (roles.API_FLOATING_IP, "fip-api"),
        (roles.BASTION_FLOATING_IP, "fip-bastion"),
        (roles.group(roles.CONTROL_PLANE), "group-controlplane"),
        (roles.group(roles.WORKER), "group-worker"),
        (roles.group(roles.BASTION), "group-bastion"),
        (roles.listener(6443), "listener-6443"),
        (roles.pool(6443), "pool-6443"),
        (roles.monitor(6443), "monitor-6443"),
        (roles.member(6443), "member-6443"),
        (roles.additional_member(6443), "member-6443-2"),
        (roles.servers("hard", ""), "servers-hard-e3b0c44298fc1c149afb"),
        (roles.SERVER, "server"),
        (roles.port(0), "port-0"),
        (roles.trunk(0), "trunk-0"),
        (roles.volume(None), "volume-root"),
        (roles.volume(0), "volume-0"),
    ],
)
def test_a_role_keeps_its_text(role: str, expected: str) -> None:
    assert role == expected


def test_ports_are_read_from_the_roles_of_pools_and_members() -> None:
    assert roles.port_of_pool(roles.pool(6443)) == 6443
    assert {roles.port_of_member(role) for role in roles.members(9345)} == {9345}


@pytest.mark.lint
@pytest.mark.parametrize(
    "role",
    [
        roles.NETWORK,
        roles.SUBNET,
        roles.ADDITIONAL_SUBNET,
        roles.ROUTER,
        roles.ROUTER_INTERFACE,
        roles.ADDITIONAL_ROUTER_INTERFACE,
        roles.LOAD_BALANCER,
        "listener-<port>",
        "pool-<port>",
        "monitor-<port>",
        roles.API_FLOATING_IP,
        roles.BASTION_FLOATING_IP,
        *map(roles.group, (roles.CONTROL_PLANE, roles.WORKER, roles.BASTION)),
        "servers-<policy>-<hash>",
    ],
)
def test_role_of_a_cluster_is_on_its_page(role: str) -> None:
    page = PAGE.read_text(encoding="utf-8")
    table = page[page.index("## Roles") : page.index("## Deletion")]

    assert f"`{role}`" in table


def test_volumes_are_recognised_by_their_role() -> None:
    assert roles.is_volume(roles.volume(None))
    assert roles.is_volume(roles.volume(3))
    assert not roles.is_volume(roles.port(3))


OF_CLUSTER: Final = (
    ("network", roles.NETWORK),
    ("subnet", roles.SUBNET),
    ("subnet", roles.ADDITIONAL_SUBNET),
    ("router", roles.ROUTER),
    ("port", roles.ROUTER_INTERFACE),
    ("port", roles.ADDITIONAL_ROUTER_INTERFACE),
    ("security_group", roles.group(roles.WORKER)),
    ("server_group", roles.servers("soft", "template")),
    ("floating_ip", roles.API_FLOATING_IP),
    ("floating_ip", roles.BASTION_FLOATING_IP),
    ("load_balancer", roles.LOAD_BALANCER),
    ("listener", roles.listener(65535)),
    ("pool", roles.pool(6443)),
    ("health_monitor", roles.monitor(1)),
)
OF_SERVER: Final = (
    ("server", roles.SERVER),
    ("port", roles.port(0)),
    ("port", roles.port(999)),
    ("trunk", roles.trunk(10)),
    ("volume", roles.volume(None)),
    ("volume", roles.volume(99)),
)


def test_each_role_is_one_of_its_kind_and_owner_alone() -> None:
    assert all(roles.is_of_cluster(*each) and not roles.is_of_server(*each) for each in OF_CLUSTER)
    assert all(roles.is_of_server(*each) and not roles.is_of_cluster(*each) for each in OF_SERVER)
    assert not roles.is_of_cluster("network", roles.SUBNET)


@pytest.mark.parametrize("role", ["", "volume-", "volume-1000", "volume-01", "volume-1\n", "volume-\u0661", "port-0"])
def test_a_role_that_no_volume_has_is_none(role: str) -> None:
    assert not roles.is_of_server("volume", role)
