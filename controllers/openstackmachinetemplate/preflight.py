"""Whether what a template names exists in the project, before machines are created from it.

Missing is what a complete list lacks. A refusal, an outage, an answer that fits several resources, or an image that ORC
does not have yet prove nothing: they are Unknown.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Final

from api.v1beta2.server import VolumeAvailabilityZone
from capo.engine import overall
from capo.engine.steps import Done, Outcome, Wait
from capo.errors import (
    CapoError,
    IdentityError,
    KeyPairNotFoundError,
    NotAuthorizedError,
    ReferenceNotFoundError,
    ServerGroupNotFoundError,
    TerminalError,
)
from capo.openstack import availability_zone, key_pair, network, security_group, server_group, subnet, volume_type
from controllers.openstackmachinetemplate.scope import TemplateScope

MISSING: Final = "ReferencesMissing"
UNKNOWN: Final = "ReferencesUnknown"
MISSING_S: Final = 300.0
"""Pause before something that does not exist is looked for again; an edit or an annotation ends it."""
MAX_TOLD: Final = 10
MAX_WORDS: Final = 300

Look = Callable[[], Wait | None]
"""Looks a resource up: None if it exists; a wait if that is not known yet; raises if not."""


def ensure_references(scope: TemplateScope) -> Outcome:
    """Report whether flavor, image, networks, key pair, groups, zones and volume types exist."""
    missing, unknown = [], []
    for what, look in _looks(scope):
        try:
            if wait := look():
                unknown.append(f"{what}: {wait.message}")
        except (IdentityError, NotAuthorizedError):
            raise
        except (ReferenceNotFoundError, TerminalError) as error:
            missing.append(f"{what}: {_message(scope, error)}")
        except CapoError as error:
            unknown.append(f"{what}: {error.reason}: {_message(scope, error)}")
    if missing:
        return Wait(MISSING, _words([*missing, *unknown]), MISSING_S)
    return Wait(UNKNOWN, _words(unknown), status="Unknown") if unknown else Done()


def _message(scope: TemplateScope, error: CapoError) -> str:
    return overall.for_user(error, str(scope.key), is_shared=scope.is_shared).message


def _words(parts: list[str]) -> str:
    """Return what is missing or not known, cut: clouds and tenants choose the words."""
    told = [part if len(part) <= MAX_WORDS else f"{part[:MAX_WORDS]}..." for part in parts[:MAX_TOLD]]
    return "; ".join([*told, *([f"and {len(parts) - MAX_TOLD} more"] if len(parts) > MAX_TOLD else [])])


def _looks(scope: TemplateScope) -> Iterator[tuple[str, Look]]:
    spec, cloud = scope.spec, scope.cloud
    yield "flavor", partial(_find, scope.flavor)
    yield "image", partial(_find, scope.image)
    if spec.ssh_key_name:
        error: CapoError = KeyPairNotFoundError(f"the user of the credentials has no key pair {spec.ssh_key_name}")
        yield "key pair", partial(_expect, key_pair.is_listed, cloud, spec.ssh_key_name, error=error)
    if spec.server_group is not None:
        error = ServerGroupNotFoundError("the project has no such server group")
        name = spec.server_group.id or (spec.server_group.filter.name if spec.server_group.filter else None)
        yield f"server group {name}", partial(_expect, server_group.is_listed, cloud, spec.server_group, error=error)
    yield from _of_ports(scope)
    yield from _of_volumes(scope)
    for zone in scope.zones:
        error = ReferenceNotFoundError("Nova has no such zone")
        yield f"availability zone {zone}", partial(_expect, availability_zone.is_listed, cloud, zone, error=error)


def _of_ports(scope: TemplateScope) -> Iterator[tuple[str, Look]]:
    """Yield the networks, subnets and groups of ports. Without a network a port is in that of the cluster."""
    cloud = scope.cloud
    for group in scope.spec.security_groups:
        yield "security group", partial(_find, security_group.listed, cloud, group)
    for index, port in enumerate(scope.spec.ports):
        where = f"ports[{index}]"
        if port.network is not None:
            yield f"{where}: network", partial(_find, network.listed, cloud, port.network)
        for wanted in (each.subnet for each in port.fixed_ips if each.subnet):
            yield f"{where}: subnet", partial(_find, subnet.listed, cloud, wanted)
        for group in port.security_groups:
            yield f"{where}: security group", partial(_find, security_group.listed, cloud, group)


def _of_volumes(scope: TemplateScope) -> Iterator[tuple[str, Look]]:
    """Yield the types and the zones of volumes."""
    cloud, root = scope.cloud, scope.spec.root_volume
    devices = scope.spec.additional_block_devices
    volumes = [each.storage.volume for each in devices if each.storage.type == "Volume" and each.storage.volume]
    for volume in [*([root] if root else []), *volumes]:
        if volume.type:
            error = ReferenceNotFoundError("Cinder has no such type")
            yield f"volume type {volume.type}", partial(_expect, volume_type.is_listed, cloud, volume.type, error=error)
        for zone in _zones(volume.availability_zone, scope):
            error = ReferenceNotFoundError("Cinder has no such zone")
            look = partial(_expect, volume_type.is_zone_listed, cloud, zone, error=error)
            yield f"availability zone {zone} of volumes", look


def _find(look: Callable[..., object], *arguments: object) -> Wait | None:
    """Look something up that raises if it is missing."""
    found = look(*arguments)
    return found if isinstance(found, Wait) else None


def _expect(is_listed: Callable[..., bool], *arguments: object, error: CapoError) -> None:
    if not is_listed(*arguments):
        raise error


def _zones(wanted: VolumeAvailabilityZone | None, scope: TemplateScope) -> Sequence[str]:
    """Return the zones in which a volume will be, depending on the machine; none if Cinder decides."""
    if wanted is None:
        return ()
    if wanted.from_ == "Machine":
        return scope.zones_of_machines
    return (wanted.name,) if wanted.name else ()
