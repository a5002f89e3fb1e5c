"""Larger operations of the adversary in management clusters and clouds: moves, restores, takeovers."""

from __future__ import annotations

import contextlib
import copy
import re
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from capo import names
from capo.engine.conditions import find
from capo.json_types import Json
from capo.kube.errors import KubeError
from capo.kube.kinds import (
    CLUSTER,
    IP_ADDRESS_CLAIM,
    MACHINE,
    OPENSTACK_CLUSTER,
    OPENSTACK_FLOATING_IP_POOL,
    OPENSTACK_MACHINE,
    OPENSTACK_MACHINE_TEMPLATE,
    OPENSTACK_SERVER,
    OURS,
    SECRET,
    Key,
    Kind,
)
from capo.simulator.keystone.service import CATALOG, INTERFACES, service_id
from controllers.tests import stamps
from e2e.simulation import claims, objects, workloads
from e2e.simulation.apiclient import Endpoint
from e2e.simulation.objects import NAMESPACE
from e2e.simulation.refusals import Refusal
from e2e.simulation.user import CloudUser

if TYPE_CHECKING:
    from e2e.simulation.plan_run import PlanRun

SECOND_REGION: Final = "second.example"
OTHER_HOST: Final = "other.example"
MOVED: Final = (OPENSTACK_CLUSTER, OPENSTACK_MACHINE, OPENSTACK_SERVER)
_TICK_S: Final = 2.0
_ACCEPT: Final = re.compile(rf"annotate the object with {re.escape(names.ACCEPT_LOCATION_ANNOTATION)}=(\S+)\.")
_ELSEWHERE: Final = "e2345672e2345"
"""An owner id that no object here has."""
_OURS_ALONE: Final = (
    "resources",
    "bastionReplacement",
    "externalChanges",
    "appliedRules",
    "loadBalancerSettings",
    "joinedPools",
)
"""Status fields that the Go provider's definitions prune."""
_NAMESAKES: Final = (
    ("volume", "/volume/v3/{project_id}/volumes", "s-root", "volume-root"),
    ("port", "/network/v2.0/ports", "s-0", "port-0"),
    ("network", "/network/v2.0/networks", "k8s-clusterapi-cluster-default-c", "network"),
    ("security_group", "/network/v2.0/security-groups", "k8s-cluster-default-c-secgroup-worker", "group-worker"),
)


def patch_if_there(story: PlanRun, key: Key, body: Json) -> None:
    """Patch an object in its present management cluster, if it exists and is not being deleted."""
    server = story.place.server
    obj = server.get(*key)
    if obj is not None and not obj["metadata"].get("deletionTimestamp"):
        server.patch(*key, body)


def mark_edited(story: PlanRun, key: Key) -> None:
    """Record that a user edited an object: its resources may be deleted because of that."""
    if lineage := story.truth.of(story.place, key):
        lineage.is_edited = True


def reverse(old: Any, patch: Any) -> Any:
    """Return the merge patch that reverts another one."""
    if not isinstance(patch, Mapping):
        return old
    present = old if isinstance(old, Mapping) else {}
    return {
        name: reverse(present.get(name), value) if isinstance(present.get(name), Mapping) else present.get(name)
        for name, value in patch.items()
    }


# -- deletion ---------------------------------------------------------------------------------------------------------


def delete_all(story: PlanRun) -> None:
    """Delete everything that users applied."""
    workloads.before_deletion(story)
    for endpoint in story.endpoints():
        claims.delete_claims(story, endpoint)
        for kind in (CLUSTER, OPENSTACK_SERVER, OPENSTACK_FLOATING_IP_POOL):
            for obj in endpoint.server.list(kind):
                if kind is CLUSTER or not obj["metadata"].get("ownerReferences"):
                    endpoint.server.delete(kind, NAMESPACE, obj["metadata"]["name"])


def recreate(story: PlanRun, machines: list[str]) -> None:
    """Delete the server or the machines, and apply them again when they are deleted."""
    server = story.place.server
    wanted: list[tuple[Key, Callable[[], None]]] = []
    if story.plan.shape.server is not None:
        spec = story.plan.shape.server
        wanted.append((Key(OPENSTACK_SERVER, NAMESPACE, "s"), lambda: story.apply_server(spec)))
    wanted += [(Key(MACHINE, NAMESPACE, name), lambda n=name: story.apply_machine(n)) for name in machines]  # type: ignore[misc]
    for name in claims.claim_names(story)[::2]:
        mark_edited(story, claims.POOL)
        wanted.append((Key(IP_ADDRESS_CLAIM, NAMESPACE, name), lambda n=name: claims.apply_claim(story, n)))  # type: ignore[misc]
    for key, apply in wanted:
        if server.get(*key) and key not in story.applying:
            server.delete(*key)
            _when_gone(story, key, apply)


