"""The rule that a floating IP in use is never taken from its port."""

from __future__ import annotations

import pytest

from capo.errors import ForeignResourceError
from capo.openstack import floating_ip


def body(port_id: str | None) -> dict[str, str | None]:
    return {"id": "fip", "floating_ip_address": "198.51.100.9", "port_id": port_id}


@pytest.mark.parametrize("port_id", [None, "", "own"])
def test_a_floating_ip_without_port_or_at_a_permitted_port_may_be_used(port_id: str | None) -> None:
    floating_ip.require_unused(body(port_id), ports=("own", "sibling"))


def test_a_floating_ip_at_another_port_is_refused_with_the_next_step() -> None:
    with pytest.raises(ForeignResourceError, match="leads to port other and is not taken from it") as refused:
        floating_ip.require_unused(body("other"), ports=("own",), next_step="Allocate another one.")

    assert refused.value.resource == "floating_ip fip"
    assert refused.value.next_step == "Allocate another one."
