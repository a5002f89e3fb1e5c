"""The same requests to a simulated and to a real API server; each scenario has a namespace of its own."""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Final

from capo.json_types import Json
from capo.kube import client
from capo.kube.event_objects import EVENT
from capo.kube.kinds import (
    LEASE,
    NAMESPACE,
    OPENSTACK_CLUSTER,
    OPENSTACK_CLUSTER_IDENTITY,
    OPENSTACK_MACHINE,
    OPENSTACK_SERVER,
    SECRET,
)
from e2e.simulation.tests.masks import masked
from e2e.simulation.tests.play import (
    APPLY,
    IDENTITY,
    JSON,
    JSON_PATCH,
    MACHINE_SPEC,
    MERGE,
    SERVER_SPEC,
    SPEC,
    Play,
    Server,
)

KINDS: Final = (EVENT, SECRET, LEASE, OPENSTACK_SERVER, OPENSTACK_MACHINE, OPENSTACK_CLUSTER)
"""Kinds that scenarios write, whose events are compared."""

Scenario = Callable[[Play], None]
S: Final = OPENSTACK_CLUSTER


def spec_and_status(play: Play) -> None:
    play.create(S, "s", {"spec": SPEC, "status": {"initialization": {"provisioned": True}}}, labels={"a": "b"})
    play.patch(
        S,
        "s",
        {"spec": {"controlPlaneAvailabilityZones": ["one"]}, "status": {"initialization": {"provisioned": True}}},
    )
    play.patch(
        S,
        "s",
        {"spec": {"controlPlaneAvailabilityZones": ["two"]}, "status": {"initialization": {"provisioned": True}}},
        "status",
    )
    play.patch(S, "s", {"status": {"initialization": {"provisioned": True}}}, "status")
    play.patch(S, "s", {"status": {"initialization": None}}, "status")
    play.patch(S, "s", {"metadata": {"labels": {"c": "d"}}}, "status")
    play.patch(S, "s", {"metadata": {"labels": {"a": None, "c": "d"}}})
    play.patch(S, "s", {"metadata": {"labels": None, "annotations": {"e": "f"}}})
    play.patch(S, "s", {"metadata": {"annotations": {}}})
    play.get(S, "s")
    play.delete(S, "s")
    play.get(S, "s")


def put(play: Play) -> None:
    made = play.cluster()
    other = {
        **made,
        "spec": {**SPEC, "controlPlaneAvailabilityZones": ["one"]},
        "status": {"initialization": {"provisioned": True}},
    }
    changed = play.put(S, other)
    play.put(S, other)
    play.put(S, changed)
    metadata = changed["metadata"]
    play.put(S, {**changed, "metadata": {k: v for k, v in metadata.items() if k != "resourceVersion"}})
    play.put(S, {**changed, "metadata": {**metadata, "uid": "3b4c0f2e-0000-0000-0000-000000000000"}})
    play.put(S, {**changed, "metadata": {"name": "s", "resourceVersion": metadata["resourceVersion"]}})
    play.put(
        S,
        {
            **changed,
            "status": {"initialization": {"provisioned": True}},
            "spec": {**SPEC, "controlPlaneAvailabilityZones": ["x"]},
        },
        "status",
    )
    play.ask("PUT", play.path(S, "t"), {**changed, "metadata": {"name": "t", "namespace": play.namespace}})
    play.ask("PUT", play.path(S, "t"), changed)


def conditional_patch(play: Play) -> None:
    made = play.cluster()
    version = made["metadata"]["resourceVersion"]
    play.patch(S, "s", {"metadata": {"resourceVersion": version, "labels": {"a": "b"}}})
    play.patch(S, "s", {"metadata": {"resourceVersion": version, "labels": {"a": "c"}}})
    play.patch(S, "s", {"metadata": {"resourceVersion": version}})
    play.patch(
        S,
        "s",
        {"metadata": {"resourceVersion": version}, "status": {"initialization": {"provisioned": True}}},
        "status",
    )
    play.patch(
        S, "s", {"metadata": {"resourceVersion": None}, "status": {"initialization": {"provisioned": True}}}, "status"
    )
    play.patch(S, "missing", {"metadata": {"labels": {"a": "b"}}})
    play.patch(S, "missing", {"status": {"initialization": {"provisioned": True}}}, "status")


