"""A pool of floating IPs and its claims: what users do with them, and what must hold at each moment and at rest.

No two claims ever have one address, none gets one that somebody else uses, and no floating IP is deleted while a claim
has its address.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from capo import names
from capo.json_types import Json
from capo.kube.kinds import IP_ADDRESS, IP_ADDRESS_CLAIM, OPENSTACK_FLOATING_IP_POOL, Key
from e2e.simulation.apiclient import Endpoint
from e2e.simulation.objects import IDENTITY, NAMESPACE

if TYPE_CHECKING:
    from e2e.simulation.plan_run import PlanRun

POOL: Final = Key(OPENSTACK_FLOATING_IP_POOL, NAMESPACE, "p")
_IDLE_REQUESTS: Final = 2
_SEARCHES: Final = 10
"""While claims wait because of ``maxIPs``, the pool lists floating IPs each minute: a user may free one."""
KINDS: Final = (IP_ADDRESS_CLAIM, IP_ADDRESS)
_SEEN_S: Final = 60.0
"""A use that began earlier has to be seen before an address is handed out; requests and processes may be so slow."""
_WAITS: Final = ("MaxIPsReached",)
"""Reasons for which a claim may wait for ever."""


def claim_names(story: PlanRun) -> list[str]:
    """Return the names of the users' claims."""
    return [f"p{number}" for number in range(story.plan.shape.claims)] if story.plan.shape.pool is not None else []


def apply_pool(story: PlanRun) -> None:
    """Apply the pool, with a floating IP that the user prepared for it if the plan says so."""
    wanted = dict(story.plan.shape.pool or {})
    spec: Json = {"identityRef": IDENTITY, "reclaimPolicy": wanted["reclaimPolicy"]}
    if wanted.get("maxIPs") is not None:
        spec["maxIPs"] = wanted["maxIPs"]
    if wanted.get("is_prepared"):
        external = story.user.ask("GET", "/network/v2.0/networks?router:external=true")["networks"][0]
        made = story.user.make("/network/v2.0/floatingips", "floatingip", floating_network_id=external["id"])
        spec["preAllocatedFloatingIPs"] = [made["floating_ip_address"]]
    if any(operation.feature == STRANGER for operation in story.plan.operations):
        story.strangers_port = _port(story)["id"]
    story.home.server.create(OPENSTACK_FLOATING_IP_POOL, _object(POOL, spec))
    if lineage := story.truth.of(story.home, POOL):
        lineage.is_keeping = spec["reclaimPolicy"] == "Retain"
    for name in claim_names(story):
        apply_claim(story, name)


def apply_claim(story: PlanRun, name: str) -> None:
    """Apply a claim, as a controller of somebody else does."""
    ref = {"apiGroup": names.GROUP, "kind": OPENSTACK_FLOATING_IP_POOL.kind, "name": POOL.name}
    key = Key(IP_ADDRESS_CLAIM, NAMESPACE, name)
    story.home.server.create(IP_ADDRESS_CLAIM, _object(key, {"poolRef": ref}))


def idle_requests(story: PlanRun) -> int:
    """Return how many requests the pool may send in ten idle minutes."""
    pool, limit = story.plan.shape.pool, (story.plan.shape.pool or {}).get("maxIPs")
    waits = limit is not None and limit < story.plan.shape.claims
    return 0 if pool is None else _IDLE_REQUESTS + _SEARCHES * waits


def delete_claims(story: PlanRun, endpoint: Endpoint) -> None:
    """Request the deletion of all claims; in some plans their users need them for a while after the pool's deletion."""

    def delete() -> None:
        for claim in endpoint.server.list(IP_ADDRESS_CLAIM):
            endpoint.server.delete(IP_ADDRESS_CLAIM, NAMESPACE, claim["metadata"]["name"])

    used_s = (story.plan.shape.pool or {}).get("used_s", 0.0)
    story.scheduler.after(used_s, delete)


def _object(key: Key, spec: Json) -> Json:
    metadata = {"name": key.name, "namespace": key.namespace}
    return {"apiVersion": key.kind.api_version, "kind": key.kind.kind, "metadata": metadata, "spec": spec}


# -- strangers ------------------------------------------------------------------------------------------------------

STRANGER: Final = "stranger"
"""The operation of somebody else who uses a floating IP that was created or allocated for a claim."""


def _port(story: PlanRun) -> Json:
    """Create a port that floating IPs reach, of somebody else."""
    user = story.user
    external = user.ask("GET", "/network/v2.0/networks?router:external=true")["networks"][0]
    network = user.network("strangers", "10.5.0.0/24")
    gateway = {"network_id": external["id"]}
    router = user.make("/network/v2.0/routers", "router", name="strangers", external_gateway_info=gateway)
    (subnet,) = user.ask("GET", f"/network/v2.0/subnets?network_id={network['id']}")["subnets"]
    user.ask("PUT", f"/network/v2.0/routers/{router['id']}/add_router_interface", {"subnet_id": subnet["id"]})
    made: Json = user.make("/network/v2.0/ports", "port", network_id=network["id"])
    return made


