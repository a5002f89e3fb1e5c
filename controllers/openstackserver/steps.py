"""The steps of an OpenStackServer; deletion runs them in reverse order.

Each step has its own module; ``desired.py`` builds the requests, ``status.py`` the status beside the conditions of the
steps. Volumes and ports are created in parallel; so are the server and the association of its address.
"""

from __future__ import annotations

from typing import Final

from capo.engine.steps import Plan, Step, nothing
from controllers import address_pairs as edits
from controllers.openstackserver import address, address_pairs, ip_address_claim
from controllers.openstackserver.creation_guard import until_born
from controllers.openstackserver.ports import ensure_ports, ensure_trunks, remove_ports, remove_trunks
from controllers.openstackserver.resolve import resolve_references
from controllers.openstackserver.server import ensure_server, remove_server
from controllers.openstackserver.volumes import ensure_volumes, remove_volumes

STEPS: Final = (
    Step("DependenciesResolved", ensure=until_born(resolve_references), remove=nothing),
    Step(
        "AddressClaimed",
        ensure=until_born(ip_address_claim.ensure),
        remove=ip_address_claim.remove,
        needs=("DependenciesResolved",),
    ),
    Step("PortsReady", ensure=until_born(ensure_ports), remove=remove_ports, needs=("AddressClaimed",)),
    Step("TrunksReady", ensure=until_born(ensure_trunks), remove=remove_trunks, needs=("PortsReady",)),
    Step("VolumesReady", ensure=until_born(ensure_volumes), remove=remove_volumes, needs=("AddressClaimed",)),
    Step(
        "FloatingAddressFromPoolReady",
        ensure=address.ensure,
        remove=nothing,
        needs=("PortsReady",),
        failure_reason="FloatingIPError",
    ),
    Step(
        "InstanceReady",
        ensure=ensure_server,
        remove=remove_server,
        needs=("PortsReady", "TrunksReady", "VolumesReady"),
    ),
    Step(edits.CONDITION, ensure=address_pairs.ensure, remove=nothing, needs=("PortsReady",), is_vital=False),
)
PLAN: Final = Plan(STEPS)
