"""Roles of resources: stored in status and cloud, so their text is fixed."""

from __future__ import annotations

import pytest

from controllers import roles


@pytest.mark.parametrize(
    ("role", "expected"),
    [
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
    assert roles.port_of_member(roles.member(9345)) == 9345


def test_volumes_are_recognised_by_their_role() -> None:
    assert roles.is_volume(roles.volume(None))
    assert roles.is_volume(roles.volume(3))
    assert not roles.is_volume(roles.port(3))
