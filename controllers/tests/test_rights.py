"""The role in the chart grants every request of the controllers to the API server."""

from __future__ import annotations

from typing import Any

import pytest

from capo import components
from controllers.openstackcluster.controller import ClusterController
from controllers.openstackfloatingippool.controller import FloatingIPPoolController
from controllers.openstackmachine.controller import MachineController
from controllers.openstackmachinetemplate.controller import MachineTemplateController
from controllers.openstackserver.controller import ServerController

SUBJECTS: tuple[Any, ...] = (
    ClusterController,
    FloatingIPPoolController,
    MachineController,
    MachineTemplateController,
    ServerController,
)
(ROLE,) = (manifest for manifest in components.rbac() if manifest["kind"] == "ClusterRole")


def verbs(group: str, resource: str) -> set[str]:
    rules = [rule for rule in ROLE["rules"] if group in rule["apiGroups"] and resource in rule["resources"]]
    return {verb for rule in rules for verb in rule["verbs"]}


@pytest.mark.parametrize("controller", SUBJECTS, ids=lambda controller: controller.name)
def test_what_a_controller_watches_may_be_watched_and_its_own_objects_written(controller: Any) -> None:
    for kind in (controller.kind, *(route.kind for route in controller.routes)):
        assert verbs(kind.group, kind.plural) >= {"get", "list", "watch"}, kind
    assert "patch" in verbs(controller.kind.group, controller.kind.plural)
    assert verbs(controller.kind.group, f"{controller.kind.plural}/status") == {"patch"}
