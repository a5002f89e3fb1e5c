"""Warnings: which fields of a spec have no effect or cannot work. They refuse nothing, as upstream refuses nothing."""

from __future__ import annotations

import ipaddress
import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from api import server_build_timeout
from api.validation.difference import MORE_WARNINGS, MOST, inside, shown
from capo.json_types import Json

Warnings = Iterator[str]
ONE_VIP: Final = ("f5", "F5Networks", "a10")
"""Providers of Octavia that give a load balancer one virtual IP; a test compares them with what controllers know."""


def spec_warnings(kind: str, spec: Any) -> list[str]:
    """Return the warnings about the spec of a kind."""
    if not isinstance(spec, dict):
        return []
    return _first(_BY_KIND[kind](spec))


def annotation_warnings(obj: Json) -> list[str]:
    """Return the warnings about annotations that have a format."""
    try:
        server_build_timeout.seconds_in(obj)
    except ValueError as error:
        return [str(error)]
    return []


def _first(found: Warnings) -> list[str]:
    first = list(itertools.islice(found, MOST))
    has_more = next(found, None) is not None
    return [*first, MORE_WARNINGS] if has_more else first


def _cluster(spec: Json, path: str) -> Warnings:
    yield from _network(spec, path)
    yield from _endpoint(spec, path)
    yield from _families(spec, path)
    yield from _subnets(spec, path)
    yield from _leftovers(spec, path)
    yield from _security_groups(inside(spec, "managedSecurityGroups"), f"{path}.managedSecurityGroups")
    yield from _bastion(spec, path)
    if spec.get("controlPlaneOmitAvailabilityZone") and spec.get("controlPlaneAvailabilityZones"):
        yield _idle(f"{path}.controlPlaneOmitAvailabilityZone", "controlPlaneAvailabilityZones is set")


def _whole_cluster(spec: Json) -> Warnings:
    """Warn about a cluster; in a template, a ClusterClass may fill in what is missing."""
    yield from _cluster(spec, "spec")
    if not any(spec.get(name) for name in ("managedSubnets", "network", "subnets")):
        yield "spec: no network: set managedSubnets, network or subnets"


def _network(spec: Json, path: str) -> Warnings:
    if spec.get("managedSubnets"):
        if spec.get("network"):
            yield _idle(f"{path}.network", "managedSubnets is set, so the provider creates a network")
    else:
        for name in ("managedRouter", "managedNetwork"):
            if spec.get(name):
                yield _idle(f"{path}.{name}", "managedSubnets is not set, so the provider creates nothing")
    if spec.get("enableExternalNetwork") is False:
        routers = ("router", "managedRouter") if spec.get("managedSubnets") else ()
        for name in filter(spec.get, ("externalNetwork", *routers)):
            yield _idle(f"{path}.{name}", "enableExternalNetwork is false")


def _is_balanced(api: Json) -> bool:
    return "managedLoadBalancer" in api and inside(api, "managedLoadBalancer").get("enabled") is not False


def _endpoint(spec: Json, cluster_path: str) -> Warnings:
    api, path = inside(spec, "apiServer"), f"{cluster_path}.apiServer"
    if api.get("enableFloatingIP") is False:
        if api.get("floatingIP"):
            yield _idle(f"{path}.floatingIP", "enableFloatingIP is false")
    elif api.get("fixedIP") and not _is_balanced(api):
        yield _idle(f"{path}.fixedIP", "the endpoint has a floating IP and no load balancer")
    families = spec.get("apiServerIPFamilies") or ()
    yield from _balancer(inside(api, "managedLoadBalancer"), f"{path}.managedLoadBalancer", families)


def _families(spec: Json, path: str) -> Warnings:
    api, families = inside(spec, "apiServer"), spec.get("apiServerIPFamilies") or ()
    if families and not _is_balanced(api):
        yield _idle(f"{path}.apiServerIPFamilies", "there is no managed load balancer")
    provider = inside(api, "managedLoadBalancer").get("provider")
    if len(families) > 1 and provider in ONE_VIP:
        yield f"{path}.apiServerIPFamilies: the provider {provider} has one virtual IP: no load balancer is created"


def _leftovers(spec: Json, path: str) -> Warnings:
    is_existing = any(spec.get(name) for name in ("network", "subnets")) and not spec.get("managedSubnets")
    if is_existing and inside(spec, "workloadLeftovers").get("policy") == "Delete":
        why = "load balancers are deleted only on a network that the provider creates"
        yield _idle(f"{path}.workloadLeftovers.policy", why)


def _balancer(spec: Json, path: str, families: Sequence[str]) -> Warnings:
    """Warn about a load balancer.

    Args:
        families: IP versions of its virtual IPs; one, that of the first subnet, if there are none.
    """
    if spec.get("enabled") is False:
        for name in sorted(filter(spec.get, spec)):
            yield _idle(f"{path}.{name}", "enabled is false")
        return
    if len(spec.get("subnets") or ()) > max(1, len(families)):
        each = " of each IP version in apiServerIPFamilies" if families else ""
        yield f"{path}.subnets: only the first entry{each} is used"
    cidrs = spec.get("allowedCIDRs") or ()
    if spec.get("provider") == "ovn" and cidrs:
        yield f"{path}.allowedCIDRs: the provider ovn cannot enforce them: no load balancer is created"
    for name in filter(spec.get, ("availabilityZone", "flavor") if spec.get("provider") == "ovn" else ()):
        yield f"{path}.{name}: the provider ovn has none: no load balancer is created"
    for index, cidr in enumerate(cidrs):
        yield from _network_address(cidr, f"{path}.allowedCIDRs[{index}]")
    if len({":" in str(cidr) for cidr in cidrs}) > max(1, len(families)):
        yield f"{path}.allowedCIDRs: only those of the IP version of the load balancer's address are used"


