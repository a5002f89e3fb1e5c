"""A tenant's catalogue may point to any address that the manager reaches: the tenant never sees the answers."""

from __future__ import annotations

import io
import itertools
import json
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

import pytest
from prometheus_client import generate_latest

from capo import logs
from capo.kube.kinds import CLUSTER, OPENSTACK_CLUSTER, OPENSTACK_MACHINE, OPENSTACK_SERVER, SECRET, Kind
from capo.openstack import lookup_threads
from capo.openstack.kinds import KINDS
from controllers.openstackcluster import dns
from controllers.openstackcluster.controller import ClusterController
from controllers.openstackcluster.dns import Answer
from controllers.openstackcluster.tests.environment import FULL
from controllers.openstackcluster.tests.objects import CLUSTER_NAME, OWNER
from controllers.openstackmachine.controller import MachineController
from controllers.openstackmachine.tests.control_plane_environment import ControlPlaneEnvironment
from controllers.openstackserver.controller import ServerController
from controllers.openstackserver.tests import environment as servers
from environments.in_memory import InMemoryEnvironment

MARK: Final = "hunter2zyx"
SERVICES: Final = ("compute", "network", "volume", "load-balancer", "image")
HEADERS: Final = {
    "Server": MARK,
    "Via": f"1.1 {MARK}",
    "Location": f"http://127.0.0.1:1/{MARK}?token={MARK}",
    "X-OpenStack-Request-Id": f"req-{MARK}",
    "WWW-Authenticate": f'Basic realm="{MARK}"',
    "Set-Cookie": f"session={MARK}",
    "Content-Type": f"text/{MARK}",
}
ROLE: Final = {"Code": "Success", "Message": MARK, "AccessKeyId": MARK, "SecretAccessKey": MARK, "Token": MARK}
KUBERNETES: Final = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": MARK, "reason": MARK}
BODIES: Final[dict[str, Any]] = {
    "words": f"role-of-{MARK}\nAWS_SECRET={MARK}",
    "page": f"<html><head><title>{MARK}</title></head><body>{MARK}</body></html>",
    "credentials": ROLE,
    "Kubernetes": {**KUBERNETES, "code": 403},
    "a list": [{MARK: MARK}],
    "names": {MARK: {MARK: [MARK]}},
    "Docker": {"message": MARK},
    "Google": {"error": {"code": 400, "message": MARK, "status": MARK}},
    "Vault": {"errors": [MARK]},
    "words under the keys of lists": {kind.key: MARK for kind in KINDS.values()},
    "words under the keys of resources": {kind.body_key: MARK for kind in KINDS.values()},
    "lists of strangers": {kind.key: [{"name": MARK, "status": MARK, MARK: MARK}] for kind in KINDS.values()},
    "lists of documents": {kind.key: [{"id": {MARK: MARK}, "name": [MARK]}] for kind in KINDS.values()},
    "strangers": {kind.body_key: {**ROLE, "status": {MARK: MARK}} for kind in KINDS.values()},
    "documents as states": {
        kind.key: [{"id": "1", "name": "n", "status": [MARK], "provisioning_status": [MARK]}] for kind in KINDS.values()
    },
}
STATUSES: Final = (
    *(200, 201, 202, 203, 206, 207, 226, 300, 301, 302, 303, 305, 307, 308, 400, 401, 402, 403, 404, 405, 406, 407),
    *(
        408,
        409,
        410,
        411,
        412,
        413,
        415,
        418,
        422,
        423,
        425,
        426,
        429,
        431,
        451,
        500,
        501,
        502,
        503,
        504,
        505,
        511,
        599,
    ),
)
ANSWERS: Final = (
    *zip(STATUSES, itertools.cycle(BODIES), strict=False),
    *itertools.product((200, 400, 404), BODIES),
)


class Hostile(InMemoryEnvironment):
    """A stage whose services, except Keystone, are replaced by an internal server."""

    def __init__(self) -> None:
        super().__init__(ClusterController, MachineController, ServerController)

    def answer(self, status: int, body: Any, **headers: str) -> None:
        """Set the answer of each service, and restart the manager."""
        self.clear_faults()
        for service in SERVICES:
            given = {**HEADERS, **headers}
            self.add_fault(match={"service": service}, effect={"status": status, "body": body, "headers": given})
        self.start()

    def shown(self) -> str:
        """Return all texts that a tenant can read."""
        objects = [obj for key, obj in self.kube.objects.items() if key.kind != SECRET]
        return json.dumps([objects, self.events.seen])


@contextmanager
def default_log() -> Iterator[io.StringIO]:
    """Capture the log with the manager's default settings."""
    root = logging.getLogger()
    before = root.handlers[:], root.level
    stream = io.StringIO()
    logs.set_up(stream=stream)
    try:
        yield stream
    finally:
        root.handlers[:], root.level = before
        logging.captureWarnings(False)


