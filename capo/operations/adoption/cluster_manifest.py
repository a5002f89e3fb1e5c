"""The Cluster and the OpenStackCluster of resources that exist; pure.

Whatever a controller would create or change for lack of a field is written: so that it does neither.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from api.v1beta2 import OpenStackClusterSpec
from capo import names
from capo.json_types import Body, Json
from capo.kube.kinds import CLUSTER, OPENSTACK_CLUSTER
from capo.openstack.floating_ip import FloatingIP
from capo.openstack.load_balancer import Listener, LoadBalancer
from capo.openstack.port import Port
from capo.openstack.router import Router
from capo.operations.adoption import group_rules, server_manifest
from capo.operations.adoption.search import FoundCluster, FoundServer
from capo.operations.errors import OperatorError
from controllers import roles

DEFAULT_PORT: Final = 6443
_LISTENER: Final = "listener-"
_MONITOR: Final = {"delay": ("delay", 10), "timeout": ("timeout", 5), "maxRetries": ("max_retries", 5)}
_MONITOR_DOWN: Final = ("max_retries_down", 3)


@dataclass(frozen=True)
class Endpoint:
    """The control plane endpoint.

    Args:
        host: None: the address of the load balancer.
        port: None: that of its listener.
    """

    host: str | None = None
    port: int | None = None


@dataclass(frozen=True)
class Written:
    """An object and what a person has to know of it."""

    obj: Json
    findings: Sequence[str] = ()


def cluster(found: FoundCluster, endpoint: Json | None) -> Json:
    """Return Cluster API's Cluster."""
    reference = {"apiGroup": names.GROUP, "kind": OPENSTACK_CLUSTER.kind, "name": found.name}
    given = {"controlPlaneEndpoint": endpoint} if endpoint else {}
    return {
        "apiVersion": CLUSTER.api_version,
        "kind": CLUSTER.kind,
        "metadata": {"name": found.name, "namespace": found.namespace},
        "spec": {**given, "infrastructureRef": reference},
    }


def openstack_cluster(found: FoundCluster, identity: Json, endpoint: Endpoint) -> Written:
    """Return the OpenStackCluster.

    Raises:
        OperatorError: its network has no subnet, or nothing shows the endpoint.
    """
    spec = {
        "identityRef": identity,
        **_network(found),
        **_external(found),
        **_api_server(found, endpoint),
        "controlPlaneEndpoint": _endpoint(found, endpoint),
        **_bastion(found),
    }
    groups = group_rules.managed_security_groups(found, OpenStackClusterSpec.model_validate(spec))
    return Written(_object(found, spec | groups.spec), [*groups.findings, *_findings(found)])


def network_of_others(found: FoundCluster, identity: Json, endpoint: Endpoint) -> Json:
    """Return the OpenStackCluster of a new cluster with a network, and maybe a load balancer, that exist.

    Raises:
        OperatorError: nothing shows the port of the endpoint.
    """
    external = _external(found)
    spec = {"identityRef": identity, **_network(found), **external}
    if found.body(roles.LOAD_BALANCER):
        spec |= {**_api_server(found, endpoint), "controlPlaneEndpoint": _endpoint(found, endpoint)}
    elif "enableExternalNetwork" in external:
        spec["apiServer"] = {"enableFloatingIP": False}
    return _object(found, spec)


def _object(found: FoundCluster, spec: Json) -> Json:
    annotation = names.restored_owner_id(found.owner, OPENSTACK_CLUSTER.kind, found.namespace, found.name)
    metadata = {
        "name": found.name,
        "namespace": found.namespace,
        "labels": {names.CLUSTER_NAME_LABEL: found.name},
        "annotations": {names.OWNER_ID_ANNOTATION: annotation},
        "finalizers": [names.finalizer(OPENSTACK_CLUSTER.kind)],
    }
    return {
        "apiVersion": OPENSTACK_CLUSTER.api_version,
        "kind": OPENSTACK_CLUSTER.kind,
        "metadata": metadata,
        "spec": spec,
    }


