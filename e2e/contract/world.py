"""What a test works with: a plain member's cloud, builders with good defaults, waiting, refusals."""

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
from capo.names import Stamp
from capo.openstack import faults, load_balancer, network, port, security_group, server, subnet, volume
from capo.openstack.cloud import Body, Cloud
from capo.openstack.kinds import CINDER, NOVA
from capo.openstack.load_balancer import WantedListener, WantedLoadBalancer, WantedPool
from capo.openstack.network import WantedNetwork
from capo.openstack.port import WantedPort
from capo.openstack.security_group import WantedSecurityGroup
from capo.openstack.server import BlockDevice, WantedServer
from capo.openstack.subnet import WantedSubnet
from capo.openstack.volume import WantedVolume
from e2e.contract import sweep, tenancy
from e2e.contract.recordings import Recorder
from e2e.contract.targets import Target
from e2e.contract.tenancy import LIMITS, Tenant
from e2e.contract.wire import Exchange, TappedSession, Wire

T = TypeVar("T")
LIMIT_S: Final = 120.0
SLOWING: Final = 1.2
SLOWEST: Final = 5
"""Looks come ever slower, down to one fifth as often: on a busy machine they cost more than what they wait for."""
UNKNOWN: Final = "00000000-0000-4000-8000-000000000000"
"""An id that nothing has."""
CIDR: Final = "10.6.0.0/20"
POOL: Final = ("10.6.0.2", "10.6.7.254")
"""Where ports of the run's networks get their addresses; tests ask for those above, which nothing else takes."""


@dataclass(frozen=True)
class Refusal:
    """How the cloud refused.

    Args:
        error: what the provider makes of it.
        words: the cloud's, ids and the like included.
    """

    error: CapoError
    status: int
    words: str


