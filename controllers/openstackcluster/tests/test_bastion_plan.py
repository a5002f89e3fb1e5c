"""The bastion's OpenStackServer (G-15, W-60)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from api.v1alpha1 import OpenStackServer
from api.v1beta2 import OpenStackCluster
from api.v1beta2.openstackcluster import Bastion
from api.v1beta2.openstackclusterstatus import BastionReplacement, BastionStatus
from capo import names
from capo.engine.steps import Wait
from controllers import server_child
from controllers.openstackcluster import bastion_hash, bastion_plan
from controllers.openstackcluster.bastion_plan import Create, Delete, Keep, Mark, Nothing, Plan, Refuse, Replace
from controllers.openstackcluster.tests.objects import BASTION, CLUSTER_NAME, IDENTITY, infra

SPEC = {"flavor": "m1.small", "image": {"filter": {"name": "ubuntu"}}, "sshKeyName": "key", "identityRef": IDENTITY}


def bastion(machine: Mapping[str, Any] | None = None, **fields: Any) -> Bastion:
    return Bastion.model_validate({**BASTION, "spec": {**BASTION["spec"], **(machine or {})}, **fields})  # type: ignore[dict-item]


WANTED = bastion_hash.fingerprint(bastion(), ())


def child(
    hash_: str | None = WANTED, owner_uid: str | None = "osc-uid", *, is_deleting: bool = False, reason: str = ""
) -> dict[str, Any]:
    made = server_child.wanted(
        infra(),
        name="kube-bastion",
        cluster_name=CLUSTER_NAME,
        spec=SPEC,
        annotations={names.BASTION_HASH_ANNOTATION: hash_ or ""},
    )
    metadata = made["metadata"]
    metadata |= {"resourceVersion": "7", "uid": "child-uid"}
    metadata["ownerReferences"] = [{**metadata["ownerReferences"][0], "uid": owner_uid}] if owner_uid else []
    if hash_ is None:
        del metadata["annotations"][names.BASTION_HASH_ANNOTATION]
    if is_deleting:
        metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    if reason:
        made["status"] = {"conditions": [{"type": "InstanceReady", "status": "False", "reason": reason}]}
    return made


KNOWN = BastionReplacement(cause="SpecChanged", changed_fields=("spec.bastion.spec.image",))
VANISHED = BastionReplacement(cause="ServerDeleted")


@pytest.mark.parametrize(
    ("found", "wanted", "expected"),
    [
        pytest.param(None, None, Nothing(), id="none, and none is wanted"),
        pytest.param(child(owner_uid="another"), None, Nothing(), id="another object's is left alone"),
        pytest.param(child(owner_uid="another"), WANTED, Refuse(), id="another object's"),
        pytest.param(None, WANTED, Create(WANTED, KNOWN), id="add"),
    ],
)
def test_the_plan_without_a_child_of_the_cluster(found: Any, wanted: str | None, expected: Plan) -> None:
    assert bastion_plan.plan(found, infra(), wanted=wanted, known=KNOWN) == expected


@pytest.mark.parametrize(
    "found",
    [
        pytest.param(child(), id="as it should be"),
        pytest.param(child(reason="InstanceStateError"), id="a failed server is shown, not replaced"),
    ],
)
def test_a_child_is_kept_with_the_replacement_in_progress(found: dict[str, Any]) -> None:
    assert bastion_plan.plan(found, infra(), wanted=WANTED, known=KNOWN) == Keep(found, KNOWN)


@pytest.mark.parametrize(
    "found",
    [
        pytest.param(child(None), id="created by the Go provider: never replaced"),
        pytest.param(child("1-0123456789abcdef"), id="hash of an older version: never replaced"),
        pytest.param(child(owner_uid=None), id="C-46: its owner was lost"),
        pytest.param(child("2-flavor:0123456789", owner_uid=None), id="owner lost and edited: adopted first"),
    ],
)
def test_a_child_without_hash_or_owner_is_marked_with_the_fingerprint(found: dict[str, Any]) -> None:
    assert bastion_plan.plan(found, infra(), wanted=WANTED, known=KNOWN) == Mark(found, WANTED, KNOWN)


@pytest.mark.parametrize(
    ("found", "cause"),
    [
        pytest.param(
            child("2-flavor:0123456789"),
            BastionReplacement(
                cause="SpecChanged",
                changed_fields=tuple(bastion_hash.changed_fields("2-flavor:0123456789", WANTED)),
            ),
            id="edited",
        ),
        pytest.param(child(is_deleting=True), KNOWN, id="being deleted"),
        pytest.param(child(reason="InstanceNotFound"), VANISHED, id="W-60: server vanished"),
        pytest.param(child(reason="InstanceDeleted"), VANISHED, id="W-60: server deleted"),
    ],
)
def test_a_child_is_replaced_for_a_cause(found: dict[str, Any], cause: BastionReplacement) -> None:
    assert bastion_plan.plan(found, infra(), wanted=WANTED, known=KNOWN) == Replace(found, cause)


@pytest.mark.parametrize(
    "found",
    [
        pytest.param(child(), id="disabled or removed"),
        pytest.param(child(is_deleting=True), id="being deleted"),
        pytest.param(child(reason="InstanceNotFound"), id="its server vanished"),
        pytest.param(child(owner_uid=None), id="its owner was lost"),
    ],
)
def test_a_child_that_the_spec_does_not_ask_for_is_deleted(found: dict[str, Any]) -> None:
    assert bastion_plan.plan(found, infra(), wanted=None, known=KNOWN) == Delete(found)


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        pytest.param(None, False, id="absent"),
        pytest.param(BASTION, True, id="enabled"),
        pytest.param({"spec": BASTION["spec"]}, True, id="enabled by default"),
        pytest.param({**BASTION, "enabled": False}, False, id="disabled"),
    ],
)
def test_whether_there_is_to_be_a_bastion(fields: dict[str, Any] | None, expected: bool) -> None:
    assert bastion_plan.is_enabled(Bastion.model_validate(fields) if fields else None) is expected


def test_the_object_has_finalizer_owner_id_owner_and_labels_from_the_first_write_on() -> None:
    cluster = infra()
    cluster["metadata"]["labels"][names.WATCH_FILTER_LABEL] = "blue"

    made = server_child.wanted(cluster, name="kube-bastion", cluster_name=CLUSTER_NAME, spec=SPEC)

    metadata = made["metadata"]
    annotation = metadata["annotations"][names.OWNER_ID_ANNOTATION]
    assert names.owner_of(annotation, kind="OpenStackServer", namespace="default", name="kube-bastion")
    assert metadata["finalizers"] == ["openstackserver.infrastructure.cluster.x-k8s.io"]
    assert metadata["labels"] == {names.CLUSTER_NAME_LABEL: CLUSTER_NAME, names.WATCH_FILTER_LABEL: "blue"}
    [owner] = metadata["ownerReferences"]
    assert (owner["kind"], owner["uid"], owner["controller"], owner["blockOwnerDeletion"]) == (
        "OpenStackCluster",
        "osc-uid",
        True,
        True,
    )


def test_a_child_is_marked_without_losing_what_it_has() -> None:
    orphan = child(None, owner_uid=None)

    marks = {names.BASTION_HASH_ANNOTATION: WANTED}

    assert server_child.adoption(child(None), infra(), annotations=marks) == {
        "metadata": {"resourceVersion": "7", "annotations": {names.BASTION_HASH_ANNOTATION: WANTED}}
    }
    [owner] = server_child.adoption(orphan, infra(), annotations=marks)["metadata"]["ownerReferences"]
    assert owner["uid"] == "osc-uid"


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        pytest.param({"identityRef": {"name": "other", "cloudName": "c"}}, True, id="credentials do not count"),
        pytest.param({"ports": [{"network": {"id": "n"}, "securityGroups": [{"id": "g"}]}]}, True, id="nor do ids"),
        pytest.param({"flavor": "m1.large"}, False, id="flavor counts"),
        pytest.param({"ports": [{}, {}]}, False, id="number of ports counts"),
    ],
)
def test_a_child_without_hash_is_compared_by_its_spec(change: dict[str, Any], expected: bool) -> None:
    known = {"spec": {**SPEC, "ports": [{}]}}

    assert bastion_plan.is_alike(known, {**SPEC, "ports": [{}], **change}) is expected


def server(**status: Any) -> OpenStackServer:
    return OpenStackServer.model_validate(
        {"metadata": {"name": "kube-bastion"}, "spec": {**SPEC, "ports": [{}]}, "status": status}
    )


@pytest.mark.parametrize(
    ("resolved", "made", "expected"),
    [
        pytest.param(["other", "net"], ["p0", "p1"], "p1", id="the one on the cluster's network"),
        pytest.param(["other"], ["p0"], "p0", id="else the first"),
        pytest.param(["net"], [], None, id="none is made yet"),
    ],
)
def test_port_that_the_floating_ip_leads_to(resolved: list[str], made: list[str], expected: str | None) -> None:
    ports = [{"name": "p", "networkID": network} for network in resolved]
    found = server(resolved={"ports": ports}, resources={"ports": [{"id": id_} for id_ in made]})

    assert bastion_plan.port_id(found, "net") == expected


def test_status_shows_server_and_addresses() -> None:
    found = server(
        instanceID="srv",
        instanceState="ACTIVE",
        addresses=[{"type": "InternalIP", "address": "10.6.0.8"}, {"type": "ExternalIP", "address": "198.51.100.9"}],
    )
    floating_ip = {"floating_ip_address": "198.51.100.9", "fixed_ip_address": "10.6.0.8"}

    shown = bastion_plan.status(found, floating_ip)

    assert shown.to_dict() == {
        "id": "srv",
        "name": "kube-bastion",
        "sshKeyName": "key",
        "state": "ACTIVE",
        "ip": "10.6.0.8",
        "floatingIP": "198.51.100.9",
    }
    assert bastion_plan.status(found, None).ip == "10.6.0.8"


OTHER = bastion_hash.fingerprint(bastion({"flavor": {"id": "large"}, "sshKeyName": "other"}), ())


@pytest.mark.parametrize(
    ("found", "wanted", "known", "expected"),
    [
        pytest.param(
            child(),
            OTHER,
            None,
            BastionReplacement(
                cause="SpecChanged", changed_fields=("spec.bastion.spec.flavor", "spec.bastion.spec.sshKeyName")
            ),
            id="the fields that were edited",
        ),
        pytest.param(
            child(reason="InstanceNotFound"), WANTED, None, BastionReplacement(cause="ServerDeleted"), id="W-60"
        ),
        pytest.param(child(is_deleting=True), WANTED, KNOWN, KNOWN, id="edited there and back"),
        pytest.param(
            child(is_deleting=True), WANTED, None, BastionReplacement(cause="ObjectDeleted"), id="enabled again at once"
        ),
    ],
)
def test_a_replacement_has_a_cause(
    found: Any, wanted: str, known: BastionReplacement | None, expected: BastionReplacement
) -> None:
    assert bastion_plan.cause(found, wanted, known) == expected


@pytest.mark.parametrize(
    ("why", "text", "former"),
    [
        pytest.param(
            BastionReplacement(
                cause="SpecChanged", changed_fields=("spec.bastion.spec.flavor", "spec.bastion.spec.tags")
            ),
            "spec.bastion.spec.flavor and spec.bastion.spec.tags changed",
            "spec.bastion.spec.flavor and spec.bastion.spec.tags changed",
            id="edited",
        ),
        pytest.param(
            BastionReplacement(cause="ServerDeleted"),
            "its server was deleted externally",
            "its server was deleted by somebody else",
            id="its server was deleted",
        ),
        pytest.param(
            BastionReplacement(cause="ObjectDeleted"),
            "the former one was deleted",
            "the former one was deleted",
            id="enabled again at once",
        ),
    ],
)
def test_the_message_of_a_replacement_says_why_and_that_of_the_last_release_is_read(
    why: BastionReplacement, text: str, former: str
) -> None:
    wait = bastion_plan.replacing(why, 1, Wait("Deleting", "the old one is being deleted", after_s=3))

    assert wait.message == f"{text}; step 1 of 2: the old one is being deleted"
    assert wait.after_s == 3
    assert bastion_plan.under_way(showing("Replacing", f"{former}; step 1 of 2: x")) == why


def test_no_other_message_is_taken_for_a_replacement() -> None:
    assert (
        bastion_plan.under_way(showing("InstanceNotReady", "spec.bastion.spec.flavor changed; step 1 of 2: x")) is None
    )
    assert bastion_plan.under_way(OpenStackCluster.model_validate({"metadata": {"name": "kube"}})) is None


def test_what_the_status_records_counts_before_a_message() -> None:
    cluster = showing("Replacing", "the former one was deleted; step 1 of 2: x", bastionReplacement=KNOWN.to_dict())

    assert bastion_plan.under_way(cluster) == KNOWN


def showing(reason: str, message: str, **status: Any) -> OpenStackCluster:
    condition = {
        "type": "BastionReady",
        "status": "False",
        "reason": reason,
        "message": message,
        "lastTransitionTime": "2030-01-01T00:00:00Z",
    }
    return OpenStackCluster.model_validate(
        {"metadata": {"name": "kube"}, "status": {**status, "conditions": [condition]}}
    )


@pytest.mark.parametrize(
    ("now", "known", "expected"),
    [
        (("a", ""), ("a", "10.6.0.4"), "10.6.0.4"),
        (("a", "10.6.0.5"), ("a", "10.6.0.4"), "10.6.0.5"),
        (("b", ""), ("a", "10.6.0.4"), ""),
        (("a", ""), None, ""),
    ],
    ids=["not reported yet", "reported", "of another server", "never known"],
)
def test_an_address_stays_until_the_server_reports_one(
    now: tuple[str, str], known: tuple[str, str] | None, expected: str
) -> None:
    shown, former = (BastionStatus(id=each[0], ip=each[1]) if each else None for each in (now, known))

    assert shown is not None
    assert bastion_plan.with_address(shown, former).ip == expected