def _when_gone(story: PlanRun, key: Key, apply: Callable[[], None]) -> None:
    def look() -> None:
        left = [k for k in (key, Key(OPENSTACK_MACHINE, NAMESPACE, key.name)) if story.place.server.get(*k)]
        if left and not story.is_deleting:
            story.scheduler.after(_TICK_S, look)
            return
        story.applying.remove(key)
        if not story.is_deleting:
            apply()

    story.applying.append(key)
    story.scheduler.after(_TICK_S, look)


# -- moves ------------------------------------------------------------------------------------------------------------


def move(story: PlanRun, source: Endpoint, target: Endpoint, *, is_deleted: bool = False) -> None:
    """Move the cluster "c" with all its objects. Source: clusterctl's object mover."""
    cluster = source.server.get(CLUSTER, NAMESPACE, "c")
    if cluster is None or cluster["metadata"].get("deletionTimestamp") or story.is_moving:
        return
    if story.leads_elsewhere:
        return  # without its status nothing says where the cluster was (ADR 0005, non-goals)
    story.is_moving = True
    source.server.patch(CLUSTER, NAMESPACE, "c", {"spec": {"paused": True}})
    pause_s = story.random.uniform(0.1, 5.0)
    story.scheduler.after(pause_s, lambda: _carry_over(story, source, target, is_deleted=is_deleted))


def _carry_over(story: PlanRun, source: Endpoint, target: Endpoint, *, is_deleted: bool) -> None:
    moved = list(_graph(source))
    uids: dict[str, str] = {}
    for kind, obj in moved:
        made = _copy(obj, uids)
        key = Key(kind, NAMESPACE, obj["metadata"]["name"])
        if kind in OURS and (lineage := story.truth.of(source, key)):
            story.truth.inherited[target.name, key] = lineage
        uids[obj["metadata"]["uid"]] = target.server.create(kind, made)["metadata"]["uid"]
    for kind, obj in reversed(moved):
        _forget(source, kind, obj["metadata"]["name"])
    target.server.patch(CLUSTER, NAMESPACE, "c", {"spec": {"paused": None}})
    story.is_moving = False
    if is_deleted:
        workloads.before_deletion(story)
        target.server.delete(CLUSTER, NAMESPACE, "c")


def _graph(source: Endpoint) -> Iterator[tuple[Kind, Json]]:
    """Yield the cluster and its objects, owners first."""
    server = source.server
    owners: set[str] = set()
    for kind in (CLUSTER, MACHINE, OPENSTACK_MACHINE_TEMPLATE, *MOVED):
        for obj in server.list(kind):
            refs = {ref["uid"] for ref in obj["metadata"].get("ownerReferences") or ()}
            is_root = kind in (CLUSTER, MACHINE) and (
                obj["metadata"]["name"] == "c" or obj["spec"].get("clusterName") == "c"
            )
            if is_root or refs & owners:
                owners.add(obj["metadata"]["uid"])
                yield kind, obj


def _copy(obj: Json, uids: Mapping[str, str]) -> Json:
    """Return an object as created in the target: without status, with the owners' new uids."""
    metadata = {
        k: v for k, v in obj["metadata"].items() if k in ("name", "namespace", "labels", "annotations", "finalizers")
    }
    refs = [
        {**ref, "uid": uids[ref["uid"]]} for ref in obj["metadata"].get("ownerReferences") or () if ref["uid"] in uids
    ]
    kept = {key: copy.deepcopy(value) for key, value in obj.items() if key not in ("metadata", "status")}
    return {**kept, "metadata": {**copy.deepcopy(metadata), **({"ownerReferences": refs} if refs else {})}}


def _forget(source: Endpoint, kind: Kind, name: str) -> None:
    body = {"metadata": {"annotations": {names.DELETE_FOR_MOVE_ANNOTATION: ""}, "finalizers": None}}
    source.server.patch(kind, NAMESPACE, name, body)
    source.server.delete(kind, NAMESPACE, name)


# -- restores ---------------------------------------------------------------------------------------------------------


