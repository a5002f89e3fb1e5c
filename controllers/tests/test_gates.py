"""Feature gates switch controllers."""

from __future__ import annotations

from typing import Any

import pytest

from capo.engine.context import Dependencies
from capo.engine.store import Store
from capo.engine.tests.fake_kube import FakeClock, FakeKube
from capo.flag_values import GATES, SCALE_FROM_ZERO
from capo.kube.kinds import OPENSTACK_MACHINE_TEMPLATE
from capo.settings import Settings
from controllers import all_controllers


class Kube(FakeKube):
    fence: Any = None


@pytest.mark.parametrize("is_on", [True, False])
def test_the_gate_switches_the_controller_of_templates(is_on: bool) -> None:
    settings = Settings(feature_gates={**GATES, SCALE_FROM_ZERO: is_on})
    deps = Dependencies(Kube(), Store(), None, FakeClock(), settings)  # type: ignore[arg-type]

    kinds = [controller.kind for controller in all_controllers(deps, lambda _key: None)]

    assert (OPENSTACK_MACHINE_TEMPLATE in kinds) is is_on
