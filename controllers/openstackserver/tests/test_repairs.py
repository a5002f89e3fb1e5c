"""External changes of servers and ports that the policy of the cluster repairs, or does not report."""

from __future__ import annotations

from typing import Any

import pytest

from api.v1beta2.port import ResolvedPortSpec
from capo import names
from capo.kube.kinds import CLUSTER, OPENSTACK_CLUSTER
from capo.openstack.port import Port
from controllers import drift as policies
from controllers.openstackserver import drift
from controllers.openstackserver.tests.environment import KIND, place, port, server, status
from environments.in_memory import InMemoryEnvironment

NETWORK_PATH = "/network/v2.0"
LABELS = {names.CLUSTER_NAME_LABEL: "demo"}


def cluster(stage: InMemoryEnvironment, **policy: str) -> None:
    """Create a cluster with a policy; no controller reconciles it."""
    ref = {"apiGroup": names.GROUP, "kind": "OpenStackCluster", "name": "infra"}
    stage.apply(CLUSTER, {"metadata": {"name": "demo"}, "spec": {"infrastructureRef": ref}})
    identity = {"name": "cloud", "cloudName": "sim"}
    stage.apply(
        OPENSTACK_CLUSTER,
        {
            "metadata": {"name": "infra"},
            "spec": {"identityRef": identity, **({"driftPolicy": policy} if policy else {})},
        },
    )


def again(stage: InMemoryEnvironment) -> None:
    """Expire every list, then reconcile."""
    stage.settle(for_s=3700)
    stage.wake_all()
    stage.settle(for_s=60)


def settled(stage: InMemoryEnvironment, **spec: Any) -> None:
    place(stage, metadata={"labels": LABELS}, **spec)
    again(stage)
    assert status(stage)["ready"] is True
    assert message(stage, "PortsReady") == message(stage, "InstanceReady") == ""


def message(stage: InMemoryEnvironment, type_: str) -> str:
    return str(stage.condition(KIND, "s", type_).get("message", ""))


def events(stage: InMemoryEnvironment) -> list[str]:
    return [text for _, reason, text in stage.events.seen if reason == policies.EVENT]


def writes(stage: InMemoryEnvironment) -> list[str]:
    return [each for each in stage.requests() if not each.startswith("GET") and "tokens" not in each]


def group(stage: InMemoryEnvironment, name: str) -> str:
    return str(stage.member.make(f"{NETWORK_PATH}/security-groups", "security_group", name=name)["id"])


def with_group(stage: InMemoryEnvironment, own: str) -> dict[str, Any]:
    network = stage.network("10.7.0.0/24")
    pairs = [{"ipAddress": "10.1.0.0/24"}]
    groups = [{"id": own}]
    return {"ports": [{"network": {"id": network["id"]}, "securityGroups": groups, "allowedAddressPairs": pairs}]}


def change_port(stage: InMemoryEnvironment, **fields: Any) -> str:
    port_id = str(port(stage)["id"])
    stage.member.ask("PUT", f"{NETWORK_PATH}/ports/{port_id}", {"port": fields})
    return port_id


@pytest.mark.parametrize(
    ("policy", "is_repaired", "words"),
    [
        pytest.param({}, False, "port-0 was changed externally: security groups", id="none"),
        pytest.param({"portSecurityGroups": "Off"}, False, "", id="Off"),
        pytest.param({"portSecurityGroups": "Repair"}, True, "", id="Repair"),
    ],
)
def test_groups_of_a_port(stage: InMemoryEnvironment, policy: dict[str, str], is_repaired: bool, words: str) -> None:
    cluster(stage, **policy)
    own = group(stage, "own")
    settled(stage, **with_group(stage, own))
    port_id = change_port(stage, security_groups=[])
    stage.cloud.counter.reset()

    again(stage)

    assert port(stage)["security_groups"] == ([own] if is_repaired else [])
    assert message(stage, "PortsReady") == words
    assert status(stage)["ready"] is True
    text = f"security groups of port-0 ({port_id}) were changed externally: none; now {own}"
    assert events(stage) == ([text] if is_repaired else [])
    assert len(writes(stage)) == (1 if is_repaired else 0)


def test_a_group_that_others_added_is_kept_and_named(stage: InMemoryEnvironment) -> None:
    cluster(stage, portSecurityGroups="Repair")
    own, theirs = group(stage, "own"), group(stage, "theirs")
    settled(stage, **with_group(stage, own))
    change_port(stage, security_groups=[theirs])

    again(stage)

    assert set(port(stage)["security_groups"]) == {own, theirs}
    assert message(stage, "PortsReady") == "port-0 was changed externally: security groups"
    stage.cloud.counter.reset()
    again(stage)
    assert writes(stage) == []
    assert len(events(stage)) == 1


def test_pairs_of_a_port_are_repaired_beside_those_of_others(stage: InMemoryEnvironment) -> None:
    cluster(stage, allowedAddressPairs="Repair")
    settled(stage, **with_group(stage, group(stage, "own")))
    change_port(stage, allowed_address_pairs=[{"ip_address": "10.2.0.0/24"}])

    again(stage)

    assert {each["ip_address"] for each in port(stage)["allowed_address_pairs"]} == {"10.1.0.0/24", "10.2.0.0/24"}
    assert message(stage, "PortsReady") == "port-0 was changed externally: allowed address pairs"
    (text,) = events(stage)
    assert text.endswith(" were changed externally: 10.2.0.0/24; now 10.1.0.0/24, 10.2.0.0/24")


