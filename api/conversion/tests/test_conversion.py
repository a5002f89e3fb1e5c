"""The rules of conversion one by one, and the annotation."""

from __future__ import annotations

import json
from typing import Any

import pytest

from api import conversion
from api.conversion import NEWER, OLDER, ConversionError
from api.conversion.annotation import ANNOTATION
from api.validation import faults_of_update
from capo.json_types import Json

IDENTITY = {"type": "Secret", "name": "credentials", "cloudName": "openstack"}
SINCE = "2026-01-02T03:04:05Z"


def an(kind: str, version: str, spec: Json | None = None, status: Json | None = None, **metadata: Any) -> Json:
    obj: Json = {"apiVersion": version, "kind": kind, "metadata": {"name": "one", "namespace": "default", **metadata}}
    return obj | ({} if spec is None else {"spec": spec}) | ({} if status is None else {"status": status})


def kept(version: str, kind: str, **parts: Json) -> dict[str, str]:
    return {ANNOTATION: json.dumps({"apiVersion": version, "kind": kind, **parts})}


PORTS_OLD = [{"disablePortSecurity": True}, {"disablePortSecurity": False}, {"trunk": True}]
PORTS_NEW = [{"enablePortSecurity": False}, {"enablePortSecurity": True}, {"trunk": True}]
SPECS = [
    pytest.param("OpenStackCluster", {"networkMTU": 1400}, {"managedNetwork": {"mtu": 1400}}, id="MTU"),
    pytest.param(
        "OpenStackCluster",
        {"disablePortSecurity": True, "networkMTU": 1},
        {"managedNetwork": {"enablePortSecurity": False, "mtu": 1}},
        id="port security of the network",
    ),
    pytest.param(
        "OpenStackCluster",
        {"externalRouterIPs": [{"subnet": {"id": "a"}}]},
        {"managedRouter": {"externalIPs": [{"subnet": {"id": "a"}}]}},
        id="addresses of the router",
    ),
    pytest.param(
        "OpenStackCluster", {"disableExternalNetwork": True}, {"enableExternalNetwork": False}, id="no external network"
    ),
    pytest.param(
        "OpenStackCluster",
        {
            "apiServerPort": 0,
            "apiServerFixedIP": "",
            "apiServerFloatingIP": "192.0.2.1",
            "disableAPIServerFloatingIP": False,
            "apiServerLoadBalancer": {"enabled": True, "additionalPorts": [22], "monitor": {"delay": 0}},
        },
        {
            "apiServer": {
                "port": 0,
                "fixedIP": "",
                "floatingIP": "192.0.2.1",
                "enableFloatingIP": True,
                "managedLoadBalancer": {"enabled": True, "additionalPorts": [22], "monitor": {"delay": 0}},
            }
        },
        id="API server",
    ),
    pytest.param(
        "OpenStackCluster",
        {"managedSecurityGroups": {"allNodesSecurityGroupRules": [{"name": "a"}], "allowAllInClusterTraffic": False}},
        {
            "managedSecurityGroups": {
                "clusterNodesSecurityGroupRules": [{"name": "a"}],
                "allowAllInClusterTraffic": False,
            }
        },
        id="rules for all nodes",
    ),
    pytest.param(
        "OpenStackCluster",
        {"bastion": {"enabled": True, "spec": {"flavor": "small", "ports": PORTS_OLD}, "floatingIP": "192.0.2.2"}},
        {
            "bastion": {
                "enabled": True,
                "spec": {"flavor": {"filter": {"name": "small"}}, "ports": PORTS_NEW},
                "floatingIP": "192.0.2.2",
            }
        },
        id="bastion",
    ),
    pytest.param(
        "OpenStackCluster",
        {"controlPlaneEndpoint": {"host": "192.0.2.3", "port": 6443}},
        {"controlPlaneEndpoint": {"host": "192.0.2.3", "port": 6443}},
        id="endpoint",
    ),
    pytest.param(
        "OpenStackCluster",
        {"controlPlaneEndpoint": {"host": "192.0.2.3", "port": 0}},
        {"controlPlaneEndpoint": {"host": "192.0.2.3"}},
        id="endpoint without port",
    ),
    pytest.param(
        "OpenStackCluster",
        {"controlPlaneEndpoint": {"host": "", "port": 6443}},
        {"controlPlaneEndpoint": {"port": 6443}},
        id="endpoint without host",
    ),
    pytest.param(
        "OpenStackCluster",
        {"identityRef": IDENTITY, "tags": ["a"], "managedSubnets": [{"cidr": "10.6.0.0/24"}]},
        {"identityRef": IDENTITY, "tags": ["a"], "managedSubnets": [{"cidr": "10.6.0.0/24"}]},
        id="what has the same name",
    ),
    pytest.param("OpenStackMachine", {"flavorID": "1"}, {"flavor": {"id": "1"}}, id="flavor by id"),
    pytest.param("OpenStackMachine", {"ports": PORTS_OLD}, {"ports": PORTS_NEW}, id="port security"),
    pytest.param(
        "OpenStackClusterTemplate",
        {"template": {"spec": {"networkMTU": 1}}},
        {"template": {"spec": {"managedNetwork": {"mtu": 1}}}},
        id="template of clusters",
    ),
    pytest.param(
        "OpenStackMachineTemplate",
        {"template": {"spec": {"flavor": "small", "trunk": False}}},
        {"template": {"spec": {"flavor": {"filter": {"name": "small"}}, "trunk": False}}},
        id="template of machines",
    ),
]


