"""Resolve the references of a spec to ids, which are pinned in ``status.resolved`` and never resolved again.

Each of the four parts (server group, image, flavor, ports) is resolved separately: a result is kept even if other parts
fail. Source: docs/explanation/go-provider.md, G-19 to G-21.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from api.v1alpha1.openstackserver import OpenStackServerSpec, ResolvedServerSpec
from api.v1beta2.port import FixedIP, PortOpts
from capo import names
from capo.engine import conditions
from capo.engine.steps import Done, Outcome, Wait
from capo.errors import (
    AmbiguousMatchError,
    CapoError,
    IdentityError,
    InvalidSpecError,
    NotAuthorizedError,
    TerminalError,
    UnsupportedByCloudError,
)
from capo.openstack import extension, flavor, image, network, security_group, server_group, subnet
from capo.openstack.cloud import Cloud
from controllers import orc_images, roles
from controllers.openstackserver import preflight
from controllers.openstackserver.scope import ServerScope


@dataclass(frozen=True)
class Part:
    """One of the four parts.

    Args:
        name: in messages.
        field: of ``status.resolved``.
        is_known: returns whether an earlier reconcile resolved it.
        find: returns the value of the field, or what to wait for.
    """

    name: str
    field: str
    is_known: Callable[[OpenStackServerSpec, ResolvedServerSpec], bool]
    find: Callable[[ServerScope], Any]


@dataclass(frozen=True)
class Resolution:
    """The result of resolving.

    Args:
        fields: what this reconcile resolved, as fields of ``status.resolved``.
        waits: what to wait for, by the name of the part.
        errors: failures, by the name of the part.
    """

    fields: Mapping[str, Any]
    waits: Mapping[str, Wait]
    errors: Mapping[str, CapoError]

    @property
    def error(self) -> CapoError | None:
        """All failures joined without duplicates; None without any. Refused credentials hide all others."""
        if not self.errors:
            return None
        first, *others = sorted(self.errors.values(), key=_urgency)
        if _is_refusal(first):
            return first
        also = {each.message: f"{each.reason}: {each.message}" for each in others if each.message != first.message}
        joined = copy.copy(first)
        joined.message = "; also ".join([first.message, *also.values()])
        return joined

    @property
    def wait(self) -> Wait | None:
        """All waits as one; None without any."""
        if not self.waits:
            return None
        first = min(self.waits.values(), key=lambda wait: wait.reason != orc_images.FAILED)
        message = "; ".join(f"{name}: {wait.message}" for name, wait in self.waits.items())
        return Wait(first.reason, message, first.after_s)


def _urgency(error: CapoError) -> int:
    """Order errors: refused credentials, then those that may heal, then those that need an edit."""
    return 0 if _is_refusal(error) else 1 + isinstance(error, TerminalError)


def _is_refusal(error: CapoError) -> bool:
    return isinstance(error, NotAuthorizedError | IdentityError)


def resolve_references(scope: ServerScope) -> Outcome:
    """Resolve every reference of the spec and pin the ids before any resource is created from them.

    A spec that is certain to be refused creates nothing. A server found by its stamp (the object was moved, its status
    lost) needs no references.
    """
    ledger = scope.context.ledger
    is_begun = bool(ledger.records or ledger.pending)
    if scope.known_server_id is not None or (is_begun and is_whole(scope.server.spec, scope.resolved)):
        return Done()
    found = resolve(scope)
    if found.fields:
        scope.context.pinned["resolved"] = pinned(scope.resolved or ResolvedServerSpec(), **found.fields)
    found = found if is_begun else _with_limits(scope, found)
    if (found.error or found.wait) and _may_be_there(scope) and scope.cloud_view.find("server", roles.SERVER):
        return Done()
    if found.error:
        raise found.error
    return found.wait or Done()


def pinned(known: ResolvedServerSpec, **fields: Any) -> dict[str, Any]:
    """Return ``status.resolved`` with some of its fields replaced."""
    merged = ResolvedServerSpec.model_validate({**known.to_dict(), **fields})
    return merged.model_dump(by_alias=True, exclude_none=True, exclude_defaults=True)


def _with_limits(scope: ServerScope, found: Resolution) -> Resolution:
    """Return the resolution with the error for a spec that is certain to be refused."""
    try:
        preflight.check(scope)
    except CapoError as error:
        return replace(found, errors={**found.errors, "Limits": error})
    return found


def _may_be_there(scope: ServerScope) -> bool:
    """Return whether an unrecorded server may exist: the status shows no earlier reconcile that came so far."""
    shown = scope.context.obj.get("status", {}).get("conditions") or ()
    return not scope.context.is_newborn and conditions.find(shown, "DependenciesResolved") is None


def resolve(scope: ServerScope) -> Resolution:
    """Resolve the references that are not resolved yet.

    Raises:
        InvalidSpecError: the spec has no port.
    """
    spec = scope.server.spec
    if not spec.ports:
        raise InvalidSpecError("spec.ports is empty: a server needs at least one port")
    known = scope.resolved or ResolvedServerSpec()
    fields: dict[str, Any] = {}
    waits: dict[str, Wait] = {}
    errors: dict[str, CapoError] = {}
    for part in [part for part in PARTS if not part.is_known(spec, known)]:
        try:
            found = part.find(scope)
        except CapoError as error:
            errors[part.name] = error
            continue
        if isinstance(found, Wait):
            waits[part.name] = found
        else:
            fields[part.field] = found
    return Resolution(fields, waits, errors)


def is_whole(spec: OpenStackServerSpec, resolved: ResolvedServerSpec | None) -> bool:
    """Return whether every reference of a spec is resolved."""
    return resolved is not None and all(part.is_known(spec, resolved) for part in PARTS)


def _server_group(scope: ServerScope) -> str:
    wanted = scope.server.spec.server_group
    return server_group.resolve(scope.cloud, wanted) if wanted else ""


def _image(scope: ServerScope) -> str | Wait:
    wanted = scope.server.spec.image
    if wanted.image_ref is not None:
        return orc_images.image_id(scope.context.deps, scope.namespace, wanted.image_ref.name)
    return image.resolve(scope.cloud, wanted)


def _flavor(scope: ServerScope) -> str:
    spec = scope.server.spec
    return flavor.resolve(scope.cloud, id_=spec.flavor_id, name=spec.flavor)


def _ports(scope: ServerScope) -> list[dict[str, Any]]:
    found = [_port(scope, index, port) for index, port in enumerate(scope.server.spec.ports)]
    if any(port["trunk"] for port in found) and not extension.is_there(scope.cloud, extension.TRUNK):
        raise UnsupportedByCloudError(
            "a port asks for a trunk, and the cloud's Neutron has no extension `trunk`",
            next_step="Set trunk to false, or have the cloud's administrator enable trunks.",
        )
    return found


PARTS: Final = (
    Part(
        "ServerGroup",
        "serverGroupID",
        lambda spec, known: spec.server_group is None or bool(known.server_group_id),
        _server_group,
    ),
    Part("Image", "imageID", lambda _, known: bool(known.image_id), _image),
    Part("Flavor", "flavorID", lambda _, known: bool(known.flavor_id), _flavor),
    Part("Ports", "ports", lambda spec, known: len(known.ports) == len(spec.ports), _ports),
)


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
        "securityGroups": security_group.resolve(scope.cloud, groups) if groups else [],
        "tags": list(dict.fromkeys([*spec.tags, *port.tags])),
        "trunk": port.trunk if port.trunk is not None else (spec.trunk or None),
    }


_NOT_COPIED = {"network", "fixed_ips", "security_groups", "tags", "trunk", "name_suffix", "description"}


def _cluster_name(scope: ServerScope) -> str:
    return str((scope.context.obj["metadata"].get("labels") or {}).get(names.CLUSTER_NAME_LABEL, ""))


def _target(cloud: Cloud, index: int, port: PortOpts) -> tuple[str, list[dict[str, Any]]]:
    network_id = _network_id(cloud, index, port)
    return network_id, [_fixed_ip(cloud, network_id, fixed_ip) for fixed_ip in port.fixed_ips]


def _network_id(cloud: Cloud, index: int, port: PortOpts) -> str:
    if port.network:
        return str(network.resolve(cloud, port.network)["id"])
    return _network_of_subnets(cloud, index, port.fixed_ips)


def _network_of_subnets(cloud: Cloud, index: int, fixed_ips: Sequence[FixedIP]) -> str:
    """Return the network of the first subnet that is named unambiguously (G-21)."""
    for wanted in [fixed_ip.subnet for fixed_ip in fixed_ips if fixed_ip.subnet]:
        try:
            return subnet.Subnet(subnet.resolve(cloud, wanted)).network_id
        except AmbiguousMatchError:
            continue
    raise InvalidSpecError(f"spec.ports[{index}] names neither a network nor a subnet of a single network")


def _fixed_ip(cloud: Cloud, network_id: str, wanted: FixedIP) -> dict[str, Any]:
    found: dict[str, Any] = {"ipAddress": wanted.ip_address} if wanted.ip_address else {}
    if wanted.subnet:
        found["subnet"] = str(subnet.resolve(cloud, wanted.subnet, network_id=network_id)["id"])
    return found
