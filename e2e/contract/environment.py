"""The tools of a test: a plain member's cloud, builders with good defaults, waiting, refusals."""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import secrets
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

from capo.errors import CapoError, NotFoundError
from capo.json_types import Body
from capo.names import Stamp
from capo.openstack import faults, load_balancer, network, port, security_group, server, subnet, volume
from capo.openstack.cloud import Cloud
from capo.openstack.kinds import CINDER, NOVA
from capo.openstack.load_balancer import WantedListener, WantedLoadBalancer, WantedPool
from capo.openstack.network import WantedNetwork
from capo.openstack.port import WantedPort
from capo.openstack.security_group import WantedSecurityGroup
from capo.openstack.server import BlockDevice, WantedServer
from capo.openstack.subnet import WantedSubnet
from capo.openstack.volume import WantedVolume
from e2e.contract.recordings import Recorder
from environments import sweep, tenancy
from environments.manager_process import NotReachedError
from environments.targets import Target
from environments.tenancy import LIMITS, Tenant
from environments.wire import Exchange, TappedSession, Wire

T = TypeVar("T")
LIMIT_S: Final = 120.0
SLOWING: Final = 1.2
SLOWEST: Final = 5
"""The poll interval grows up to this factor: on a busy machine polls cost more than the operation."""
UNKNOWN: Final = "00000000-0000-4000-8000-000000000000"
"""An id of no resource."""
CIDR: Final = "10.6.0.0/20"
POOL: Final = ("10.6.0.2", "10.6.7.254")
"""Allocation pool of the run's networks; tests request addresses above it, which nothing else uses."""


@dataclass(frozen=True)
class Refusal:
    """A refusal of the cloud.

    Args:
        error: the provider's error for it.
        words: the cloud's, ids and the like included.
    """

    error: CapoError
    status: int
    words: str


@dataclass
class ContractSession:
    """The resources that all tests of a run share.

    Args:
        run: prefix of all names that this run uses.
        tenant: the plain member as whom tests act.
        stranger: a plain member of another project, whose quotas are zero.
        shared: by name, resources that take long to create and that no test changes.
    """

    target: Target
    wire: Wire
    recorder: Recorder
    run: str
    admin: Cloud
    tenant: Tenant
    stranger: Tenant
    network: Body = field(default_factory=dict)
    subnet: Body = field(default_factory=dict)
    external: Body = field(default_factory=dict)
    image_id: str = ""
    flavor_id: str = ""
    shared: dict[str, Any] = field(default_factory=dict)
    numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))