@pytest.mark.parametrize(("kind", "older", "newer"), SPECS)
def test_each_field_of_a_spec_goes_both_ways_and_needs_no_annotation(kind: str, older: Json, newer: Json) -> None:
    assert conversion.convert(an(kind, OLDER, older), NEWER) == an(kind, NEWER, newer)
    assert conversion.convert(an(kind, NEWER, newer), OLDER) == an(kind, OLDER, older)


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        pytest.param({"flavor": "small", "flavorID": "1"}, {"flavor": {"id": "1"}}, id="name beside an id"),
        pytest.param({"rootVolume": {"sizeGiB": 2**40}}, {"rootVolume": {"sizeGiB": 2**31 - 1}}, id="huge number"),
    ],
)
def test_what_v1beta2_has_no_room_for_is_kept(older: Json, newer: Json) -> None:
    there = conversion.convert(an("OpenStackMachine", OLDER, older), NEWER)

    assert there["spec"] == newer
    assert json.loads(there["metadata"]["annotations"][ANNOTATION]) == {
        "apiVersion": OLDER,
        "kind": "OpenStackMachine",
        "spec": older,
    }
    assert conversion.convert(there, OLDER) == an("OpenStackMachine", OLDER, older)


def test_an_empty_list_of_router_addresses_makes_no_router() -> None:
    there = conversion.convert(an("OpenStackCluster", OLDER, {"externalRouterIPs": []}), NEWER)

    assert there["spec"] == {}


def test_an_empty_endpoint_is_none() -> None:
    older = an("OpenStackCluster", OLDER, {"controlPlaneEndpoint": {"host": "", "port": 0}})

    there = conversion.convert(older, NEWER)

    assert there["spec"] == {}
    assert conversion.convert(there, OLDER) == older


@pytest.mark.parametrize(
    "given",
    [
        pytest.param({"host": "api.example.org", "port": 0}, id="a host"),
        pytest.param({"host": "", "port": 8443}, id="a port"),
    ],
)
def test_an_endpoint_that_was_given_in_part_may_be_completed_whatever_version_gave_it(given: dict[str, Any]) -> None:
    older = an("OpenStackCluster", OLDER, {"identityRef": IDENTITY, "controlPlaneEndpoint": given})
    stored = conversion.convert(older, NEWER)
    parts = {name: value for name, value in given.items() if value}
    full = {"host": "192.0.2.3", "port": 6443, **parts}

    filled = {**stored, "spec": {**stored["spec"], "controlPlaneEndpoint": full}}

    assert stored["spec"]["controlPlaneEndpoint"] == parts
    assert faults_of_update("OpenStackCluster", stored, filled, is_dry_run=False) == []
    assert conversion.convert(filled, OLDER)["spec"]["controlPlaneEndpoint"] == full


