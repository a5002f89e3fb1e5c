"""Creation of clusters: objects in, objects and cloud out."""

from __future__ import annotations

from capo import names
from capo.kube.kinds import CLUSTER, OPENSTACK_CLUSTER, OPENSTACK_SERVER
from controllers.openstackcluster.dns import Answer
from controllers.openstackcluster.tests import given
from controllers.openstackcluster.tests.environment import (
    BALANCER,
    BALANCER_PATH,
    BASTION_NAME,
    COUNTS_OF_FULL,
    FULL,
    GROUPS,
    MANAGED,
    ClusterEnvironment,
)
from controllers.openstackcluster.tests.objects import CLUSTER_NAME


def test_a_minimal_cluster_has_network_router_and_a_floating_ip_for_its_endpoint(world: ClusterEnvironment) -> None:
    world.up(**MANAGED)

    assert world.is_ready()
    assert world.is_provisioned()
    assert world.counts() == {"networks": 1, "subnets": 1, "routers": 1, "floatingips": 1}
    address = world.one("floatingips")["floating_ip_address"]
    assert world.osc()["spec"]["controlPlaneEndpoint"] == {"host": address, "port": 6443}


def test_events_name_the_address_of_each_floating_ip_as_the_go_provider_does(world: ClusterEnvironment) -> None:
    world.up(**FULL)

    made = world.created()["floatingips"].values()
    told = {text for _, reason, text in world.events.seen if reason == "SuccessfulCreateFloatingIP"}
    assert told == {f"Created floating IP {each['floating_ip_address']} with id {each['id']}" for each in made}
    assert len(told) == 2  # of the endpoint and of the bastion


def test_a_full_cluster_has_everything_that_its_spec_asks_for(world: ClusterEnvironment) -> None:
    world.up(**FULL)

    assert world.is_ready()
    assert world.shown("BastionReady") == ("True", "Ready")
    assert world.counts() == COUNTS_OF_FULL


def test_the_floating_ip_of_the_load_balancer_is_the_endpoint(world: ClusterEnvironment) -> None:
    world.up(**MANAGED, **BALANCER)

    balancer = world.one("loadbalancers")
    floating_ip = world.one("floatingips")
    assert floating_ip["port_id"] == balancer["vip_port_id"]
    assert world.osc()["spec"]["controlPlaneEndpoint"] == {"host": floating_ip["floating_ip_address"], "port": 6443}
    shown = world.status()["apiServerManagedLoadBalancer"]
    assert shown["ip"] == floating_ip["floating_ip_address"]
    assert shown["internalIP"] == balancer["vip_address"]


def test_names_and_descriptions_are_those_of_the_go_provider_with_our_stamp(world: ClusterEnvironment) -> None:
    world.up(**FULL)

    owner = world.osc()["metadata"]["annotations"][names.OWNER_ID_ANNOTATION].partition(".")[0]
    described = "Created by cluster-api-provider-openstack cluster default-kube"
    name = "k8s-clusterapi-cluster-default-kube"
    assert world.one("networks", name=name)["description"] == f"[capo:{owner}:network]"
    assert world.one("subnets", name=name)["description"] == f"{described} [capo:{owner}:subnet]"
    assert world.one("routers", name=name)["description"] == f"{described} [capo:{owner}:router]"
    group = world.one("security_groups", name="k8s-cluster-default-kube-secgroup-worker")
    assert group["description"] == f"Cluster API managed group [capo:{owner}:group-worker]"
    balancer = world.one("loadbalancers", name=f"{name}-kubeapi")
    assert (balancer["description"], balancer["tags"]) == (described, [f"capo:{owner}:lb-api"])
    assert world.one("listeners")["name"] == world.one("pools")["name"] == f"{name}-kubeapi-6443"