def _subnets(spec: Json, path: str) -> Warnings:
    for index, subnet in enumerate(spec.get("managedSubnets") or ()):
        place = f"{path}.managedSubnets[{index}]"
        yield from _network_address(subnet.get("cidr"), f"{place}.cidr")
        yield from _subnet(subnet, place)
    yield from _subnet(inside(spec, "additionalManagedSubnet"), f"{path}.additionalManagedSubnet")


def _subnet(subnet: Json, place: str) -> Warnings:
    for number, server in enumerate(subnet.get("dnsNameservers") or ()):
        yield from _address(server, f"{place}.dnsNameservers[{number}]")
    for number, pool in enumerate(subnet.get("allocationPools") or ()):
        for end in ("start", "end"):
            yield from _address(pool.get(end), f"{place}.allocationPools[{number}].{end}")


def _security_groups(spec: Json, path: str) -> Warnings:
    for index, cidr in enumerate(spec.get("nodePortAllowedCIDRs") or ()):
        yield from _network_address(cidr, f"{path}.nodePortAllowedCIDRs[{index}]")


def _bastion(spec: Json, path: str) -> Warnings:
    bastion = inside(spec, "bastion")
    machine = inside(bastion, "spec")
    for name, instead in (
        ("identityRef", "the credentials are those of the cluster"),
        ("providerID", "it is not read"),
    ):
        if machine.get(name):
            yield _idle(f"{path}.bastion.spec.{name}", instead)
    yield from _server(machine, f"{path}.bastion.spec")
    if bastion and bastion.get("enabled") is not False:
        return
    for name, rules in inside(spec, "managedSecurityGroups").items():
        for index, rule in enumerate(rules if name.endswith("SecurityGroupRules") else ()):
            if "bastion" in (rule.get("remoteManagedGroups") or ()):
                place = f"{path}.managedSecurityGroups.{name}[{index}].remoteManagedGroups"
                yield f"{place}: there is no bastion group while the bastion is not enabled"


def _server(spec: Json, path: str) -> Warnings:
    """Warn about the fields that machines and servers share."""
    ports = spec.get("ports") or ()
    if ports and spec.get("securityGroups") and all(port.get("enablePortSecurity") is False for port in ports):
        yield _idle(f"{path}.securityGroups", "enablePortSecurity is false for every port")
    for index, port in enumerate(ports):
        if port.get("enablePortSecurity") is False and port.get("allowedAddressPairs"):
            yield _idle(f"{path}.ports[{index}].allowedAddressPairs", "enablePortSecurity is false")
        for number, fixed_ip in enumerate(port.get("fixedIPs") or ()):
            yield from _address(fixed_ip.get("ipAddress"), f"{path}.ports[{index}].fixedIPs[{number}].ipAddress")
    for index, device in enumerate(spec.get("additionalBlockDevices") or ()):
        storage = inside(device, "storage")
        if storage.get("type") == "Local" and storage.get("volume"):
            yield _idle(f"{path}.additionalBlockDevices[{index}].storage.volume", "type is Local")


def _openstack_server(spec: Json) -> Warnings:
    yield from _server(spec, "spec")
    if spec.get("flavor") and spec.get("flavorID"):
        yield _idle("spec.flavor", "flavorID is set")
    if not spec.get("ports"):
        yield "spec.ports: no port: the server cannot be created"
    elif spec.get("securityGroups") and all(port.get("securityGroups") for port in spec["ports"]):
        yield _idle("spec.securityGroups", "every port has its own")


def _idle(path: str, why: str) -> str:
    return f"{path}: has no effect: {why}"


def _network_address(value: Any, path: str) -> Warnings:
    yield from _parsed(value, path, lambda text: ipaddress.ip_network(text, strict=False), "an address or CIDR")


def _address(value: Any, path: str) -> Warnings:
    yield from _parsed(value, path, ipaddress.ip_address, "an IP address")


def _parsed(value: Any, path: str, parse: Callable[[str], object], wanted: str) -> Warnings:
    if not isinstance(value, str) or not value:
        return
    try:
        parse(value)
    except ValueError:
        yield f"{path}: {shown(value)} is not {wanted}: OpenStack will refuse it"


_BY_KIND: Final[dict[str, Callable[[Json], Warnings]]] = {
    "OpenStackCluster": _whole_cluster,
    "OpenStackClusterTemplate": lambda spec: _cluster(inside(spec, "template", "spec"), "spec.template.spec"),
    "OpenStackMachine": lambda spec: _server(spec, "spec"),
    "OpenStackMachineTemplate": lambda spec: _server(inside(spec, "template", "spec"), "spec.template.spec"),
    "OpenStackServer": _openstack_server,
}