@dataclass
class Ground:
    """What all tests of a run share.

    Args:
        run: prefix of all names that this run makes.
        tenant: the plain member as whom tests act.
        stranger: a plain member of another project, whose quotas are zero.
        shared: by name, what takes long to make and is left by each test as it was found.
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


class World:
    """What one test works with.

    Args:
        module: of the test, for recordings.
        test: its name.
    """

    def __init__(self, ground: Ground, module: str, test: str) -> None:
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
        """Return a name that nothing has yet."""
        return f"{self.ground.run}-{next(self.ground.numbers)}"

    def stamp(self, role: str = "it") -> Stamp:
        """Return an owner's stamp that nothing carries yet."""
        return Stamp("".join(secrets.choice("abcdefghijklmnopqrstuvwxyz234567") for _ in range(13)), role)

    def shared(self, name: str, make: Callable[[], T]) -> T:
        """Return what tests share, made when the first one asks for it; it stays until the end of the run."""
        if name not in self.ground.shared:
            self.ground.shared[name] = make()
        found: T = self.ground.shared[name]
        return found

    # -- resources with good defaults --------------------------------------------------------------------------------

    def network(self, **wishes: Any) -> Body:
        """Make a network."""
        return network.create(self.cloud, WantedNetwork(**{"stamp": self.stamp(), "name": self.name(), **wishes}))

    def subnet(self, network_id: str, **wishes: Any) -> Body:
        """Make a subnet."""
        defaults = {"stamp": self.stamp(), "name": self.name(), "network_id": network_id, "cidr": CIDR}
        return subnet.create(self.cloud, WantedSubnet(**{**defaults, **wishes}))

    def wanted_port(self, **wishes: Any) -> WantedPort:
        """Return a wish for a port on the run's network."""
        defaults = {"stamp": self.stamp("port-0"), "name": self.name(), "network_id": self.network_id}
        return WantedPort(**{**defaults, **wishes})

    def port(self, **wishes: Any) -> Body:
        """Make a port on the run's network."""
        return port.create(self.cloud, self.wanted_port(**wishes))

    def show_port(self, port_id: str) -> Body:
        """Return a port as it is now."""
        found: Body = self.cloud.get("network", f"/ports/{port_id}")["port"]
        return found

    def security_group(self, **wishes: Any) -> Body:
        """Make a security group."""
        wanted = WantedSecurityGroup(**{"stamp": self.stamp(), "name": self.name(), **wishes})
        return security_group.create(self.cloud, wanted)

    def wanted_server(self, **wishes: Any) -> WantedServer:
        """Return a wish for a small server on a new port, or on those that are named."""
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
        """Make a server; it is deleted after the test."""
        made = server.create(self.cloud, self.wanted_server(**wishes))
        self.later(lambda: server.delete(self.cloud, made["id"]))
        return made

    def active_server(self, **wishes: Any) -> Body:
        """Make a server and wait until it is ACTIVE; return it as Nova shows it then."""
        made = self.server(**wishes)
        return self.when(lambda: self.show_server(made["id"]), status="ACTIVE")

    def show_server(self, server_id: str) -> Body:
        """Return a server as it is now."""
        found: Body = self.cloud.get("compute", f"/servers/{server_id}", microversion=NOVA)["server"]
        return found

    def volume(self, **wishes: Any) -> Body:
        """Make a volume; it is deleted after the test."""
        wanted = WantedVolume(**{"stamp": self.stamp(), "name": self.name(), "size_gib": 1, **wishes})
        made = volume.create(self.cloud, wanted)
        self.later(lambda: volume.delete(self.cloud, made["id"]))
        return made

    def available_volume(self, **wishes: Any) -> Body:
        """Make a volume and wait until it can be used."""
        made = self.volume(**wishes)
        return self.when(lambda: self.show_volume(made["id"]), status="available")

    def show_volume(self, volume_id: str) -> Body:
        """Return a volume as it is now."""
        found: Body = self.cloud.get("volume", f"/volumes/{volume_id}", microversion=CINDER)["volume"]
        return found

    def wanted_listener(self, port_: int = 6443, **wishes: Any) -> WantedListener:
        """Return a wish for a listener with a pool."""
        name = self.name()
        pool = WantedPool(self.stamp(f"pool-{port_}"), name)
        listener = WantedListener(self.stamp(f"listener-{port_}"), name, port_, pool)
        return dataclasses.replace(listener, **wishes)

    def wanted_load_balancer(self, **wishes: Any) -> WantedLoadBalancer:
        """Return a wish for a load balancer on the run's subnet, without listeners."""
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
        """Make a load balancer; it is deleted after the test."""
        made = load_balancer.create(self.cloud, self.wanted_load_balancer(**wishes))
        self.later(lambda: self.delete_load_balancer(made["id"]))
        return made

    def active_load_balancer(self, **wishes: Any) -> Body:
        """Make a load balancer and wait until it is ACTIVE."""
        return self.settled(self.load_balancer(**wishes)["id"])

    def delete_load_balancer(self, load_balancer_id: str) -> None:
        """Delete a load balancer with all that it has, as soon as it lets itself be deleted."""
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
        return self.until(look, lambda body: all(body[name] == value for name, value in wanted.items()))

    def until(self, look: Callable[[], T], is_reached: Callable[[T], object]) -> T:
        """Wait until what is seen is as it should be; return it."""
        ends_s, pause_s = time.monotonic() + LIMIT_S, self.ground.target.every_s
        while not is_reached(seen := look()):
            if isinstance(seen, dict) and "ERROR" in (seen.get("status"), seen.get("provisioning_status")):
                raise AssertionError(f"in ERROR: {seen}")
            if time.monotonic() > ends_s:
                raise AssertionError(f"not within {LIMIT_S:.0f} s; last seen {seen!r}")
            time.sleep(pause_s)
            pause_s = min(pause_s * SLOWING, self.ground.target.every_s * SLOWEST)
        return seen

    def held(self) -> contextlib.AbstractContextManager[None]:
        """Have nothing be finished that is begun in a block, so that the state in between can be looked at."""
        return self.ground.target.held()

    def history(self, look: Callable[[], Body], field_: str, last: str, *, first: str) -> list[str]:
        """Return the values that a field has one after the other, from what was seen first until the last."""
        seen = [first]

        def is_reached(body: Body) -> bool:
            if seen[-1] != body[field_]:
                seen.append(body[field_])
            return seen[-1] == last

        self.until(look, is_reached)
        return seen

    def gone(self, look: Callable[[], object]) -> None:
        """Wait until something is not found any more."""
        self.until(lambda: self.is_gone(look), lambda is_gone: is_gone)

    def is_gone(self, look: Callable[[], object]) -> bool:
        """Tell whether something is not found."""
        try:
            look()
        except NotFoundError:
            return True
        return False

    # -- refusals and wishes for later -------------------------------------------------------------------------------

    def refused(self, call: Callable[[], object]) -> Refusal:
        """Have a call refused; the whole answer is compared with the recordings."""
        self.ground.wire.last = None
        error = self._error_of(call)
        exchange = self.last
        assert exchange.status >= 400, f"not refused by the cloud but by the provider: {error!r}"
        self.ground.recorder.refuse(*self._test, exchange)
        return Refusal(error, exchange.status, error.message)

    def refused_or_empty(self, ask: Callable[[], list[Body]]) -> None:
        """Have a list refused or empty; a refusal is compared with the recordings."""
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

    def raw(self, method: str, service: str, path: str, *, token: str | None = None, data: str | None = None) -> Body:
        """Send what the provider's client would not: another token, a body that is no JSON.

        Args:
            token: None for the member's own.
            data: the body as text, None for none.
        """
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        headers["X-Auth-Token"] = self.token() if token is None else token
        session = TappedSession(self.ground.wire, LIMITS)
        with contextlib.closing(session):
            response = session.request(method, f"{self.endpoint(service)}{path}", headers=headers, data=data)
        if response.status_code >= 400:
            raise faults.of_response(service, response)
        return {}

    def tenant(self) -> Tenant:
        """Make a project with a user of its own, for tests that take something away from them."""
        ground = self.ground
        made = tenancy.make(ground.wire, ground.target, self.admin, self.name())
        self.later(lambda: tenancy.remove(self.admin, made))
        self.later(lambda: sweep.empty(made.cloud, self.admin, made.project_id, every_s=ground.target.every_s))
        return made

    @contextlib.contextmanager
    def stranger_may(self, service: str, **limits: int) -> Iterator[None]:
        """Have other quotas for the stranger during a block; -1 is without limit, what is not named stays as it is.

        What a test made under them has to be gone by the end: a quota below what is used is refused.
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
        return self.cloud._endpoint(service)

    @property
    def last(self) -> Exchange:
        """The cloud's last answer."""
        assert self.ground.wire.last is not None
        return self.ground.wire.last

    def later(self, call: Callable[[], object]) -> None:
        """Have something done after the test, the last thing first; that it cannot be done does not matter."""
        self._undo.append(call)

    def undo(self) -> None:
        """Do what is to be done after the test."""
        for call in reversed(self._undo):
            try:
                call()
            except CapoError:
                continue  # the sweep at the end of the run sees to it