def test_pools_are_recorded_for_the_machines(world: ClusterEnvironment) -> None:
    world.up(**MANAGED, apiServer={"managedLoadBalancer": {"additionalPorts": [9443]}})

    by_name = {pool["name"]: id_ for id_, pool in world.created()["pools"].items()}
    assert world.record("pool-6443") == by_name["k8s-clusterapi-cluster-default-kube-kubeapi-6443"]
    assert world.record("pool-9443") == by_name["k8s-clusterapi-cluster-default-kube-kubeapi-9443"]


def test_status_has_what_machines_and_people_look_for(world: ClusterEnvironment) -> None:
    world.up(**FULL)

    status = world.status()
    assert status["network"]["subnets"][0]["cidr"] == "10.6.0.0/24"
    assert status["externalNetwork"]["name"] == "public"
    assert status["router"]["ips"]
    assert status["failureDomains"] == [{"name": "az1", "controlPlane": True}, {"name": "az2", "controlPlane": True}]
    assert status["controlPlaneSecurityGroup"]["name"] == "k8s-cluster-default-kube-secgroup-controlplane"
    assert status["bastion"]["state"] == "ACTIVE"
    assert status["bastion"]["floatingIP"] in {
        f["floating_ip_address"] for f in world.created()["floatingips"].values()
    }


def test_it_takes_few_requests_and_few_writes(world: ClusterEnvironment) -> None:
    world.up(**FULL)

    of_cluster = [write for write in world.kube.writes if write[1] == "OpenStackCluster"]
    # Four lists prove that nothing was created twice; a fifth is needed if the floating IPs are created far apart.
    assert len(world.requests()) <= 32, world.requests()
    assert len(of_cluster) <= 12, of_cluster


def test_a_settled_cluster_writes_nothing_and_asks_little(world: ClusterEnvironment) -> None:
    world.up(**MANAGED, **BALANCER, **GROUPS, for_s=1200)
    world.cloud.counter.reset()
    world.kube.writes.clear()

    world.resync()
    world.settle(for_s=600)

    assert world.kube.writes == []
    assert len(world.requests()) <= 7, world.requests()


def test_user_tags_are_put_on_everything_that_takes_them(world: ClusterEnvironment) -> None:
    world.up(**FULL, tags=["blue"])

    made = world.created()
    kinds = ("networks", "subnets", "routers", "floatingips", "loadbalancers", "listeners", "pools", "servers")
    assert all("blue" in body["tags"] for kind in kinds for body in made[kind].values())
    ours = [g for g in made["security_groups"].values() if g["name"].startswith("k8s-")]
    assert [g["tags"] for g in ours] == [["blue"]] * 3
    assert world.is_ready()


def test_options_of_network_and_subnet_reach_neutron(world: ClusterEnvironment) -> None:
    pools = [{"start": "10.7.0.10", "end": "10.7.0.90"}]
    world.up(
        managedSubnets=[{"cidr": "10.7.0.0/24", "allocationPools": pools}],
        managedNetwork={"mtu": 1400, "enablePortSecurity": False},
    )

    network = world.one("networks")
    assert (network["mtu"], network["port_security_enabled"]) == (1400, False)
    assert world.one("subnets")["allocation_pools"] == pools


def test_router_gets_the_addresses_that_it_is_told_to_have(world: ClusterEnvironment) -> None:
    external = world.external()
    (subnet_id,) = (i for i, s in world.inventory()["subnets"].items() if s["network_id"] == external["id"])
    subnet = {"id": subnet_id}
    admin = {"name": "cloud", "cloudName": "sim-admin"}
    router = {"externalIPs": [{"fixedIP": "127.64.9.9", "subnet": subnet}]}
    world.up(**MANAGED, identityRef=admin, managedRouter=router)

    assert world.is_ready(), world.status()
    assert world.status()["router"]["ips"] == ["127.64.9.9"]
    assert sum("PUT /v2.0/routers" in r and "interface" not in r for r in world.requests()) == 1