STATUS_OLD = {
    "ready": True,
    "conditions": [
        {"type": "Ready", "status": "True", "lastTransitionTime": SINCE},
        {"type": "NetworkReady", "status": "False", "severity": "Error", "lastTransitionTime": SINCE},
    ],
    "failureReason": "UpdateError",
    "failureMessage": "it broke",
    "apiServerLoadBalancer": {"name": "a", "id": "b", "ip": "c", "internalIP": "d"},
    "failureDomains": {"b": {"controlPlane": True}, "a": {"attributes": {"k": "v"}}},
    "bastion": {
        "resolved": {"ports": [{"name": "p", "description": "", "networkID": "n", "disablePortSecurity": True}]}
    },
    "resources": {"records": [{"kind": "network", "role": "network", "id": "n"}]},
}
STATUS_NEW = {
    "conditions": [
        {
            "type": "Ready",
            "status": "True",
            "lastTransitionTime": SINCE,
            "observedGeneration": 3,
            "reason": "Ready",
            "message": "",
        },
        {
            "type": "NetworkReady",
            "status": "False",
            "lastTransitionTime": SINCE,
            "observedGeneration": 3,
            "reason": "NoReasonReported",
            "message": "",
        },
    ],
    "apiServerManagedLoadBalancer": {"name": "a", "id": "b", "ip": "c", "internalIP": "d"},
    "failureDomains": [
        {"name": "a", "controlPlane": False, "attributes": {"k": "v"}},
        {"name": "b", "controlPlane": True},
    ],
    "bastion": {
        "resolved": {"ports": [{"name": "p", "description": "", "networkID": "n", "enablePortSecurity": False}]}
    },
    "resources": {"records": [{"kind": "network", "role": "network", "id": "n"}]},
}


def test_the_status_of_a_cluster_goes_both_ways() -> None:
    older = an("OpenStackCluster", OLDER, status=STATUS_OLD, generation=3)

    newer = conversion.convert(older, NEWER)

    assert newer["status"] == STATUS_NEW
    assert conversion.convert(newer, OLDER) == older


def test_the_conditions_of_a_template_speak_of_no_generation() -> None:
    status = {"conditions": [{"type": "A", "status": "True", "lastTransitionTime": SINCE, "reason": "B"}]}

    newer = conversion.convert(an("OpenStackMachineTemplate", OLDER, status=status, generation=3), NEWER)

    assert newer["status"]["conditions"] == [status["conditions"][0] | {"message": ""}]


@pytest.mark.parametrize("kind", ["OpenStackCluster", "OpenStackMachine"])
@pytest.mark.parametrize(("status", "is_ready"), [("True", True), ("False", False), ("Unknown", False)])
def test_ready_is_what_the_condition_says(kind: str, status: str, *, is_ready: bool) -> None:
    condition = {"type": "Ready", "status": status, "reason": "A", "message": "b", "lastTransitionTime": SINCE}

    older = conversion.convert(an(kind, NEWER, status={"conditions": [condition]}), OLDER)

    assert older["status"]["ready"] is is_ready


def test_a_cluster_made_through_v1beta1_shows_there_what_became_of_it() -> None:
    made = an("OpenStackCluster", OLDER, {"bastion": {"enabled": True}}, {"ready": False, "failureReason": "x"})
    stored = conversion.convert(made, NEWER)
    ready = {"type": "Ready", "status": "True", "reason": "Ready", "message": "", "lastTransitionTime": SINCE}
    stored |= {"spec": {"bastion": {"enabled": False}}, "status": {"conditions": [ready]}}

    seen = conversion.convert(stored, OLDER)

    assert seen["spec"] == {"bastion": {"enabled": False}}
    assert seen["status"]["ready"] is True
    assert seen["status"]["failureReason"] == "x"


