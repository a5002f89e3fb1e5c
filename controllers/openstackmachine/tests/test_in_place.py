"""Edits of a machine that has its server: those that pass admission change nothing in the cloud (C-26)."""

from __future__ import annotations

from typing import Any

import pytest

from capo.kube.kinds import OPENSTACK_MACHINE, OPENSTACK_SERVER
from controllers.openstackmachine.tests.control_plane_environment import ControlPlaneEnvironment


@pytest.mark.parametrize(
    "edit",
    [
        pytest.param({"flavor": {"filter": {"name": "m1.medium"}}}, id="flavor"),
        pytest.param({"image": {"filter": {"name": "other"}}}, id="image"),
        pytest.param({"tags": ["new"]}, id="tags"),
        pytest.param({"ports": [{}, {"nameSuffix": "second"}]}, id="ports"),
        pytest.param({"rootVolume": {"sizeGiB": 1}}, id="root volume"),
    ],
)
def test_an_edit_of_a_machine_changes_nothing_of_its_server_c_26(
    site: ControlPlaneEnvironment, edit: dict[str, Any]
) -> None:
    site.add("one")
    site.stage.settle(for_s=120)
    before = site.stage.get(OPENSTACK_SERVER, "one")["spec"]
    servers = site.all("servers")
    site.stage.cloud.counter.reset()

    site.stage.patch(OPENSTACK_MACHINE, "one", {"spec": edit})
    site.stage.settle(for_s=1300)

    assert site.stage.get(OPENSTACK_SERVER, "one")["spec"] == before
    assert site.all("servers") == servers
    assert not [asked for asked in site.stage.requests() if not asked.startswith("GET") and "/auth/" not in asked]
    assert site.stage.condition(OPENSTACK_MACHINE, "one", "Ready")["status"] == "True"
