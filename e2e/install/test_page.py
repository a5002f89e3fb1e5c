"""``docs/how-to/install.md`` is followed to the letter, by the real make, clusterctl, kubectl and helm.

The tests build on one another, in their order: each way begins on a cluster without the provider. For the substitutes
of a rig see ``docs/reference/rig.md``.
"""

from __future__ import annotations

import re
import shutil

import pytest
import yaml

from capo import components
from capo.components import deployment, manifest, release
from capo.json_types import Json
from capo.local import clusterctl as ctl
from capo.local import installed
from capo.local.clusterctl import Clusterctl
from capo.local.errors import ApiError
from capo.local.rig import Rig
from capo.version import VERSION
from e2e.clusterctl.objects import VARIABLES
from e2e.install import page
from e2e.install.page import SHELL, Section
from e2e.install.terminal import CommandError, Terminal
from environments.manager_process import wait_until

pytestmark = [pytest.mark.integration, pytest.mark.incremental]


PAGES = release.CHECKOUT / "docs" / "how-to"
PAGE = PAGES / "install.md"
SECTIONS = page.sections(PAGE)
IMAGE = f"registry.example.org/capo:v{VERSION}"
BY_DIGEST = f"registry.example.org/capo@sha256:{'0' * 64}"
NEXT = "v1.0.99"
"""The number of the next release; what is installed under it is this version."""
GO_PROVIDER = "v0.14.1"
"""A version in a series of the Go provider; the provider installed under it is ours, from an earlier repository."""
INVENTORY = "/apis/clusterctl.cluster.x-k8s.io/v1alpha3"
FLAVORS = re.findall(r"^\| `([\w-]+)` \|", PAGE.read_text(encoding="utf-8").partition("## Flavors")[2], re.MULTILINE)
ELSEWHERE = {
    "": "image: needs a container engine and a registry; `make e2e-kind` builds it and runs it as the Deployment does",
    "With the Cluster API Operator": "`make e2e-operator` follows it: the operator's build takes minutes",
}
"""Sections whose commands are not run here, and the tests that run them."""
FOLLOWED: set[str] = set()


def follows(title: str) -> pytest.MarkDecorator:
    """Pass a test the section that it follows."""
    FOLLOWED.add(title)
    return pytest.mark.parametrize("section", [pytest.param(SECTIONS[title], id="")])


def the_deployment(rig: Rig) -> Json:
    path = f"/apis/apps/v1/namespaces/{components.NAMESPACE}/deployments/{deployment.NAME}"
    return dict(rig.api.get(path)["spec"])


def image(rig: Rig) -> str:
    (container,) = the_deployment(rig)["template"]["spec"]["containers"]
    return str(container["image"])


def remove(rig: Rig) -> None:
    """Delete the provider and its namespace, however it was installed; the CRDs remain, as they do for users."""
    namespace = f"/api/v1/namespaces/{components.NAMESPACE}"
    rig.api.delete(f"{INVENTORY}/namespaces/{components.NAMESPACE}/providers/{release.LABEL}")
    for obj in manifest.objects(deployment.Pod(IMAGE)):
        if obj["kind"] != "CustomResourceDefinition":
            rig.api.delete(rig.api.path_of(obj))
    rig.api.delete(namespace)
    rig.api.wait_namespaces_deleted()  # with that in which `clusterctl init` tested cert-manager


@pytest.mark.parametrize("title", ELSEWHERE)
def test_a_section_that_is_followed_elsewhere_has_commands(title: str) -> None:
    assert SECTIONS[title].blocks, f"there is nothing to run in {title!r} any more ({ELSEWHERE[title]})"


@follows("With Helm")
def test_with_helm(terminal: Terminal, section: Section) -> None:
    install, upgrade, uninstall = section.blocks

    terminal.type(install.text)
    first = the_deployment(terminal.rig)
    terminal.type(upgrade.text)
    second = the_deployment(terminal.rig)
    terminal.type(uninstall.text)

    (container,) = second["template"]["spec"]["containers"]
    assert (first["replicas"], second["replicas"]) == (1, 2)
    assert (container["image"], container["resources"]["limits"]) == (IMAGE, {"memory": "2Gi"})
    with pytest.raises(ApiError, match="not found"):
        the_deployment(terminal.rig)
    assert len(ctl.definitions(terminal.rig)) == len(manifest.crds())
    remove(terminal.rig)


@follows("Without clusterctl")
def test_without_clusterctl(terminal: Terminal, section: Section) -> None:
    terminal.follow(section)

    assert image(terminal.rig) == IMAGE
    assert "--feature-gates=PriorityQueue=true,AutoScaleFromZero=true" in installed.arguments(terminal.rig)
    remove(terminal.rig)


@follows("With clusterctl")
def test_with_clusterctl(terminal: Terminal, section: Section, others: Clusterctl) -> None:
    make_release, configuration, init = section.blocks
    entry = configuration.text.replace("/path/to/build", str(terminal.checkout / "build"))
    beside = yaml.safe_load(others.config.read_text())
    beside["providers"] = [each for each in beside["providers"] if each["name"] != ctl.PROVIDER]

    terminal.type(f"make release IMAGE={BY_DIGEST}")
    terminal.config.write_text(
        yaml.safe_dump({**beside, "providers": [*yaml.safe_load(entry)["providers"], *beside["providers"]]})
    )
    described = terminal.type("clusterctl generate provider --infrastructure openstack --describe")
    terminal.type(make_release.text)
    terminal.type(init.text)

    assert BY_DIGEST in described
    laid_out = re.findall(r"[\w*-]+\.yaml", make_release.text)
    folder = terminal.checkout / "build" / "release" / release.LABEL / f"v{VERSION}"
    assert [pattern for pattern in laid_out if not list(folder.glob(pattern))] == []
    assert image(terminal.rig) == IMAGE
    assert f"v{VERSION}" in terminal.type("clusterctl upgrade plan")
    remove(terminal.rig)