def test_what_the_go_provider_kept_is_read_where_it_keeps_it() -> None:
    older = {"flavor": "small", "flavorID": "1", "image": {"filter": {"name": "ubuntu"}}}
    theirs = json.dumps({"kind": "OpenStackMachine", "apiVersion": OLDER, "spec": older, "status": {"ready": False}})
    newer = {"flavor": {"id": "1"}, "image": {"filter": {"name": "ubuntu"}}}
    stored = an("OpenStackMachine", NEWER, newer, annotations={"cluster.x-k8s.io/conversion-data": theirs})

    seen = conversion.convert(stored, OLDER)

    assert seen["spec"] == older
    assert "annotations" not in seen["metadata"]


def test_what_is_kept_does_not_depend_on_the_order_of_fields() -> None:
    spec = {"flavor": "small", "flavorID": "1", "image": {"filter": {"name": "ubuntu"}}}

    there, again = (
        conversion.convert(an("OpenStackMachine", OLDER, dict(fields)), NEWER)["metadata"]["annotations"][ANNOTATION]
        for fields in (spec.items(), reversed(spec.items()))
    )

    assert there == again


@pytest.mark.parametrize("kind", ["OpenStackCluster", "OpenStackMachine"])
def test_a_failure_is_told_to_v1beta1_alone_and_outlives_a_change_of_the_rest(kind: str) -> None:
    failure = {"failureReason": "UpdateError", "failureMessage": "it broke"}
    stored = conversion.convert(an(kind, OLDER, status={"ready": False, **failure}), NEWER)
    assert not failure.keys() & stored["status"].keys()
    stored["status"] = {"initialization": {"provisioned": True}}

    seen = conversion.convert(stored, OLDER)

    assert seen["status"] == {"initialization": {"provisioned": True}, "ready": False, **failure}


def test_the_frozen_view_that_the_go_provider_leaves_behind_is_not_shown() -> None:
    frozen = {"identityRef": IDENTITY, "bastion": {"enabled": True}, "disableExternalNetwork": False}
    annotations = kept(OLDER, "OpenStackCluster", spec=frozen, status={"ready": False})
    spec = {"identityRef": IDENTITY, "bastion": {"enabled": False}}
    stored = an("OpenStackCluster", NEWER, spec, {"initialization": {"provisioned": True}}, annotations=annotations)

    seen = conversion.convert(stored, OLDER)

    assert seen["spec"] == spec
    assert seen["status"] == {"initialization": {"provisioned": True}, "ready": False}
    assert "annotations" not in seen["metadata"]


CONDITION_OLD = {"type": "A", "status": "False", "reason": "B", "severity": "Warning", "lastTransitionTime": SINCE}
CONDITION_NEW = {"type": "A", "status": "False", "reason": "B", "message": "", "lastTransitionTime": SINCE}


@pytest.mark.parametrize(
    ("change", "severity"),
    [
        pytest.param({}, "Warning", id="unchanged"),
        pytest.param({"reason": "C"}, None, id="other reason"),
        pytest.param({"lastTransitionTime": "2026-02-02T00:00:00Z"}, None, id="changed meanwhile"),
    ],
)
def test_a_severity_comes_back_with_the_condition_that_it_belongs_to(change: Json, severity: str | None) -> None:
    annotations = kept(OLDER, "OpenStackMachine", status={"conditions": [CONDITION_OLD]})
    status = {"conditions": [CONDITION_NEW | change], "instanceID": "changed as well"}

    seen = conversion.convert(an("OpenStackMachine", NEWER, status=status, annotations=annotations), OLDER)

    assert seen["status"]["conditions"][0].get("severity") == severity


