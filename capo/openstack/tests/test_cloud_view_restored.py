"""What a view concludes once the objects' records went back, as after a restore of etcd."""

from __future__ import annotations

from typing import Any

import pytest

from capo.errors import NotYetObserved
from capo.ledger import Ledger
from capo.openstack.tests.builders import OWNER, FakeCloud, cloud_view, find_after_list, server

WINDOW_S = 60.0


def test_after_a_restore_an_owner_that_was_born_here_needs_a_list_for_an_absence(
    cloud: FakeCloud, ledger: Ledger
) -> None:
    assert cloud_view(cloud, ledger, is_newborn=True).find("server", "server") is None
    cloud.put("server", server())

    cloud.poller.owners.distrust(WINDOW_S)

    found = find_after_list(cloud, ledger, "server", "server")
    assert found is not None
    assert ledger.id_of("server") == found["id"]


def test_lists_from_before_a_restore_prove_no_absence(cloud: FakeCloud, ledger: Ledger) -> None:
    assert find_after_list(cloud, ledger, "port", "port-0") is None
    cloud.clock.advance(1)

    cloud.poller.owners.distrust(0.0)

    assert find_after_list(cloud, ledger, "port", "port-0") is None
    assert cloud.lists("port") == 2


def test_a_create_whose_intent_was_lost_with_a_restore_is_waited_for(cloud: FakeCloud) -> None:
    assert find_after_list(cloud, Ledger(), "server", "server") is None
    send_create_without_answer(cloud)
    cloud.poller.owners.distrust(WINDOW_S)

    def look() -> str:
        found = cloud_view(cloud).find("server", "server")
        return "absent" if found is None else str(found["id"])

    with pytest.raises(NotYetObserved):
        look()
    cloud.run()
    with pytest.raises(NotYetObserved):
        look()
    cloud.put("server", server())  # the create takes effect late in its window
    cloud.clock.advance(WINDOW_S)
    cloud.run()

    assert look() == "s1"


def test_a_create_that_was_under_way_during_a_restore_has_its_whole_window(cloud: FakeCloud) -> None:
    assert find_after_list(cloud, Ledger(), "server", "server") is None
    cloud.poller.owners.distrust(WINDOW_S)
    cloud.clock.advance(2 * WINDOW_S)
    send_create_without_answer(cloud)

    for _ in range(2):
        with pytest.raises(NotYetObserved):
            cloud_view(cloud).find("server", "server")
        cloud.run()


def test_a_window_of_lost_intents_is_waited_for_once(cloud: FakeCloud) -> None:
    assert find_after_list(cloud, Ledger(), "server", "server") is None
    cloud.poller.owners.distrust(WINDOW_S)
    facts: dict[str, Any] = {"is_history_lost": True, "window_s": WINDOW_S}
    for _ in range(2):
        with pytest.raises(NotYetObserved):
            cloud_view(cloud, **facts).find("server", "server")
        cloud.run()
        cloud.clock.advance(WINDOW_S)
    cloud.run()

    assert cloud_view(cloud, **facts).find("server", "server") is None


def test_what_was_known_before_another_manager_had_an_object_proves_no_absence(
    cloud: FakeCloud, ledger: Ledger
) -> None:
    assert cloud_view(cloud, ledger, is_newborn=True).find("server", "server") is None
    cloud.put("server", server())  # by the other manager

    cloud.poller.owners.distrust_key("key")

    assert find_after_list(cloud, ledger, "server", "server") is not None


def send_create_without_answer(cloud: FakeCloud) -> None:
    cloud.poller.owners.mark_written(OWNER, "server", ["server"])
    cloud.clock.advance(1)
