"""What ``kubectl get`` and ``kubectl describe`` show of each kind: the tables of a real API server, and the page."""

from __future__ import annotations

import copy
import re
import shlex
import subprocess
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from api import conversion
from capo.crdgen import definitions
from capo.crdgen.definitions import DEFINITIONS, Definition
from capo.crdgen.tests import go_provider
from capo.json_types import Json
from capo.local.binaries import Binaries
from capo.local.rig import Rig
from environments import objects

pytestmark = pytest.mark.integration

PAGE: Final = (Path(definitions.__file__).resolve().parents[2] / "docs" / "reference" / "kubectl.md").read_text()
TABLE: Final = "application/json;as=Table;v=v1;g=meta.k8s.io"
WIDTH: Final = 120
NETWORK, SERVER = (str(uuid.UUID(int=number, version=4)) for number in (0x5F1C << 112, 0x8D2E << 112))
MACHINE_NAME: Final = "web-md-0-x7k2p-9zqwl"
IDENTITY: Final = {"name": "web-cloud-config", "cloudName": "openstack"}
MACHINE: Final[Json] = {
    "flavor": {"filter": {"name": "m1.medium"}},
    "image": {"filter": {"name": "ubuntu-2404-kube-v1.34"}},
}
ADDRESSES: Final = [
    {"type": "InternalIP", "address": "10.6.0.25"},
    {"type": "InternalDNS", "address": MACHINE_NAME},
]


def conditions(type_: str, reason: str = "Ready") -> list[Json]:
    at = "2026-01-02T03:04:05Z"
    status = "True" if reason == "Ready" else "False"
    return [{"type": type_, "status": status, "reason": reason, "message": "", "lastTransitionTime": at}]


def an(kind: str, name: str, spec: Json, **status: Any) -> Json:
    model = next(d for d in DEFINITIONS if d.kind == kind).stored
    labels = {"labels": {"cluster.x-k8s.io/cluster-name": "web"}} if kind in ("OpenStackCluster", MACHINES) else {}
    obj = {"apiVersion": model.model_fields["api_version"].default, "kind": kind}
    return obj | {"metadata": {"name": name, **labels}, "spec": spec} | ({"status": status} if status else {})


MACHINES: Final = "OpenStackMachine"
BUILT: Final[dict[str, Json]] = {
    each["kind"]: each
    for each in (
        an(
            "OpenStackCluster",
            "web",
            {"identityRef": IDENTITY, "controlPlaneEndpoint": {"host": "203.0.113.10", "port": 6443}},
            conditions=conditions("Ready"),
            network={"id": NETWORK, "name": "k8s-clusterapi-cluster-default-web"},
            bastion={"floatingIP": "203.0.113.11"},
        ),
        an(
            "OpenStackClusterTemplate",
            "web",
            {"template": {"spec": {"identityRef": IDENTITY, "bastion": {"spec": MACHINE}}}},
        ),
        objects.owned(
            an(
                MACHINES,
                MACHINE_NAME,
                MACHINE | {"providerID": f"openstack:///{SERVER}"},
                conditions=conditions("Ready"),
                addresses=ADDRESSES,
                failureDomain="az1",
            ),
            {
                "apiVersion": "cluster.x-k8s.io/v1beta2",
                "kind": "Machine",
                "metadata": {"name": MACHINE_NAME, "uid": "m"},
            },
        ),
        an(
            "OpenStackMachineTemplate",
            "web-md-0",
            {"template": {"spec": MACHINE}},
            conditions=conditions("ReferencesReady"),
            capacity={"cpu": "4", "memory": "8Gi"},
            nodeInfo={"architecture": "amd64"},
        ),
        an(
            "OpenStackServer",
            MACHINE_NAME,
            {
                "identityRef": IDENTITY,
                "flavor": "m1.medium",
                "image": MACHINE["image"],
                "ports": [{"network": {"id": NETWORK}}],
                "sshKeyName": "",
            },
            conditions=conditions("InstanceReady"),
            ready=True,
            instanceID=SERVER,
            instanceState="ACTIVE",
            addresses=ADDRESSES,
            availabilityZone="az1",
        ),
        an(
            "OpenStackFloatingIPPool",
            "public",
            {"identityRef": IDENTITY, "reclaimPolicy": "Delete", "maxIPs": 20},
            conditions=conditions("OpenstackFloatingIPPoolReadyCondition", "MaxIPsReached"),
            floatingIPNetwork={"id": NETWORK, "name": "public"},
            claimedIPs=["203.0.113.21", "203.0.113.22"],
            availableIPs=["203.0.113.23"],
        ),
        an(
            "OpenStackClusterIdentity",
            "production",
            {"secretRef": {"name": "production-cloud", "namespace": "capo-system"}},
            conditions=conditions("OpenStackAuthenticationSucceeded"),
            usedBy=12,
        ),
    )
}
VERSIONS: Final = [
    pytest.param(definition, definitions.version_name(model), id=f"{definition.kind} {model.__module__.split('.')[1]}")
    for definition in DEFINITIONS
    for model in definition.versions
]