@follows("Replace the Go provider")
def test_in_the_place_of_the_go_provider(terminal: Terminal, section: Section) -> None:
    rig, folder = terminal.rig, terminal.checkout / "build" / "release" / release.LABEL
    upgrade, count = section.blocks
    shutil.copytree(folder / f"v{VERSION}", folder / GO_PROVIDER)
    terminal.type(f"clusterctl init --infrastructure openstack:{GO_PROVIDER}")

    printed = terminal.type(upgrade.text)
    ctl.repoint(rig)
    installed.start(rig)

    assert GO_PROVIDER in next(line for line in printed.splitlines() if line.startswith(release.LABEL))
    assert installed_version(rig) == f"v{VERSION}"
    assert terminal.type(count.text).strip() == "0"


@follows("Stored versions")
def test_stored_versions(terminal: Terminal, section: Section) -> None:
    (show,) = section.blocks
    installed.settle(terminal.rig)

    rows = dict(line.split(maxsplit=1) for line in terminal.type(show.text).splitlines()[1:])

    assert rows["openstackclusters.infrastructure.cluster.x-k8s.io"] == "[v1beta2]"
    assert len(rows) == len(manifest.crds())


@follows("Flavors of clusters")
@pytest.mark.parametrize("flavor", ["", *FLAVORS])
def test_flavors_of_clusters(terminal: Terminal, section: Section, flavor: str) -> None:
    (generate,) = section.blocks
    name = f"page-{flavor}".rstrip("-")
    placeholders = {"NAME": name, "--flavor FLAVOR": f"--flavor {flavor}" if flavor else ""}

    # A kind that depends on another, as a Cluster on its class, may be applied too early.
    wait_until("all objects are taken", lambda: typed(terminal, generate.text, placeholders), every_s=1)

    core = "/apis/cluster.x-k8s.io/v1beta2/namespaces/default"
    if flavor == "workers":
        workers = terminal.rig.api.get(f"{core}/machinedeployments/{name}-{VARIABLES['WORKERS_NAME']}")
        assert workers["spec"]["clusterName"] == name
        return
    found = terminal.rig.api.get(f"{core}/clusters/{name}")
    assert found["metadata"]["name"] == name
    if flavor != "topology":
        assert found["spec"]["infrastructureRef"]["kind"] == "OpenStackCluster"


def typed(terminal: Terminal, text: str, placeholders: dict[str, str]) -> str:
    try:
        return terminal.type(text, placeholders)
    except CommandError as error:
        print(error)
        return ""


def commands(name: str, title: str) -> list[str]:
    """Return the blocks of commands of a section of another page."""
    return [block.text for block in page.sections(PAGES / name)[title].blocks if block.language == SHELL]


def test_the_page_on_upgrades_leads_to_the_next_release_and_back(terminal: Terminal) -> None:
    rig, folder = terminal.rig, terminal.checkout / "build" / "release" / release.LABEL
    titles = ("Before", "With clusterctl", "After", "Back to the former version")
    (versions,), (upgrade,), (show,), (back,) = (commands("upgrade.md", title) for title in titles)
    shutil.copytree(folder / f"v{VERSION}", folder / NEXT)
    assert "[v1beta2]" in terminal.type(versions)
    rig.stop(installed.MANAGER)  # clusterctl scales its Deployment down, and a kubelet would end it
    ctl.point_back(rig)

    plan = terminal.type(upgrade, {"VERSION": NEXT})
    upgraded, shown = installed_version(rig), terminal.type(show)
    terminal.type(back, {"FORMER": f"v{VERSION}"})
    ctl.repoint(rig)

    assert NEXT in next(line for line in plan.splitlines() if line.startswith(release.LABEL))
    assert shown.startswith(image(rig))
    assert (upgraded, installed_version(rig)) == (NEXT, f"v{VERSION}")


def installed_version(rig: Rig) -> str:
    """Return the version of the provider in clusterctl's inventory."""
    return str(rig.api.get(f"{INVENTORY}/namespaces/{components.NAMESPACE}/providers/{release.LABEL}")["version"])


def test_the_page_on_sizes_gives_the_manager_more_memory_and_a_flag(terminal: Terminal) -> None:
    resources, flag = commands("sizing.md", "What to set")

    terminal.type(resources)
    terminal.type(flag)

    (container,) = the_deployment(terminal.rig)["template"]["spec"]["containers"]
    assert container["resources"]["limits"]["memory"] == "2Gi"
    assert container["args"][-1] == "--cloud-concurrency=20"


def test_every_command_of_the_page_is_followed_or_named_as_run_elsewhere() -> None:
    with_blocks = {title for title, each in SECTIONS.items() if each.blocks}

    assert with_blocks == FOLLOWED | ELSEWHERE.keys()


def test_flavors_of_the_page_are_those_that_there_are() -> None:
    there = {
        path.stem.removeprefix("cluster-template").removeprefix("-")
        for path in release.templates()
        if path.stem.startswith("cluster-")
    }

    assert {"", *FLAVORS} == there