def restore_statuses(story: PlanRun, noted: list[tuple[Kind, Json]], *, is_the_go_providers: bool) -> None:
    """Write old statuses back to the same objects."""
    server = story.home.server
    for kind, old in noted:
        present = server.get(kind, NAMESPACE, old["metadata"]["name"])
        if present is not None and present["metadata"]["uid"] == old["metadata"]["uid"]:
            status = as_the_go_provider_has_it(old.get("status")) if is_the_go_providers else old.get("status") or {}
            server.put(kind, {**present, "status": copy.deepcopy(status)}, subresource="status")


def restore_etcd(story: PlanRun, state: Any, *, is_live: bool) -> None:
    """Restore an older state of etcd; the manager is stopped for it unless ``is_live``."""
    if not is_live:
        story.manager.kill()
    story.home.server.restore(state)
    for lineage in story.truth.lineages.values():
        if lineage.endpoint is story.home:
            present = story.home.server.get(*lineage.key)
            is_there = present is not None and present["metadata"]["uid"] == lineage.uid
            if is_there and lineage.is_deleted:
                lineage.is_lost = True
            elif not is_there and not lineage.is_gone:
                lineage.is_gone = lineage.is_lost = True
            lineage.is_gone = not is_there
    if not is_live:
        story.scheduler.after(1.0, lambda: None if story.manager.is_running else story.manager.start())


# -- credentials ------------------------------------------------------------------------------------------------------


def swap_secret(story: PlanRun, kind: str) -> None:
    """Put other credentials into the Secret: a wrong user, another project, another region, another cloud.

    A rotation is to other credentials of the same project, a slip to a file that cannot be read.
    """
    simulation = story.simulation
    entry = copy.deepcopy(simulation.clouds_yaml()["sim"])
    if kind == "user":
        entry["auth"]["password"] = "wrong"
    elif kind == "rotation":
        entry = copy.deepcopy(simulation.clouds_yaml()["sim-appcred"])
    elif kind == "project":
        entry["auth"] |= _other_project(story)
    elif kind == "region":
        _have_second_region(story)
        entry["region_name"] = "RegionTwo"
    else:
        if OTHER_HOST not in simulation.network.sites:
            simulation.add_cloud(OTHER_HOST)
        entry = copy.deepcopy(simulation.clouds_yaml(OTHER_HOST)["sim"])
    _put_secret(story, "half an edit" if kind == "slip" else {"sim": entry})


def put_secret_back(story: PlanRun) -> None:
    """Restore the right credentials."""
    if story.place.server.get(SECRET, NAMESPACE, "cloud"):
        _put_secret(story, story.simulation.clouds_yaml())


def annotate_all(story: PlanRun) -> None:
    """Annotate all objects, so that their Secret is read again at once."""
    story.annotated += 1
    body = {"metadata": {"annotations": {"example.org/rotated": str(story.annotated)}}}
    for kind in (OPENSTACK_CLUSTER, OPENSTACK_SERVER, OPENSTACK_FLOATING_IP_POOL):
        for obj in story.place.server.list(kind):
            story.place.server.patch(kind, NAMESPACE, obj["metadata"]["name"], body)


def _put_secret(story: PlanRun, clouds: Json | str) -> None:
    story.place.server.patch(SECRET, NAMESPACE, "cloud", {"data": objects.secret("cloud", clouds)["data"]})


def _other_project(story: PlanRun) -> Json:
    """Return the credentials of a user in a project of its own."""
    admin = _admin(story)
    path = "/identity/v3"
    if not story.has_other_project:
        story.has_other_project = True
        project = admin.ask("POST", f"{path}/projects", {"project": {"name": "other", "domain_id": "default"}})[
            "project"
        ]
        wanted = {"name": "other", "domain_id": "default", "password": "pw", "default_project_id": project["id"]}
        user = admin.ask("POST", f"{path}/users", {"user": wanted})["user"]
        for role in ("member", "load-balancer_member"):
            found = admin.ask("GET", f"{path}/roles?name={role}")["roles"]
            if found:
                admin.ask("PUT", f"{path}/projects/{project['id']}/users/{user['id']}/roles/{found[0]['id']}")
    return {"username": "other", "password": "pw", "project_name": "other"}


def _admin(story: PlanRun) -> CloudUser:
    return CloudUser(story.simulation, "cloud.example", "sim-admin")


def limit_listeners(story: PlanRun, limit: int) -> None:
    """Set the project's quota of listeners; -1 means none."""
    path = f"/load-balancer/v2.0/lbaas/quotas/{story.user.project_id}"
    _admin(story).ask("PUT", path, {"quota": {"listener": limit}})