def test_gateway_addresses_that_the_policy_refuses_are_told(world: ClusterEnvironment) -> None:
    external = world.external()
    (subnet_id,) = (i for i, s in world.inventory()["subnets"].items() if s["network_id"] == external["id"])
    router = {"externalIPs": [{"fixedIP": "127.64.9.9", "subnet": {"id": subnet_id}}]}

    world.up(**MANAGED, managedRouter=router)

    assert world.shown("RouterReady") == ("False", "RouterCreateFailed")
    assert "Forbidden" in world.message("RouterReady")


def test_without_external_network_the_vip_is_the_endpoint(world: ClusterEnvironment) -> None:
    server = {"managedLoadBalancer": {"enabled": True}, "enableFloatingIP": False}
    world.up(**MANAGED, enableExternalNetwork=False, apiServer=server)

    assert world.is_ready()
    vip = world.one("loadbalancers")["vip_address"]
    assert world.osc()["spec"]["controlPlaneEndpoint"]["host"] == vip
    assert world.status()["apiServerManagedLoadBalancer"]["ip"] == vip
    assert "routers" not in world.created()
    assert "externalNetwork" not in world.status()


def test_a_fixed_ip_is_the_vip(world: ClusterEnvironment) -> None:
    server = {"managedLoadBalancer": {}, "enableFloatingIP": False, "fixedIP": "10.6.0.77"}
    world.up(**MANAGED, apiServer=server)

    assert world.one("loadbalancers")["vip_address"] == "10.6.0.77"
    assert world.osc()["spec"]["controlPlaneEndpoint"] == {"host": "10.6.0.77", "port": 6443}


def test_an_endpoint_that_the_user_gives_is_kept_and_nothing_is_asked(world: ClusterEnvironment) -> None:
    given = {"host": "api.example.org", "port": 443}
    world.up(**MANAGED, controlPlaneEndpoint=given)

    assert world.is_ready()
    assert world.osc()["spec"]["controlPlaneEndpoint"] == given
    assert "floatingips" not in world.created()


def test_a_host_name_stays_the_endpoint_of_a_load_balancer_w_59(world: ClusterEnvironment) -> None:
    given = {"host": "api.example.org", "port": 8443}
    world.up(**MANAGED, **BALANCER, controlPlaneEndpoint=given)

    assert world.is_ready()
    assert world.osc()["spec"]["controlPlaneEndpoint"] == given
    assert world.one("listeners")["protocol_port"] == 8443
    assert world.one("floatingips")["port_id"] == world.one("loadbalancers")["vip_port_id"]


def test_the_floating_ip_that_dns_knows_is_taken_if_it_is_free(world: ClusterEnvironment) -> None:
    free = given.floating_ip(world)
    world.dns = Answer(("2001:db8::7", free["floating_ip_address"]))
    world.up(**MANAGED, **BALANCER, controlPlaneEndpoint={"host": "api.example.org", "port": 6443})

    assert world.is_ready()
    assert "floatingips" not in world.created()
    assert world.inventory()["floatingips"][free["id"]]["port_id"] == world.one("loadbalancers")["vip_port_id"]
    assert world.status()["apiServerManagedLoadBalancer"]["ip"] == free["floating_ip_address"]


def test_a_floating_ip_of_the_user_is_used_and_survives_the_cluster(world: ClusterEnvironment) -> None:
    mine = given.floating_ip(world)
    world.up(**MANAGED, apiServer={"managedLoadBalancer": {}, "floatingIP": mine["floating_ip_address"]})
    assert world.is_ready()
    assert world.osc()["spec"]["controlPlaneEndpoint"]["host"] == mine["floating_ip_address"]

    world.remove()
    world.settle(for_s=120)

    assert world.is_gone()
    assert world.created() == {}
    assert world.inventory()["floatingips"][mine["id"]]["port_id"] is None