def test_a_port_with_the_stamp_of_another_object_is_not_changed(stage: InMemoryEnvironment) -> None:
    cluster(stage, portSecurityGroups="Repair")
    settled(stage, **with_group(stage, group(stage, "own")))
    stage.cloud.counter.reset()
    port_id = change_port(stage, security_groups=[])
    stage.settle(for_s=3700)
    description = port(stage)["description"]
    found = Port({**port(stage), "description": description.replace("port-0", "port-1")})
    assert found.description != description
    table = stage.cloud.table("network", "ports")
    stage.simulator.call(lambda: table[port_id].update(description=found.description))
    stage.cloud.counter.reset()

    stage.wake_all()
    stage.settle(for_s=60)

    assert writes(stage) == []
    assert port(stage)["security_groups"] == []


@pytest.mark.parametrize("policy", ["Report", "Repair", "Off"])
def test_metadata_and_tags_of_a_server(stage: InMemoryEnvironment, policy: str) -> None:
    cluster(stage, serverMetadata=policy, tags=policy)
    settled(stage, serverMetadata=[{"key": "a", "value": "b"}], tags=["blue", "red"])
    server_id = server(stage)["id"]
    path = f"/compute/v2.1/servers/{server_id}/metadata"
    stage.member.ask("PUT", path, {"metadata": {"a": "c", "theirs": "x"}})
    stage.simulator.call(lambda: stage.cloud.table("compute", "servers")[server_id]["tags"].remove("red"))
    stage.simulator.call(lambda: stage.cloud.table("compute", "servers")[server_id]["tags"].append("theirs"))

    again(stage)

    is_repaired = policy == "Repair"
    assert server(stage)["metadata"] == {"a": "b" if is_repaired else "c", "theirs": "x"}
    assert ("red" in server(stage)["tags"]) is is_repaired
    assert "theirs" in server(stage)["tags"]
    text = "metadata changed: a; tags removed: red"
    assert message(stage, "InstanceReady") == (text if policy == "Report" else "")
    assert events(stage) == (
        [
            f"metadata of server {server_id} was changed externally: a=c; now a=b",
            f"tags of server {server_id} were removed externally: red; added them again",
        ]
        if is_repaired
        else []
    )
    assert status(stage)["ready"] is True


def test_a_refused_repair_leaves_the_server_ready_and_is_named_until_it_succeeds(stage: InMemoryEnvironment) -> None:
    cluster(stage, serverMetadata="Repair")
    settled(stage, serverMetadata=[{"key": "a", "value": "b"}])
    path = f"/compute/v2.1/servers/{server(stage)['id']}/metadata"
    stage.member.ask("PUT", path, {"metadata": {}})
    stage.add_fault(match={"service": "compute", "method": "POST", "path": "*/metadata"}, effect={"status": 403})

    again(stage)
    for _ in range(3):
        stage.wake_all()
        stage.settle(for_s=30)

    text = "metadata changed: a (not repaired, retried within 10 minutes: "
    assert message(stage, "InstanceReady").startswith(text)
    assert status(stage)["ready"] is True
    stage.clear_faults()
    again(stage)
    assert server(stage)["metadata"] == {"a": "b"}
    assert message(stage, "InstanceReady") == ""


def test_a_server_of_no_cluster_is_reported_only(stage: InMemoryEnvironment) -> None:
    cluster(stage, serverMetadata="Repair")
    place(stage, serverMetadata=[{"key": "a", "value": "b"}])
    again(stage)
    stage.member.ask("PUT", f"/compute/v2.1/servers/{server(stage)['id']}/metadata", {"metadata": {}})

    again(stage)

    assert message(stage, "InstanceReady") == "metadata changed: a"


# -- pure -------------------------------------------------------------------------------------------------------------

FOUND: dict[str, Any] = {
    "mac_address": "fa:16:3e:00:00:01",
    "port_security_enabled": True,
    "security_groups": ["theirs"],
    "allowed_address_pairs": [],
}
WANTED = ResolvedPortSpec.model_validate(
    {"name": "s-0", "networkID": "n", "securityGroups": ["own"], "allowedAddressPairs": [{"ipAddress": "10.1.0.9"}]}
)


@pytest.mark.parametrize(
    ("kind", "found", "edited", "fields"),
    [
        pytest.param(policies.GROUPS, {}, None, {"security_groups": ["theirs", "own"]}, id="groups of others stay"),
        pytest.param(
            policies.GROUPS, {"security_groups": ["own", "theirs"]}, None, {}, id="others alone are no reason"
        ),
        pytest.param(policies.GROUPS, {"port_security_enabled": False}, None, {}, id="groups without port security"),
        pytest.param(policies.PAIRS, {"port_security_enabled": False}, None, {}, id="pairs without port security"),
        pytest.param(
            policies.PAIRS, {}, None, {"allowed_address_pairs": [{"ip_address": "10.1.0.9"}]}, id="pair of the spec"
        ),
        pytest.param(policies.PAIRS, {}, (), {}, id="an edit removed the pair"),
        pytest.param(
            policies.PAIRS,
            {},
            (("10.3.0.0/24", None),),
            {"allowed_address_pairs": [{"ip_address": "10.3.0.0/24"}]},
            id="an edit replaced the pair",
        ),
    ],
)
def test_a_repair_of_a_port_adds_what_is_missing_alone(
    kind: str, found: dict[str, Any], edited: Any, fields: dict[str, Any]
) -> None:
    assert drift.port_repair(kind, WANTED, Port(FOUND | found), edited=edited) == fields
