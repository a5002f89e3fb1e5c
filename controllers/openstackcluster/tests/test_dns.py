"""Answers of DNS for a name, and that no reconcile blocks on them."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from typing import Any

import pytest

from capo.engine.steps import Wait
from capo.openstack import lookup_threads
from controllers.openstackcluster import dns
from controllers.openstackcluster.dns import Answer, Resolver


class Threads:
    """Lookups that end when the test decides."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.work: list[Callable[[], None]] = []
        self.answer = Answer(("192.0.2.7",))
        monkeypatch.setattr(lookup_threads, "in_thread", self.work.append)
        monkeypatch.setattr(dns, "lookup", lambda _host: self.answer)

    def end(self) -> None:
        """End the oldest lookup."""
        self.work.pop(0)()


@pytest.fixture
def threads(monkeypatch: pytest.MonkeyPatch) -> Threads:
    return Threads(monkeypatch)


@pytest.mark.parametrize(
    ("fault", "is_absent"),
    [
        pytest.param(socket.gaierror(socket.EAI_NONAME, "Name or service not known"), True, id="NXDOMAIN"),
        pytest.param(UnicodeError("label empty or too long"), True, id="no name at all"),
        pytest.param(socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution"), False, id="no answer"),
        pytest.param(socket.gaierror(socket.EAI_FAIL, "Non-recoverable failure"), False, id="a broken server"),
        pytest.param(socket.gaierror(socket.EAI_NODATA, "No address"), False, id="other records alone"),
        pytest.param(OSError(24, "Too many open files"), False, id="this machine"),
    ],
)
def test_only_a_name_that_does_not_exist_has_no_address(
    monkeypatch: pytest.MonkeyPatch, fault: Exception, is_absent: bool
) -> None:
    def fail(*_: Any, **__: Any) -> Any:
        raise fault

    monkeypatch.setattr(socket, "getaddrinfo", fail)

    found = dns.lookup("api.example.org")

    assert found.addresses == ()
    assert (found.trouble is None) is is_absent


def test_all_addresses_of_a_name_are_known() -> None:
    assert dns.lookup("127.0.0.1") == Answer(("127.0.0.1",))


def test_a_pass_that_asks_comes_again_and_has_the_answer(threads: Threads) -> None:
    resolver = Resolver()

    assert dns.addresses(resolver, "a", namespace="default", now_s=0.0) == Wait(
        "ResolvingEndpoint", "asking DNS for the addresses of 'a'", dns.SOON_S
    )
    threads.end()

    assert dns.addresses(resolver, "a", namespace="default", now_s=1.0) == ("192.0.2.7",)
    assert dns.addresses(resolver, "a", namespace="default", now_s=50.0) == ("192.0.2.7",)
    assert threads.work == []


def test_nobody_waits_for_a_lookup_that_hangs_and_its_answer_counts_when_it_comes(threads: Threads) -> None:
    resolver = Resolver()
    resolver.ask("a", namespace="default", now_s=0.0)

    told = dns.addresses(resolver, "a", namespace="default", now_s=dns.LIMIT_S)
    assert isinstance(told, Wait)
    assert "no answer within 10 s" in told.message
    assert told.after_s == dns.AGAIN_S
    assert len(threads.work) == 1  # one lookup, not two
    threads.end()

    assert dns.addresses(resolver, "a", namespace="default", now_s=90.0) == ("192.0.2.7",)


def test_an_answer_is_not_kept(threads: Threads) -> None:
    resolver = Resolver()
    resolver.ask("a", namespace="default", now_s=0.0)
    threads.end()
    resolver.ask("a", namespace="default", now_s=1.0)

    assert resolver.ask("a", namespace="default", now_s=1.0 + dns.KEPT_S) is None
    assert len(threads.work) == 1


def test_an_answer_that_nobody_fetched_is_not_used(threads: Threads) -> None:
    resolver = Resolver()
    resolver.ask("a", namespace="default", now_s=0.0)
    threads.end()

    assert resolver.ask("a", namespace="default", now_s=dns.FORGOTTEN_S) is None


def test_a_name_that_could_not_be_resolved_is_asked_for_again(threads: Threads) -> None:
    resolver = Resolver()
    threads.answer = Answer(trouble="Temporary failure in name resolution")
    resolver.ask("a", namespace="default", now_s=0.0)
    threads.end()

    told = dns.addresses(resolver, "a", namespace="default", now_s=1.0)
    assert isinstance(told, Wait)
    assert "Temporary failure in name resolution" in told.message
    threads.answer = Answer()
    resolver.ask("a", namespace="default", now_s=16.0)
    threads.end()

    assert dns.addresses(resolver, "a", namespace="default", now_s=17.0) == ()


def test_lookups_that_hang_are_few_in_a_namespace_and_others_are_made_when_one_ends(threads: Threads) -> None:
    resolver = Resolver()
    names = [f"name-{number}" for number in range(lookup_threads.PER_NAMESPACE + 2)]

    for name in names:
        assert resolver.ask(name, namespace="default", now_s=0.0) is None
    assert len(threads.work) == lookup_threads.PER_NAMESPACE
    threads.end()
    for name in names[1:]:
        resolver.ask(name, namespace="default", now_s=1.0)

    assert len(threads.work) == lookup_threads.PER_NAMESPACE


def test_lookups_of_a_tenant_that_hang_leave_threads_to_other_namespaces(threads: Threads) -> None:
    resolver = Resolver()
    for number in range(100):
        resolver.ask(f"name-{number}", namespace=f"evil-{number % 3}", now_s=0.0)
    hung = len(threads.work)

    resolver.ask("api.example.org", namespace="good", now_s=0.0)
    threads.work.pop()()

    assert hung == 3 * lookup_threads.PER_NAMESPACE
    assert resolver.ask("api.example.org", namespace="good", now_s=1.0) == threads.answer


def test_a_process_without_threads_left_says_so_and_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_work: object) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(lookup_threads, "in_thread", refuse)
    resolver = Resolver()

    for second in range(lookup_threads.PER_NAMESPACE + 1):
        assert resolver.ask("a", namespace="default", now_s=float(second)) == Answer(trouble="can't start new thread")


def test_a_real_lookup_runs_in_a_thread_that_holds_up_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[threading.Thread] = []
    done = threading.Event()

    def lookup(_host: str) -> Answer:
        seen.append(threading.current_thread())
        done.set()
        return Answer()

    monkeypatch.setattr(dns, "lookup", lookup)
    Resolver().ask("a", namespace="default", now_s=0.0)

    assert done.wait(60)
    assert seen[0].daemon
    assert seen[0] is not threading.current_thread()
