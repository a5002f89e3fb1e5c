"""Every write that the manager sends has a rule in ``capo plan``."""

from __future__ import annotations

import pytest

from capo.operations.plan.writes import ROUTES
from e2e.contract.provider import ROOT, VERSIONS, uses_in

pytestmark = pytest.mark.lint

MANAGER = ("capo/openstack", "controllers")


def test_every_write_of_the_manager_can_be_planned() -> None:
    paths = [path for package in MANAGER for path in (ROOT / package).rglob("*.py") if "tests" not in path.parts]
    sent = [use for path in paths for use in uses_in(path.read_text(encoding="utf-8"), path.name)]
    own = [each for each in sent if each.service != "identity" and not each.route.startswith("GET ")]
    writes = {f"{each.service} {each.route.replace(VERSIONS[each.service], '', 1)}" for each in own}
    assert len(writes) > 50
    assert writes - ROUTES == set()