def test_a_condition_keeps_the_generation_that_it_was_made_for() -> None:
    conditions = [
        CONDITION_NEW | {"observedGeneration": 2},
        {**CONDITION_NEW, "type": "Z", "observedGeneration": 2},
    ]
    stored = an("OpenStackMachine", NEWER, {}, {"conditions": conditions}, generation=7)
    read = conversion.convert(stored, OLDER)
    read["status"]["conditions"][1] |= {"status": "True"}

    written = conversion.convert(read, NEWER)

    assert [c["observedGeneration"] for c in written["status"]["conditions"]] == [2, 7]


@pytest.mark.parametrize(
    ("kind", "place"),
    [
        pytest.param("OpenStackMachine", lambda machine: machine, id="machine"),
        pytest.param("OpenStackMachineTemplate", lambda machine: {"template": {"spec": machine}}, id="template"),
        pytest.param("OpenStackCluster", lambda machine: {"bastion": {"spec": machine}}, id="bastion"),
        pytest.param(
            "OpenStackClusterTemplate",
            lambda machine: {"template": {"spec": {"bastion": {"spec": machine}}}},
            id="bastion in a template",
        ),
    ],
)
def test_the_name_of_a_flavor_comes_back_while_the_id_is_the_same(kind: str, place: Any) -> None:
    annotations = kept(OLDER, kind, spec=place({"flavor": "small", "flavorID": "1"}))

    def seen(flavor: Json) -> Json:
        spec = place({"flavor": flavor, "sshKeyName": "new"})
        older: Json = conversion.convert(an(kind, NEWER, spec, annotations=annotations), OLDER)["spec"]
        return older

    assert seen({"id": "1"}) == place({"flavor": "small", "flavorID": "1", "sshKeyName": "new"})
    assert seen({"id": "2"}) == place({"flavorID": "2", "sshKeyName": "new"})


@pytest.mark.parametrize(("read", "written"), [(NEWER, OLDER), (OLDER, NEWER)])
def test_metadata_for_machines_are_the_same_in_both_versions(read: str, written: str) -> None:
    metadata = {"labels": {"a": "b"}, "annotations": {"c": "d"}}
    spec = {"template": {"metadata": metadata, "spec": {"image": {"filter": {"name": "ubuntu"}}}}}

    there = conversion.convert(an("OpenStackMachineTemplate", read, spec), written)

    assert there["spec"]["template"]["metadata"] == metadata
    assert conversion.convert(there, read)["spec"]["template"]["metadata"] == metadata


def test_metadata_for_clusters_survive_an_edit_through_v1beta1() -> None:
    metadata = {"labels": {"a": "b"}}
    spec = {"template": {"metadata": metadata, "spec": {"identityRef": IDENTITY}}}
    read = conversion.convert(an("OpenStackClusterTemplate", NEWER, spec), OLDER)
    read["spec"] = {"template": {"spec": {"identityRef": IDENTITY, "networkMTU": 9}}}

    written = conversion.convert(read, NEWER)

    assert written["spec"]["template"] == {
        "metadata": metadata,
        "spec": {"identityRef": IDENTITY, "managedNetwork": {"mtu": 9}},
    }


@pytest.mark.parametrize(
    "text",
    [
        "no JSON",
        "[]",
        json.dumps(
            {"apiVersion": "infrastructure.cluster.x-k8s.io/v1alpha7", "spec": {"flavor": "x", "flavorID": "1"}}
        ),
        json.dumps({"apiVersion": OLDER, "kind": "OpenStackCluster", "spec": {"flavor": "x", "flavorID": "1"}}),
        json.dumps({"apiVersion": OLDER, "spec": {"ports": "none"}}),
        json.dumps({"apiVersion": OLDER, "spec": "none"}),
        "[" * 100_000,
    ],
    ids=["no JSON", "list", "version of old", "other kind", "malformed part", "text", "deep"],
)
def test_an_annotation_that_cannot_be_used_is_dropped(text: str) -> None:
    stored = an("OpenStackMachine", NEWER, {"flavor": {"id": "1"}}, annotations={ANNOTATION: text, "a": "b"})

    seen = conversion.convert(stored, OLDER)

    assert seen == an("OpenStackMachine", OLDER, {"flavorID": "1"}, annotations={"a": "b"})


