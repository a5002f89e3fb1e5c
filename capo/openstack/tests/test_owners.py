"""Which objects use a project, and with which credentials."""

from capo.openstack.owners import Owners
from capo.openstack.tests.builders import OWNER, FakeClock


def test_an_object_that_was_moved_uses_its_former_credentials_no_more() -> None:
    owners = Owners(FakeClock().now)
    owners.register(OWNER, "former key", uid="one", credential="former")

    owners.register(OWNER, "key", uid="two", credential="present")

    assert owners.keys() == {"key"}
    assert not owners.has_keys_of("former")
    assert owners.keys_of("present") == {"key"}


def test_an_object_that_was_moved_and_removed_leaves_nothing() -> None:
    owners = Owners(FakeClock().now)
    owners.register(OWNER, "key", uid="one", credential="former")
    owners.register(OWNER, "key", uid="two", credential="present")

    owners.remove(OWNER)

    assert owners.keys() == owners.keys_of("former") == owners.keys_of("present") == set()