def fixed_metadata(play: Play) -> None:
    play.cluster()
    play.patch(S, "s", {"metadata": {"uid": "3b4c0f2e-0000-0000-0000-000000000000"}})
    play.patch(S, "s", {"metadata": {"name": "t"}})
    play.patch(S, "s", {"metadata": {"namespace": "elsewhere"}})
    play.patch(S, "s", {"metadata": {"creationTimestamp": "2020-01-01T00:00:00Z"}})
    play.patch(S, "s", {"metadata": {"creationTimestamp": None, "uid": None}})
    play.patch(S, "s", {"metadata": {"deletionTimestamp": "2020-01-01T00:00:00Z"}})
    play.patch(S, "s", {"metadata": {"deletionGracePeriodSeconds": 5}})
    play.patch(S, "s", {"metadata": {"generation": 7}})
    play.patch(S, "s", {"kind": "OpenStackMachine"})
    play.patch(S, "s", {"apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2"})
    play.patch(S, "s", {"metadata": None})


def finalizers(play: Play) -> None:
    play.cluster(finalizers=["example.org/one", "example.org/two"])
    play.delete(S, "s")
    play.delete(S, "s")
    play.patch(S, "s", {"metadata": {"finalizers": ["example.org/one", "example.org/two", "example.org/three"]}})
    play.patch(S, "s", {"metadata": {"deletionTimestamp": None}})
    play.patch(S, "s", {"metadata": {"labels": {"a": "b"}}})
    play.patch(S, "s", {"spec": {"controlPlaneAvailabilityZones": ["one"]}})
    play.patch(S, "s", {"status": {"initialization": {"provisioned": True}}}, "status")
    play.cluster()
    play.patch(S, "s", {"metadata": {"finalizers": ["example.org/two"]}})
    play.patch(S, "s", {"metadata": {"finalizers": None, "labels": {"last": "write"}}})
    play.get(S, "s")
    play.patch(S, "s", {"metadata": {"finalizers": None}})
    play.delete(S, "s")


def recreated(play: Play) -> None:
    first = play.cluster()
    play.cluster()
    play.delete(S, "s", preconditions={"uid": "3b4c0f2e-0000-0000-0000-000000000000"})
    play.delete(S, "s", preconditions={"resourceVersion": "1"})
    play.delete(S, "s", preconditions={"uid": first["metadata"]["uid"]})
    play.cluster()
    play.delete(S, "s", preconditions={"uid": first["metadata"]["uid"]})
    play.get(S, "s")


def restored_by_a_tool(play: Play) -> None:
    owner = play.cluster("owner")
    play.create(
        S,
        "s",
        {"spec": SPEC, "status": {"initialization": {"provisioned": True}}},
        **{
            "finalizers": ["example.org/one"],
            "annotations": {"a": "b"},
            "uid": "3b4c0f2e-0000-0000-0000-000000000000",
            "creationTimestamp": "2020-01-01T00:00:00Z",
            "deletionTimestamp": "2020-01-01T00:00:00Z",
            "generation": 5,
            "ownerReferences": [_owner(owner)],
        },
    )
    play.cluster("versioned", resourceVersion="1")
    play.cluster("placed", namespace="elsewhere")
    play.cluster("Bad_Name")
    play.ask("POST", play.path(S), {"metadata": {"name": "x"}, "spec": SPEC})
    play.ask("POST", play.path(S), {"apiVersion": "v1", "kind": S.kind, "metadata": {"name": "x"}, "spec": SPEC})
    play.ask("POST", play.path(S), {"apiVersion": S.api_version, "kind": "Secret", "metadata": {"name": "x"}})
    play.patch(S, "s", {"metadata": {"ownerReferences": [{**_owner(owner), "uid": ""}]}})
    controllers = [
        {**_owner(owner), "controller": True},
        {**_owner(owner), "name": "b", "uid": "u2", "controller": True},
    ]
    play.patch(S, "s", {"metadata": {"ownerReferences": controllers}})


