"""What the real ``clusterctl describe cluster`` prints of a cluster that is built, fails, is healthy and is deleted."""

from __future__ import annotations

import difflib
import math
import os
import re
import subprocess
from pathlib import Path
from typing import Final

import pytest

from capo.json_types import Json
from capo.local.rig import Rig
from capo.simulator.nova.build import NO_HOST
from capo.simulator.nova.servers import fail_builds
from capo.simulator.nova.state import servers, touch
from e2e.machines import objects
from e2e.machines.environment import MachinesEnvironment

pytestmark = [pytest.mark.integration, pytest.mark.timeout(1800)]

PAGE: Final = (Path(__file__).parents[2] / "docs" / "reference" / "clusterctl.md").read_text(encoding="utf-8")
BLOCK: Final = re.compile(r"^## (.+)\n(?:(?!## ).*\n)*?```text\n((?:.*\n)*?)```$", re.MULTILINE)
VARIABLE: Final = (
    (re.compile(r"(?<= )[a-z0-9-]+/kube"), "NAMESPACE/kube"),
    (re.compile(r"\bkube-control-plane-[a-z0-9]{5}\b"), "kube-control-plane-SUFFIX"),
    (re.compile(r"\bkube-md-0-[a-z0-9]{5}-[a-z0-9]{5}\b"), "kube-md-0-SET-SUFFIX"),
    (re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"), "ID"),
    (re.compile(r"(?<= )(\d+[dhms])+(?!\S)"), "AGE"),
    (re.compile(r" +"), " "),
)
"""What differs between runs: names, ids, ages, and with them the width of columns."""
LIMIT_S: Final = 400.0


def comparable(text: str) -> list[str]:
    """Return the lines without what differs between runs."""
    for pattern, instead in VARIABLE:
        text = pattern.sub(instead, text)
    return [line.rstrip() for line in text.splitlines()]


def describe(world: MachinesEnvironment, rig: Rig) -> str:
    """Return what the real clusterctl prints."""
    command = [str(rig.clusterctl()), "describe", "cluster", objects.CLUSTER, "--namespace", world.namespace]
    options = ["--show-conditions", "all", "--kubeconfig", str(rig.kubeconfig)]
    env = {"HOME": str(rig.layout.root), "PATH": os.environ["PATH"], "CLUSTERCTL_DISABLE_VERSIONCHECK": "true"}
    ended = subprocess.run([*command, *options], capture_output=True, text=True, check=False, env=env, timeout=120)
    return ended.stdout + ended.stderr


def expect(world: MachinesEnvironment, rig: Rig, title: str) -> None:
    """Wait until clusterctl prints what the page shows below a heading; an error has the difference."""
    wanted = comparable(dict(BLOCK.findall(PAGE))[title])
    printed = ""

    def is_printed() -> bool:
        nonlocal printed
        printed = describe(world, rig)
        return comparable(printed) == wanted

    try:
        world.wait_until(f"clusterctl prints the block {title!r}", is_printed, limit_s=LIMIT_S)
    except AssertionError as error:
        difference = difflib.unified_diff(wanted, comparable(printed), "the page", "clusterctl", lineterm="")
        raise AssertionError("\n".join([*difference, "", printed, str(error)])) from error


def place(world: MachinesEnvironment) -> None:
    """Create a cluster whose servers stay in BUILD; that of the first worker will find no host."""
    with world.client() as client:
        networks = client.ask("GET", "/network/v2.0/networks?router:external=true")["networks"]
    cloud = world.simulator.cloud
    cloud.timings.server_build_s = math.inf
    world.simulator.call(lambda: fail_builds(cloud, {"name": "kube-md-0", "message": NO_HOST}))
    clouds = world.simulator.clouds_yaml.read_bytes()
    world.apply(*objects.cluster(clouds, networks[0]["id"], control_planes=1, workers=1))


def finish_builds(world: MachinesEnvironment) -> None:
    """End the build of existing servers, and have new ones built in a moment."""
    cloud = world.simulator.cloud
    cloud.timings.server_build_s = 0.1
    active = {"status": "ACTIVE", "task_state": None, "launched_at": "2026-01-01T00:00:00.000000"}

    def finish() -> None:
        for server in servers(cloud).values():
            touch(cloud, server, **active)

    world.simulator.call(finish)


def replace_worker(world: MachinesEnvironment) -> None:
    """Delete the Machine of the worker; its MachineSet creates another."""
    (worker,) = (name for name in world.machines() if name.startswith("kube-md-0"))
    world.delete("machines", worker)


def put_port(world: MachinesEnvironment) -> Json:
    """Create a port on the network of the cluster, as somebody else."""
    (network,) = world.cloud("network/networks").values()
    with world.client() as client:
        port: Json = client.make("/network/v2.0/ports", "port", network_id=network["id"], name="by-hand")
    world.users.add(port["id"])
    return port


def test_clusterctl_prints_what_the_page_shows(world: MachinesEnvironment, rig: Rig) -> None:
    place(world)
    expect(world, rig, "Building")

    finish_builds(world)
    expect(world, rig, "Failing")

    replace_worker(world)
    expect(world, rig, "Healthy")

    port = put_port(world)
    world.delete("clusters", objects.CLUSTER)
    expect(world, rig, "Deleting")

    with world.client() as client:
        client.ask("DELETE", f"/network/v2.0/ports/{port['id']}")