def _findings(found: FoundCluster) -> Iterator[str]:
    if found.bastion and found.body(roles.ROUTER) and not _at_ports(found, _port_ids(found.bastion)):
        yield f"bastion {found.bastion.name} has no floating IP: the provider creates one"
    for role, part in found.parts.items():
        if part.kind == "server_group":
            yield f"server group {part.body['id']} ({role}) stays and is not adopted: its template is not known"


# -- network ---------------------------------------------------------------------------------------------------------


def _network(found: FoundCluster) -> Json:
    if found.network_id:
        return {"network": {"id": found.network_id}, "subnets": [{"id": body["id"]} for body in found.subnets]}
    network, subnet = found.body(roles.NETWORK), found.body(roles.SUBNET)
    if network is None or subnet is None:
        raise OperatorError(f"the network of cluster {found.namespace}/{found.name} has no subnet of the cluster")
    additional = found.body(roles.ADDITIONAL_SUBNET)
    is_open = network.get("port_security_enabled") is not False
    return {
        "managedSubnets": [_subnet(subnet)],
        **({"additionalManagedSubnet": _subnet(additional)} if additional else {}),
        **({} if is_open else {"managedNetwork": {"enablePortSecurity": False}}),
    }


def _subnet(body: Body) -> Json:
    pools = [{"start": each["start"], "end": each["end"]} for each in body.get("allocation_pools") or ()]
    optional = {
        "dnsNameservers": list(body.get("dns_nameservers") or ()),
        "allocationPools": [] if _is_whole(body, pools) else pools,
        "ipv6AddressMode": body.get("ipv6_address_mode"),
        "ipv6RAMode": body.get("ipv6_ra_mode"),
    }
    return {"cidr": body["cidr"], **{name: value for name, value in optional.items() if value}}


def _is_whole(body: Body, pools: Sequence[Json]) -> bool:
    """Return whether the pools are what Neutron chooses: all addresses but the gateway's, in one or two ranges."""
    cidr = ipaddress.ip_network(body["cidr"], strict=False)
    sizes = (int(ipaddress.ip_address(p["end"])) - int(ipaddress.ip_address(p["start"])) + 1 for p in pools)
    gateway = 1 if body.get("gateway_ip") else 0
    unusable = 2 if cidr.version == 4 else 1
    return sum(sizes) >= cidr.num_addresses - unusable - gateway


def _external(found: FoundCluster) -> Json:
    """Return the router and the external network; without a router of its own the cluster may use another one."""
    own, subnet = found.body(roles.ROUTER), _first_subnet(found)
    used, address = own or _router_at(found, subnet.get("id")), _api_address(found)
    gateway = Router(used).gateway_network_id if used else (address or {}).get("floating_network_id")
    if gateway is None:
        return {"enableExternalNetwork": False}
    given = {} if own or used is None or found.network_id else {"router": {"id": used["id"]}}
    return {"externalNetwork": {"id": gateway}, **given}


def _first_subnet(found: FoundCluster) -> Body:
    """Return the subnet of the nodes; empty if none is known."""
    return found.body(roles.SUBNET) or next(iter(found.subnets), {})


def _router_at(found: FoundCluster, subnet_id: str | None) -> Body | None:
    ports = [Port(body) for body in found.survey.of("port")]
    devices = [each.device_id for each in ports if subnet_id in each.subnet_ids]
    return next((router for id_ in devices if (router := found.survey.get("router", id_))), None)


# -- API -------------------------------------------------------------------------------------------------------------


def _api_server(found: FoundCluster, endpoint: Endpoint) -> Json:
    balancer, address = found.body(roles.LOAD_BALANCER), _api_address(found)
    is_own = found.body(roles.API_FLOATING_IP) is not None
    given = {"floatingIP": FloatingIP(address).address} if address and not is_own else {}
    spec: Json = {**given, **({} if address else {"enableFloatingIP": False})}
    if balancer:
        spec["managedLoadBalancer"] = _load_balancer(found, balancer, endpoint)
    return {"apiServer": spec} if spec else {}


