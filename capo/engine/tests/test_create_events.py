"""Events of creates have the Go provider's reasons and texts."""

from __future__ import annotations

from typing import Any

import pytest

from capo.engine import create_events
from capo.errors import QuotaExceededError


@pytest.mark.parametrize(
    ("kind", "body", "expected"),
    [
        pytest.param(
            "floating_ip",
            {"id": "f", "floating_ip_address": "203.0.113.7", "description": "x"},
            ("SuccessfulCreateFloatingIP", "Created floating IP 203.0.113.7 with id f"),
            id="floating IP",
        ),
        pytest.param(
            "security_group",
            {"id": "g", "name": "k8s"},
            ("SuccessfulCreateSecurityGroup", "Created security group k8s with id g"),
            id="security group",
        ),
        pytest.param(
            "load_balancer",
            {"id": "l", "name": "kubeapi"},
            ("SuccessfulCreateLoadBalancer", "Created load balancer kubeapi with id l"),
            id="load balancer",
        ),
        pytest.param(
            "server", {"id": "s", "name": "m"}, ("SuccessfulCreateServer", "Created server m with id s"), id="server"
        ),
        pytest.param(
            "member",
            {"id": "m", "name": ""},
            ("SuccessfulCreateMember", "Created member role with id m"),
            id="nameless",
        ),
    ],
)
def test_a_create_is_told_as_the_go_provider_does(kind: str, body: dict[str, Any], expected: tuple[str, str]) -> None:
    assert create_events.succeeded(kind, "role", body) == expected


def test_a_failed_create_has_the_reason_of_its_kind_and_the_clouds_words() -> None:
    reason, text = create_events.failed("floating_ip", QuotaExceededError("Quota exceeded for floatingip", status=409))

    assert reason == "FailedCreateFloatingIP"
    assert "Quota exceeded for floatingip" in text