def propagation(play: Play) -> None:
    play.cluster("plain")
    play.delete(S, "plain", propagationPolicy="Foreground")
    play.delete(S, "plain", propagationPolicy="Background")
    play.cluster("held", finalizers=["example.org/one"])
    play.delete(S, "held", propagationPolicy="Foreground")
    play.delete(S, "held", propagationPolicy="Orphan")
    play.delete(S, "held", propagationPolicy="Background")
    play.patch(S, "held", {"metadata": {"finalizers": None}})
    play.cluster("orphaning")
    play.delete(S, "orphaning", propagationPolicy="Orphan")
    play.patch(S, "orphaning", {"metadata": {"finalizers": []}})


def patches(play: Play) -> None:
    play.patch(
        S, "s", {"apiVersion": S.api_version, "kind": S.kind, "metadata": {"name": "s"}, "spec": SPEC}, "", APPLY
    )
    play.patch(
        S, "s", {"apiVersion": S.api_version, "kind": S.kind, "metadata": {"name": "s"}, "spec": SPEC}, "", APPLY
    )
    play.patch(
        S,
        "s",
        {"spec": {"controlPlaneAvailabilityZones": ["a", "b"], "bastion": {"enabled": False, "floatingIP": None}}},
    )
    play.patch(S, "s", [{"op": "add", "path": "/spec/controlPlaneAvailabilityZones/-", "value": "c"}], "", JSON_PATCH)
    play.patch(S, "s", [{"op": "test", "path": "/spec/controlPlaneAvailabilityZones/0", "value": "z"}], "", JSON_PATCH)
    play.patch(S, "s", [{"op": "remove", "path": "/spec/nothing"}], "", JSON_PATCH)
    play.patch(S, "s", {"spec": {"controlPlaneAvailabilityZones": []}})
    play.patch(S, "s", {"spec": {"controlPlaneAvailabilityZones": None}})
    play.patch(S, "s", {}, "", "application/x-unknown")
    play.ask("PATCH", play.path(S, "s"), b"{", MERGE)
    play.ask("PATCH", play.path(S, "s"), b"[]", MERGE)
    play.ask("POST", play.path(S), b"{")


def lists(play: Play) -> None:
    for number in range(5):
        play.cluster(f"s-{number}", labels={"parity": "odd" if number % 2 else "even"})
    page = play.ask("GET", play.path(S), query={"limit": "2"})
    play.delete(S, "s-3")
    play.cluster("s-9")
    page = play.ask("GET", play.path(S), query={"limit": "2", "continue": page["metadata"]["continue"]})
    play.ask("GET", play.path(S), query={"limit": "2", "continue": page["metadata"]["continue"]})
    play.ask("GET", play.path(S), query={"labelSelector": "parity=odd"})
    play.ask("GET", play.path(S), query={"labelSelector": "parity!=odd"})
    play.ask("GET", play.path(S), query={"labelSelector": "!parity"})
    play.ask("GET", play.path(S), query={"fieldSelector": "metadata.name=s-1"})
    play.ask("GET", play.path(S), query={"limit": "2", "continue": "nonsense"})
    play.ask("DELETE", play.path(S), query={"labelSelector": "parity=odd"})
    play.ask("GET", client.path(S, "nowhere"))


