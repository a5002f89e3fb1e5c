"""The steps of an OpenStackMachine: its OpenStackServer, then how the API of a control plane machine is reached.

Traffic is taken away before the server is: deletion runs the list backwards. What a step does is in ``child.py`` and
``ingress.py``.
"""

from __future__ import annotations

from typing import Final

from capo.controllers.openstackmachine import child, ingress
from capo.engine.steps import Plan, Step

INSTANCE: Final = "InstanceReady"
INGRESS: Final = "APIServerIngressReady"

STEPS: Final = (
    Step(INSTANCE, ensure=child.ensure, remove=child.remove),
    Step(INGRESS, ensure=ingress.ensure, remove=ingress.remove),
)
PLAN: Final = Plan(STEPS)
