"""Budgets of a cloud's host, and that no caller waits for DNS."""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import Any

import pytest

from capo.openstack import addresses, lookup_threads
from capo.openstack.addresses import Addresses, host_of, network_of, site_of
from capo.openstack.lookup_threads import PER_NAMESPACE, LookupThreads
from capo.shares import unresolved


class Names:
    """DNS whose lookups end when the test decides."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.work: list[Callable[[], None]] = []
        self.asked: list[str] = []
        self.known: dict[str, tuple[str, ...]] = {}
        self.now_s = 0.0
        monkeypatch.setattr(lookup_threads, "in_thread", self.work.append)
        monkeypatch.setattr(lookup_threads, "addresses_of", self._look_up)
        self.addresses = Addresses(lambda: self.now_s)

    def _look_up(self, host: str) -> tuple[str, ...]:
        self.asked.append(host)
        if host not in self.known:
            raise socket.gaierror(socket.EAI_NONAME, "not known")
        return self.known[host]

    def answer(self) -> None:
        """End all lookups."""
        while self.work:
            self.work.pop(0)()


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> Names:
    return Names(monkeypatch)


@pytest.mark.parametrize(
    "auth_url",
    [
        "https://keystone.example/v3",
        "https://KEYSTONE.Example/v3",
        "https://keystone.example./v3",
        "https://keystone.example:443",
        "https://user@keystone.example/other/path?x=1#y",
    ],
)
def test_spellings_of_a_host_are_one_cloud(auth_url: str) -> None:
    assert site_of(auth_url, "RegionOne") == "keystone.example:443/RegionOne"


@pytest.mark.parametrize(
    "host",
    ["192.0.2.7", "3221225991", "0xC0000207", "0300.0.2.7", "192.0.519", "[::ffff:192.0.2.7]", "[64:ff9b::c000:207]"],
)
def test_notations_of_an_address_are_one_cloud(host: str) -> None:
    assert site_of(f"http://{host}/v3", None) == "192.0.2.7:80/"


@pytest.mark.parametrize("host", ["[2001:db8:0:0::7]", "[2001:DB8::7]", "[2001:db8::7%25eth0]"])
def test_notations_of_an_address_of_ipv6_are_one_cloud(host: str) -> None:
    assert host_of(f"https://{host}:5000/v3") == "2001:db8::7"


def test_addresses_of_one_network_of_ipv6_have_one_budget() -> None:
    assert network_of("2001:db8::7") == network_of("2001:db8::ffff:1:2:3") == "2001:db8::/64"
    assert network_of("2001:db8:0:1::7") != network_of("2001:db8::7")


@pytest.mark.parametrize("auth_url", ["https://[", "https://[x", "https://h:99999999", "https://h:port", "https://"])
def test_what_is_no_url_has_a_name_all_the_same(auth_url: str) -> None:
    assert site_of(auth_url, "r")


def test_long_text_of_a_tenant_makes_no_long_names() -> None:
    assert len(site_of(f"https://{'a' * 100_000}/v3", "r" * 100_000)) < 200
    assert site_of("https://h/v3", "r" * 1000) != site_of("https://h/v3", "r" * 1001)


def test_an_address_needs_no_lookup(names: Names) -> None:
    assert names.addresses.of("192.0.2.7", "team") == "192.0.2.7"
    assert names.work == []


def test_invented_hosts_have_the_budget_of_their_address_once_it_is_known(names: Names) -> None:
    names.known = {f"h{n}.evil.example": ("192.0.2.66", "192.0.2.67")[:: 1 - 2 * (n % 2)] for n in range(50)}
    for host in names.known:
        names.addresses.of(host, "evil")
        names.answer()

    assert {names.addresses.of(host, "evil") for host in names.known} == {"192.0.2.66"}


def test_until_dns_answers_all_hosts_of_a_namespace_share_one_budget(names: Names) -> None:
    found = {names.addresses.of(f"h{n}.evil.example", "evil") for n in range(50)}

    assert found == {unresolved("evil")}
    assert names.addresses.of("h1.evil.example", "other") == unresolved("other")
    assert len(names.work) == PER_NAMESPACE


def test_lookups_that_hang_leave_threads_to_other_namespaces(names: Names) -> None:
    for number in range(50):
        names.addresses.of(f"h{number}.evil.example", f"evil-{number % 6}")
    names.known = {"keystone.example": ("192.0.2.1",)}
    hung = len(names.work)

    names.addresses.of("keystone.example", "good")
    names.work.pop()()

    assert hung == 6 * PER_NAMESPACE
    assert names.addresses.of("keystone.example", "good") == "192.0.2.1"


def test_a_name_is_looked_up_once_in_minutes_not_for_each_pass(names: Names) -> None:
    names.known = {"keystone.example": ("192.0.2.1",)}
    for _ in range(100):
        names.addresses.of("keystone.example", "team")
        names.answer()
        names.now_s += 1.0
    before = list(names.asked)
    names.now_s += addresses.KEPT_S
    names.addresses.of("keystone.example", "team")
    names.answer()

    assert len(before) == 1
    assert len(names.asked) == 2


def test_a_name_server_that_is_away_changes_no_budget(names: Names) -> None:
    names.known = {"keystone.example": ("192.0.2.1",)}
    names.addresses.of("keystone.example", "team")
    names.answer()
    names.known, names.now_s = {}, addresses.KEPT_S
    names.addresses.of("keystone.example", "team")
    names.answer()

    assert names.addresses.of("keystone.example", "team") == "192.0.2.1"


def test_names_are_forgotten_when_there_are_too_many(names: Names) -> None:
    for number in range(addresses.MAX_NAMES + 10):
        names.addresses.of(f"h{number}", "evil")
        names.answer()

    assert len(names.addresses._known) == addresses.MAX_NAMES
    assert names.addresses._asked == set()


def test_a_process_without_threads_left_asks_again_later(monkeypatch: pytest.MonkeyPatch, names: Names) -> None:
    def refuse(_work: Any) -> None:
        raise RuntimeError("can't start new thread")

    names.known = {"keystone.example": ("192.0.2.1",)}
    monkeypatch.setattr(lookup_threads, "in_thread", refuse)
    first = names.addresses.of("keystone.example", "team")
    monkeypatch.setattr(lookup_threads, "in_thread", lambda work: work())
    names.addresses.of("keystone.example", "team")

    assert first == unresolved("team")
    assert names.addresses.of("keystone.example", "team") == "192.0.2.1"


def test_lookups_end_and_are_forgotten(names: Names) -> None:
    threads = LookupThreads()
    assert threads.start(lambda: None, "team")
    assert threads.start(lambda: None, "team")
    assert not threads.start(lambda: None, "team")

    names.answer()

    assert threads._running == {}