def paths(play: Play) -> None:
    play.ask("GET", "/apis/example.org/v1/namespaces/default/things")
    play.ask("GET", f"/apis/{S.group}/v1alpha9/namespaces/default/{S.plural}/x")
    play.get(S, "missing")
    play.delete(S, "missing")
    play.get(SECRET, "missing")
    play.ask("GET", client.path(NAMESPACE, "", "nowhere"))
    play.ask(
        "POST",
        client.path(S, "nowhere"),
        {"apiVersion": S.api_version, "kind": S.kind, "metadata": {"name": "s"}, "spec": SPEC},
    )
    play.ask("DELETE", play.path(S, "s") + "/status")
    play.ask("POST", client.path(S, ""), {"apiVersion": S.api_version, "kind": S.kind, "metadata": {"name": "s"}})


def secrets(play: Play) -> None:
    data = base64.b64encode(b"text").decode()
    play.create(SECRET, "one", {"data": {"a": data}})
    play.create(SECRET, "two", {"stringData": {"a": "text"}, "type": "cluster.x-k8s.io/secret"})
    play.patch(SECRET, "one", {"data": {"b": data}})
    play.patch(SECRET, "one", {"data": {"b": data}})
    play.patch(SECRET, "one", {"metadata": {"finalizers": ["example.org/one"]}})
    play.patch(SECRET, "one", {"metadata": {"resourceVersion": "1"}})
    play.ask("PATCH", play.path(SECRET, "one") + "/status", {"data": None}, MERGE)
    play.ask("GET", play.path(SECRET), query={"labelSelector": "!owner"})
    play.delete(SECRET, "one")
    play.patch(SECRET, "one", {"metadata": {"finalizers": []}})
    play.delete(SECRET, "two")


def leases(play: Play) -> None:
    time = "2026-01-01T00:00:00.000000Z"
    spec = {"holderIdentity": "one", "leaseDurationSeconds": 15, "acquireTime": time, "renewTime": time}
    made = play.create(LEASE, "l", {"spec": {**spec, "leaseTransitions": 0}})
    play.put(LEASE, {**made, "spec": {**spec, "leaseTransitions": 1}})
    play.put(LEASE, {**made, "spec": {**spec, "leaseTransitions": 2}})
    play.put(LEASE, {**made, "metadata": {"name": "l", "namespace": play.namespace}, "spec": spec})
    new = {"apiVersion": LEASE.api_version, "kind": LEASE.kind, "metadata": {"name": "m"}, "spec": spec}
    play.put(LEASE, new)
    play.create(LEASE, "l", {"spec": spec})


def namespaces(play: Play) -> None:
    play.ask("GET", client.path(NAMESPACE, "", play.namespace))
    play.cluster()
    play.ask("PATCH", client.path(NAMESPACE, "", play.namespace), {"metadata": {"labels": {"a": "b"}}}, MERGE)
    play.ask("DELETE", client.path(NAMESPACE, "", play.namespace))
    play.ask("DELETE", client.path(NAMESPACE, "", play.namespace))
    play.cluster("late")
    play.patch(S, "s", {"spec": {"controlPlaneAvailabilityZones": ["one"]}})