class ContractEnvironment:
    """The tools of one test.

    Args:
        module: of the test, for recordings.
        test: its name.
    """

    def __init__(self, ground: ContractSession, module: str, test: str) -> None:
        self.ground = ground
        self.cloud = ground.tenant.cloud
        self.admin = ground.admin
        self.stranger = ground.stranger.cloud
        self.network_id: str = ground.network["id"]
        self.subnet_id: str = ground.subnet["id"]
        self.external_id: str = ground.external["id"]
        self.image_id = ground.image_id
        self.flavor_id = ground.flavor_id
        self._test = (module, test)
        self._undo: list[Callable[[], object]] = []
        ground.recorder.begin(module, test)

    # -- names -------------------------------------------------------------------------------------------------------

    def name(self) -> str:
        """Return an unused name."""
        return f"{self.ground.run}-{next(self.ground.numbers)}"

    def stamp(self, role: str = "it") -> Stamp:
        """Return an unused owner's stamp."""
        return Stamp("".join(secrets.choice("abcdefghijklmnopqrstuvwxyz234567") for _ in range(13)), role)

    def shared(self, name: str, make: Callable[[], T]) -> T:
        """Return a shared resource, created on first use; it stays until the end of the run."""
        if name not in self.ground.shared:
            self.ground.shared[name] = make()
        found: T = self.ground.shared[name]
        return found

    # -- resources with good defaults --------------------------------------------------------------------------------

    def network(self, **wishes: Any) -> Body:
        """Create a network."""
        return network.create(self.cloud, WantedNetwork(**{"stamp": self.stamp(), "name": self.name(), **wishes}))

    def subnet(self, network_id: str, **wishes: Any) -> Body:
        """Create a subnet."""
        defaults = {"stamp": self.stamp(), "name": self.name(), "network_id": network_id, "cidr": CIDR}
        return subnet.create(self.cloud, WantedSubnet(**{**defaults, **wishes}))

    def wanted_port(self, **wishes: Any) -> WantedPort:
        """Return the ``WantedPort`` of a port on the run's network."""
        defaults = {"stamp": self.stamp("port-0"), "name": self.name(), "network_id": self.network_id}
        return WantedPort(**{**defaults, **wishes})

    def port(self, **wishes: Any) -> Body:
        """Create a port on the run's network."""
        return port.create(self.cloud, self.wanted_port(**wishes))

    def show_port(self, port_id: str) -> Body:
        """Return a port as it is now."""
        found: Body = self.cloud.get("network", f"/ports/{port_id}")["port"]
        return found

    def security_group(self, **wishes: Any) -> Body:
        """Create a security group."""
        wanted = WantedSecurityGroup(**{"stamp": self.stamp(), "name": self.name(), **wishes})
        return security_group.create(self.cloud, wanted)

    def wanted_server(self, **wishes: Any) -> WantedServer:
        """Return the ``WantedServer`` of a small server on a new port, or on the given ones."""
        image_id = wishes.get("image_id", self.image_id)
        defaults = {
            "stamp": self.stamp("server"),
            "name": self.name(),
            "flavor_id": self.flavor_id,
            "image_id": image_id,
            "block_devices": (BlockDevice.image(image_id),) if image_id else (),
        }
        if "port_ids" not in wishes:
            wishes = {**wishes, "port_ids": (self.port()["id"],)}
        return WantedServer(**{**defaults, **wishes})

    def server(self, **wishes: Any) -> Body:
        """Create a server; it is deleted after the test."""
        made = server.create(self.cloud, self.wanted_server(**wishes))
        self.later(lambda: server.delete(self.cloud, made["id"]))
        return made

    def active_server(self, **wishes: Any) -> Body:
        """Create a server and wait until it is ACTIVE; return it as Nova shows it then."""
        made = self.server(**wishes)
        return self.when(lambda: self.show_server(made["id"]), status="ACTIVE")

    def show_server(self, server_id: str) -> Body:
        """Return a server as it is now."""
        found: Body = self.cloud.get("compute", f"/servers/{server_id}", microversion=NOVA)["server"]
        return found

    def volume(self, **wishes: Any) -> Body:
        """Create a volume; it is deleted after the test."""
        wanted = WantedVolume(**{"stamp": self.stamp(), "name": self.name(), "size_gib": 1, **wishes})
        made = volume.create(self.cloud, wanted)
        self.later(lambda: volume.delete(self.cloud, made["id"]))
        return made

    def available_volume(self, **wishes: Any) -> Body:
        """Create a volume and wait until it is available."""
        made = self.volume(**wishes)
        return self.when(lambda: self.show_volume(made["id"]), status="available")

    def show_volume(self, volume_id: str) -> Body:
        """Return a volume as it is now."""
        found: Body = self.cloud.get("volume", f"/volumes/{volume_id}", microversion=CINDER)["volume"]
        return found

    def wanted_listener(self, port_: int = 6443, **wishes: Any) -> WantedListener:
        """Return the ``WantedListener`` of a listener with a pool."""
        name = self.name()
        pool = WantedPool(self.stamp(f"pool-{port_}"), name)
        listener = WantedListener(self.stamp(f"listener-{port_}"), name, port_, pool)
        return dataclasses.replace(listener, **wishes)

    def wanted_load_balancer(self, **wishes: Any) -> WantedLoadBalancer:
        """Return the ``WantedLoadBalancer`` of a load balancer on the run's subnet, without listeners."""
        defaults = {
            "stamp": self.stamp("lb"),
            "name": self.name(),
            "description": "made by the contract suite",
            "vip_network_id": self.network_id,
            "vip_subnet_id": self.subnet_id,
            "listeners": (),
        }
        return WantedLoadBalancer(**{**defaults, **wishes})

    def load_balancer(self, **wishes: Any) -> Body:
        """Create a load balancer; it is deleted after the test."""
        made = load_balancer.create(self.cloud, self.wanted_load_balancer(**wishes))
        self.later(lambda: self.delete_load_balancer(made["id"]))
        return made

    def active_load_balancer(self, **wishes: Any) -> Body:
        """Create a load balancer and wait until it is ACTIVE."""
        return self.settled(self.load_balancer(**wishes)["id"])

    def delete_load_balancer(self, load_balancer_id: str) -> None:
        """Delete a load balancer with its children, as soon as it is not immutable."""
        if not self.is_gone(lambda: self.settled(load_balancer_id)):
            load_balancer.delete(self.cloud, load_balancer_id)

    def show_load_balancer(self, load_balancer_id: str) -> Body:
        """Return a load balancer as it is now."""
        found: Body = self.cloud.get("load-balancer", f"/lbaas/loadbalancers/{load_balancer_id}")["loadbalancer"]
        return found

    def settled(self, load_balancer_id: str) -> Body:
        """Wait until a load balancer can be changed; return it."""
        return self.when(lambda: self.show_load_balancer(load_balancer_id), provisioning_status="ACTIVE")

    # -- waiting -----------------------------------------------------------------------------------------------------

    def when(self, look: Callable[[], Body], **wanted: Any) -> Body:
        """Wait until fields have values; return the resource as it is then."""
        return self.wait_until(look, lambda body: all(body[name] == value for name, value in wanted.items()))

    def wait_until(self, look: Callable[[], T], is_reached: Callable[[T], object]) -> T:
        """Poll until a condition holds; return the last result."""
        ends_s, pause_s = time.monotonic() + LIMIT_S, self.ground.target.every_s
        while not is_reached(seen := look()):
            if isinstance(seen, dict) and "ERROR" in (seen.get("status"), seen.get("provisioning_status")):
                raise AssertionError(f"in ERROR: {seen}")
            if time.monotonic() > ends_s:
                raise NotReachedError(f"not within {LIMIT_S:.0f} s; last seen {seen!r}")
            time.sleep(pause_s)
            pause_s = min(pause_s * SLOWING, self.ground.target.every_s * SLOWEST)
        return seen

    def held(self) -> contextlib.AbstractContextManager[None]:
        """Hold all operations that begin in a block, so that a test can read the intermediate state."""
        return self.ground.target.held()

    def history(self, look: Callable[[], Body], field_: str, last: str, *, first: str) -> list[str]:
        """Return the values that a field has one after the other, from the first one read until the last."""
        seen = [first]

        def is_reached(body: Body) -> bool:
            if seen[-1] != body[field_]:
                seen.append(body[field_])
            return seen[-1] == last

        self.wait_until(look, is_reached)
        return seen

    def gone(self, look: Callable[[], object]) -> None:
        """Wait until a resource is not found any more."""
        self.wait_until(lambda: self.is_gone(look), lambda is_gone: is_gone)

    def is_gone(self, look: Callable[[], object]) -> bool:
        """Return whether a resource is not found."""
        try:
            look()
        except NotFoundError:
            return True
        return False

    # -- refusals and deferred calls -----------------------------------------------------------------------------------

    def refused(self, call: Callable[[], object]) -> Refusal:
        """Expect a call to be refused; compare the whole answer with the recordings."""
        self.ground.wire.last = None
        error = self._error_of(call)
        exchange = self.last
        assert exchange.status >= 400, f"not refused by the cloud but by the provider: {error!r}"
        self.ground.recorder.refuse(*self._test, exchange)
        return Refusal(error, exchange.status, error.message)

    def refused_or_empty(self, ask: Callable[[], list[Body]]) -> None:
        """Expect a list to be refused or empty; compare a refusal with the recordings."""
        try:
            found = ask()
        except CapoError:
            self.refused(ask)
        else:
            assert found == []

    @staticmethod
    def _error_of(call: Callable[[], object]) -> CapoError:
        try:
            answer = call()
        except CapoError as error:
            return error
        raise AssertionError(f"not refused: {answer!r}")

    def raw(
        self,
        method: str,
        service: str,
        path: str,
        *,
        token: str | None = None,
        data: str | None = None,
        version: str | None = None,
    ) -> Body:
        """Send what the provider's client would not: another token, a body that is no JSON, a version that is none.

        Args:
            token: None for the member's own.
            data: the body as text, None for none.
            version: the microversion as its header has it, None for none.
        """
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        if version is not None:
            headers["OpenStack-API-Version"] = version
        headers["X-Auth-Token"] = self.token() if token is None else token
        session = TappedSession(self.ground.wire, LIMITS)
        with contextlib.closing(session):
            response = session.request(method, f"{self.endpoint(service)}{path}", headers=headers, data=data)
        if response.status_code >= 400:
            raise faults.error_from_response(service, response)
        return {}

    def tenant(self) -> Tenant:
        """Create a project with a user of its own, for tests that revoke its rights."""
        ground = self.ground
        made = tenancy.make(ground.wire, ground.target, self.admin, self.name())
        self.later(lambda: tenancy.remove(self.admin, made))
        self.later(lambda: sweep.empty(made.cloud, self.admin, made.project_id, every_s=ground.target.every_s))
        return made

    @contextlib.contextmanager
    def stranger_may(self, service: str, **limits: int) -> Iterator[None]:
        """Set other quotas for the stranger during a block; -1 is no limit, others stay.

        Delete resources created under them before the end: a quota below the usage is refused.
        """
        usual = {name: tenancy.NOTHING[service][2].get(name, -1) for name in limits}
        tenancy.limit(self.admin, self.stranger.project_id, service, limits)
        try:
            yield
        finally:
            tenancy.limit(self.admin, self.stranger.project_id, service, usual)

    def token(self) -> str:
        """Return the member's token."""
        return str(self.cloud._access().auth_token)

    def endpoint(self, service: str) -> str:
        """Return where the provider's client finds a service."""
        return self.cloud._endpoint(service).url

    @property
    def last(self) -> Exchange:
        """Return the cloud's last answer."""
        assert self.ground.wire.last is not None
        return self.ground.wire.last

    def later(self, call: Callable[[], object]) -> None:
        """Call a function after the test, in reverse order; its failure is ignored."""
        self._undo.append(call)

    def undo(self) -> None:
        """Run the deferred calls."""
        for call in reversed(self._undo):
            try:
                call()
            except CapoError:
                continue  # the sweep at the end of the run deletes it
