from __future__ import annotations

import json
from typing import Any

import pytest

from api.validation.difference import MOST
from capo import names
from capo.json_types import Json
from capo.webhooks import admission

GROUP = "infrastructure.cluster.x-k8s.io"
SPEC = {"identityRef": {"type": "Secret", "name": "a", "cloudName": "b"}, "network": {"id": "n"}}


def cluster(spec: Json, **metadata: Any) -> Json:
    return {
        "apiVersion": f"{GROUP}/v1beta2",
        "kind": "OpenStackCluster",
        "metadata": {"name": "demo", "namespace": "default", **metadata},
        "spec": SPEC | spec,
    }


def response(kind: str = "OpenStackCluster", **request: Any) -> Json:
    review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {"uid": "one", **request}}
    answer: Json = admission.answer(json.dumps(review).encode(), kind)["response"]
    assert answer.pop("uid") == "one"
    return answer


def test_a_refusal_is_a_status_with_a_cause_for_each_field() -> None:
    refused = response(
        operation="UPDATE",
        name="demo",
        oldObject=cluster({"tags": ["a"]}),
        object=cluster({"tags": ["b"], "router": {"id": "r"}}),
    )

    router = 'Forbidden: cannot be added, would be {"id": "r"}; it is immutable once the cluster is created'
    tags = 'Invalid value: "b": cannot change from "a"; it is immutable once the cluster is created'
    assert refused == {
        "allowed": False,
        "status": {
            "apiVersion": "v1",
            "kind": "Status",
            "status": "Failure",
            "reason": "Invalid",
            "code": 422,
            "message": f'OpenStackCluster.{GROUP} "demo" is invalid: [spec.router: {router}, spec.tags[0]: {tags}]',
            "details": {
                "name": "demo",
                "group": GROUP,
                "kind": "OpenStackCluster",
                "causes": [
                    {"reason": "FieldValueForbidden", "message": router, "field": "spec.router"},
                    {"reason": "FieldValueInvalid", "message": tags, "field": "spec.tags[0]"},
                ],
            },
        },
    }


def test_a_single_fault_is_told_without_brackets() -> None:
    refused = response(operation="UPDATE", oldObject=cluster({}), object=cluster({"tags": ["b"]}))

    assert refused["status"]["message"].startswith(f'OpenStackCluster.{GROUP} "demo" is invalid: spec.tags: Forbidden')


def test_a_creation_is_allowed_with_warnings() -> None:
    allowed = response(operation="CREATE", object=cluster({"managedNetwork": {"mtu": 1}}))

    assert allowed == {
        "allowed": True,
        "warnings": ["spec.managedNetwork: has no effect: managedSubnets is not set, so the provider creates nothing"],
    }


def test_an_update_repeats_warnings_only_when_the_spec_changes() -> None:
    idle = {"managedNetwork": {"mtu": 1}}
    labelled = response(operation="UPDATE", oldObject=cluster(idle), object=cluster(idle, labels={"a": "b"}))
    disabled = response(operation="UPDATE", oldObject=cluster(idle), object=cluster(idle | {"bastion": {}}))

    assert labelled == {"allowed": True}
    assert len(disabled["warnings"]) == 1


def test_an_update_of_the_build_timeout_has_its_warning() -> None:
    template = {
        "apiVersion": f"{GROUP}/v1beta2",
        "kind": "OpenStackMachineTemplate",
        "metadata": {"name": "t", "annotations": {names.BUILD_TIMEOUT_ANNOTATION: "soon"}},
        "spec": {"template": {"spec": {}}},
    }
    before = {**template, "metadata": {"name": "t"}}

    edited = response("OpenStackMachineTemplate", operation="UPDATE", oldObject=before, object=template)
    kept = response("OpenStackMachineTemplate", operation="UPDATE", oldObject=template, object=template)

    assert "is not a duration" in edited["warnings"][0]
    assert kept == {"allowed": True}


def test_a_deletion_is_allowed_without_a_look() -> None:
    assert response(operation="DELETE", oldObject={"whatever": 1}, object=None) == {"allowed": True}
    assert response(operation="CONNECT") == {"allowed": True}


def test_a_dry_run_is_told_from_a_real_request() -> None:
    server = {
        "apiVersion": f"{GROUP}/v1alpha1",
        "kind": "OpenStackServer",
        "metadata": {"name": "s", "annotations": {"topology.cluster.x-k8s.io/dry-run": ""}},
        "spec": {"flavor": "a"},
    }
    update = {"operation": "UPDATE", "oldObject": server, "object": server | {"spec": {"flavor": "b"}}}

    assert response("OpenStackServer", dryRun=True, **update)["allowed"] is True
    assert response("OpenStackServer", dryRun=False, **update)["allowed"] is False


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        ({"operation": "CREATE", "object": None}, "object: must be an object of kind OpenStackCluster"),
        ({"operation": "CREATE", "object": {"metadata": 1}}, "object: must be an object of kind OpenStackCluster"),
        (
            {"operation": "CREATE", "object": cluster({}) | {"kind": "OpenStackMachine"}},
            f"object: is {GROUP}/v1beta2 OpenStackMachine, this path is for {GROUP}/v1beta2 OpenStackCluster",
        ),
        (
            {"operation": "UPDATE", "object": cluster({}), "oldObject": {"apiVersion": f"{GROUP}/v1beta1"}},
            f"oldObject: is {GROUP}/v1beta1 None, this path is for {GROUP}/v1beta2 OpenStackCluster",
        ),
    ],
)
def test_an_object_that_does_not_belong_here_is_a_bad_request(request_: Json, message: str) -> None:
    refused = response(**request_)

    assert refused["allowed"] is False
    assert refused["status"]["code"] == 400
    assert refused["status"]["message"] == message


def test_of_thousands_of_faults_the_first_are_told() -> None:
    subnets = [[{"filter": {"name": f"{side}{number}"}} for number in range(3000)] for side in "ab"]

    refused = response(
        operation="UPDATE",
        name="demo",
        oldObject=cluster({"subnets": subnets[0]}),
        object=cluster({"subnets": subnets[1]}),
    )

    status = refused["status"]
    assert len(status["details"]["causes"]) == MOST + 1
    assert status["message"].endswith(f"more fields cannot change; the first {MOST} are listed]")


def test_of_thousands_of_warnings_the_first_are_told() -> None:
    cidrs = [f"nonsense-{number}" for number in range(3000)]

    taken = response(
        operation="CREATE", object=cluster({"apiServer": {"managedLoadBalancer": {"allowedCIDRs": cidrs}}})
    )

    assert len(taken["warnings"]) == MOST + 1
    assert taken["warnings"][-1].endswith(f"the first {MOST} are listed")
