"""Whether what a template names exists, before machines are created from it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from capo.json_types import Json
from capo.kube.kinds import KUBEADM_CONTROL_PLANE, MACHINE_DEPLOYMENT, OPENSTACK_CLUSTER
from controllers.openstackmachinetemplate import preflight
from controllers.openstackmachinetemplate.tests.environment import KIND, LABELS, TemplateEnvironment

HTML = {"status": 200, "body": "<html>"}
NOWHERE = "11111111-2222-3333-4444-555555555555"
TYPE = "ReferencesReady"


@pytest.fixture
def world() -> Iterator[TemplateEnvironment]:
    with TemplateEnvironment() as made:
        yield made


def everything(world: TemplateEnvironment) -> Json:
    """Create what a template can name; return the spec that names all of it."""
    network, subnet = world.member.make_network(cidr="10.9.0.0/24")
    group = world.member.make("/network/v2.0/security-groups", "security_group", name="g")
    body = {"server_group": {"name": "sg", "policies": ["anti-affinity"]}}
    world.member.ask("POST", "/compute/v2.1/os-server-groups", body)
    by_id = {"network": {"id": network["id"]}, "fixedIPs": [{"subnet": {"id": subnet["id"]}}]}
    by_name = {"network": {"filter": {"name": network["name"]}}, "securityGroups": [{"filter": {"name": "g"}}]}
    volume = {"type": "ssd", "availabilityZone": {"name": zone(world)}}
    return {
        "sshKeyName": "lab",
        "serverGroup": {"filter": {"name": "sg"}},
        "securityGroups": [{"id": group["id"]}],
        "ports": [by_id, by_name],
        "rootVolume": {"sizeGiB": 9, **volume},
        "additionalBlockDevices": [{"name": "d", "sizeGiB": 1, "storage": {"type": "Volume", "volume": volume}}],
    }


def zone(world: TemplateEnvironment) -> str:
    return str(next(iter(world.cloud.config.zones)))


def message(world: TemplateEnvironment) -> str:
    return str(world.condition(KIND, "t", TYPE)["message"])


def test_everything_that_exists_is_found_by_lists(world: TemplateEnvironment) -> None:
    spec = everything(world)
    world.cloud.counter.reset()
    world.place(**spec)
    world.refer(domain=zone(world))

    world.settle()

    assert world.state(TYPE) == ("True", "Ready")
    assert world.state("Ready") == ("True", "Ready")
    assert world.writes() == []
    assert len([path for path in world.requests() if "/auth/" not in path and path.count("/") > 3]) <= 14


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        pytest.param({"flavor": {"filter": {"name": "no"}}}, "flavor: no flavor is named no", id="flavor"),
        pytest.param({"flavor": {"id": "no"}}, "flavor: no flavor has the id no", id="flavor-id"),
        pytest.param({"image": {"filter": {"name": "no"}}}, "image: no image matches name no", id="image"),
        pytest.param({"image": {"id": NOWHERE}}, f"image: no image has the id {NOWHERE}", id="image-id"),
        pytest.param({"sshKeyName": "no"}, "key pair: the user of the credentials has no key pair no", id="key-pair"),
        pytest.param(
            {"serverGroup": {"filter": {"name": "no"}}}, "server group no: the project has no such", id="group"
        ),
        pytest.param({"serverGroup": {"id": NOWHERE}}, f"server group {NOWHERE}: the project", id="group-id"),
        pytest.param({"securityGroups": [{"filter": {"name": "no"}}]}, "security group: no security group", id="sg"),
        pytest.param({"securityGroups": [{"id": NOWHERE}]}, "security group: no security group matches id", id="sg-id"),
        pytest.param(
            {"securityGroups": [{"filter": {"name": "default", "projectID": "no"}}]},
            "security group: no security group matches project_id no, name default",
            id="sg-of-another-project",
        ),
        pytest.param({"ports": [{"network": {"id": NOWHERE}}]}, "ports[0]: network: no network", id="network-id"),
        pytest.param(
            {"ports": [{"network": {"filter": {"name": "no"}}}]}, "ports[0]: network: no network", id="network"
        ),
        pytest.param(
            {"ports": [{"fixedIPs": [{"subnet": {"id": NOWHERE}}]}]}, "ports[0]: subnet: no subnet", id="subnet"
        ),
        pytest.param(
            {"rootVolume": {"sizeGiB": 1, "type": "no"}}, "volume type no: Cinder has no such type", id="type"
        ),
        pytest.param(
            {"rootVolume": {"sizeGiB": 1, "availabilityZone": {"name": "no"}}},
            "availability zone no of volumes: Cinder has no such zone",
            id="volume-zone",
        ),
    ],
)
def test_what_a_complete_list_lacks_is_missing_w_94(
    world: TemplateEnvironment, spec: dict[str, Any], words: str
) -> None:
    world.place(**spec)
    world.refer()

    world.settle()

    assert world.state(TYPE) == ("False", "ReferencesMissing")
    assert words in message(world)
    assert world.state("Ready")[0] == "False"


@pytest.mark.parametrize(
    ("spec", "type_"),
    [
        pytest.param({"flavor": {"filter": {"name": "no"}}}, "CapacityReady", id="flavor"),
        pytest.param({"image": {"filter": {"name": "no"}}}, "NodeInfoReady", id="image"),
    ],
)
def test_the_pause_that_a_message_names_is_the_one_that_is_made(
    world: TemplateEnvironment, spec: dict[str, Any], type_: str
) -> None:
    world.place(**spec)
    world.refer()
    world.settle(for_s=preflight.MISSING_S - 1)
    reads = len(world.reads())

    world.settle(for_s=1)

    assert len(world.reads()) > reads
    assert preflight.MISSING_S == 5 * 60
    assert world.condition(KIND, "t", type_)["message"].endswith(
        "It is tried again in 5 minutes, or when the template gets an annotation."
    )


def test_a_zone_of_the_deployment_that_nova_lacks_is_missing(world: TemplateEnvironment) -> None:
    world.place()
    world.refer(domain="nowhere")
    world.settle()
    assert world.state(TYPE) == ("False", "ReferencesMissing")
    assert "availability zone nowhere: Nova has no such zone" in message(world)

    world.patch(MACHINE_DEPLOYMENT, "md", {"spec": {"template": {"spec": {"failureDomain": zone(world)}}}})
    world.settle()

    assert world.state(TYPE) == ("True", "Ready")


OF_MACHINE: Json = {"rootVolume": {"sizeGiB": 5, "availabilityZone": {"from": "Machine"}}}
IN_CINDER: Json = {"availabilityZoneInfo": [{"zoneName": "cinder-only", "zoneState": {"available": True}}]}


def apart(world: TemplateEnvironment) -> None:
    """Give Cinder another zone than Nova has."""
    world.add_fault(
        match={"service": "volume", "path": "*/os-availability-zone"}, effect={"status": 200, "body": IN_CINDER}
    )


@pytest.mark.parametrize("is_root", [True, False])
def test_a_zone_of_the_deployment_that_cinder_lacks_is_missing_for_volumes(
    world: TemplateEnvironment, *, is_root: bool
) -> None:
    apart(world)
    storage = {"type": "Volume", "volume": {"availabilityZone": {"from": "Machine"}}}
    device = {"additionalBlockDevices": [{"name": "d", "sizeGiB": 1, "storage": storage}]}
    world.place(**(OF_MACHINE if is_root else device))
    world.refer(domain=zone(world))

    world.settle()

    assert world.state(TYPE) == ("False", "ReferencesMissing")
    assert message(world) == f"availability zone {zone(world)} of volumes: Cinder has no such zone"


@pytest.mark.parametrize("volume", [{}, {"availabilityZone": {"name": "cinder-only"}}])
def test_volumes_whose_zone_is_not_that_of_the_machine_need_no_zone_of_nova(
    world: TemplateEnvironment, volume: Json
) -> None:
    apart(world)
    world.place(rootVolume={"sizeGiB": 5, **volume})
    world.refer(domain=zone(world))

    world.settle()

    assert world.state(TYPE) == ("True", "Ready")


def test_volumes_of_machines_without_a_zone_need_none(world: TemplateEnvironment) -> None:
    apart(world)
    world.place(**OF_MACHINE)
    world.refer()

    world.settle()

    assert world.state(TYPE) == ("True", "Ready")


def test_a_failure_domain_of_a_control_plane_that_cinder_lacks_is_missing_for_volumes(
    world: TemplateEnvironment,
) -> None:
    apart(world)
    domains = [{"name": "cinder-only", "controlPlane": True}, {"name": "of-workers"}]
    world.patch(OPENSTACK_CLUSTER, "c", {"status": {"failureDomains": domains}})
    world.place(**OF_MACHINE)
    ref = {"apiGroup": KIND.group, "kind": KIND.kind, "name": "t"}
    spec = {"machineTemplate": {"spec": {"infrastructureRef": ref}}}
    world.apply(KUBEADM_CONTROL_PLANE, {"metadata": {"name": "cp", "labels": LABELS}, "spec": spec})
    world.settle()
    assert world.state(TYPE) == ("True", "Ready")

    domains.append({"name": "az9", "controlPlane": True})
    world.patch(OPENSTACK_CLUSTER, "c", {"status": {"failureDomains": domains}})
    world.settle(for_s=10)

    assert world.state(TYPE) == ("False", "ReferencesMissing")
    assert message(world) == "availability zone az9 of volumes: Cinder has no such zone"


def test_everything_that_is_missing_is_told_at_once(world: TemplateEnvironment) -> None:
    ports = [{"network": {"filter": {"name": f"{'n' * 400}{number}"}}} for number in range(30)]
    world.place(flavor={"filter": {"name": "no"}}, sshKeyName="no", ports=ports)
    world.refer()

    world.settle()

    told = message(world)
    assert "flavor: " in told
    assert "key pair: " in told
    assert told.endswith("and 22 more")
    assert len(told) < 4000


@pytest.mark.parametrize("effect", [{"status": 403}, {"status": 503}, {"status": 404}, HTML])
@pytest.mark.parametrize(
    "path", ["*/flavors/detail", "*/images", "*/os-keypairs", "*/os-server-groups", "*/networks", "*/types"]
)
def test_what_cannot_be_found_out_is_unknown_w_94(
    world: TemplateEnvironment, path: str, effect: dict[str, Any]
) -> None:
    spec = everything(world)
    world.add_fault(match={"method": "GET", "path": path}, effect=effect)
    world.place(**spec)
    world.refer()

    world.settle(for_s=1)

    assert world.state(TYPE) == ("Unknown", "ReferencesUnknown")
    assert world.state("Ready")[0] == "Unknown"

    world.clear_faults()
    world.settle()

    assert world.state(TYPE) == ("True", "Ready")


def test_a_refusal_for_good_costs_little(world: TemplateEnvironment) -> None:
    world.add_fault(match={"method": "GET", "path": "*/os-keypairs"}, effect={"status": 403})
    world.place(sshKeyName="lab")
    world.refer()
    world.settle(for_s=7200)
    world.cloud.counter.reset()

    world.settle(for_s=36_000)

    assert len(world.requests()) <= 60, "once an hour"


def test_names_that_fit_several_are_unknown(world: TemplateEnvironment) -> None:
    for _ in range(2):
        world.member.make("/network/v2.0/networks", "network", name="twice")
    world.place(ports=[{"network": {"filter": {"name": "twice"}}}])
    world.refer()

    world.settle()

    assert world.state(TYPE) == ("Unknown", "ReferencesUnknown")
    assert "2 networks match" in message(world)


def test_an_image_that_orc_does_not_have_yet_is_unknown(world: TemplateEnvironment) -> None:
    world.place(image={"imageRef": {"name": "soon"}})
    world.refer()

    world.settle()

    assert world.state(TYPE) == ("Unknown", "ReferencesUnknown")


def test_the_key_pair_of_another_user_is_missing(world: TemplateEnvironment) -> None:
    def give_away() -> None:
        pairs = world.cloud.table("compute", "keypairs")
        for key in list(pairs):
            pairs[key]["user_id"] = "somebody"

    world.simulator.call(give_away)
    world.place(sshKeyName="lab")
    world.refer()

    world.settle()

    assert world.state(TYPE) == ("False", "ReferencesMissing")


def test_what_was_created_since_is_found_after_an_annotation(world: TemplateEnvironment) -> None:
    world.place(flavor={"filter": {"name": "soon"}})
    world.refer()
    world.settle(for_s=10)
    assert world.state(TYPE)[0] == "False"

    world.flavor("soon")
    world.patch(KIND, "t", {"metadata": {"annotations": {"check": "now"}}})
    world.settle(for_s=1)

    assert world.state(TYPE) == ("True", "Ready")


def test_a_template_that_nothing_refers_to_is_not_checked(world: TemplateEnvironment) -> None:
    world.place(flavor={"filter": {"name": "no"}})

    world.settle()

    assert world.state(TYPE) == ("Unknown", "NotReferred")
    assert world.requests() == []