def _api_address(found: FoundCluster) -> Body | None:
    """Return the floating IP of the API: the cluster's own, or one of a user at the virtual IP."""
    balancer = found.body(roles.LOAD_BALANCER)
    at_vip = _at_ports(found, {LoadBalancer(balancer).vip_port_id or ""}) if balancer else []
    return found.body(roles.API_FLOATING_IP) or next(iter(at_vip), None)


def _at_ports(found: FoundCluster, port_ids: set[str]) -> list[Body]:
    return [body for body in found.survey.of("floating_ip") if body.get("port_id") in port_ids]


def _listeners(found: FoundCluster) -> list[Listener]:
    listeners = [Listener(part.body) for role, part in found.parts.items() if role.startswith(_LISTENER)]
    return sorted(listeners, key=lambda each: each.protocol_port or 0)


def _endpoint(found: FoundCluster, given: Endpoint) -> Json:
    balancer, address = found.body(roles.LOAD_BALANCER), _api_address(found)
    shown = FloatingIP(address).address if address else LoadBalancer(balancer).vip_address if balancer else None
    host = given.host or shown
    if host is None:
        raise OperatorError("nothing in the cloud shows the control plane endpoint: name it with --endpoint HOST:PORT")
    return {"host": host, "port": _api_port(found, given)}


def _api_port(found: FoundCluster, given: Endpoint) -> int:
    ports = [each.protocol_port for each in _listeners(found) if each.protocol_port]
    if given.port or not ports:
        return given.port or DEFAULT_PORT
    if len(ports) > 1 and DEFAULT_PORT not in ports:
        raise OperatorError(f"the load balancer has ports {ports}: name that of the API with --endpoint HOST:PORT")
    return DEFAULT_PORT if DEFAULT_PORT in ports else ports[0]


def _load_balancer(found: FoundCluster, body: Body, endpoint: Endpoint) -> Json:
    api_port, listeners = _api_port(found, endpoint), _listeners(found)
    cidrs = sorted({cidr for each in listeners for cidr in each.allowed_cidrs})
    others = [each.protocol_port for each in listeners if each.protocol_port != api_port]
    optional: dict[str, Any] = {
        "additionalPorts": others,
        "allowedCIDRs": cidrs,
        "provider": LoadBalancer(body).provider,
        "availabilityZone": body.get("availability_zone"),
        "monitor": _monitor(found, api_port),
        **_vip_network(found, body),
    }
    return {"enabled": True, **{name: value for name, value in optional.items() if value}}


def _vip_network(found: FoundCluster, body: Body) -> Json:
    """Return where the virtual IP is, unless that is the first subnet of the cluster."""
    network_id, subnet = found.network_id or (found.body(roles.NETWORK) or {}).get("id"), _first_subnet(found)
    if body.get("vip_network_id") != network_id:
        return {"network": {"id": body.get("vip_network_id")}, "subnets": [{"id": body.get("vip_subnet_id")}]}
    is_first = body.get("vip_subnet_id") == subnet.get("id")
    return {} if is_first else {"subnets": [{"id": body.get("vip_subnet_id")}]}


def _monitor(found: FoundCluster, api_port: int) -> Json:
    body = found.body(roles.monitor(api_port))
    if body is None:
        return {}
    found_values = {name: body.get(key, default) for name, (key, default) in _MONITOR.items()}
    changed = {name: value for name, value in found_values.items() if value != _MONITOR[name][1]}
    down = body.get(_MONITOR_DOWN[0], _MONITOR_DOWN[1])
    return {**changed, **({"maxRetriesDown": down} if down != _MONITOR_DOWN[1] else {})}


# -- bastion ---------------------------------------------------------------------------------------------------------


def _port_ids(server: FoundServer) -> set[str]:
    return {body["id"] for body in server.ports}


def _bastion(found: FoundCluster) -> Json:
    if found.bastion is None:
        return {}
    own = found.body(roles.BASTION_FLOATING_IP)
    others = [each for each in _at_ports(found, _port_ids(found.bastion)) if own is None or each["id"] != own["id"]]
    given = {"floatingIP": FloatingIP(others[0]).address} if others else {}
    return {"bastion": {"enabled": True, "spec": server_manifest.machine_spec(found.bastion), **given}}
