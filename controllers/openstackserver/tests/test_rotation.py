"""Credentials that are replaced under many servers at once."""

from __future__ import annotations

import collections
from typing import Any

from capo.kube.kinds import OPENSTACK_SERVER, SECRET, Kind
from controllers.openstackserver.tests.environment import place, place_more
from controllers.tests import application_credentials
from environments.in_memory import InMemoryEnvironment

SERVERS = 40


def test_many_servers_follow_to_new_credentials_with_one_login_and_one_read_of_the_secret(
    stage: InMemoryEnvironment,
) -> None:
    first, text = application_credentials.create(stage)
    stage.apply_secret(text=text)
    place(stage)
    place_more(stage, SERVERS - 1)
    stage.settle(for_s=120)
    _, text = application_credentials.create(stage)
    stage.apply_secret(text=text)
    stage.member.ask("DELETE", f"/identity/v3/users/{first['user_id']}/application_credentials/{first['id']}")
    stage.cloud.counter.reset()
    stage.events.seen.clear()
    stage.kube.writes.clear()
    reads = collections.Counter[str]()
    get = stage.kube.get

    def counted(kind: Kind, namespace: str, name: str) -> dict[str, Any] | None:
        reads[kind.kind] += 1
        return get(kind, namespace, name)

    stage.kube.get = counted  # type: ignore[method-assign]

    stage.clock.now_s += 600
    stage.wake_all()
    stage.settle(for_s=120)

    assert stage.requests().count("POST /v3/auth/tokens") <= 2
    assert len(stage.requests()) <= 10
    assert reads[SECRET.kind] == 1
    assert stage.kube.writes == []
    assert stage.events.seen == []
    ready = [each["status"]["conditions"] for each in stage.kube.list(OPENSTACK_SERVER)]
    assert all(c["status"] == "True" for shown in ready for c in shown if c["type"] == "Ready")