def use(story: PlanRun, for_s: float) -> None:
    """Associate the newest floating IP of the pool that no claim names with a port of somebody else, for so long."""
    named = {address for endpoint in story.endpoints() for _, address in _answered(endpoint)}
    bodies = story.simulation.cloud.table("network", "floatingips").values()
    free = [body for body in bodies if not body["port_id"] and body["floating_ip_address"] not in named]
    free = [body for body in free if _is_of_pool(story, body)]
    if not free:
        return
    body = free[-1]
    path, address = f"/network/v2.0/floatingips/{body['id']}", body["floating_ip_address"]

    def leave() -> None:
        story.strangers.pop(address, None)
        with contextlib.suppress(ValueError):  # its user deleted it
            story.user.ask("PUT", path, {"floatingip": {"port_id": None}})

    with contextlib.suppress(ValueError):  # a quota or a fault refuses it
        story.user.ask("PUT", path, {"floatingip": {"port_id": story.strangers_port}})
        story.strangers[address] = story.scheduler.now_s
        story.take_back(for_s, leave)


def _is_of_pool(story: PlanRun, body: Json) -> bool:
    pool = story.place.server.get(*POOL) or {"spec": {}}
    is_prepared = body["floating_ip_address"] in pool["spec"].get("preAllocatedFloatingIPs", ())
    resource = story.truth.resources.get(body["id"])
    return is_prepared or (resource is not None and _is_pools(resource))


# -- at each moment ---------------------------------------------------------------------------------------------------


def watch(story: PlanRun, endpoint: Endpoint) -> None:
    """Check each change of a claim or an IPAddress, and each deletion of a floating IP."""

    published: set[tuple[str, str]] = set()

    def changed(event: Any) -> None:
        if event.kind in KINDS:
            _check_unique(story, endpoint)
            new = set(_answered(endpoint)) - published
            published.update(new)
            _check_unused(story, new)

    endpoint.server.on_change.append(changed)
    story.truth.holder_of = lambda floating_ip: _holder(endpoint, floating_ip)


def _check_unique(story: PlanRun, endpoint: Endpoint) -> None:
    seen: dict[str, str] = {}
    for name, address in _answered(endpoint):
        if address in seen:
            story.truth.broken("address-of-two", f"claims {seen[address]} and {name} have {address}")
        seen[address] = name


def _check_unused(story: PlanRun, published: set[tuple[str, str]]) -> None:
    for name, address in sorted(published):
        since_s = story.strangers.get(address)
        if since_s is not None and story.scheduler.now_s - since_s > _SEEN_S:
            used_s = story.scheduler.now_s - since_s
            story.truth.broken("address-in-use", f"claim {name} got {address}, which was used for {used_s:.0f} s")


def _answered(endpoint: Endpoint) -> Iterator[tuple[str, str]]:
    """Yield the name and the address of each claim whose status leads to an IPAddress."""
    for claim in endpoint.server.list(IP_ADDRESS_CLAIM):
        name = ((claim.get("status") or {}).get("addressRef") or {}).get("name")
        address = endpoint.server.get(IP_ADDRESS, NAMESPACE, name) if name else None
        if address is not None:
            yield claim["metadata"]["name"], address["spec"]["address"]


def _holder(endpoint: Endpoint, floating_ip: Json) -> str | None:
    """Return the claim that has a floating IP and is not being deleted."""
    for name, address in _answered(endpoint):
        claim = endpoint.server.get(IP_ADDRESS_CLAIM, NAMESPACE, name)
        is_kept = claim is not None and not claim["metadata"].get("deletionTimestamp")
        if is_kept and address == floating_ip.get("floating_ip_address"):
            return name
    return None


# -- at rest ----------------------------------------------------------------------------------------------------------


def fault(story: PlanRun) -> str | None:
    """Return the first claim without an address that exists, and without a reason; None if there is none."""
    if story.plan.shape.pool is None or story.is_deleting:
        return None
    found = dict(_answered(story.home))
    bodies = story.simulation.cloud.table("network", "floatingips").values()
    existing = {body["floating_ip_address"] for body in bodies}
    for claim in story.home.server.list(IP_ADDRESS_CLAIM):
        name = claim["metadata"]["name"]
        if name in found and found[name] not in existing:
            return f"claim {name} has {found[name]}, which is no floating IP"
        if name not in found and not _may_wait(story, claim):
            return f"claim {name} has no address: {claim.get('status')}"
    return _too_many(story)


def _may_wait(story: PlanRun, claim: Json) -> bool:
    limit = (story.plan.shape.pool or {}).get("maxIPs")
    shown = (claim.get("status") or {}).get("conditions") or ()
    return limit is not None and limit < story.plan.shape.claims and any(each["reason"] in _WAITS for each in shown)


def _too_many(story: PlanRun) -> str | None:
    """Return that the pool has more floating IPs than it may create; one that it may allocate does not count."""
    limit = (story.plan.shape.pool or {}).get("maxIPs")
    if limit is None or story.truth.has_repeats("floatingips"):
        return None
    made = [r for r in story.truth.resources.values() if r.kind == "floatingips" and _is_pools(r) and r.is_there()]
    return f"{len(made)} floating IPs, at most {limit} may be created" if len(made) > limit else None


def _is_pools(resource: Any) -> bool:
    return resource.lineage is not None and resource.lineage.key == POOL
