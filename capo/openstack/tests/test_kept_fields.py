"""Which fields are kept of listed resources, and what follows from the others."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from capo.compact import NotKeptError
from capo.openstack import view
from capo.openstack.floating_ip import FloatingIP
from capo.openstack.kinds import COMMON, FLOATING_IP, KINDS, PORT, SECURITY_GROUP, SERVER, VOLUME, ResourceKind
from capo.openstack.port import Port
from capo.openstack.security_group import SecurityGroup
from capo.openstack.server import Server
from capo.openstack.tests.builders import FakeCloud, cloud_view, server
from capo.openstack.volume import Volume

VIEWS = (
    (SERVER, Server),
    (PORT, Port),
    (VOLUME, Volume),
    (SECURITY_GROUP, SecurityGroup),
    (FLOATING_IP, FloatingIP),
)
NOISE: dict[str, Any] = {
    "links": [{"rel": "self", "href": "http://nova/s1"}],
    "flavor": {"original_name": "m1", "vcpus": 1},
}


def fields(of: type[view.View]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield name and path of a view's fields."""
    for each in of.__mro__:
        yield from ((name, value.path) for name, value in vars(each).items() if isinstance(value, view.Field))


def read(seen: view.View) -> None:
    """Read all fields of a view, and those of the views in them."""
    for name, _ in fields(type(seen)):
        value = getattr(seen, name)
        for part in value if isinstance(value, tuple) else ():
            if isinstance(part, view.View):
                read(part)


@pytest.mark.parametrize(("kind", "of"), VIEWS, ids=lambda each: getattr(each, "name", ""))
def test_all_that_the_view_of_a_resource_reads_is_kept(kind: ResourceKind, of: type[view.View]) -> None:
    empty: dict[str, Any] = {path[0]: {} if len(path) > 1 else [{}] for _, path in fields(of)}

    read(of(kind.keep({**empty, "id": "a"})))


def test_each_kind_of_which_parts_are_kept_has_a_view_that_is_compared() -> None:
    assert {kind.name for kind in KINDS.values() if kind.kept} == {kind.name for kind, _ in VIEWS}


@pytest.mark.parametrize("kind", KINDS.values(), ids=lambda kind: str(kind.name))
def test_all_that_is_compared_and_the_stamp_are_kept(kind: ResourceKind) -> None:
    kept = kind.keep({"id": "a"})

    assert kind.seen_as(kept) == (None,) * len(kind.watched)
    assert kind.stamp_of(kept) is None
    assert not kind.is_used(kept)
    assert [kept.get(name) for name in COMMON[1:]] == [None] * len(COMMON[1:])


def test_what_lists_and_answers_return_in_addition_is_left_out_and_cannot_be_read(cloud: FakeCloud) -> None:
    cloud.put("server", server("listed", **NOISE))
    cloud.poller.demand("server", "key")
    cloud.run()
    cloud.poller.upsert("server", server("answered", **NOISE))

    for id_ in ("listed", "answered"):
        (found,) = cloud_view(cloud).peek("server", lambda body, id_=id_: body["id"] == id_)  # type: ignore[misc]
        assert found["flavor"] == {"original_name": "m1"}
        with pytest.raises(NotKeptError):
            found.get("links")


def test_a_list_that_differs_in_what_is_left_out_alone_wakes_nobody_and_is_as_current(cloud: FakeCloud) -> None:
    cloud_view(cloud)
    cloud.put("server", server("s1", **NOISE))
    cloud.poller.demand("server", "first")
    cloud.run()
    cloud.woken.clear()
    cloud.put("server", server("s1", links=[], flavor={"original_name": "m1", "vcpus": 2}))

    cloud.poller.demand("server", "second")
    cloud.run()

    assert cloud.woken == ["second"]
    item = cloud.poller.item("server", "s1")
    assert item is not None
    assert item.as_of_s == cloud.clock.now()


def test_a_list_that_differs_in_what_is_kept_wakes_the_owner(cloud: FakeCloud) -> None:
    cloud_view(cloud)
    cloud.put("server", server("s1", **NOISE))
    cloud.poller.demand("server", "first")
    cloud.run()
    cloud.woken.clear()
    cloud.put("server", server("s1", flavor={"original_name": "m2"}))

    cloud.poller.demand("server", "second")
    cloud.run()

    assert set(cloud.woken) == {"key", "second"}
