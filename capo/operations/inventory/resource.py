"""One resource of a project, with what an operator asks about it; pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from capo.json_types import Body, Json
from capo.names import Stamp
from capo.openstack import view
from capo.openstack.floating_ip import FloatingIP
from capo.openstack.kinds import KINDS
from capo.openstack.load_balancer import LoadBalancer, Member, Pool
from capo.openstack.port import Port
from capo.openstack.router import Router
from capo.openstack.security_group import SecurityGroup
from capo.openstack.server import Server
from capo.openstack.server_group import ServerGroup
from capo.openstack.subnet import Subnet
from capo.openstack.volume import Volume

MEMBER: Final = "member"
"""Members of pools are listed per pool, so they are no kind of their own elsewhere."""
_GIB: Final = 1024


class _Common(view.View):
    id = view.text("id")
    name = view.text("name")
    description = view.text("description")
    status = view.text("status")
    provisioning_status = view.text("provisioning_status")
    operating_status = view.text("operating_status")
    created = view.optional_text("created")
    created_at = view.optional_text("created_at")
    zone = view.optional_text("availability_zone")
    zones = view.texts("availability_zones")


class _Flavor(view.View):
    name = view.text("flavor", "original_name")
    vcpus = view.number("flavor", "vcpus")
    ram_mib = view.number("flavor", "ram")
    disk_gib = view.number("flavor", "disk")
    is_volume_backed = view.optional_mapping("image")


class _VolumeType(view.View):
    volume_type = view.text("volume_type")


class _Provider(view.View):
    provider = view.text("provider")
    flavor_id = view.text("flavor_id")


@dataclass(frozen=True)
class Size:
    """What a resource costs its project.

    Args:
        detail: what else its price depends on: a flavor, a type, a provider, a number of parts.
    """

    vcpus: int = 0
    ram_mib: int = 0
    disk_gib: int = 0
    volume_gib: int = 0
    floating_ips: int = 0
    load_balancers: int = 0
    servers: int = 0
    detail: str = ""

    def __add__(self, other: Size) -> Size:
        """Return the sum, without details."""
        return Size(**{name: value + getattr(other, name) for name, value in self.numbers().items()})

    def numbers(self) -> dict[str, int]:
        """Return all numbers, also those that are zero."""
        return {name: value for name, value in vars(self).items() if name != "detail"}

    def to_json(self) -> Json:
        """Return the numbers that are not zero, and the detail."""
        detail = {"detail": self.detail} if self.detail else {}
        return {_camel(name): value for name, value in self.numbers().items() if value} | detail

    def __str__(self) -> str:
        """Return it as a cell of a table."""
        compute = [f"{self.vcpus} vCPU", f"{_ram(self.ram_mib)} RAM"] if self.vcpus else []
        disks = [f"{self.disk_gib} GiB disk"] if self.disk_gib else []
        volume = [f"{self.volume_gib} GiB"] if self.volume_gib else []
        return ", ".join([*filter(None, [self.detail]), *compute, *disks, *volume])

    def total(self) -> str:
        """Return it as the total of many resources."""
        counted = (
            (self.servers, "server"),
            (self.load_balancers, "load balancer"),
            (self.floating_ips, "floating IP"),
        )
        counts = [f"{number} {word}{'' if number == 1 else 's'}" for number, word in counted if number]
        compute = [f"{self.vcpus} vCPU", f"{_ram(self.ram_mib)} RAM"] if self.vcpus else []
        volumes = [f"{self.volume_gib} GiB of volumes"] if self.volume_gib else []
        return ", ".join([*counts, *compute, *volumes])


def _camel(name: str) -> str:
    first, *more = name.split("_")
    return first + "".join(each.capitalize() for each in more)


def _ram(mib: int) -> str:
    return f"{mib // _GIB} GiB" if mib % _GIB == 0 else f"{mib} MiB"


@dataclass(frozen=True, eq=False)
class Resource:
    """A resource as a list showed it.

    Args:
        kind: one of :data:`KINDS`, or a member.
        location: of its project.
        age_s: by the clock of its service; None if it does not date the kind.
    """

    kind: str
    location: str
    body: Body
    age_s: float | None = None

    @property
    def id(self) -> str:
        """Its id."""
        return str(self.body["id"])

    @property
    def key(self) -> tuple[str, str, str]:
        """What identifies it among the resources of all projects."""
        return self.location, self.kind, self.id

    @property
    def word(self) -> str:
        """Its kind, as people write it."""
        return "floating IP" if self.kind == "floating_ip" else self.kind.replace("_", " ")

    @property
    def name(self) -> str:
        """Its name; the address of a floating IP, which has none."""
        return _Common(self.body).name or FloatingIP(self.body).address

    @property
    def description(self) -> str:
        """Its description."""
        return _Common(self.body).description

    @cached_property
    def stamp(self) -> Stamp | None:
        """The stamp of its owner, None without one."""
        kind = KINDS.get("pool" if self.kind == MEMBER else self.kind)
        return kind.stamp_of(self.body) if kind else None

    @property
    def created(self) -> str | None:
        """When it was created, as its service writes it; None for kinds without a date."""
        common = _Common(self.body)
        return common.created or common.created_at

    @property
    def state(self) -> str:
        """Its state in the words of its service; empty for kinds without one."""
        common, task = _Common(self.body), Server(self.body).task_state
        if not common.provisioning_status:
            return f"{common.status.upper()}{f' ({task})' if task else ''}"
        is_plain = common.operating_status in ("", "ONLINE", "NO_MONITOR")
        return common.provisioning_status + ("" if is_plain else f"/{common.operating_status}")

    @property
    def zone(self) -> str:
        """The availability zone of the resource or, if it spans several, all of them."""
        common = _Common(self.body)
        return Server(self.body).availability_zone or common.zone or ",".join(common.zones)

    @property
    def addresses(self) -> list[str]:
        """Its IP addresses; the CIDR of a subnet."""
        found = _ADDRESSES.get(self.kind)
        return found(self.body) if found else []

    @property
    def size(self) -> Size:
        """What it costs."""
        found = _SIZES.get(self.kind)
        return found(self.body) if found else Size()


def _server_addresses(body: Body) -> list[str]:
    networks = Server(body).addresses or {}
    entries = (entry for entries in networks.values() if isinstance(entries, list) for entry in entries)
    return [str(entry["addr"]) for entry in entries if isinstance(entry, Mapping) and "addr" in entry]


_ADDRESSES: Final[Mapping[str, Any]] = {
    "server": _server_addresses,
    "port": lambda body: [each.ip_address for each in Port(body).fixed_ips],
    "floating_ip": lambda body: [FloatingIP(body).address],
    "load_balancer": lambda body: LoadBalancer(body).vip_addresses,
    "router": lambda body: [each.ip_address for each in Router(body).external_fixed_ips],
    "subnet": lambda body: [Subnet(body).cidr],
    MEMBER: lambda body: [Member(body).address],
}


def _server_size(body: Body) -> Size:
    flavor = _Flavor(body)
    # A server that boots from a volume has no disk on its host but those of its flavor's ephemeral part.
    disk_gib = flavor.disk_gib or 0 if flavor.is_volume_backed else 0
    return Size(flavor.vcpus or 0, flavor.ram_mib or 0, disk_gib, servers=1, detail=flavor.name)


def _load_balancer_size(body: Body) -> Size:
    found = _Provider(body)
    flavor = f"flavor {found.flavor_id}" if found.flavor_id else ""
    return Size(load_balancers=1, detail=", ".join(filter(None, [found.provider, flavor])))


_SIZES: Final[Mapping[str, Any]] = {
    "server": _server_size,
    "volume": lambda body: Size(volume_gib=Volume(body).size_gib or 0, detail=_VolumeType(body).volume_type),
    "floating_ip": lambda _body: Size(floating_ips=1),
    "load_balancer": _load_balancer_size,
    "security_group": lambda body: Size(detail=_count(SecurityGroup(body).rules, "rule")),
    "server_group": lambda body: Size(detail=_count(ServerGroup(body).members or (), "member")),
    "pool": lambda body: Size(detail=_count(Pool(body).members, "member")),
}


def _count(parts: Any, word: str) -> str:
    return f"{len(parts)} {word}{'' if len(parts) == 1 else 's'}"
