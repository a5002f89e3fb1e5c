"""The inputs of one reconcile of an OpenStackFloatingIPPool, and what its steps found for later ones."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

from api.v1alpha1 import OpenStackFloatingIPPool
from api.v1beta2.openstackclusterstatus import NetworkStatus
from capo import names
from capo.engine.conditions import Condition
from capo.engine.context import ReconcileContext
from capo.json_types import Body, Object
from capo.kube.errors import Conflict, Denied, Invalid, KubeError
from capo.kube.kinds import IP_ADDRESS, IP_ADDRESS_CLAIM, OPENSTACK_FLOATING_IP_POOL
from capo.ledger import location_of
from capo.names import Stamp
from capo.openstack.cloud import Cloud
from capo.openstack.cloud_view import CloudView
from capo.openstack.floating_ip import FloatingIP
from capo.openstack.kinds import FLOATING_IP
from capo.openstack.resource_cache import Index, Selection, either, found_by, with_ids
from controllers import roles
from controllers.credential_secrets import is_shared
from controllers.openstackfloatingippool import ipam
from controllers.openstackfloatingippool.reservations import Reservations

KIND: Final = FLOATING_IP.name
LOOK_S: Final = 10.0
"""An answer of Neutron that is older does not show that an address is unused: a reconcile may create 30 in a row."""


@dataclass
class Found:
    """The results of this reconcile's steps.

    Args:
        network: the external network of new floating IPs; None until its step is done.
        is_recorded: everything that the Go provider created for the pool is recorded.
        kept: uids of the claims that have our finalizer, as their last write or read shows.
        absent: roles whose floating IP is proven absent; valid for this reconcile, which alone creates them.
        created: how many floating IPs this reconcile was about to create.
        refused: addresses that cannot be allocated, in words: they are missing, or in use.
        trouble: why claims wait, by reason and message.
        refusals: the first write that the API server refused for each claim or IPAddress, by namespace and name.
        conflicts: claims whose address is in another IPAddress, too, in words, by namespace and name.
        occupied: claims whose floating IP somebody else has or uses, in words, by namespace and name.
        unused: steady seconds when Neutron last showed to this reconcile that an address leads to no port.
        are_claims_served: whether the API server serves IPAddressClaims; None until that is needed.
        pools: all pools as the API server has them; None until that is needed.
    """

    network: NetworkStatus | None = None
    is_recorded: bool = False
    kept: set[str] = field(default_factory=set)
    absent: set[str] = field(default_factory=set)
    created: int = 0
    refused: dict[str, str] = field(default_factory=dict)
    trouble: tuple[str, str] | None = None
    refusals: dict[ipam.Ident, KubeError] = field(default_factory=dict)
    conflicts: dict[ipam.Ident, str] = field(default_factory=dict)
    occupied: dict[ipam.Ident, str] = field(default_factory=dict)
    unused: dict[str, float] = field(default_factory=dict)
    are_claims_served: bool | None = None
    pools: dict[ipam.Ident, Object] | None = None


@dataclass(frozen=True)
class PoolScope:
    """The pool, its cloud and the observations of it.

    Args:
        reservations: the addresses that pools of this process are allocating.
        attention: the condition of credentials that work and need attention.
    """

    context: ReconcileContext
    pool: OpenStackFloatingIPPool
    cloud: Cloud
    cloud_view: CloudView
    reservations: Reservations
    attention: Condition | None = None
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

    def addresses_with(self, ip: str) -> list[Object]:
        """Return the IPAddresses of the pool that have an address, as known now."""
        found, mine = ipam.with_ip(ip, self.context.deps.store), ipam.ident(self.obj)
        return [each for each in found if ipam.pool_of(each) == mine]

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
        """Return whether a floating IP was created for this pool: by its stamp, or as recorded at a takeover.

        A record alone proves nothing (ADR 0001): a user may remove stamp or description to keep it.
        """
        stamp = FLOATING_IP.stamp_of(body)
        if stamp is not None:
            return stamp.owner == self.context.owner
        is_recorded = self.context.ledger.id_of(roles.floating_ip_of(body["id"])) == body["id"]
        return is_recorded and FloatingIP(body).description == names.floating_ip_description(self.name)

    def listed_pool(self, ident: ipam.Ident) -> Object | None:
        """Return a pool as the API server has it, None if there is none; one list in each reconcile."""
        if self.found.pools is None:
            deps = self.context.deps
            listed = deps.kube.list(OPENSTACK_FLOATING_IP_POOL, deps.settings.namespace or None)
            self.found.pools = {ipam.ident(pool): pool for pool in listed}
        return self.found.pools.get(ident)

    def is_located(self, pool: Object | None = None) -> bool:
        """Return whether the status of a pool, of this one without another, has the project of our credentials.

        Other pools read there which project an IPAddress is from: it is stored before this pool allocates any.
        """
        pool = pool or self.context.deps.store.get(*self.context.key)
        where, here = location_of(pool.get("status") if pool else None), self.cloud.location
        return where is not None and (where.auth_host, where.project_id) == (here.auth_host, here.project_id)

    def port_of(self, body: Body) -> str:
        """Return what a floating IP leads to, for messages: shared credentials do not show the ports of others."""
        is_shown = not is_shared(self.obj["spec"]["identityRef"])
        return f"port {FloatingIP(body).port_id}" if is_shown else "a port"

    def place(self, ip: str) -> Hashable:
        """Return an address with its project, as a key of the reservations."""
        where = self.cloud.location
        return where.auth_host, where.project_id, ip

    def note_unused(self, ip: str) -> None:
        """Note that Neutron just showed that an address leads to no port."""
        self.found.unused[ip] = self.context.deps.clock.now()

    def is_unused(self, ip: str) -> bool:
        """Return whether Neutron showed a moment ago that an address leads to no port."""
        seen_s = self.found.unused.get(ip)
        return seen_s is not None and self.context.deps.clock.now() - seen_s <= LOOK_S

    def floating_ips(self, *, max_age_s: float | None = None, also: Iterable[str] = ()) -> list[Body]:
        """Return the floating IPs of the project that may concern the pool.

        They are created or recorded for it, have its tag, or one of the addresses that its spec prepares.

        Args:
            also: more addresses, in their usual spelling.

        Raises:
            NotYetObserved: they were not listed since the pool's last write, or too long ago.
        """
        among = either(self._concerned(), found_by(_BY_IP, *also))
        return list(self.cloud_view.list_matching(KIND, max_age_s=max_age_s, among=among))

    def known(self) -> list[Body]:
        """Return those that were listed or created so far, also by this reconcile; sends no request."""
        return list(self.cloud_view.peek(KIND, among=self._concerned()))

    def _concerned(self) -> Selection:
        owner, recorded = self.context.owner, self.context.ledger.records_of_kind(KIND)
        return either(
            lambda cache: cache.of_owner(owner),
            with_ids([record.id for record in recorded]),
            found_by(_BY_TAG, names.floating_ip_tag(self.name)),
            found_by(_BY_IP, *ipam.in_order(self.pool.spec.pre_allocated_floating_ips)),
        )

    def known_with(self, ip: str) -> list[Body]:
        """Return the known floating IPs that have an address, whatever their owner; sends no request."""
        return list(self.cloud_view.peek(KIND, among=found_by(_BY_IP, ip)))

    def born_for(self, role: str) -> list[Body]:
        """Return the floating IPs that were created for a claim; two after a create that took effect twice.

        Raises:
            NotYetObserved: as :meth:`floating_ips`.
        """
        return list(self.cloud_view.list_matching(KIND, among=found_by(_BY_STAMP, self.stamp(role))))

    def emit(self, reason: str, text: str, *, severity: str = "Normal") -> None:
        """Emit an Event on the pool."""
        self.context.deps.events.emit(self.obj, severity, reason, text)


def ip_in(body: Body) -> str:
    """Return the address of a floating IP in its usual spelling."""
    return ipam.spelt(FloatingIP(body).address)


_BY_IP: Final = Index(lambda body: [ip_in(body)])
_BY_TAG: Final = Index(lambda body: FloatingIP(body).tags)
_BY_STAMP: Final = Index(lambda body: [stamp] if (stamp := FLOATING_IP.stamp_of(body)) else [])


def role_of(claim: Object) -> str:
    """Return the role of the floating IP that is created for a claim."""
    return roles.floating_ip_of(str(claim["metadata"]["uid"]))
