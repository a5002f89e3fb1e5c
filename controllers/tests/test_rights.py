"""The role in the chart grants every request of the controllers to the API server."""

from __future__ import annotations

from typing import Any

import pytest

from capo import components
from capo.controllers.openstackcluster.subject import ClusterSubject
from capo.controllers.openstackfloatingippool.subject import FloatingIPPoolSubject
from capo.controllers.openstackmachine.subject import MachineSubject
from capo.controllers.openstackserver.subject import ServerSubject

SUBJECTS: tuple[Any, ...] = (ClusterSubject, FloatingIPPoolSubject, MachineSubject, ServerSubject)
(ROLE,) = (manifest for manifest in components.rbac() if manifest["kind"] == "ClusterRole")


def verbs(group: str, resource: str) -> set[str]:
    rules = [rule for rule in ROLE["rules"] if group in rule["apiGroups"] and resource in rule["resources"]]
    return {verb for rule in rules for verb in rule["verbs"]}


@pytest.mark.parametrize("subject", SUBJECTS, ids=lambda subject: subject.name)
def test_what_a_controller_watches_may_be_watched_and_its_own_objects_written(subject: Any) -> None:
    for kind in (subject.kind, *(route.kind for route in subject.routes)):
        assert verbs(kind.group, kind.plural) >= {"get", "list", "watch"}, kind
    assert "patch" in verbs(subject.kind.group, subject.kind.plural)
    assert verbs(subject.kind.group, f"{subject.kind.plural}/status") == {"patch"}