def test_a_floating_ip_of_the_user_that_leads_elsewhere_is_not_taken_w_71(world: ClusterEnvironment) -> None:
    mine = given.floating_ip(world)
    world.place(**MANAGED, apiServer={"managedLoadBalancer": {}, "floatingIP": mine["floating_ip_address"]})
    world.settle(for_s=60, until=lambda: "loadbalancers" in world.created())
    network = world.one("networks")
    port = world.member.make("/network/v2.0/ports", "port", network_id=network["id"])
    path = f"/network/v2.0/floatingips/{mine['id']}"
    world.member.ask("PUT", path, {"floatingip": {"port_id": port["id"]}})

    world.settle(for_s=60)

    assert world.shown("APIEndpointReady") == ("False", "APIEndpointConfigFailed")
    assert "leads to port" in world.message("APIEndpointReady")
    assert world.inventory()["floatingips"][mine["id"]]["port_id"] == port["id"]

    world.member.ask("PUT", path, {"floatingip": {"port_id": None}})
    world.settle(for_s=1200)

    assert world.is_ready()


def test_nothing_that_tells_the_endpoint_waits_for_the_cluster_to_tell_it_c_2(world: ClusterEnvironment) -> None:
    world.up(**MANAGED, apiServer={"enableFloatingIP": False})
    assert world.shown("APIEndpointReady") == ("False", "WaitingForControlPlaneEndpoint")
    assert not world.is_provisioned()

    world.patch(CLUSTER, CLUSTER_NAME, {"spec": {"controlPlaneEndpoint": {"host": "hosted.example.org", "port": 443}}})
    world.settle(for_s=60)

    assert world.is_ready()
    assert world.is_provisioned()
    assert world.osc()["spec"]["controlPlaneEndpoint"] == {"host": "hosted.example.org", "port": 443}


def test_an_existing_network_is_used_and_left_alone(world: ClusterEnvironment) -> None:
    network = world.network()
    world.up(network={"id": network["id"]}, apiServer={"enableFloatingIP": False, "fixedIP": "10.9.0.9"})

    assert world.is_ready()
    assert world.created() == {}
    assert world.status()["network"]["id"] == network["id"]
    assert [s["cidr"] for s in world.status()["network"]["subnets"]] == ["10.9.0.0/24"]
    assert "router" not in world.status()

    world.remove()
    world.settle(for_s=60)

    assert world.is_gone()
    assert network["id"] in world.inventory()["networks"]


def test_existing_network_and_subnets_are_found_by_filter(world: ClusterEnvironment) -> None:
    network = world.network()
    world.up(
        network={"filter": {"name": "own"}},
        subnets=[{"filter": {"cidr": "10.9.0.0/24"}}],
        apiServer={"enableFloatingIP": False, "fixedIP": "10.9.0.9"},
    )

    assert world.is_ready()
    assert world.status()["network"]["id"] == network["id"]


def test_a_router_that_the_spec_names_is_connected_and_disconnected_but_never_deleted(
    world: ClusterEnvironment,
) -> None:
    mine = given.router(world)
    world.up(**MANAGED, router={"id": mine["id"]})
    assert world.is_ready()
    assert world.status()["router"]["id"] == mine["id"]
    assert "routers" not in world.created()

    world.remove()
    world.settle(for_s=60)

    assert world.is_gone()
    assert world.created() == {}
    assert mine["id"] in world.inventory()["routers"]


def test_the_load_balancer_may_stand_in_another_network(world: ClusterEnvironment) -> None:
    other = world.network()
    server = {
        "managedLoadBalancer": {"network": {"id": other["id"]}, "subnets": [{"filter": {"cidr": "10.9.0.0/24"}}]},
        "enableFloatingIP": False,
    }
    world.up(**MANAGED, apiServer=server)

    assert world.is_ready()
    assert world.one("loadbalancers")["vip_network_id"] == other["id"]
    shown = world.status()["apiServerManagedLoadBalancer"]["loadBalancerNetwork"]
    assert (shown["id"], shown["subnets"][0]["cidr"]) == (other["id"], "10.9.0.0/24")


