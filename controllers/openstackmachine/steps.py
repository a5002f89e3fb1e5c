"""The steps of an OpenStackMachine: its OpenStackServer, then the access to the API of a control plane machine.

Deletion runs the list in reverse order, so traffic stops before the server is deleted. ``openstackserver.py``,
``ingress.py`` and ``address_pairs.py`` contain the steps.
"""

from __future__ import annotations

from typing import Final

from capo.engine.steps import Plan, Step, nothing
from controllers import address_pairs as edits
from controllers.openstackmachine import address_pairs, ingress, members, openstackserver

INSTANCE: Final = "InstanceReady"
INGRESS: Final = members.CONDITION

STEPS: Final = (
    Step(INSTANCE, ensure=openstackserver.ensure, remove=openstackserver.remove),
    Step(INGRESS, ensure=ingress.ensure, remove=ingress.remove),
    Step(edits.CONDITION, ensure=address_pairs.ensure, remove=nothing, needs=(), is_vital=False),
)
PLAN: Final = Plan(STEPS)
