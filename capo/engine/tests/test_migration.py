"""Migration of stored objects on a real kube-apiserver; what etcd holds is read from etcd itself."""

from __future__ import annotations

import copy
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from capo.crdgen import files
from capo.engine.migration import OBSERVED_GENERATION, Migration, MigrationError
from capo.engine.tests.builders import eventually
from capo.flag_values import CLEANUP_MANAGED_FIELDS, STORAGE_VERSION_MIGRATION
from capo.json_types import Json
from capo.kube import config
from capo.kube.client import Kube
from capo.kube.errors import Invalid
from capo.kube.kinds import CRD, OPENSTACK_CLUSTER_TEMPLATE, OPENSTACK_SERVER, Kind
from capo.local.rig import Rig
from capo.local.testing import in_etcd, running_rig

pytestmark = pytest.mark.integration


PLACE = "migration"
NAME = "openstackclustertemplates.infrastructure.cluster.x-k8s.io"
OLD = Kind(OPENSTACK_CLUSTER_TEMPLATE.group, "v1beta1", "openstackclustertemplates", "OpenStackClusterTemplate")
OLDEST = Kind(OLD.group, "v1alpha7", OLD.plural, OLD.kind)


@pytest.fixture(scope="module")
def server(rigs_folder: Path) -> Iterator[Rig]:
    """Yield an API server for these tests alone: they change CRDs."""
    with running_rig(rigs_folder, "migration", "api") as made:
        made.api.apply([{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": PLACE}}])
        yield made


@pytest.fixture
def admin(server: Rig) -> Iterator[Kube]:
    """Yield a client; delete its objects and the CRD afterwards."""
    kube = Kube(config.from_kubeconfig(str(server.kubeconfig)))
    yield kube
    for obj in list(kube.list(OPENSTACK_CLUSTER_TEMPLATE)):
        kube.delete(OPENSTACK_CLUSTER_TEMPLATE, PLACE, obj["metadata"]["name"])
    kube.delete(CRD, "", NAME)
    eventually(lambda: kube.get(CRD, "", NAME) is None)


@pytest.fixture
def kube(server: Rig) -> Kube:
    """Return a client with the shipped rights."""
    return Kube(config.from_kubeconfig(str(server.install_provider_account())))


def definition(*, storage: str, also: tuple[str, ...] = ()) -> Json:
    """Return the CRD of cluster templates with these versions, all with today's schema and no conversion."""
    (crd,) = (copy.deepcopy(crd) for crd in files.load() if crd["metadata"]["name"] == NAME)
    crd["spec"]["conversion"] = {"strategy": "None"}
    (today,) = (version for version in crd["spec"]["versions"] if version["storage"])
    crd["spec"]["versions"] = [{**today, "name": name, "storage": name == storage} for name in {storage, *also}]
    return crd


def template(kind: Kind, name: str) -> Json:
    spec = {"template": {"spec": {"identityRef": {"name": "cloud", "cloudName": "openstack"}}}}
    return {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": named(name), "spec": spec}


def named(name: str) -> Json:
    return {"name": name, "namespace": PLACE}


def kept(server: Rig, name: str) -> Json:
    """Return an object as etcd holds it."""
    return in_etcd(server, f"{OLD.group}/{OLD.plural}", PLACE, name)


def stored_versions(kube: Kube) -> list[str]:
    crd = kube.get(CRD, "", NAME)
    assert crd is not None
    return list(crd["status"]["storedVersions"])


def test_what_was_stored_in_an_old_version_is_stored_anew_and_the_version_may_go(
    server: Rig, admin: Kube, kube: Kube
) -> None:
    server.apply([definition(storage="v1beta1")])
    server.apply([template(OLD, "old")])
    server.apply([definition(storage="v1beta2", also=("v1beta1",))])
    server.apply([template(OPENSTACK_CLUSTER_TEMPLATE, "new")])
    before = admin.get(OPENSTACK_CLUSTER_TEMPLATE, PLACE, "new")
    assert kept(server, "old")["apiVersion"] == OLD.api_version
    assert sorted(stored_versions(admin)) == ["v1beta1", "v1beta2"]

    Migration(kube).run()

    assert kept(server, "old")["apiVersion"] == OPENSTACK_CLUSTER_TEMPLATE.api_version
    assert stored_versions(admin) == ["v1beta2"]
    assert admin.get(OPENSTACK_CLUSTER_TEMPLATE, PLACE, "new") == before
    server.apply([definition(storage="v1beta2")])


def test_a_rewritten_object_has_the_owners_of_fields_that_it_had(server: Rig, admin: Kube, kube: Kube) -> None:
    server.apply([definition(storage="v1beta1")])
    server.apply([template(OLD, "old")])
    server.apply([definition(storage="v1beta2", also=("v1beta1",))])
    before = admin.get(OPENSTACK_CLUSTER_TEMPLATE, PLACE, "old")
    assert before is not None

    Migration(kube).run()

    after = admin.get(OPENSTACK_CLUSTER_TEMPLATE, PLACE, "old")
    assert after is not None
    assert after["metadata"].pop("resourceVersion") != before["metadata"].pop("resourceVersion")
    assert after == before


def test_a_second_run_writes_nothing(server: Rig, admin: Kube, kube: Kube) -> None:
    server.apply([definition(storage="v1beta2")])
    Migration(kube).run()
    before = admin.get(CRD, "", NAME)

    Migration(kube).run()

    assert before is not None
    assert before["metadata"]["annotations"][OBSERVED_GENERATION] == str(before["metadata"]["generation"])
    assert admin.get(CRD, "", NAME) == before


def test_owners_of_fields_in_a_version_that_is_gone_go_too(server: Rig, admin: Kube, kube: Kube) -> None:
    server.apply([definition(storage="v1beta2", also=("v1alpha7",))])
    server.apply([template(OLDEST, "gone"), template(OLDEST, "mixed")])
    admin.patch(OPENSTACK_CLUSTER_TEMPLATE, PLACE, "mixed", {"metadata": {"labels": {"a": "b"}}})
    server.apply([definition(storage="v1beta2")])

    Migration(kube).run()

    def managers(name: str) -> set[tuple[str, str]]:
        found = admin.get(OPENSTACK_CLUSTER_TEMPLATE, PLACE, name)
        assert found is not None
        return {(each["manager"], each["apiVersion"]) for each in found["metadata"]["managedFields"]}

    assert managers("gone") == {("capo-local", OPENSTACK_CLUSTER_TEMPLATE.api_version)}
    assert managers("mixed") == {("capo", OPENSTACK_CLUSTER_TEMPLATE.api_version)}
    server.apply([template(OPENSTACK_CLUSTER_TEMPLATE, "gone"), template(OPENSTACK_CLUSTER_TEMPLATE, "mixed")])


@pytest.mark.parametrize(
    ("phase", "stored", "versions"),
    [
        pytest.param(STORAGE_VERSION_MIGRATION, {"v1beta2"}, {"v1alpha7"}, id="storage alone"),
        pytest.param(CLEANUP_MANAGED_FIELDS, {"v1beta2", "v1alpha7"}, {"v1beta2"}, id="owners alone"),
    ],
)
def test_a_phase_that_is_left_out_is_not_done_and_may_be_done_later(
    server: Rig, admin: Kube, kube: Kube, phase: str, stored: set[str], versions: set[str]
) -> None:
    server.apply([definition(storage="v1alpha7", also=("v1beta2",))])
    server.apply([template(OLDEST, "old")])
    crd = definition(storage="v1beta2", also=("v1alpha7",))
    for version in crd["spec"]["versions"]:
        version["served"] = version["storage"]
    server.apply([crd])

    Migration(kube, {phase}).run()

    fields = kept(server, "old")["metadata"]["managedFields"]
    assert set(stored_versions(admin)) == stored
    assert {each["apiVersion"].rpartition("/")[2] for each in fields} == versions
    Migration(kube).run()
    assert set(stored_versions(admin)) == {"v1beta2"}


def test_one_object_that_is_refused_is_named_and_keeps_the_version(server: Rig, admin: Kube, kube: Kube) -> None:
    server.apply([definition(storage="v1beta1")])
    server.apply([template(OLD, "good"), template(OLD, "bad")])
    server.apply([definition(storage="v1beta2", also=("v1beta1",)), *refusing("bad")])
    try:
        wait_for_refusal(admin, "bad")

        with pytest.raises(MigrationError, match=rf"OpenStackClusterTemplate {PLACE}/bad cannot be rewritten.*no more"):
            Migration(kube).run()

        assert kept(server, "good")["apiVersion"] == OPENSTACK_CLUSTER_TEMPLATE.api_version
        assert "v1beta1" in stored_versions(admin)
    finally:
        for obj in refusing("bad"):
            server.api.delete(server.api.path_of(obj))


def refusing(name: str) -> list[Json]:
    """Return a user's policy that refuses updates of an object."""
    rule = {
        "apiGroups": [OLD.group],
        "apiVersions": ["*"],
        "operations": ["UPDATE"],
        "resources": [OLD.plural],
    }
    group = {"apiVersion": "admissionregistration.k8s.io/v1", "metadata": {"name": "refusing"}}
    return [
        {
            **group,
            "kind": "ValidatingAdmissionPolicy",
            "spec": {
                "matchConstraints": {"resourceRules": [rule]},
                "validations": [{"expression": f"object.metadata.name != '{name}'", "message": "no more"}],
            },
        },
        {
            **group,
            "kind": "ValidatingAdmissionPolicyBinding",
            "spec": {"policyName": "refusing", "validationActions": ["Deny"]},
        },
    ]


def wait_for_refusal(kube: Kube, name: str) -> None:
    """Wait until the policy is enforced; no status of the API server shows it."""
    ends_s = time.monotonic() + 60
    while time.monotonic() < ends_s:
        try:
            kube.patch(
                OPENSTACK_CLUSTER_TEMPLATE, PLACE, name, {"metadata": {"labels": {"try": str(time.monotonic())}}}
            )
        except Invalid:
            return
        time.sleep(0.1)
    raise AssertionError("the policy is not in force")


def test_kinds_that_are_not_installed_are_passed_over(server: Rig, kube: Kube) -> None:
    assert server.install_provider_account()

    Migration(kube).run()

    assert kube.get(CRD, "", f"{OPENSTACK_SERVER.plural}.{OPENSTACK_SERVER.group}") is None