def limit(story: PlanRun, service: str, resource: str, most: int) -> None:
    """Set a quota of the project, which a real service refuses below its use; -1 means none."""
    story.simulation.cloud.set_quota(service, story.user.project_id, resource, most)


def _have_second_region(story: PlanRun) -> None:
    """Add a region to the catalogue whose services accept the same tokens and have no resources."""
    simulation = story.simulation
    if SECOND_REGION in simulation.network.sites:
        return
    second = simulation.add_cloud(SECOND_REGION)
    second.tokens = simulation.cloud.tokens
    endpoints = simulation.cloud.table("identity", "endpoints")
    for kind, _name, path in CATALOG:
        for interface in INTERFACES:
            host = "cloud.example" if kind == "identity" else SECOND_REGION
            id_ = second.new_hex()
            endpoints[id_] = {
                "id": id_,
                "interface": interface,
                "region_id": "RegionTwo",
                "region": "RegionTwo",
                "service_id": service_id(kind),
                "url": f"http://{host}" + path.format(project_id=story.user.project_id),
                "enabled": True,
            }


def accept_locations(story: PlanRun) -> int:
    """Annotate objects as their conditions say, where nothing is left that proves the location; return how many."""
    accepted = 0
    for endpoint in story.endpoints():
        for kind in OURS:
            for obj in endpoint.server.list(kind):
                shown = find((obj.get("status") or {}).get("conditions") or (), "Ready") or {}
                if asked := _ACCEPT.search(shown.get("message", "")):
                    annotations = {names.ACCEPT_LOCATION_ANNOTATION: asked[1]}
                    endpoint.server.patch(
                        kind, NAMESPACE, obj["metadata"]["name"], {"metadata": {"annotations": annotations}}
                    )
                    accepted += 1
    return accepted


# -- namesakes and claims ---------------------------------------------------------------------------------------------


def make_namesake(story: PlanRun, number: int, *, has_stamp: bool) -> None:
    """Create a volume, a port, a network or a group with the name of one of ours.

    Args:
        has_stamp: it carries the stamp of a foreign owner, as a resource of another management cluster.
    """
    user = story.user
    kind, path, name, role = _NAMESAKES[number]
    values: dict[str, Any] = {"name": name}
    if kind == "port":
        values["network_id"] = story.own_network["id"]
    if kind == "volume":
        values["size"] = 1
    if has_stamp:
        stamp = names.Stamp(_ELSEWHERE, role)
        values |= (
            {"metadata": {names.VOLUME_STAMP_KEY: str(stamp)}} if kind == "volume" else {"description": f"[{stamp}]"}
        )
    user.make(path.format(project_id=user.project_id), kind, **values)


def place_evil(story: PlanRun, *, copies_owner: bool) -> None:
    """Apply an OpenStackServer whose annotations claim the server, or the owner id, of another one."""
    server = story.home.server
    victim = next((o for o in server.list(OPENSTACK_SERVER) if (o.get("status") or {}).get("instanceID")), None)
    if victim is None or server.get(OPENSTACK_SERVER, NAMESPACE, "evil"):
        return
    made = objects.server("evil", story.own_network["id"], spec={})
    claimed = (
        {names.OWNER_ID_ANNOTATION: victim["metadata"]["annotations"][names.OWNER_ID_ANNOTATION]}
        if copies_owner
        else {names.TAKEN_OVER_ANNOTATION: victim["status"]["instanceID"]}
    )
    made["metadata"]["annotations"] = claimed
    with contextlib.suppress(Refusal, KubeError):  # the webhook refuses a copied owner id
        server.create(OPENSTACK_SERVER, made)
    if lineage := story.truth.of(story.home, Key(OPENSTACK_SERVER, NAMESPACE, "evil")):
        lineage.is_evil = True
    story.scheduler.after(story.random.uniform(5.0, 60.0), lambda: _delete_if_there(story, "evil"))


HOSTILE: Final = ('"password":"' + "\\" * 100, "eyJ-" * 60, "<style " * 36, '\\"token\\":\\"' * 18)


def place_hostile_texts(story: PlanRun, number: int) -> None:
    """Apply an OpenStackServer whose credentials and filters have texts that took very long to search."""
    server, text = story.home.server, HOSTILE[number]
    if server.get(OPENSTACK_SERVER, NAMESPACE, "evil"):
        return
    filters = {"name": text, "description": text, "tags": [text.replace(",", "")]}
    made = objects.server("evil", story.own_network["id"], spec={"ports": [{"network": {"filter": filters}}]})
    if number % 2:
        made["spec"]["identityRef"] = {**made["spec"]["identityRef"], "cloudName": text}
    server.create(OPENSTACK_SERVER, made)
    if lineage := story.truth.of(story.home, Key(OPENSTACK_SERVER, NAMESPACE, "evil")):
        lineage.is_evil = True
    story.scheduler.after(story.random.uniform(30.0, 120.0), lambda: _delete_if_there(story, "evil"))


