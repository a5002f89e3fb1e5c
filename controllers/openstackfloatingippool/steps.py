"""The steps of an OpenStackFloatingIPPool; deletion runs them in reverse order.

Releases come first, so that their floating IPs are free for the claims that wait. A failing create holds back neither
the allocation of existing floating IPs nor the answers.
"""

from __future__ import annotations

from typing import Final

from capo.engine.steps import Plan, Step, nothing
from controllers.openstackfloatingippool.allocate import ensure_allocated, ensure_created
from controllers.openstackfloatingippool.answer import ensure_answered
from controllers.openstackfloatingippool.network import ensure_network
from controllers.openstackfloatingippool.release import ensure_released, remove_all

STEPS: Final = (
    Step(
        "FloatingIPNetworkReady",
        ensure=ensure_network,
        remove=nothing,
        failure_reason="UnableToFindNetwork",
    ),
    Step("AddressesReleased", ensure=ensure_released, remove=remove_all, needs=(), is_vital=False),
    Step("AddressesAllocated", ensure=ensure_allocated, remove=nothing, needs=()),
    Step(
        "FloatingIPsCreated",
        ensure=ensure_created,
        remove=nothing,
        needs=("FloatingIPNetworkReady", "AddressesAllocated"),
    ),
    Step("ClaimsAnswered", ensure=ensure_answered, remove=nothing, needs=()),
)
PLAN: Final = Plan(STEPS)
