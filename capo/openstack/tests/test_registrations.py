"""Objects that change their credentials, and change them back; for how long objects are registered."""

from __future__ import annotations

import gc

import pytest
import yaml

from capo.errors import NotYetObserved
from capo.ledger import Ledger
from capo.names import Stamp
from capo.openstack import identity, network
from capo.openstack.cloud import Cloud
from capo.openstack.cloud_view import CloudView
from capo.openstack.list_poller import FULL_S, ListPoller
from capo.openstack.registrations import Registrations
from capo.openstack.tests.builders import OWNER, FakeCloud, find_after_list, server
from capo.openstack.tests.sharing_environment import SharingEnvironment, world
from capo.simulator.clouds import clouds_document

__all__ = ["world"]


def of_password(world: SharingEnvironment) -> Cloud:
    """Return a cloud with the password of the user: its token has another scope."""
    entry = clouds_document(world.simulator.cloud, world.simulator.url)["clouds"]["sim"]
    secret = yaml.safe_dump({"clouds": {"c": {"auth": entry["auth"]}}}).encode()
    cloud = world.clouds.get(identity.parse(secret, "c"))
    cloud.authenticate()
    return cloud


def view(world: SharingEnvironment, cloud: Cloud, *, is_newborn: bool = False) -> CloudView:
    return CloudView(cloud, Ledger(), owner_id=OWNER, key="key", uid="uid", clock=world.clock, is_newborn=is_newborn)


@pytest.mark.parametrize("is_newborn", [True, False])
def test_what_credentials_showed_proves_no_absence_once_others_were_used(
    world: SharingEnvironment, *, is_newborn: bool
) -> None:
    first, _ = world.opened(2)
    if not is_newborn:
        with pytest.raises(NotYetObserved):
            view(world, first).find("network", "network")
        world.run()
    assert view(world, first, is_newborn=is_newborn).find("network", "network") is None
    world.clock.advance(60)
    other = of_password(world)
    view(world, other)
    made = network.create(other, network.WantedNetwork(Stamp(OWNER, "network"), "n"))  # its record is lost
    world.clock.advance(60)

    with pytest.raises(NotYetObserved):
        view(world, first).find("network", "network")
    world.run()

    found = view(world, first).find("network", "network")
    assert found is not None
    assert found["id"] == made["id"]


def test_lists_of_former_credentials_wake_an_object_no_more(world: SharingEnvironment) -> None:
    first, _ = world.opened(2)
    view(world, first)

    view(world, of_password(world))

    assert first.shared.poller.owners.keys() == set()


def test_a_server_that_vanishes_is_noticed_however_rare_resyncs_are() -> None:
    cloud = FakeCloud()
    cloud.put("server", server())
    cloud.poller = ListPoller(cloud, cloud.clock.now, cloud.woken.append, Registrations(sync_period_s=4 * 3600.0))
    assert find_after_list(cloud, Ledger(), "server", "server", max_age_s=4 * 3600.0) is not None
    for _ in range(100):
        cloud.clock.advance(60)
        cloud.run()
    cloud.woken.clear()

    cloud.bodies["server"].clear()
    cloud.clock.advance(FULL_S + 1)
    cloud.run()

    assert cloud.woken == ["key"]


def test_a_poller_that_is_used_no_more_is_not_kept_for_its_owners() -> None:
    registrations = Registrations()
    cloud = FakeCloud()
    registrations.move(OWNER, cloud.poller)

    del cloud
    gc.collect()

    assert len(registrations._pollers) == 0