def group_of(version: str) -> str:
    """Return a group of its own for a version: the definitions of other tests stay as they are."""
    return f"columns-{version}.example.org"


def alone(definition: Definition, version: str) -> Json:
    """Return a definition with one version, which needs no conversion."""
    crd = copy.deepcopy(definitions.manifest(definition))
    plural = crd["spec"]["names"]["plural"]
    crd["spec"]["versions"] = [v | {"storage": True} for v in crd["spec"]["versions"] if v["name"] == version]
    crd["spec"] |= {"group": group_of(version), "conversion": {"strategy": "None"}}
    return crd | {"metadata": {"name": f"{plural}.{group_of(version)}"}}


def placed(kind: str, version: str) -> Json:
    """Return the object of a kind in a version, in the group of the tests."""
    obj = dict(BUILT[kind])
    if version == "v1beta1":
        obj = conversion.convert(obj, conversion.OLDER)
    return obj | {"apiVersion": f"{group_of(version)}/{version}"}


@pytest.fixture(scope="module")
def served(api_server: Rig) -> Iterator[Rig]:
    pairs = [(d, definitions.version_name(model)) for d in DEFINITIONS for model in d.versions]
    crds = [alone(*pair) for pair in pairs]
    api_server.apply(crds)
    for definition, version in pairs:
        obj = placed(definition.kind, version)
        status = obj.pop("status", None)
        api_server.apply([obj])
        if status:
            api_server.api.patch(f"{api_server.api.path_of(obj)}/status", {"status": status})
    yield api_server
    for crd in crds:
        api_server.api.delete(f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{crd['metadata']['name']}")


def table(rig: Rig, kind: str, version: str) -> tuple[list[Json], list[str]]:
    """Return columns and cells of an object as kubectl gets them; a time is always 5 days ago."""
    path = rig.api.path_of(placed(kind, version))
    found = rig.api.request("GET", path, headers={"Accept": TABLE})
    columns = found["columnDefinitions"]
    cells = [
        "5d" if column["type"] == "date" and cell else "<none>" if cell is None else str(cell)
        for column, cell in zip(columns, found["rows"][0]["cells"], strict=True)
    ]
    return columns, cells


def printed(columns: list[Json], cells: list[str], *, is_wide: bool, without: tuple[str, ...] = ()) -> str:
    """Return the table as kubectl prints it: three blanks between columns."""
    shown = [
        (column["name"].upper(), cell)
        for column, cell in zip(columns, cells, strict=True)
        if (is_wide or not column["priority"]) and column["name"] not in without
    ]
    widths = [max(len(text) for text in pair) for pair in shown]
    lines = zip(*shown, strict=True)
    return "\n".join("   ".join(t.ljust(w) for t, w in zip(line, widths, strict=True)).rstrip() for line in lines)


def names_of_go_provider(kind: str, version: str) -> tuple[str, ...]:
    frames = {v["name"]: v for v in go_provider.crd(kind)["spec"]["versions"]}
    return tuple(column["name"] for column in frames[version].get("additionalPrinterColumns", ()))


@pytest.mark.parametrize(("definition", "version"), VERSIONS)
def test_columns_have_a_value_and_fit_in_a_terminal(served: Rig, definition: Definition, version: str) -> None:
    columns, cells = table(served, definition.kind, version)
    theirs = tuple(set(names_of_go_provider(definition.kind, version)) - {"Age"})

    default = printed(columns, cells, is_wide=False)
    ours = printed(columns, cells, is_wide=True, without=theirs)

    assert "<none>" not in cells
    assert not [cell for cell in cells if "{" in cell or "[" in cell]
    assert [text for text in (default, ours) if max(map(len, text.splitlines())) > WIDTH] == []


def test_the_page_shows_what_is_printed(served: Rig) -> None:
    tables = [table(served, each.kind, definitions.version_name(each.stored)) for each in DEFINITIONS]

    wanted = [printed(*each, is_wide=is_wide) for each in tables for is_wide in (False, True)]

    assert re.findall(r"```text\n(.*?)\n```", PAGE, re.DOTALL) == wanted


@pytest.mark.parametrize(("plural", "version"), [("openstackmachines", "v1beta2"), ("openstackservers", "v1alpha1")])
def test_a_command_of_the_page_shows_state_and_places_of_long_names_in_120_characters(
    served: Rig, plural: str, version: str
) -> None:
    (command,) = re.findall(rf"^ {{4}}kubectl (get {plural} .*)$", PAGE, re.MULTILINE)

    shown = kubectl(served, *shlex.split(command.replace(plural, f"{plural}.{group_of(version)}"))).splitlines()

    image = "ubuntu-2404-kube-v1.34"
    values = [MACHINE_NAME, "Ready", "10.6.0.25", "m1.medium", "az1", image, "2026-01-02T03:04:05Z"]
    assert shown[1].split() == values
    assert max(map(len, shown)) <= WIDTH


@pytest.mark.parametrize(("kind", "version"), [(MACHINES, "v1beta2"), ("OpenStackServer", "v1alpha1")])
def test_the_page_says_how_wide_the_tables_of_machines_and_servers_are(served: Rig, kind: str, version: str) -> None:
    columns, cells = table(served, kind, version)
    theirs = {"Name", *names_of_go_provider(kind, version)}
    ours = tuple(column["name"] for column in columns if column["name"] not in theirs)

    whole = width(printed(columns, cells, is_wide=True))
    alone = width(printed(columns, cells, is_wide=True, without=ours))

    assert re.search(rf"\b{whole}\b", PAGE)
    if kind == MACHINES:
        assert f"need {alone} characters" in PAGE
        fits = alone + len("   State")
        assert fits <= WIDTH < fits + len("   Zone"), "nothing but the state fits beside them"


def width(text: str) -> int:
    return max(map(len, text.splitlines()))


def kubectl(rig: Rig, *arguments: str) -> str:
    program = Binaries.from_environment().require(["kubectl"], say=print)["kubectl"]
    command = [str(program), f"--kubeconfig={rig.kubeconfig}", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout


def test_kubectl_describes_state_address_flavor_zone_and_image(served: Rig) -> None:
    described = kubectl(served, "describe", f"openstackservers.{group_of('v1alpha1')}/{MACHINE_NAME}")

    for line in (
        r"Instance State:\s+ACTIVE",
        r"Address:\s+10\.6\.0\.25",
        r"Flavor:\s+m1\.medium",
        r"Availability Zone:\s+az1",
        r"Name:\s+ubuntu-2404-kube-v1\.34",
        r"Last Transition Time:\s+2026-01-02T03:04:05Z",
    ):
        assert re.search(line, described), line
