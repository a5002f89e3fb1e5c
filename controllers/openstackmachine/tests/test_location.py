"""Credentials for a location without pools do not count as proof that a machine has left the load balancer."""

from __future__ import annotations

import contextlib

import pytest

from capo import names
from capo.kube.kinds import OPENSTACK_CLUSTER, OPENSTACK_MACHINE, OPENSTACK_SERVER
from capo.ledger import Ledger
from controllers.openstackmachine.tests.control_plane_environment import ControlPlaneEnvironment
from controllers.tests import elsewhere


@pytest.mark.parametrize("knows_cluster", [False, True], ids=["own record", "the cluster's record"])
@pytest.mark.parametrize("kind", ["project", "region", "cloud"])
def test_a_machine_stays_in_its_pool_while_credentials_lead_elsewhere(
    site: ControlPlaneEnvironment, kind: str, knows_cluster: bool
) -> None:
    stage = site.stage
    site.balance()
    site.add("one")
    stage.settle(for_s=120)
    resources = stage.get(OPENSTACK_MACHINE, "one")["status"]["resources"]
    assert resources["location"]["projectID"] == stage.member.project_id
    if knows_cluster:
        stage.patch(OPENSTACK_CLUSTER, "infra", {"status": {"resources": {"location": resources["location"]}}})
        stage.patch(OPENSTACK_MACHINE, "one", {"status": {"resources": None}})
    ways = {"region": elsewhere.other_region, "cloud": elsewhere.other_cloud}
    project = contextlib.nullcontext(elsewhere.other_project(stage))
    with ways[kind](stage) if kind in ways else project as entry:
        elsewhere.put_credentials(stage, entry)
        stage.start()
        site.delete("one")
        stage.settle(for_s=120)

        assert site.addresses() == [site.address_of("one")]
        assert stage.exists(OPENSTACK_MACHINE, "one")
        assert "IdentityNotUsable" in stage.condition(OPENSTACK_MACHINE, "one", "Ready")["message"]

        stage.apply_secret()
        stage.start()
        stage.settle(for_s=300)
        assert not stage.exists(OPENSTACK_MACHINE, "one")
        assert site.addresses() == []


def test_a_host_that_was_renamed_passes_once_a_pool_is_read_there(site: ControlPlaneEnvironment) -> None:
    site.balance()
    site.add("one")
    site.stage.settle(for_s=120)
    elsewhere.put_credentials(site.stage, elsewhere.other_name(site.stage))
    site.stage.start()

    site.stage.settle(for_s=120)

    found = Ledger.read(site.stage.get(OPENSTACK_MACHINE, "one")["status"])
    assert found.location is not None
    assert found.location.auth_host.startswith("localhost:")
    assert site.ingress("one") == ("True", "Ready")


def test_a_location_that_the_admin_accepts_lets_a_machine_go(site: ControlPlaneEnvironment) -> None:
    site.balance()
    site.add("one")
    site.stage.settle(for_s=120)
    with elsewhere.other_cloud(site.stage) as entry:
        elsewhere.put_credentials(site.stage, entry)
        site.stage.start()
        site.delete("one")
        site.stage.settle(for_s=60)
        message = site.stage.condition(OPENSTACK_MACHINE, "one", "Ready")["message"]
        accepted = message.partition(f"{names.ACCEPT_LOCATION_ANNOTATION}=")[2].rstrip(".")

        for kind in (OPENSTACK_MACHINE, OPENSTACK_SERVER):
            annotations = {names.ACCEPT_LOCATION_ANNOTATION: accepted}
            site.stage.patch(kind, "one", {"metadata": {"annotations": annotations}})
        site.stage.settle(for_s=300)

        assert not site.stage.exists(OPENSTACK_MACHINE, "one")