def schema(play: Play) -> None:
    server = OPENSTACK_SERVER
    play.server_object("defaults")
    play.server_object("bare", {name: SERVER_SPEC[name] for name in ("flavor", "image", "ports", "sshKeyName")})
    play.server_object("short", {**SERVER_SPEC, "identityRef": {"name": "a", "cloudName": "b"}})
    play.server_object("pruned", {**SERVER_SPEC, "unknown": 1, "ports": [{"unknown": {"a": 1}}]})
    play.server_object("keys", {**SERVER_SPEC, "ports": [{"unknown": {"a": 1}}], "rootVolume": {"sizeGiB": 1}})
    play.server_object("number", {**SERVER_SPEC, "flavor": 7})
    play.server_object("empty", {**SERVER_SPEC, "flavor": ""})
    play.server_object("nulls", {**SERVER_SPEC, "flavor": None, "flavorID": None})
    play.server_object("text", {**SERVER_SPEC, "ports": "text"})
    play.server_object("duplicates", {**SERVER_SPEC, "tags": ["same", "same"]})
    play.server_object("several", {**SERVER_SPEC, "sshKeyName": 1, "ports": [{"adminStateUp": "yes"}], "tags": [""]})
    play.server_object("size", {**SERVER_SPEC, "rootVolume": {"sizeGiB": 0}})
    play.server_object("zone", {**SERVER_SPEC, "rootVolume": {"sizeGiB": 9, "availabilityZone": {"from": "Name"}}})
    play.server_object("choice", {**SERVER_SPEC, "rootVolume": {"sizeGiB": 9, "availabilityZone": {"from": "Else"}}})
    play.server_object("uuid", {**SERVER_SPEC, "serverGroup": {"id": "no-uuid"}})
    play.server_object("both", {**SERVER_SPEC, "image": {"id": "3b4c0f2e-0000-0000-0000-000000000000", "filter": {}}})
    play.create(server, "nothing", {})
    play.create(server, "list", {"spec": []})
    play.patch(server, "defaults", {"status": {"unknown": 1, "ready": True}}, "status")
    play.patch(server, "defaults", {"status": {"ready": "text"}}, "status")
    play.patch(server, "defaults", {"spec": None})
    play.patch(server, "defaults", {"spec": {"identityRef": {"type": None}}})
    _cluster_schema(play)


def _cluster_schema(play: Play) -> None:
    cluster = OPENSTACK_CLUSTER
    play.create(cluster, "bastion", {"spec": {"identityRef": IDENTITY, "bastion": {"enabled": True}}})
    play.create(cluster, "subnets", {"spec": {"identityRef": IDENTITY, "managedSubnets": [{"cidr": "10.0.0.0/24"}]}})
    play.create(cluster, "cidr", {"spec": {"identityRef": IDENTITY, "managedSubnets": [{}]}})
    play.create(cluster, "router", {"spec": {"identityRef": IDENTITY, "managedRouter": {}}})
    play.cluster("c")
    play.patch(cluster, "c", {"spec": {"bastion": {}}})
    play.patch(cluster, "c", {"spec": {"bastion": {"enabled": False}}})
    play.patch(cluster, "c", {"spec": {"identityRef": {"region": "elsewhere"}}})
    play.patch(cluster, "c", {"spec": {"controlPlaneAvailabilityZones": ["a", "a"]}})
    play.patch(cluster, "c", {"spec": {"managedSecurityGroups": {"allNodesSecurityGroupRules": [{"name": "r"}]}}})
    groups = {"allNodesSecurityGroupRules": [{"name": "r", "direction": "ingress"}]}
    play.patch(cluster, "c", {"spec": {"managedSecurityGroups": groups}})


def webhooks(play: Play) -> None:
    machine = OPENSTACK_MACHINE
    play.create(machine, "m", {"spec": MACHINE_SPEC})
    play.patch(machine, "m", {"spec": {"flavor": {"filter": {"name": "big"}}}})
    play.patch(machine, "m", {"spec": {"sshKeyName": "other", "tags": ["a"]}})
    play.patch(machine, "m", {"spec": {"providerID": "openstack:///3b4c0f2e-0000-0000-0000-000000000000"}})
    play.patch(machine, "m", {"metadata": {"labels": {"a": "b"}}})
    play.server_object("s")
    play.patch(OPENSTACK_SERVER, "s", {"spec": {"flavor": "big"}})
    play.patch(OPENSTACK_SERVER, "s", {"spec": {"flavor": 7}})
    play.cluster("c")
    play.patch(OPENSTACK_CLUSTER, "c", {"spec": {"managedSubnets": [{"cidr": "10.0.0.0/24"}]}})