def test_an_annotation_without_version_and_kind_counts() -> None:
    annotations = {ANNOTATION: json.dumps({"spec": {"flavor": "x", "flavorID": "1"}})}
    stored = an("OpenStackMachine", NEWER, {"flavor": {"id": "1"}}, annotations=annotations)

    assert conversion.convert(stored, OLDER)["spec"] == {"flavor": "x", "flavorID": "1"}


@pytest.mark.parametrize("kind", conversion.KINDS)
@pytest.mark.parametrize("version", [OLDER, NEWER])
def test_an_object_without_spec_stays_without(kind: str, version: str) -> None:
    wanted = NEWER if version == OLDER else OLDER

    assert conversion.convert(an(kind, version), wanted) == an(kind, wanted)
    assert conversion.convert({"apiVersion": version, "kind": kind}, wanted) == {"apiVersion": wanted, "kind": kind}


def test_an_object_of_the_wanted_version_is_left_alone() -> None:
    obj = an("OpenStackMachine", NEWER, {"flavor": {}}, annotations=kept(OLDER, "OpenStackMachine", spec={}))

    assert conversion.convert(obj, NEWER) == obj


def test_the_object_that_is_converted_is_not_changed() -> None:
    obj = an("OpenStackCluster", OLDER, {"networkMTU": 1, "bastion": {"spec": {"ports": PORTS_OLD}}}, STATUS_OLD)
    before = json.dumps(obj)

    conversion.convert(obj, NEWER)

    assert json.dumps(obj) == before


@pytest.mark.parametrize(
    ("obj", "wanted", "message"),
    [
        pytest.param(an("OpenStackServer", NEWER), OLDER, "kind 'OpenStackServer' is not converted", id="kind"),
        pytest.param({"apiVersion": OLDER}, NEWER, "kind None is not converted", id="no kind"),
        pytest.param({"apiVersion": OLDER, "kind": []}, NEWER, r"kind \[\] is not converted", id="kind is a list"),
        pytest.param(an("OpenStackMachine", "apps/v1"), NEWER, "no conversion from apps/v1", id="group"),
        pytest.param(an("OpenStackMachine", OLDER), f"{NEWER}0", "no conversion from .* to .*v1beta20", id="version"),
        pytest.param(
            {**an("OpenStackMachine", OLDER), "spec": "x"}, NEWER, "^spec: must be an object, is 'x'$", id="spec"
        ),
        pytest.param(
            an("OpenStackMachine", OLDER, {"ports": [{}, {"disablePortSecurity": "yes"}]}),
            NEWER,
            r"^spec.ports\[1\].disablePortSecurity: must be true or false, is 'yes'$",
            id="deep inside",
        ),
        pytest.param(
            an("OpenStackClusterTemplate", NEWER, {"template": {"spec": {"apiServer": [1] * 99}}}),
            OLDER,
            r"^spec.template.spec.apiServer: must be an object, is \[1, 1",
            id="long value",
        ),
        pytest.param(
            an("OpenStackCluster", NEWER, status={"failureDomains": [{}]}),
            OLDER,
            r"^status.failureDomains\[0\]: must have a name",
            id="domain",
        ),
        pytest.param(
            an("OpenStackCluster", NEWER, annotations="x"), OLDER, "^metadata.annotations: must be", id="annotations"
        ),
    ],
)
def test_what_cannot_be_converted_is_said_with_its_place(obj: Json, wanted: str, message: str) -> None:
    with pytest.raises(ConversionError, match=message):
        conversion.convert(obj, wanted)
