"""When a cluster counts as up."""

from __future__ import annotations

import io
from typing import Any

import pytest
from rich.console import Console

from capo.local.demo import scenario, watch
from capo.local.demo.console import Screen
from capo.local.demo.objects import ObjectSnapshot, server_id


def machine(name: str, phase: str = "Running", **metadata: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": name, **metadata},
        "spec": {"providerID": f"openstack:///{name}-id"},
        "status": {"phase": phase, "nodeRef": {"name": f"node-{name}"}},
    }


def world(*machines: Any, bastion: Any = None) -> ObjectSnapshot:
    cluster = {"metadata": {"name": "demo"}, "status": {"bastion": bastion} if bastion else {}}
    empty: dict[str, list[Any]] = {"openstackmachines": [], "openstackservers": [], "clusters": []}
    return ObjectSnapshot({**empty, "machines": list(machines), "openstackclusters": [cluster]})


@pytest.mark.parametrize(
    ("machines", "is_up"),
    [
        pytest.param([machine("a"), machine("b")], True, id="all running"),
        pytest.param([machine("a")], False, id="one missing"),
        pytest.param([machine("a"), machine("b", "Provisioned")], False, id="one not running"),
        pytest.param([machine("a"), machine("b"), machine("c")], False, id="one too many"),
        pytest.param([machine("a"), machine("b", deletionTimestamp="now")], False, id="one is leaving"),
    ],
)
def test_cluster_is_up_with_exactly_the_machines_that_are_wanted(machines: list[Any], is_up: bool) -> None:
    assert (watch.lacks_machines(world(*machines), control_planes=1, workers=1) == "") is is_up


@pytest.mark.parametrize(
    ("bastion", "is_up"),
    [
        pytest.param(None, False, id="none"),
        pytest.param({"id": "new", "state": "ACTIVE", "floatingIP": "127.64.0.9"}, True, id="reachable"),
        pytest.param({"id": "new", "state": "ACTIVE"}, False, id="no floating IP yet"),
        pytest.param({"id": "new", "state": "BUILD", "floatingIP": "127.64.0.9"}, False, id="building"),
        pytest.param({"id": "old", "state": "ACTIVE", "floatingIP": "127.64.0.9"}, False, id="the one to be replaced"),
    ],
)
def test_bastion_is_up_when_it_is_another_one_and_reachable(bastion: Any, is_up: bool) -> None:
    assert (watch.lacks_bastion(world(bastion=bastion), "demo", other_than="old") == "") is is_up


def test_failure_names_the_objects_that_are_not_ready_and_why() -> None:
    failing = machine("a")
    failing["status"]["conditions"] = [
        {"type": "Ready", "status": "False", "reason": "NoValidHost", "message": "no host"}
    ]

    assert "machine a: NoValidHost: no host" in watch.why(world(failing))


def test_machines_are_listed_with_provider_id_and_node() -> None:
    assert watch.machine_rows(world(machine("a"))) == [("a", "Running", "openstack:///a-id", "node-a")]
    assert server_id(machine("a")) == "a-id"


def test_bastion_is_put_into_the_openstackcluster_alone() -> None:
    variables = {
        "OPENSTACK_NODE_MACHINE_FLAVOR": "small",
        "OPENSTACK_IMAGE_NAME": "image",
        "OPENSTACK_SSH_KEY_NAME": "key",
    }

    other, cluster = scenario.with_bastion(
        [{"kind": "Secret"}, {"kind": "OpenStackCluster", "spec": {"identityRef": {}}}], variables
    )

    assert other == {"kind": "Secret"}
    assert cluster["spec"]["identityRef"] == {}
    assert cluster["spec"]["bastion"]["spec"]["flavor"] == {"filter": {"name": "small"}}


def test_lines_are_plain_where_there_is_no_terminal() -> None:
    out = io.StringIO()
    screen = Screen(Console(file=out, width=200))

    screen.say("a [bracket] stays", source="cloud")
    screen.table("T", ("Name", "Count"), [("x", 1)])

    assert "cloud        a [bracket] stays" in out.getvalue()
    assert "\x1b" not in out.getvalue()