def events(play: Play) -> None:
    name = "machine.0123456789abcdef"
    known = {
        "eventTime": "2026-01-01T00:00:00.000000Z",
        "reportingController": "capo-controller-manager",
        "reportingInstance": "one",
        "action": "Reconciling",
        "reason": "Test",
        "regarding": {
            "apiVersion": "v1",
            "kind": "Secret",
            "namespace": play.namespace,
            "name": "s",
            "uid": "some-uid",
        },
        "note": "A note",
        "type": "Normal",
    }
    play.create(EVENT, name, known)
    series = {"count": 2, "lastObservedTime": "2026-01-01T00:01:00.000000Z"}
    play.patch(EVENT, name, {"series": series})
    play.patch(EVENT, name, {"series": {**series, "count": 3}})
    play.patch(EVENT, "missing", {"series": series})
    play.ask("GET", play.path(EVENT))
    play.delete(EVENT, name)


def identities(play: Play) -> None:
    kind = OPENSTACK_CLUSTER_IDENTITY
    path = client.path(kind, "", "simulated")
    secret = {"name": "credentials", "namespace": "default"}
    obj = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": {"name": "simulated"}}
    play.ask("POST", client.path(kind, ""), {**obj, "spec": {"secretRef": secret}, "status": {"a": "b"}})
    play.ask("PATCH", path, {"spec": {"secretRef": {"name": "other"}}}, MERGE)
    play.ask("PATCH", f"{path}/status", {"status": {"a": "b"}}, MERGE)
    play.ask("GET", f"{path}/status")
    play.ask("PATCH", path, {"metadata": {"finalizers": ["example.org/one"]}}, MERGE)
    play.ask("DELETE", path)
    play.ask("PATCH", path, {"metadata": {"finalizers": None}}, MERGE)
    play.ask("GET", path)


def applying(play: Play) -> None:
    head = {"apiVersion": S.api_version, "kind": S.kind}
    play.cluster(finalizers=["example.org/one"], labels={"a": "b"})
    more = {"name": "s", "finalizers": ["example.org/two"], "labels": {"c": "d"}}
    play.patch(S, "s", {**head, "metadata": more, "spec": {"identityRef": IDENTITY}}, "", APPLY)
    play.patch(S, "s", {**head, "metadata": more, "spec": {"identityRef": IDENTITY}}, "", APPLY)
    play.patch(S, "s", {**head, "metadata": {"name": "other"}, "spec": SPEC}, "", APPLY)
    play.patch(S, "new", {**head, "metadata": {"name": "other"}, "spec": SPEC}, "", APPLY)
    play.patch(S, "new", {**head, "spec": SPEC}, "", APPLY)
    status = {"initialization": {"provisioned": True}}
    play.patch(S, "s", {**head, "metadata": {"name": "s"}, "status": status}, "status", APPLY)


def _owner(obj: Json) -> Json:
    return {"apiVersion": S.api_version, "kind": S.kind, "name": obj["metadata"]["name"], "uid": obj["metadata"]["uid"]}


SCENARIOS: Final[dict[str, Scenario]] = {
    scenario.__name__: scenario
    for scenario in (
        spec_and_status,
        put,
        conditional_patch,
        fixed_metadata,
        finalizers,
        recreated,
        restored_by_a_tool,
        propagation,
        patches,
        lists,
        paths,
        secrets,
        leases,
        namespaces,
        schema,
        webhooks,
        events,
        identities,
        applying,
    )
}


def played(server: Server, name: str) -> Json:
    """Play a scenario and return its results, without the parts that differ between runs."""
    namespace = "sim-" + name.replace("_", "-")
    _, made = server.send(
        "POST",
        client.path(NAMESPACE, ""),
        {},
        JSON,
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}},
    )
    play = Play(server, namespace)
    SCENARIOS[name](play)
    begin = int(made["metadata"]["resourceVersion"])
    events = {kind.kind: [list(event) for event in server.events(kind, namespace, begin)] for kind in KINDS}
    return masked({"answers": play.answers, "events": {kind: found for kind, found in events.items() if found}})
