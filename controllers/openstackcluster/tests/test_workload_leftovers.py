"""What workloads left is shown before the network goes; deleted is only what the policy names and reads prove."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from capo import names
from capo.kube.kinds import OPENSTACK_CLUSTER
from controllers.openstackcluster.tests.environment import BALANCER, BALANCER_PATH, GROUPS, MANAGED, ClusterEnvironment
from controllers.openstackcluster.tests.objects import CLUSTER_NAME, NAMESPACE
from environments.cloud_provider import WorkloadStandIn
from environments.in_memory import killed_at_write, killed_when

PAGE: Final = Path(__file__).parents[3] / "docs/how-to/workload-leftovers.md"
OURS = "default.kube"
DELETE: dict[str, Any] = {"workloadLeftovers": {"policy": "Delete"}}
TYPE = "LeftoversGone"


def workloads(world: ClusterEnvironment, cluster: str = OURS) -> WorkloadStandIn:
    return WorkloadStandIn(world.member, cluster)


def subnet_id(world: ClusterEnvironment) -> str:
    return str(world.one("subnets", name="k8s-clusterapi-cluster-default-kube")["id"])


def service(world: ClusterEnvironment, cluster: str = OURS, **values: Any) -> tuple[Any, Any, Any]:
    """Leave the load balancer of a Service, with its floating IP and its group."""
    left = workloads(world, cluster)
    balancer = left.load_balancer("shop", subnet_id(world), **values)
    address = left.floating_ip("shop", world.external()["id"], balancer["vip_port_id"])
    group = left.security_group("shop")
    world.clock.advance(30)
    return balancer, address, group


def annotate(world: ClusterEnvironment, value: str | None) -> None:
    annotations = {names.LEFTOVER_VOLUMES_ANNOTATION: value}
    world.patch(OPENSTACK_CLUSTER, CLUSTER_NAME, {"metadata": {"annotations": annotations}})


def asked(world: ClusterEnvironment, method: str) -> list[str]:
    return [request for request in world.requests() if request.startswith(f"{method} ")]


# -- report ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("spec", [{}, BALANCER], ids=["without a load balancer for the API", "with one"])
def test_what_a_service_left_is_shown_and_kept(world: ClusterEnvironment, spec: dict[str, Any]) -> None:
    world.up(**MANAGED, **GROUPS, **spec)
    balancer, address, group = service(world)

    world.remove()
    world.settle(for_s=600)

    assert world.shown(TYPE) == ("False", "LeftoversFound")
    message = world.message(TYPE)
    assert message.startswith("left by workloads of the cluster: ")
    assert f"load balancer {balancer['id']} 'kube_service_default.kube_web_shop' of Service web/shop" in message
    assert f"floating IP {address['id']} {address['floating_ip_address']!r} of Service web/shop" in message
    assert f"security group {group['id']}" in message
    assert "LeftoversFound" in world.events.reasons()
    assert "still in use by floating IP" in world.message("Ready")  # as without the search
    assert {balancer["id"]} <= set(world.created()["loadbalancers"])
    assert not world.is_gone()


def test_what_a_service_left_is_shown_although_the_ports_were_listed_before_it(world: ClusterEnvironment) -> None:
    # A lost answer is looked for in a list; the deletion of a cluster whose every write is known needs none.
    connects = {"service": "network", "method": "PUT", "path": "/v2.0/routers/*/add_router_interface", "nth": 1}
    world.add_fault(match=connects, effect={"cut": "after"})
    world.up(**MANAGED)
    assert "GET /v2.0/ports" in world.requests()
    balancer, *_ = service(world)

    world.remove()
    world.settle(for_s=600)

    assert f"load balancer {balancer['id']}" in world.message(TYPE)


def test_what_a_service_left_is_shown_by_a_cluster_that_was_moved_and_deleted_at_once(
    world: ClusterEnvironment,
) -> None:
    world.up(**MANAGED)
    balancer, *_ = service(world)
    world.patch(OPENSTACK_CLUSTER, CLUSTER_NAME, {"status": None})
    world.start()

    world.remove()
    world.settle(for_s=600)

    assert f"load balancer {balancer['id']}" in world.message(TYPE)


def test_the_deletion_goes_on_when_the_user_deleted_what_was_shown(world: ClusterEnvironment) -> None:
    world.up(**MANAGED)
    balancer, address, group = service(world)
    world.remove()
    world.settle(for_s=300)

    world.member.ask("DELETE", f"/network/v2.0/floatingips/{address['id']}")
    world.member.ask("DELETE", f"{BALANCER_PATH}/loadbalancers/{balancer['id']}?cascade=true")
    world.member.ask("DELETE", f"/network/v2.0/security-groups/{group['id']}")
    world.settle(for_s=600)

    assert world.is_gone()
    assert world.created() == {}


def test_a_load_balancer_without_floating_ip_is_shown_although_the_router_goes(world: ClusterEnvironment) -> None:
    world.up(**MANAGED)
    balancer = workloads(world, "kubernetes").load_balancer("shop", subnet_id(world))
    world.clock.advance(30)

    world.remove()
    world.settle(for_s=600)

    assert f"possibly left by workloads of the cluster, and not deleted: load balancer {balancer['id']}" in (
        world.message(TYPE)
    )
    assert f"of Octavia lb-{balancer['id']}" in world.message("Ready")


def test_volumes_are_shown_before_the_network_goes_and_are_kept(world: ClusterEnvironment) -> None:
    world.up(**MANAGED)
    volume = workloads(world).volume("data")
    shared = workloads(world, "kubernetes").volume("data")
    theirs = workloads(world, "default.other").volume("data")
    world.clock.advance(30)

    world.remove()
    world.settle(for_s=60, until=lambda: world.shown(TYPE)[0] == "False")

    message = world.message(TYPE)
    assert "networks" in world.created()
    assert f"left by workloads of the cluster: volume {volume['id']} {volume['name']!r} of claim web/data" in message
    assert f"possibly left by workloads of the cluster, and not deleted: volume {shared['id']}" in message
    assert theirs["id"] not in message
    world.settle(for_s=120)
    assert world.is_gone()
    assert set(world.created()["volumes"]) == {volume["id"], shared["id"], theirs["id"]}


def test_a_report_delays_a_deletion_by_one_write_alone(world: ClusterEnvironment) -> None:
    world.up(**MANAGED)
    workloads(world).volume("data")
    world.clock.advance(30)
    world.kube.writes.clear()
    began_s = world.clock.now()

    world.remove()
    world.settle(for_s=60, until=world.is_gone)

    assert world.is_gone()
    assert world.clock.now() - began_s < 15.0
    assert len(world.kube.writes) <= 3, world.kube.writes


def test_a_deletion_without_leftovers_costs_one_list_of_volumes_and_no_write(world: ClusterEnvironment) -> None:
    world.up(**MANAGED, **BALANCER, **GROUPS)
    world.cloud.counter.reset()
    world.kube.writes.clear()

    world.remove()
    world.settle(for_s=120)

    assert world.is_gone()
    assert [each for each in world.requests() if "/volumes" in each] == [
        f"GET /v3/{world.member.project_id}/volumes/detail"
    ]
    others = ("GET /v2.0/ports/", "GET /v2.0/floatingips", "GET /v2.0/security-groups")
    assert not [each for each in world.requests() if each.startswith(others)]
    assert world.events.reasons().count("LeftoversFound") == 0


def test_a_cluster_that_never_was_provisioned_costs_no_list_of_volumes(world: ClusterEnvironment) -> None:
    world.add_fault(match={"service": "network", "method": "POST", "path": "/v2.0/routers"}, effect={"status": 503})
    world.up(**MANAGED)
    world.remove()
    world.settle(for_s=300)

    assert world.is_gone()
    assert not [each for each in world.requests() if "/volumes" in each]


def test_a_cinder_that_fails_does_not_hold_up_the_deletion(world: ClusterEnvironment) -> None:
    world.up(**MANAGED)
    world.add_fault(match={"service": "volume"}, effect={"status": 503})

    world.remove()
    world.settle(for_s=120)

    assert world.is_gone()
    assert world.created() == {}


def test_a_blocked_deletion_does_not_list_volumes_again(world: ClusterEnvironment) -> None:
    world.up(**MANAGED)
    workloads(world, "kubernetes").load_balancer("shop", subnet_id(world))
    world.remove()
    world.settle(for_s=600)
    world.cloud.counter.reset()
    world.kube.writes.clear()

    world.settle(for_s=1800)

    assert not [each for each in world.requests() if "/volumes" in each]
    assert world.kube.writes == []


def test_a_message_is_bounded_and_stable(world: ClusterEnvironment) -> None:
    world.up(**MANAGED)
    for number in range(9):
        workloads(world).load_balancer(f"s{number}", subnet_id(world))
    world.clock.advance(30)
    world.remove()
    world.settle(for_s=300)
    before = world.message(TYPE)

    world.settle(for_s=900)

    assert before.count("load balancer ") == 5
    assert "and 4 more load balancers" in before
    assert world.message(TYPE) == before


# -- delete ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [None, "prod-7", "prod_7_"], ids=["derived name", "given name", "underscores"])
def test_the_policy_deletes_what_a_service_left(world: ClusterEnvironment, name: str | None) -> None:
    chosen = {"policy": "Delete", **({"clusterName": name} if name else {})}
    world.up(**MANAGED, **BALANCER, **GROUPS, workloadLeftovers=chosen)
    service(world, name or OURS)
    world.cloud.counter.reset()

    world.remove()
    world.settle(for_s=600)

    assert world.is_gone()
    assert world.created() == {}
    assert "LeftoversFound" in world.events.reasons()
    balancers = [each for each in asked(world, "DELETE") if "/lbaas/loadbalancers/" in each]
    assert len(balancers) == 2  # that of the Service, and that of the API


def test_the_policy_may_be_chosen_while_the_deletion_is_blocked(world: ClusterEnvironment) -> None:
    world.up(**MANAGED)
    service(world)
    world.remove()
    world.settle(for_s=300)
    assert not world.is_gone()

    world.change(**DELETE)
    world.settle(for_s=600)

    assert world.is_gone()
    assert world.created() == {}


RENAMED = "Kubernetes external service web/shop from cluster kubernetes"
OTHERS = [
    pytest.param({"name": "kube_service_kubernetes_web_shop", "description": RENAMED}, id="the name of all"),
    pytest.param({"name": "kube_service_default.kube2_web_shop"}, id="a longer name"),
    pytest.param({"name": "kube_service_default.kube_web_other"}, id="another Service than described"),
    pytest.param({"name": "mine"}, id="a name of its own"),
    pytest.param({"description": "mine"}, id="a description of its own"),
    pytest.param(
        {"description": "Kubernetes external service web/shop from cluster default.other"}, id="another's description"
    ),
    pytest.param(
        {"tags": ["kube_service_default.kube_web_shop", "kube_service_default.other_web_shop"]},
        id="shared with another",
    ),
    pytest.param({"tags": ["capo:abcdefghijklm:lb-api"]}, id="another owner's stamp"),
]


@pytest.mark.parametrize("values", OTHERS)
def test_a_load_balancer_that_is_not_proven_to_be_ours_is_only_shown(
    world: ClusterEnvironment, values: dict[str, Any]
) -> None:
    world.up(**MANAGED, **DELETE)
    balancer, address, group = service(world, **values)
    world.cloud.counter.reset()

    world.remove()
    world.settle(for_s=600)

    assert "not deleted: " in world.message(TYPE)
    assert balancer["id"] in world.message(TYPE)
    assert [
        each for each in asked(world, "DELETE") if each.endswith((balancer["id"], address["id"], group["id"]))
    ] == []
    assert not world.is_gone()


def test_a_load_balancer_that_the_controller_renamed_is_deleted(world: ClusterEnvironment) -> None:
    world.up(**MANAGED, **DELETE)
    workloads(world).load_balancer("shop", subnet_id(world), description=RENAMED)
    world.clock.advance(30)

    world.remove()
    world.settle(for_s=600)

    assert world.is_gone()
    assert world.created() == {}


def test_a_load_balancer_on_another_network_is_not_deleted(world: ClusterEnvironment) -> None:
    _, other = world.member.make_network(cidr="10.77.0.0/24")
    world.up(**MANAGED, **DELETE)
    workloads(world).load_balancer("shop", other["id"])
    world.clock.advance(30)

    world.remove()
    world.settle(for_s=600)

    assert world.is_gone()
    assert len(world.created()["loadbalancers"]) == 1


@pytest.mark.parametrize("name", ["prod", "prod_7", "prod_7_"])
def test_a_load_balancer_on_another_network_is_shown_by_its_name(world: ClusterEnvironment, name: str) -> None:
    _, other = world.member.make_network(cidr="10.77.0.0/24")
    world.up(**MANAGED, workloadLeftovers={"clusterName": name})
    balancer = workloads(world, name).load_balancer("shop", other["id"])
    of_another = workloads(world, f"{name}x").load_balancer("shop", other["id"])
    service(world, name)  # so that load balancers are listed

    world.remove()
    world.settle(for_s=600)

    assert f"load balancer {balancer['id']}" in world.message(TYPE)
    assert of_another["id"] not in world.message(TYPE)


def test_a_name_that_another_cluster_has_too_proves_nothing(world: ClusterEnvironment) -> None:
    world.up(**MANAGED, workloadLeftovers={"policy": "Delete", "clusterName": "prod"})
    service(world, "prod")
    spec = {"identityRef": {"name": "cloud", "cloudName": "sim"}, "workloadLeftovers": {"clusterName": "prod"}}
    world.apply(OPENSTACK_CLUSTER, {"metadata": {"name": "other", "uid": "other"}, "spec": spec})

    world.remove()
    world.settle(for_s=600)

    assert "OpenStackCluster default/other has the name 'prod', too, so nothing is deleted" in world.message(TYPE)
    assert not world.is_gone()


def test_a_floating_ip_of_a_user_survives_the_load_balancer(world: ClusterEnvironment) -> None:
    world.up(**MANAGED, **DELETE)
    balancer = workloads(world).load_balancer("shop", subnet_id(world))
    values = {"floating_network_id": world.external()["id"], "port_id": balancer["vip_port_id"]}
    theirs = world.member.make("/network/v2.0/floatingips", "floatingip", **values)
    world.clock.advance(30)

    world.remove()
    world.settle(for_s=600)

    assert world.is_gone()
    assert set(world.created()["floatingips"]) == {theirs["id"]}


def test_a_group_that_a_port_uses_is_kept(world: ClusterEnvironment) -> None:
    other, _ = world.member.make_network(cidr="10.77.0.0/24")
    world.up(**MANAGED, **DELETE)
    _, _, group = service(world)
    world.member.make("/network/v2.0/ports", "port", network_id=other["id"], security_groups=[group["id"]])

    world.remove()
    world.settle(for_s=600)

    assert world.is_gone()
    assert group["id"] in world.created()["security_groups"]


def test_a_busy_load_balancer_is_waited_for_with_all_that_belongs_to_it(world: ClusterEnvironment) -> None:
    world.up(**MANAGED, **DELETE)
    balancer, address, group = service(world)
    world.set_state("loadbalancers", balancer["id"], provisioning_status="PENDING_UPDATE")
    world.remove()

    world.settle(for_s=100)
    assert address["id"] in world.created()["floatingips"]
    assert group["id"] in world.created()["security_groups"]
    world.set_state("loadbalancers", balancer["id"], provisioning_status="ACTIVE")
    world.settle(for_s=600)

    assert world.is_gone()
    assert world.created() == {}


def test_a_failed_load_balancer_is_deleted(world: ClusterEnvironment) -> None:
    world.up(**MANAGED, **DELETE)
    balancer, _, _ = service(world)
    world.set_state("loadbalancers", balancer["id"], provisioning_status="ERROR")

    world.remove()
    world.settle(for_s=600)

    assert world.is_gone()
    assert world.created() == {}


def test_a_load_balancer_that_changed_hands_after_the_list_is_kept(world: ClusterEnvironment) -> None:
    world.up(**MANAGED)
    balancer, _, _ = service(world)
    world.remove()
    world.settle(for_s=300)
    world.set_state("loadbalancers", balancer["id"], name="mine", description="mine")

    world.change(**DELETE)
    world.settle(for_s=100)

    assert balancer["id"] in world.created()["loadbalancers"]
    assert "not of this cluster" in world.message(TYPE)


@pytest.mark.parametrize("number", range(1, 5))
def test_a_manager_that_dies_at_a_write_is_taken_over(world: ClusterEnvironment, number: int) -> None:
    world.up(**MANAGED, **BALANCER, **DELETE)
    service(world)
    world.remove()
    with killed_at_write(world, number):
        world.settle(for_s=100)

    world.start()
    world.settle(for_s=600)

    assert world.is_gone()
    assert world.created() == {}


@pytest.mark.parametrize("kind", ["floatingips", "security_groups", "loadbalancers"])
def test_a_manager_that_dies_after_a_deletion_is_taken_over(world: ClusterEnvironment, kind: str) -> None:
    world.up(**MANAGED, **DELETE)
    left = dict(zip(("loadbalancers", "floatingips", "security_groups"), service(world), strict=True))
    world.remove()

    def is_deleted() -> bool:
        found = world.created().get(kind, {}).get(left[kind]["id"])
        return found is None or found.get("provisioning_status") == "PENDING_DELETE"

    with killed_when(world, is_deleted):
        world.settle(for_s=100)
    world.start()
    world.settle(for_s=600)

    assert world.is_gone()
    assert world.created() == {}


@pytest.mark.parametrize("effect", [{"cut": "before"}, {"cut": "after"}, {"status": 500}, {"status": 409}])
@pytest.mark.parametrize("service_name", ["network", "load-balancer"])
def test_a_deletion_that_fails_once_is_repeated(
    world: ClusterEnvironment, effect: dict[str, Any], service_name: str
) -> None:
    world.up(**MANAGED, **DELETE)
    service(world)
    world.add_fault(match={"service": service_name, "method": "DELETE", "nth": 1}, effect=effect)

    world.remove()
    world.settle(for_s=900)

    assert world.is_gone()
    assert set(world.created()) <= ({"security_groups"} if effect == {"status": 409} else set())


# -- the documentation -----------------------------------------------------------------------------------------------


def test_the_example_of_the_page_deletes_what_a_service_left(world: ClusterEnvironment) -> None:
    (text,) = re.findall(r"(?ms)^    apiVersion: infrastructure.*?(?=^\S)", PAGE.read_text(encoding="utf-8"))
    assert "namespace: team-a\n" in text
    spec = yaml.safe_load(textwrap.dedent(text).replace("team-a", NAMESPACE))["spec"]
    world.up(**spec)
    service(world, spec["workloadLeftovers"]["clusterName"])

    world.remove()
    world.settle(for_s=600)

    assert world.is_gone()
    assert world.created() == {}


# -- a cluster that lives --------------------------------------------------------------------------------------------


def test_nothing_is_searched_for_while_the_cluster_lives(world: ClusterEnvironment) -> None:
    world.up(**MANAGED, **DELETE)
    balancer, address, _ = service(world)
    annotate(world, "review")
    world.settle(for_s=60)
    world.cloud.counter.reset()

    world.resync()
    world.settle(for_s=300)

    assert TYPE not in world.condition_types()
    assert not [each for each in world.requests() if "/volumes" in each or "loadbalancers" in each]
    assert {balancer["id"]} == set(world.created()["loadbalancers"])
    assert address["id"] in world.created()["floatingips"]
