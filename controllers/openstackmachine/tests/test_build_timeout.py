"""The build timeout of a machine, or of its template, reaches its OpenStackServer while that is being built."""

from __future__ import annotations

from capo import names
from capo.json_types import Json
from capo.kube.kinds import OPENSTACK_MACHINE, OPENSTACK_MACHINE_TEMPLATE, OPENSTACK_SERVER, Kind
from controllers.openstackmachine.tests.control_plane_environment import ControlPlaneEnvironment
from environments import objects

TIMEOUT = names.BUILD_TIMEOUT_ANNOTATION
BUILD_S = 400
SLOW = {"serverMetadata": [{"key": "lab-spawn-seconds", "value": str(BUILD_S)}]}


def add_template(site: ControlPlaneEnvironment, timeout: str | None) -> None:
    template = objects.openstack_machine_template("metal")
    template["metadata"]["annotations"] = {TIMEOUT: timeout} if timeout else {}
    site.stage.apply(OPENSTACK_MACHINE_TEMPLATE, template)


def clone(site: ControlPlaneEnvironment, **annotations: str) -> None:
    """Create a machine that Cluster API cloned from the template, whose server takes long to build."""
    site.add("one")
    cloned = objects.cloned({"metadata": {}}, "metal")["metadata"]["annotations"]
    site.stage.patch(OPENSTACK_MACHINE, "one", {"metadata": {"annotations": {**cloned, **annotations}}, "spec": SLOW})


def annotate(site: ControlPlaneEnvironment, kind: Kind, name: str, timeout: str | None) -> None:
    site.stage.patch(kind, name, {"metadata": {"annotations": {TIMEOUT: timeout}}})


def timeout(site: ControlPlaneEnvironment) -> str | None:
    """Return the build timeout of the machine's OpenStackServer."""
    server: Json = site.stage.get(OPENSTACK_SERVER, "one")
    found: str | None = server["metadata"]["annotations"].get(TIMEOUT)
    return found


def test_a_server_has_the_timeout_of_its_template(site: ControlPlaneEnvironment) -> None:
    add_template(site, "45m")
    clone(site)

    site.stage.settle(for_s=BUILD_S - 10)
    shown = site.stage.condition(OPENSTACK_MACHINE, "one", "InstanceReady")

    assert timeout(site) == "45m"
    assert shown["reason"] == "InstanceNotReady"  # it would be InstanceStateError after 300 s


def test_the_timeout_of_a_machine_comes_before_that_of_its_template(site: ControlPlaneEnvironment) -> None:
    add_template(site, "45m")
    clone(site, **{TIMEOUT: "2h"})

    site.stage.settle(for_s=30)

    assert timeout(site) == "2h"


def test_a_server_without_either_has_none(site: ControlPlaneEnvironment) -> None:
    add_template(site, None)
    clone(site)

    site.stage.settle(for_s=30)

    assert timeout(site) is None


def test_an_edit_of_the_template_reaches_a_server_that_is_being_built(site: ControlPlaneEnvironment) -> None:
    add_template(site, None)
    clone(site)
    site.stage.settle(for_s=330)
    late = site.stage.condition(OPENSTACK_MACHINE, "one", "InstanceReady")

    annotate(site, OPENSTACK_MACHINE_TEMPLATE, "metal", "45m")
    site.stage.settle(for_s=5)
    building = site.stage.condition(OPENSTACK_MACHINE, "one", "InstanceReady")

    assert (late["reason"], building["reason"]) == ("InstanceStateError", "InstanceNotReady")


def test_an_edit_of_the_machine_reaches_a_server_that_is_being_built(site: ControlPlaneEnvironment) -> None:
    add_template(site, None)
    clone(site)
    site.stage.settle(for_s=30)

    annotate(site, OPENSTACK_MACHINE, "one", "45m")
    site.stage.settle(for_s=5)

    assert timeout(site) == "45m"


def test_an_annotation_of_the_server_alone_is_kept(site: ControlPlaneEnvironment) -> None:
    add_template(site, None)
    clone(site)
    site.stage.settle(for_s=30)

    annotate(site, OPENSTACK_SERVER, "one", "45m")
    site.stage.patch(OPENSTACK_MACHINE, "one", {"metadata": {"labels": {"edited": "yes"}}})
    site.stage.settle(for_s=30)

    assert timeout(site) == "45m"


def test_an_edit_costs_nothing_once_the_server_runs(site: ControlPlaneEnvironment) -> None:
    add_template(site, "45m")
    clone(site)
    site.stage.settle(for_s=BUILD_S + 60)
    site.stage.kube.writes.clear()
    site.stage.cloud.counter.reset()

    annotate(site, OPENSTACK_MACHINE_TEMPLATE, "metal", "2h")
    edits = len(site.stage.kube.writes)
    site.stage.settle(for_s=5)

    assert timeout(site) == "45m"
    assert len(site.stage.kube.writes) == edits
    assert set(site.stage.requests()) <= {"GET /v2.1/servers/detail"}  # of every minute
