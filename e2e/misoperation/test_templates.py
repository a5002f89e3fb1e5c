"""Wrong values in a template that a MachineDeployment uses: its conditions name them, and nothing else happens.

The spec of a template cannot change, so that a user's mistake is in a new template to which a MachineDeployment moves.
Every value of the table that the definitions admit is in a template of its own; all of them exist at once, beside a
running control plane.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any, Final

import pytest

from capo.json_types import Json
from capo.kube.kinds import CLUSTER, OPENSTACK_CLUSTER, OPENSTACK_MACHINE_TEMPLATE
from capo.simulator.glance.service import add_image
from capo.simulator.nova.flavors import add_flavor
from controllers.openstackcluster import template_references
from e2e.misoperation import admission, rows, snapshot, trial
from e2e.misoperation.environment import RunningObjectEnvironment, place, refer
from e2e.misoperation.rows import EMPTY, WRONG, Row
from e2e.misoperation.snapshot import Snapshot
from e2e.misoperation.test_table import MODE, is_drawn
from environments import objects
from environments.provider import NAME

KIND: Final = OPENSTACK_MACHINE_TEMPLATE
(VERSION,) = (version for version in rows.STORED if version.kind == KIND.kind)
ROWS: Final = rows.rows(VERSION, rows.base_of(VERSION))
GOOD: Final = "good"
READY, REFERENCES, CAPACITY, NODE_INFO = "Ready", "ReferencesReady", "CapacityReady", "NodeInfoReady"
AUTHENTICATION: Final = "OpenStackAuthenticationSucceeded"
SETTLED_S: Final = 400.0
NAMING: Final = (
    ("flavor", CAPACITY),
    ("image", NODE_INFO),
    ("sshKeyName|serverGroup|securityGroups", REFERENCES),
    (r"ports\[\]\.(network|fixedIPs\[\]\.subnet|securityGroups)", REFERENCES),
    (r"(rootVolume|additionalBlockDevices\[\]\.storage\.volume)\.(type|availabilityZone\.name)", REFERENCES),
    (r"identityRef\.region", CAPACITY),
    ("identityRef", AUTHENTICATION),
)
"""Fields that name what must exist, and the condition about it; flavor and image are in ReferencesReady, too."""
COMMON: Final = re.compile(r"(ports\[\]\.)?(network|fixedIPs\[\]\.subnet|securityGroups\[\])\.filter\..*")
"""Fields of filters, which the same code handles: of these, and of all that names nothing, a share is run."""
AMBIGUOUS: Final = r"ports\[0\]: (network|subnet): AmbiguousMatch: \d (network|subnet)s match"
"""That a filter matches several is reported with the field that has the filter."""
SAME_FOR_GROUPS: Final = re.compile(r".*securityGroups\[\]\.filter\.\w+")
"""Groups keep their name as a filter, so that an empty list beside it excludes nothing."""


def path(row: Row) -> str:
    """Return the path of the field in the spec of the machines."""
    return row.path.removeprefix("spec.template.spec.")


def condition_about(row: Row) -> str | None:
    """Return the condition that has to name a value, None if nothing but the machines can show whether it is right."""
    if row.edit != WRONG and not (row.edit == EMPTY and is_ambiguous(row)):
        return None
    return next((type_ for pattern, type_ in NAMING if re.match(rf"({pattern})\b", path(row))), None)


def is_ambiguous(row: Row) -> bool:
    """Return whether an empty value makes a filter of its own that matches every network or subnet."""
    return bool(COMMON.fullmatch(path(row))) and not SAME_FOR_GROUPS.fullmatch(path(row))


def verdict(row: Row) -> admission.Verdict:
    """Return the verdict on a new template with a wrong value."""
    made = {"apiVersion": VERSION.api_version, "kind": KIND.kind, "metadata": {"name": "one", "namespace": "default"}}
    return admission.create(VERSION, made | {"spec": row.applied(rows.base_of(VERSION))})


ADMITTED: Final = [(row, found.obj["spec"]) for row in ROWS if (found := verdict(row)).is_admitted]


class TemplatesEnvironment(RunningObjectEnvironment):
    """A running control plane, and templates that MachineDeployments of its cluster refer to."""

    def template(self, name: str, spec: Json) -> None:
        """Create a template of the cluster and a MachineDeployment without machines that refers to it."""
        owner = objects.owner_reference(self.get(CLUSTER, NAME))
        place(self, KIND, {"metadata": {"name": name, "ownerReferences": [owner]}, "spec": spec})
        refer(self, name, name)

    def shown(self, name: str) -> dict[str, str]:
        """Return the conditions of a template that are not True, with their messages."""
        found = (self.get(KIND, name).get("status") or {}).get("conditions") or ()
        return {c["type"]: c.get("message", "") for c in found if c["status"] != "True" and c["type"] != "Paused"}

    def facts(self, name: str) -> Json:
        """Return what is reported of the nodes of a template."""
        status = self.get(KIND, name).get("status") or {}
        return {field: status.get(field) for field in ("capacity", "nodeInfo")}

    def remove(self, name: str) -> None:
        """Move the MachineDeployment of a template to the good one, and delete the template."""
        refer(self, name, GOOD)
        self.delete(KIND, name)


def chosen() -> list[tuple[Row, Json]]:
    """Return the rows to run, with the specs of their templates."""
    return [
        (row, spec)
        for row, spec in ADMITTED
        if MODE or is_drawn(row) or (condition_about(row) and not COMMON.fullmatch(path(row)))
    ]


@pytest.fixture
def world() -> Iterator[TemplatesEnvironment]:
    with TemplatesEnvironment("OpenStackMachine") as made:
        made.template(GOOD, rows.base_of(VERSION))
        made.settle(for_s=SETTLED_S)
        assert made.shown(GOOD) == {}
        made.cloud.counter.reset()
        yield made


def complaints(world: TemplatesEnvironment, name: str, row: Row) -> Iterator[str]:
    """Yield what is wrong about the conditions of a template."""
    shown, about = world.shown(name), condition_about(row)
    if about is None:
        yield from (f"{row.text}: {type_} is not True: {text}" for type_, text in shown.items())
        return
    expected = {READY, about} | ({REFERENCES} if about != AUTHENTICATION else set())
    if row.leaf == "region":  # it shows when a service is asked, whichever it is
        expected |= {NODE_INFO}
    if not {about, READY} <= shown.keys() <= expected:
        yield f"{row.text}: not True are {shown}, expected {sorted(expected)}"
    elif not trial.names_it(row, shown[about]) and not (is_ambiguous(row) and re.search(AMBIGUOUS, shown[about])):
        yield f"{row.text}: not named by {about}: {shown[about]}"


def test_each_wrong_value_is_named_by_the_conditions_of_its_template_and_nothing_else_happens(
    world: TemplatesEnvironment,
) -> None:
    wrong = {f"t-{number}": row for number, (row, _) in enumerate(chosen())}
    before, reported, events = snapshot.take(world), world.facts(GOOD), len(world.events.seen)
    for name, (_, spec) in zip(wrong, chosen(), strict=True):
        world.template(name, spec)

    world.settle(for_s=SETTLED_S)

    assert not (found := [text for name, row in wrong.items() for text in complaints(world, name, row)]), "\n".join(
        found
    )
    lacking = {name for name in wrong if (world.condition(KIND, name, REFERENCES) or {}).get("status") == "False"}
    told = world.condition(OPENSTACK_CLUSTER, NAME, template_references.TYPE)
    assert told["status"] == "False"
    assert set(re.findall(r"OpenStackMachineTemplate ([\w-]+):", told["message"])) <= lacking
    assert told["message"].endswith(f"and {len(lacking) - template_references.MAX_TEMPLATES} more")
    assert world.messages() == [told["message"]], "nothing else is reported of the running cluster"
    assert unharmed(world, before)
    assert world.shown(GOOD) == {}
    assert world.facts(GOOD) == reported
    assert {reason for kind, reason, _ in world.events.seen[events:] if kind == "Warning"} == set()

    for name in wrong:
        world.remove(name)
    world.settle(for_s=SETTLED_S)

    assert world.condition(OPENSTACK_CLUSTER, NAME, template_references.TYPE) == {}
    assert world.messages() == []
    assert world.shown(GOOD) == {}
    assert unharmed(world, before)


def unharmed(world: TemplatesEnvironment, before: Snapshot) -> bool:
    """Return whether cloud and statuses are as before, and the manager has not even tried to change the cloud."""
    after = snapshot.take(world)
    return not (before.lost(after) or before.gained(after) or before.changes(after) or world.writes())


def create_flavor(world: TemplatesEnvironment) -> Any:
    return world.simulator.call(lambda: add_flavor(world.cloud, "soon", vcpus=3, ram=3072, disk=3))


def create_image(world: TemplatesEnvironment) -> Any:
    def add() -> Any:
        owner = next(iter(world.cloud.table("image", "images").values()))["owner"]
        return add_image(world.cloud, "soon", owner, data=b"x", tags=[])

    return world.simulator.call(add)


def create_key_pair(world: TemplatesEnvironment) -> Any:
    return world.member.ask("POST", "/compute/v2.1/os-keypairs", {"keypair": {"name": "soon", "public_key": KEY}})


def create_server_group(world: TemplatesEnvironment) -> Any:
    body = {"server_group": {"name": "soon", "policies": ["anti-affinity"]}}
    return world.member.ask("POST", "/compute/v2.1/os-server-groups", body)


def create_group(world: TemplatesEnvironment) -> Any:
    return world.member.make("/network/v2.0/security-groups", "security_group", name="soon")


def create_network(world: TemplatesEnvironment) -> Any:
    return world.member.make("/network/v2.0/networks", "network", name="soon")


def create_volume_type(world: TemplatesEnvironment) -> Any:
    def add() -> None:
        types = world.cloud.table("volume", "types")
        like = next(iter(types.values()))
        id_ = world.cloud.new_id()
        types[id_] = {**like, "id": id_, "name": "soon"}

    return world.simulator.call(add)


def create_secret(world: TemplatesEnvironment) -> Any:
    return world.apply_secret("soon")


KEY: Final = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl"
NAMED: Final = {"filter": {"name": "soon"}}
SOON: Final[tuple[tuple[str, Json, Callable[[TemplatesEnvironment], Any]], ...]] = (
    ("flavor", {"flavor": NAMED}, create_flavor),
    ("image", {"image": NAMED}, create_image),
    ("key-pair", {"sshKeyName": "soon"}, create_key_pair),
    ("server-group", {"serverGroup": NAMED}, create_server_group),
    ("security-group", {"securityGroups": [NAMED]}, create_group),
    ("network", {"ports": [{"network": NAMED}]}, create_network),
    ("volume-type", {"rootVolume": {"sizeGiB": 1, "type": "soon"}}, create_volume_type),
    ("secret", {"identityRef": {"name": "soon", "cloudName": "sim"}}, create_secret),
)
"""What a template names before it exists, and its creation."""


def test_what_is_created_later_is_found_without_an_edit(world: TemplatesEnvironment) -> None:
    before = snapshot.take(world)
    base = rows.base_of(VERSION)["template"]["spec"]
    for name, fields, _ in SOON:
        world.template(name, {"template": {"spec": {**base, **fields}}})
    world.settle(for_s=SETTLED_S)
    assert [name for name, _, _ in SOON if "soon" not in world.shown(name).get(READY, "")] == []
    assert unharmed(world, before)

    for _, _, create in SOON:
        create(world)
    world.settle(for_s=SETTLED_S)

    assert {name: shown for name, _, _ in SOON if (shown := world.shown(name))} == {}
    assert world.facts("flavor")["capacity"]["cpu"] == "3"
    assert world.messages() == []
