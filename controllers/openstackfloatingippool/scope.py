"""The inputs of one reconcile of an OpenStackFloatingIPPool, and what its steps found for later ones."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

from api.v1alpha1 import OpenStackFloatingIPPool
from api.v1beta2.openstackcluster import NetworkStatus
from capo.engine.context import ReconcileContext
from capo.json_types import Body, Object
from capo.kube.errors import Conflict, Denied, Invalid, KubeError
from capo.kube.kinds import IP_ADDRESS, IP_ADDRESS_CLAIM
from capo.names import Stamp
from capo.openstack.cloud import Cloud
from capo.openstack.cloud_view import CloudView
from capo.openstack.kinds import FLOATING_IP
from controllers import roles
from controllers.openstackfloatingippool import ipam
from controllers.openstackfloatingippool.reservations import Reservations

KIND: Final = FLOATING_IP.name


@dataclass
class Found:
    """The results of this reconcile's steps.

    Args:
        network: the external network of new floating IPs; None until its step is done.
        is_recorded: everything that the Go provider created for the pool is recorded.
        absent: roles whose floating IP is proven absent; valid for this reconcile, which alone creates them.
        created: how many floating IPs this reconcile was about to create.
        refused: addresses that cannot be allocated, in words: they are missing, or in use.
        trouble: why claims wait, by reason and message.
        refusals: the first write that the API server refused for each claim or IPAddress, by namespace and name.
        conflicts: claims whose address is in another IPAddress, too, in words, by namespace and name.
    """

    network: NetworkStatus | None = None
    is_recorded: bool = False
    absent: set[str] = field(default_factory=set)
    created: int = 0
    refused: dict[str, str] = field(default_factory=dict)
    trouble: tuple[str, str] | None = None
    refusals: dict[ipam.Ident, KubeError] = field(default_factory=dict)
    conflicts: dict[ipam.Ident, str] = field(default_factory=dict)


@dataclass(frozen=True)
class PoolScope:
    """The pool, its cloud and the observations of it.

    Args:
        reservations: the addresses that pools of this process are allocating.
    """

    context: ReconcileContext
    pool: OpenStackFloatingIPPool
    cloud: Cloud
    cloud_view: CloudView
    reservations: Reservations
    found: Found = field(default_factory=Found)

    @property
    def cache_writer(self) -> CloudView:
        """The poller as this reconcile uses it."""
        return self.cloud_view

    @property
    def obj(self) -> Object:
        """The pool as it was read."""
        return self.context.obj

    @property
    def name(self) -> str:
        """The name of the pool."""
        return self.context.key.name

    def claims(self) -> list[Object]:
        """Return the claims of the pool, oldest first, as known now."""
        return ipam.of_pool(IP_ADDRESS_CLAIM, self.obj, self.context.deps.store)

    def addresses(self) -> list[Object]:
        """Return the IPAddresses of the pool, oldest first, as known now."""
        return ipam.of_pool(IP_ADDRESS, self.obj, self.context.deps.store)

    def unanswered(self) -> list[Object]:
        """Return the claims that wait for an IPAddress and may be handled, oldest first."""
        store = self.context.deps.store
        return [
            claim
            for claim in self.claims()
            if not ipam.is_deleting(claim)
            and ipam.address_name(claim) is None
            and ipam.address_of(claim, store) is None
            and ipam.pause_cause(claim, store) is None
        ]

    @contextmanager
    def isolated(self, obj: Object) -> Iterator[None]:
        """Note that the API server refuses a write for one claim or IPAddress, so that the others are handled."""
        try:
            yield
        except (Conflict, Denied, Invalid) as error:
            self.found.refusals.setdefault(ipam.ident(obj), error)

    def is_refused(self, obj: Object) -> bool:
        """Return whether this reconcile had a write refused for a claim, or for the IPAddress of its name."""
        return ipam.ident(obj) in self.found.refusals

    def stamp(self, role: str) -> Stamp:
        """Return the stamp of one of the pool's floating IPs."""
        return Stamp(self.context.owner, role)

    def is_own(self, body: Body) -> bool:
        """Return whether a floating IP was created for this pool: by its stamp, or as recorded at a takeover."""
        stamp = FLOATING_IP.stamp_of(body)
        if stamp is not None:
            return stamp.owner == self.context.owner
        return body["id"] in {record.id for record in self.context.ledger.records_of_kind(KIND)}

    def place(self, ip: str) -> Hashable:
        """Return an address with its project, as a key of the reservations."""
        where = self.cloud.location
        return where.auth_host, where.project_id, ip

    def floating_ips(self, *, max_age_s: float | None = None) -> list[Body]:
        """Return all floating IPs of the project.

        Raises:
            NotYetObserved: they were not listed since the pool's last write, or too long ago.
        """
        return list(self.cloud_view.list_matching(KIND, lambda _body: True, max_age_s=max_age_s))

    def known(self) -> list[Body]:
        """Return the floating IPs that were listed or created so far, also by this reconcile; sends no request."""
        return list(self.cloud_view.peek(KIND, lambda _body: True))

    def emit(self, reason: str, text: str, *, severity: str = "Normal") -> None:
        """Emit an Event on the pool."""
        self.context.deps.events.emit(self.obj, severity, reason, text)


def role_of(claim: Object) -> str:
    """Return the role of the floating IP that is created for a claim."""
    return roles.floating_ip_of(str(claim["metadata"]["uid"]))
