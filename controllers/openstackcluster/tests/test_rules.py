"""Rules of the managed security groups (G-11, W-62, W-69)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pytest

from api.v1beta2.securitygroups import ManagedSecurityGroups
from capo.errors import InvalidSpecError
from capo.openstack.security_group import Rule
from controllers.openstackcluster import rules
from controllers.openstackcluster.rules import RuleContext
from controllers.roles import BASTION, CONTROL_PLANE, WORKER

IDS = {CONTROL_PLANE: "cp", WORKER: "wk"}
WITH_BASTION = {**IDS, BASTION: "ba"}


def around(
    ids: Mapping[str, str] = IDS,
    *,
    ports: Iterable[int] = (6443,),
    more: Iterable[int] = (),
    cidrs: Any = ("10.6.0.0/24",),
) -> RuleContext:
    return RuleContext(group_ids=ids, api_ports=tuple(ports), additional_ports=tuple(more), subnet_cidrs=tuple(cidrs))


def lines(wanted: Iterable[Rule]) -> set[str]:
    """Return each rule as a line ``description version protocol ports from``."""
    return {
        " ".join(
            str(part)
            for part in (
                rule.description,
                rule.ethertype,
                rule.protocol or "any",
                f"{rule.port_range_min}-{rule.port_range_max}" if rule.port_range_min else "all",
                rule.remote_group_id or rule.remote_ip_prefix or "everyone",
            )
        )
        for rule in wanted
    }


def rules_of(group: str, spec: Mapping[str, Any] | None = None, where: RuleContext | None = None) -> set[str]:
    found = rules.wanted(ManagedSecurityGroups.model_validate(spec or {}), where or around())
    return lines(found.rules[group])


EGRESS = {"Full open IPv4 any all everyone", "Full open IPv6 any all everyone"}
NODE_PORTS = {
    f"Node Port Services IPv4 {protocol} 30000-32767 {remote}"
    for protocol in ("tcp", "udp")
    for remote in ("10.6.0.0/24", "wk", "cp")
}


def test_control_plane_has_the_go_providers_rules() -> None:
    assert rules_of(CONTROL_PLANE) == EGRESS | {
        "Kubernetes API IPv4 tcp 6443-6443 everyone",
        "Etcd IPv4 tcp 2379-2380 cp",
        "Kubelet API IPv4 tcp 10250-10250 cp",
        "Kubelet API IPv4 tcp 10250-10250 wk",
    }


def test_workers_have_the_go_providers_rules() -> None:
    assert rules_of(WORKER) == EGRESS | NODE_PORTS | {
        "Kubelet API IPv4 tcp 10250-10250 wk",
        "Kubelet API IPv4 tcp 10250-10250 cp",
    }


def test_all_in_cluster_traffic_takes_the_place_of_single_rules() -> None:
    everything = {"In-cluster Ingress IPv4 any all cp", "In-cluster Ingress IPv4 any all wk"}

    allowed = {"allowAllInClusterTraffic": True}

    assert rules_of(CONTROL_PLANE, allowed) == EGRESS | everything | {"Kubernetes API IPv4 tcp 6443-6443 everyone"}
    assert rules_of(WORKER, allowed) == EGRESS | everything | NODE_PORTS


def test_a_bastion_may_log_in_everywhere() -> None:
    where = around(WITH_BASTION)

    assert "SSH IPv4 tcp 22-22 ba" in rules_of(CONTROL_PLANE, where=where)
    assert "SSH IPv4 tcp 22-22 ba" in rules_of(WORKER, where=where)
    assert rules_of(BASTION, where=where) == EGRESS | {"SSH IPv4 tcp 22-22 everyone"}


def test_without_bastion_there_is_no_group_and_no_ssh() -> None:
    found = rules.wanted(ManagedSecurityGroups(), around())

    assert set(found.rules) == {CONTROL_PLANE, WORKER}
    assert not [line for group in found.rules.values() for line in lines(group) if line.startswith("SSH")]


def test_the_ports_that_are_served_are_open_w_69() -> None:
    found = rules_of(CONTROL_PLANE, where=around(ports=[443, 6443], more=[9443, 443]))

    assert {line for line in found if "everyone" in line} - EGRESS == {
        "Kubernetes API IPv4 tcp 443-443 everyone",
        "Kubernetes API IPv4 tcp 6443-6443 everyone",
        "Additional port IPv4 tcp 9443-9443 everyone",
    }


@pytest.mark.parametrize(
    ("cidrs", "expected"),
    [
        pytest.param(["10.6.0.0/24"], {"IPv4"}, id="IPv4"),
        pytest.param(["2001:db8::/64"], {"IPv6"}, id="IPv6"),
        pytest.param(["10.6.0.0/24", "2001:db8::/64"], {"IPv4", "IPv6"}, id="both"),
        pytest.param([], {"IPv4"}, id="no subnet is known"),
    ],
)
def test_ingress_follows_the_ip_versions_of_the_subnets_w_69(cidrs: list[str], expected: set[str]) -> None:
    found = rules.wanted(ManagedSecurityGroups(), around(WITH_BASTION, cidrs=cidrs))

    ingress = [rule for group in found.rules.values() for rule in group if rule.direction == "ingress"]
    assert {rule.ethertype for rule in ingress} == expected


def test_node_ports_of_a_subnet_have_its_ip_version() -> None:
    found = rules_of(WORKER, where=around(cidrs=["10.6.0.0/24", "2001:db8::/64"]))

    assert "Node Port Services IPv6 tcp 30000-32767 2001:db8::/64" in found
    assert "Node Port Services IPv4 tcp 30000-32767 2001:db8::/64" not in found


def user(**fields: Any) -> dict[str, Any]:
    return {"name": "own", "direction": "ingress", "description": "mine", "protocol": "tcp", **fields}


def test_rules_of_the_user_go_to_the_groups_they_are_for() -> None:
    spec = {
        "controlPlaneNodesSecurityGroupRules": [user(description="a")],
        "workerNodesSecurityGroupRules": [user(description="b")],
        "clusterNodesSecurityGroupRules": [user(description="c")],
    }

    def mine(group: str) -> set[str]:
        return {line[0] for line in rules_of(group, spec) if line[0] in "abc"}

    assert mine(CONTROL_PLANE) == {"a", "c"}
    assert mine(WORKER) == {"b", "c"}


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        pytest.param({}, {"mine IPv4 tcp all everyone"}, id="IPv4 by default"),
        pytest.param({"etherType": "IPv6"}, {"mine IPv6 tcp all everyone"}, id="as it says"),
        pytest.param({"remoteIPPrefix": "2001:db8::/64"}, {"mine IPv6 tcp all 2001:db8::/64"}, id="as its prefix says"),
        pytest.param({"remoteGroupID": "other"}, {"mine IPv4 tcp all other"}, id="a group by id"),
        pytest.param(
            {"remoteManagedGroups": ["controlplane", "worker"]},
            {"mine IPv4 tcp all cp", "mine IPv4 tcp all wk"},
            id="one for each managed group",
        ),
        pytest.param({"portRangeMin": 80, "portRangeMax": 81}, {"mine IPv4 tcp 80-81 everyone"}, id="ports"),
    ],
)
def test_a_rule_of_the_user_means_what_it_says(fields: dict[str, Any], expected: set[str]) -> None:
    found = rules_of(CONTROL_PLANE, {"clusterNodesSecurityGroupRules": [user(**fields)]})

    assert {line for line in found if line.startswith("mine")} == expected


def test_a_rule_for_a_group_that_does_not_exist_is_left_out_and_told() -> None:
    spec = ManagedSecurityGroups.model_validate(
        {"clusterNodesSecurityGroupRules": [user(remoteManagedGroups=["bastion", "worker"])]}
    )

    found = rules.wanted(spec, around())

    assert found.skipped == ("rule 'own' waits for the bastion group, which does not exist",)
    assert {line for line in lines(found.rules[WORKER]) if line.startswith("mine")} == {"mine IPv4 tcp all wk"}


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param({"remoteManagedGroups": ["worker"], "remoteGroupID": "x"}, id="two groups"),
        pytest.param({"remoteGroupID": "x", "remoteIPPrefix": "192.0.2.0/24"}, id="group and prefix"),
        pytest.param({"remoteIPPrefix": "everyone"}, id="no prefix"),
    ],
)
def test_a_rule_that_contradicts_itself_is_refused(fields: dict[str, Any]) -> None:
    spec = ManagedSecurityGroups.model_validate({"clusterNodesSecurityGroupRules": [user(**fields)]})

    with pytest.raises(InvalidSpecError):
        rules.wanted(spec, around())


# -- restricted egress -----------------------------------------------------------------------------------------------

RESTRICTED = {"allowAllOutboundTraffic": False}
IN_BOTH_VERSIONS = RuleContext(
    group_ids=WITH_BASTION,
    api_ports=(6443,),
    additional_ports=(),
    subnet_cidrs=("10.6.0.0/24", "2001:db8::/64"),
    api_servers=(("192.0.2.7", 6443), ("2001:db8::7", 6443)),
    name_servers=("192.0.2.53", "2001:db8:1::53", "192.0.2.53"),
)


def egress_of(group: str, where: RuleContext) -> list[str]:
    found = rules.wanted(ManagedSecurityGroups.model_validate(RESTRICTED), where).rules[group]
    return sorted(line for rule in found if rule.direction == "egress" for line in lines([rule]))


def dns(*prefixes: str) -> set[str]:
    versions = {prefix: 6 if ":" in prefix else 4 for prefix in prefixes}
    return {f"DNS IPv{v} {protocol} 53-53 {prefix}" for prefix, v in versions.items() for protocol in ("tcp", "udp")}


SERVICES = dns("10.6.0.0/24", "2001:db8::/64", "192.0.2.53", "2001:db8:1::53") | {
    "Metadata IPv4 tcp 80-80 169.254.169.254",
    "Metadata IPv6 tcp 80-80 fe80::a9fe:a9fe",
}


@pytest.mark.parametrize("group", [CONTROL_PLANE, WORKER])
def test_nodes_with_restricted_egress_reach_what_they_need_in_each_version(group: str) -> None:
    among_nodes = {f"In-cluster Egress {version} any all {of}" for version in ("IPv4", "IPv6") for of in ("cp", "wk")}
    api = {"Kubernetes API IPv4 tcp 6443-6443 192.0.2.7", "Kubernetes API IPv6 tcp 6443-6443 2001:db8::7"}

    found = egress_of(group, IN_BOTH_VERSIONS)

    assert found == sorted(SERVICES | among_nodes | api)


def test_a_bastion_with_restricted_egress_reaches_nodes_by_ssh_alone() -> None:
    ssh = {f"SSH {version} tcp 22-22 {of}" for version in ("IPv4", "IPv6") for of in ("cp", "wk")}

    assert egress_of(BASTION, IN_BOTH_VERSIONS) == sorted(SERVICES | ssh)


def test_restricted_egress_changes_nothing_inbound() -> None:
    def ingress(spec: Mapping[str, Any]) -> dict[str, set[str]]:
        found = rules.wanted(ManagedSecurityGroups.model_validate(spec), around(WITH_BASTION)).rules
        return {group: lines(r for r in found[group] if r.direction == "ingress") for group in found}

    assert ingress(RESTRICTED) == ingress({})


def test_clients_of_node_ports_have_rules_of_their_version() -> None:
    open_to = {"nodePortAllowedCIDRs": ["::/0", "192.0.2.9", "10.6.0.0/24"]}

    more = rules_of(WORKER, open_to) - rules_of(WORKER)

    assert more == {
        f"Node Port Services {version} {protocol} 30000-32767 {cidr}"
        for version, cidr in (("IPv6", "::/0"), ("IPv4", "192.0.2.9/32"))
        for protocol in ("tcp", "udp")
    }
