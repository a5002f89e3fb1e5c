"""A replica that is not the leader answers, too: the real process, beside another one that holds the lease."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest
import requests

from capo.cli.tests.test_run import LIMIT_S, answer, eventually_leads, free_port, manager
from capo.engine.lease import NAME
from capo.kube.kinds import LEASE
from capo.kube.tests.fake_apiserver import FakeApiServer
from capo.webhooks.application import CONVERT, admission_path
from capo.webhooks.tests.test_application import admission_review, conversion_review, machine

pytestmark = pytest.mark.integration


def holder(api: FakeApiServer) -> str:
    lease = api.read(LEASE, "capo-system", NAME)
    assert lease
    return str(lease["spec"]["holderIdentity"])


def test_a_replica_that_waits_for_the_lease_answers_reviews(tmp_path: Path) -> None:
    port = free_port()
    first, second = tmp_path / "first", tmp_path / "second"
    first.mkdir()
    second.mkdir()
    with (
        FakeApiServer().running() as api,
        manager(api, first, "--leader-elect"),
        requests.Session() as session,
    ):
        eventually_leads(api)
        leader = holder(api)
        with manager(api, second, "--leader-elect", f"--webhook-port={port}") as (process, probes):
            assert answer(probes, "/readyz") == "ok"
            session.trust_env = False
            session.verify = str(second / "pki" / "ca.crt")
            url = f"https://127.0.0.1:{port}"

            converted = session.post(url + CONVERT, json=conversion_review([machine()]), timeout=LIMIT_S).json()
            admitted = session.post(
                url + admission_path("OpenStackMachine"),
                json=admission_review(operation="CREATE", object=machine(spec={})),
                timeout=LIMIT_S,
            ).json()

            assert converted["response"]["result"]["status"] == "Success"
            assert admitted["response"]["allowed"] is True
            assert holder(api) == leader
            process.send_signal(signal.SIGTERM)
            process.communicate(timeout=LIMIT_S)