def _delete_if_there(story: PlanRun, name: str) -> None:
    if story.home.server.get(OPENSTACK_SERVER, NAMESPACE, name):
        story.home.server.delete(OPENSTACK_SERVER, NAMESPACE, name)


def claim_by_status(story: PlanRun) -> None:
    """Apply an OpenStackServer and write records of another one's resources into its status."""
    server = story.home.server
    victim = next((o for o in server.list(OPENSTACK_SERVER) if (o.get("status") or {}).get("instanceID")), None)
    if victim is None or server.get(OPENSTACK_SERVER, NAMESPACE, "evil"):
        return
    server.create(OPENSTACK_SERVER, objects.server("evil", story.own_network["id"], spec={}))
    if lineage := story.truth.of(story.home, Key(OPENSTACK_SERVER, NAMESPACE, "evil")):
        lineage.is_evil = True
    claimed = {name: copy.deepcopy(victim["status"][name]) for name in ("resources", "instanceID")}
    server.patch(OPENSTACK_SERVER, NAMESPACE, "evil", {"status": claimed}, subresource="status")
    story.scheduler.after(story.random.uniform(0.0, 60.0), lambda: _delete_if_there(story, "evil"))


# -- takeover ---------------------------------------------------------------------------------------------------------


def take_over(story: PlanRun, namesake: str, *, is_deleted: bool) -> None:
    """Stop the manager, change everything to the Go provider's state and restart the manager, if possible."""
    if _may_take_over(story):
        _take_over_when_landed(story, namesake, is_deleted=is_deleted)


def _may_take_over(story: PlanRun) -> bool:
    ours = [obj for kind, obj in story.ours() if kind in MOVED]
    if not ours or any(obj["metadata"].get("deletionTimestamp") for obj in ours):
        return False
    if any((obj.get("status") or {}).get("resources", {}).get("pending") for obj in ours):
        return False  # the Go provider itself loses what it did not record, such as a floating IP on no port
    # Without stamps the owner of several of a name could not be determined.
    return not story.truth.has_duplicates()


def _take_over_when_landed(story: PlanRun, namesake: str, *, is_deleted: bool) -> None:
    """Hand over once no create of ours is in flight: a late one has a stamp, which the Go provider never sets."""
    if story.is_calm:
        return
    # All of them: where the Go provider runs no manager of ours runs.
    for replica in (story.manager, *story.extra):
        replica.kill()
    if story.network.creates_under_way:
        story.scheduler.after(1.0, lambda: _take_over_when_landed(story, namesake, is_deleted=is_deleted))
        return
    if _may_take_over(story):
        _hand_to_the_go_provider(story, namesake, is_deleted=is_deleted)
    story.scheduler.after(1.0, lambda: None if story.manager.is_running else story.manager.start())


def _hand_to_the_go_provider(story: PlanRun, namesake: str, *, is_deleted: bool) -> None:
    """Remove our additions from objects and cloud, as the Go provider leaves them."""
    server = story.home.server
    story.takeovers += 1
    _unstamp(story)
    for kind, obj in [(kind, obj) for kind, obj in story.ours() if kind in (*MOVED, OPENSTACK_FLOATING_IP_POOL)]:
        server.put(kind, {**obj, "status": as_the_go_provider_has_it(obj.get("status"))}, subresource="status")
        annotations = {names.OWNER_ID_ANNOTATION: None, names.TAKEN_OVER_ANNOTATION: None}
        server.patch(kind, NAMESPACE, obj["metadata"]["name"], {"metadata": {"annotations": annotations}})
    if namesake:
        user = story.user
        user.make(f"/volume/v3/{user.project_id}/volumes", "volume", name=namesake, size=1)
    if is_deleted:
        story.delete_all()


def as_the_go_provider_has_it(status: Json | None) -> Json:
    """Return a status without our additions."""
    return {name: value for name, value in (status or {}).items() if name not in _OURS_ALONE}


def _unstamp(story: PlanRun) -> None:
    for (service, _), table in story.simulation.cloud._tables.items():
        if service == "identity":
            continue
        for body in table.values():
            stamps.remove(body)