def test_allowed_cidrs_hold_from_the_first_moment_and_learn_of_the_bastion_w_72(world: ClusterEnvironment) -> None:
    server = {"managedLoadBalancer": {"allowedCIDRs": ["192.0.2.7"]}}
    world.up(**MANAGED, **GROUPS, bastion=FULL["bastion"], apiServer=server)

    bastion, router = world.status()["bastion"], world.status()["router"]
    expected = {"192.0.2.7/32", "10.6.0.0/24"} | {
        f"{ip}/32" for ip in (bastion["ip"], bastion["floatingIP"], *router["ips"])
    }
    assert set(world.one("listeners")["allowed_cidrs"]) == expected
    assert set(world.status()["apiServerManagedLoadBalancer"]["allowedCIDRs"]) == expected
    assert world.is_ready()


def test_an_unknown_provider_and_flavor_are_replaced_by_the_default_with_an_event(world: ClusterEnvironment) -> None:
    world.up(**MANAGED, apiServer={"managedLoadBalancer": {"provider": "nonesuch", "flavor": "nonesuch"}})

    assert world.is_ready()
    assert {"OctaviaProviderNotFound", "OctaviaFlavorNotFound"} <= set(world.events.reasons())


def test_the_load_balancer_has_the_flavor_and_the_zone_of_the_spec(world: ClusterEnvironment) -> None:
    wanted = {"provider": "amphora", "flavor": "single", "availabilityZone": "az1"}
    world.up(**MANAGED, apiServer={"managedLoadBalancer": wanted}, for_s=300)

    (flavor_id,) = (
        id_ for id_, each in world.cloud.table("load-balancer", "flavors").items() if each["name"] == "single"
    )
    found = world.one("loadbalancers")
    assert (found["provider"], found["flavor_id"], found["availability_zone"]) == ("amphora", flavor_id, "az1")
    assert world.is_ready()


def test_a_zone_that_octavia_does_not_have_is_named(world: ClusterEnvironment) -> None:
    world.up(**MANAGED, apiServer={"managedLoadBalancer": {"availabilityZone": "nowhere"}}, for_s=300)

    assert world.shown("LoadBalancerReady")[0] == "False"
    assert "availability zone" in world.message("LoadBalancerReady").lower()
    assert "loadbalancers" not in world.created()


def test_the_bastion_carries_label_owner_and_watch_filter_c_58_c_45_w_88(world: ClusterEnvironment) -> None:
    world.place(**FULL)
    world.patch(OPENSTACK_CLUSTER, CLUSTER_NAME, {"metadata": {"labels": {names.WATCH_FILTER_LABEL: "blue"}}})

    world.settle(for_s=60)

    metadata = world.get(OPENSTACK_SERVER, BASTION_NAME)["metadata"]
    assert metadata["labels"] == {names.CLUSTER_NAME_LABEL: CLUSTER_NAME, names.WATCH_FILTER_LABEL: "blue"}
    assert metadata["ownerReferences"][0]["uid"] == world.osc()["metadata"]["uid"]


def test_a_load_balancer_that_fails_is_told_and_one_that_recovers_is_taken_w_63(world: ClusterEnvironment) -> None:
    world.place(**MANAGED, **BALANCER)
    world.settle(for_s=60, until=lambda: "loadbalancers" in world.created())
    balancer = world.one("loadbalancers")
    world.set_state("loadbalancers", balancer["id"], provisioning_status="ERROR")

    world.settle(for_s=60)

    assert world.shown("LoadBalancerReady") == ("False", "LoadBalancerFailed")
    assert world.shown("APIEndpointReady") == ("False", "APIEndpointConfigFailed")
    assert world.shown("Ready") == ("False", "OpenStackError")

    world.set_state("loadbalancers", balancer["id"], provisioning_status="ACTIVE")
    world.settle(for_s=300)

    assert world.is_ready()


def test_the_list_of_the_load_balancers_is_asked_and_not_each_child(world: ClusterEnvironment) -> None:
    world.up(**MANAGED, **BALANCER)

    reads = [r for r in world.requests() if r.startswith("GET /v2.0/lbaas")]
    assert set(reads) == {"GET /v2.0/lbaas/loadbalancers"}
    assert BALANCER_PATH.startswith("/load-balancer")
