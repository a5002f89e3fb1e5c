"""References of a spec -> ids: what is pinned in ``status.resolved`` and never worked out again.

Source: behaviour reference, machines.md 1.4.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from capo import names
from capo.api.v1alpha1 import OpenStackServer
from capo.api.v1alpha1.openstackserver import ResolvedServerSpec
from capo.api.v1beta2.network import SecurityGroupParam, SubnetParam
from capo.api.v1beta2.port import FixedIP, PortOpts
from capo.controllers.openstackserver.scope import ServerScope
from capo.errors import AmbiguousMatchError, InvalidSpecError, UnsupportedFieldError
from capo.openstack import flavor, image, network, security_group, server_group, subnet
from capo.openstack.cloud import Cloud


def resolved(scope: ServerScope) -> ResolvedServerSpec:
    """Return everything that the spec refers to, as ids.

    Raises:
        NotFoundError: a reference matches nothing; the leaf says what.
        AmbiguousMatchError: a reference matches more than one.
        UnsupportedFieldError: the spec uses a field that is not handled yet.
    """
    spec = scope.server.spec
    refuse_unsupported(scope.server)
    return ResolvedServerSpec.model_validate(
        {
            "serverGroupID": _server_group(scope),
            "imageID": image.resolve(scope.cloud, spec.image),
            "flavorID": flavor.resolve(scope.cloud, id_=spec.flavor_id, name=spec.flavor),
            "ports": [_port(scope, index, port) for index, port in enumerate(spec.ports)],
        }
    )


def refuse_unsupported(server: OpenStackServer) -> None:
    """Refuse what this version would ignore."""
    if server.spec.image.image_ref is not None:
        raise UnsupportedFieldError("spec.image.imageRef is not handled yet: name the image by id or filter")
    if server.spec.floating_ip_pool_ref is not None:
        raise UnsupportedFieldError("spec.floatingIPPoolRef is not handled yet")
    if not server.spec.ports:
        raise InvalidSpecError("spec.ports is empty: a server needs at least one port")


def _server_group(scope: ServerScope) -> str:
    wanted = scope.server.spec.server_group
    return server_group.resolve(scope.cloud, wanted) if wanted else ""


def _port(scope: ServerScope, index: int, port: PortOpts) -> dict[str, Any]:
    spec = scope.server.spec
    network_id, fixed_ips = _target(scope.cloud, index, port)
    groups = () if port.enable_port_security is False else port.security_groups or spec.security_groups
    return {
        **port.model_dump(by_alias=True, exclude_none=True, exclude=_NOT_COPIED),
        "name": names.port(scope.name, index, port.name_suffix),
        "description": port.description or names.created_by(_cluster_name(scope)),
        "networkID": network_id,
        "fixedIPs": fixed_ips,
        "securityGroups": _groups(scope.cloud, groups),
        "tags": list(dict.fromkeys([*spec.tags, *port.tags])),
        "trunk": port.trunk if port.trunk is not None else (spec.trunk or None),
    }


_NOT_COPIED = {"network", "fixed_ips", "security_groups", "tags", "trunk", "name_suffix", "description"}


def _cluster_name(scope: ServerScope) -> str:
    return str((scope.turn.obj["metadata"].get("labels") or {}).get(names.CLUSTER_NAME_LABEL, ""))


def _groups(cloud: Cloud, wanted: Sequence[SecurityGroupParam]) -> list[str]:
    return security_group.resolve(cloud, wanted) if wanted else []


def _target(cloud: Cloud, index: int, port: PortOpts) -> tuple[str, list[dict[str, Any]]]:
    network_id = _network_id(cloud, index, port)
    return network_id, [_fixed_ip(cloud, network_id, fixed_ip) for fixed_ip in port.fixed_ips]


def _network_id(cloud: Cloud, index: int, port: PortOpts) -> str:
    if port.network:
        return str(network.resolve(cloud, port.network)["id"])
    return _network_of_subnets(cloud, index, port.fixed_ips)


def _network_of_subnets(cloud: Cloud, index: int, fixed_ips: Sequence[FixedIP]) -> str:
    """Return the network of the first subnet that is named without doubt (machines.md 1.4.4, rule 2)."""
    for wanted in [fixed_ip.subnet for fixed_ip in fixed_ips if fixed_ip.subnet]:
        try:
            return str(subnet.resolve(cloud, wanted)["network_id"])
        except AmbiguousMatchError:
            continue
    raise InvalidSpecError(f"spec.ports[{index}] names neither a network nor a subnet that tells one")


def _fixed_ip(cloud: Cloud, network_id: str, wanted: FixedIP) -> dict[str, Any]:
    found: dict[str, Any] = {"ipAddress": wanted.ip_address} if wanted.ip_address else {}
    if wanted.subnet:
        found["subnet"] = _subnet_id(cloud, network_id, wanted.subnet)
    return found


def _subnet_id(cloud: Cloud, network_id: str, wanted: SubnetParam) -> str:
    return str(subnet.resolve(cloud, wanted, network_id=network_id)["id"])