@pytest.fixture
def stage(monkeypatch: pytest.MonkeyPatch) -> Iterator[Hostile]:
    monkeypatch.setattr(dns, "lookup", lambda _host: Answer())
    monkeypatch.setattr(lookup_threads, "in_thread", lambda work: work())
    made = Hostile()
    with made:
        made.apply_secret()
        yield made


def new_server(stage: Hostile) -> tuple[Kind, str]:
    servers.place(stage)
    return OPENSTACK_SERVER, "s"


def new_cluster(stage: Hostile) -> tuple[Kind, str]:
    identity = {"identityRef": {"name": "cloud", "cloudName": "sim"}}
    ref = {"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "OpenStackCluster", "name": CLUSTER_NAME}
    stage.apply(CLUSTER, {"metadata": {"name": CLUSTER_NAME, "uid": OWNER["uid"]}, "spec": {"infrastructureRef": ref}})
    stage.apply(
        OPENSTACK_CLUSTER,
        {"metadata": {"name": CLUSTER_NAME, "ownerReferences": [OWNER]}, "spec": {**identity, **FULL}},
    )
    return OPENSTACK_CLUSTER, CLUSTER_NAME


def new_machine(stage: Hostile) -> tuple[Kind, str]:
    site = ControlPlaneEnvironment(stage)
    site.balance()
    site.add("cp")
    return OPENSTACK_MACHINE, "cp"


def machine_in_use(stage: Hostile) -> tuple[Kind, str]:
    found = new_machine(stage)
    stage.settle(for_s=120)
    return found


def cluster_in_use(stage: Hostile) -> tuple[Kind, str]:
    found = new_cluster(stage)
    stage.settle(for_s=120)
    return found


def machine_to_delete(stage: Hostile) -> tuple[Kind, str]:
    kind, name = machine_in_use(stage)
    stage.delete(kind, name)
    return kind, name


def cluster_to_delete(stage: Hostile) -> tuple[Kind, str]:
    kind, name = cluster_in_use(stage)
    stage.delete(kind, name)
    return kind, name


@pytest.mark.parametrize(
    "given",
    [new_server, new_cluster, new_machine, machine_in_use, cluster_in_use, machine_to_delete, cluster_to_delete],
)
@pytest.mark.slow
def test_nothing_of_what_answers_at_a_tenants_end_points_is_shown(
    stage: Hostile, given: Callable[[Hostile], tuple[Kind, str]]
) -> None:
    kind, name = given(stage)

    with default_log() as log:
        for status, body in ANSWERS:
            stage.answer(status, BODIES[body])
            stage.settle(for_s=1)
            assert MARK not in stage.shown(), (status, body)
            assert MARK not in log.getvalue(), (status, body)

    assert MARK not in generate_latest().decode()
    assert stage.exists(kind, name)


def test_what_is_asked_of_services_that_are_none_is_said(stage: Hostile) -> None:
    new_server(stage)

    stage.answer(502, BODIES["page"], **{"Content-Type": "text/html"})
    stage.settle(for_s=1)

    message = stage.condition(OPENSTACK_SERVER, "s", "Ready")["message"]
    size = len(BODIES["page"])
    assert f"HTTP 502 in a form that is not the compute service's own (text/html, {size} bytes)" in message


def test_the_services_own_words_are_shown(stage: Hostile) -> None:
    new_server(stage)
    refusal = {"forbidden": {"code": 403, "message": f"Policy doesn't allow {MARK} to be performed."}}

    stage.add_fault(match={"service": "compute"}, effect={"status": 403, "body": refusal})
    stage.settle(for_s=1)

    assert f"Policy doesn't allow {MARK}" in stage.condition(OPENSTACK_SERVER, "s", "Ready")["message"]


@pytest.mark.parametrize("status", [400, 403, 406, 409, 422, 501])
def test_what_a_proxy_refuses_is_an_outage_and_no_verdict_on_the_spec(stage: Hostile, status: int) -> None:
    new_server(stage)

    for method, route in (("POST", "/v2.1/servers"), ("GET", "/v2.1/servers/detail")):
        page = {"status": status, "body": "<html>Blocked</html>", "headers": {"Content-Type": "text/html"}}
        stage.add_fault(match={"service": "compute", "method": method, "route": route}, effect=page)
    stage.settle(for_s=30)
    message = str(stage.condition(OPENSTACK_SERVER, "s", "InstanceReady").get("message"))
    stage.clear_faults()
    stage.settle(for_s=600)

    assert "CloudUnavailable" in message or "AnswerLost" in message
    assert servers.made(stage) == {"ports": 1, "servers": 1}
    assert stage.condition(OPENSTACK_SERVER, "s", "Ready")["status"] == "True"
