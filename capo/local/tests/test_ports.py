from __future__ import annotations

import json
import socket
from typing import TYPE_CHECKING

import pytest

from capo.local import ports
from capo.local.errors import RigError
from capo.local.layout import Layout

if TYPE_CHECKING:
    from pathlib import Path


def rig_at(path: Path) -> Layout:
    rig = Layout(path)
    rig.create()
    return rig


def test_ports_are_different_and_in_the_range() -> None:
    names = [f"port-{number}" for number in range(200)]

    chosen = ports.choose(names, taken=set(), free=lambda _: True)

    assert list(chosen) == names
    assert len(set(chosen.values())) == len(names)
    assert set(chosen.values()) <= set(ports.RANGE)


def test_ports_that_are_taken_or_listened_on_are_not_chosen() -> None:
    only = ports.RANGE[7]

    chosen = ports.choose(["one"], taken=set(ports.RANGE) - {only, only + 1}, free=lambda port: port == only)

    assert chosen == {"one": only}


def test_no_free_port_is_an_error_that_says_so() -> None:
    with pytest.raises(RigError, match="no free port"):
        ports.choose(["one"], taken=set(ports.RANGE))


def test_a_port_that_is_listened_on_is_not_free() -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()

        assert not ports.is_free(listener.getsockname()[1])


def test_ports_stay_the_same_and_new_names_get_new_ones(tmp_path: Path) -> None:
    rig = rig_at(tmp_path / "rig")

    first = ports.allocate(rig, ["etcd"], cache=tmp_path)
    second = ports.allocate(rig, ["etcd", "kube-apiserver"], cache=tmp_path)

    assert second["etcd"] == first["etcd"]
    assert second["kube-apiserver"] != first["etcd"]
    assert rig.read_state()["ports"] == second


def test_ports_of_a_stopped_rig_are_not_given_to_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pair = next(range(port, port + 2) for port in ports.RANGE if ports.is_free(port) and ports.is_free(port + 1))
    monkeypatch.setattr(ports, "RANGE", pair)
    first = ports.allocate(rig_at(tmp_path / "one"), ["etcd"], cache=tmp_path)

    second = ports.allocate(rig_at(tmp_path / "two"), ["etcd"], cache=tmp_path)

    assert {*first.values(), *second.values()} == set(pair)


def test_a_spare_port_is_none_of_a_rig_and_stays_for_the_next(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pair = next(range(port, port + 2) for port in ports.RANGE if ports.is_free(port) and ports.is_free(port + 1))
    monkeypatch.setattr(ports, "RANGE", pair)
    held = ports.allocate(rig_at(tmp_path / "rig"), ["etcd"], cache=tmp_path)

    first = ports.choose_spare(["ours"], cache=tmp_path)
    second = ports.choose_spare(["ours"], cache=tmp_path)

    assert {*held.values(), *first.values()} == set(pair)
    assert second == first


def test_ports_of_a_removed_rig_are_free_again(tmp_path: Path) -> None:
    rig = rig_at(tmp_path / "one")
    ports.allocate(rig, ["etcd"], cache=tmp_path)
    rig.state.unlink()

    register = json.loads((tmp_path / "ports.json").read_text())

    assert len(register) == 1
    assert ports.still_held(register) == {}
