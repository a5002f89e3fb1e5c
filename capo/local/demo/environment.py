"""Sets everything up for a demo and removes it again: rig, cloud, our CRDs and role, the manager as a process."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from capo import components
from capo.local import installed, layout
from capo.local.clusterctl import PROVIDER, Clusterctl
from capo.local.demo import clouds, inventory, report
from capo.local.demo.clouds import LAB, SIMULATOR, Site
from capo.local.demo.console import Screen
from capo.local.demo.counting import Meter, scrape
from capo.local.demo.objects import Objects
from capo.local.demo.scenario import Plan, Story, delete_cluster
from capo.local.demo.watch import DemoError, Watch
from capo.local.errors import RigError
from capo.local.processes import started_at
from capo.local.rig import Rig

_PROJECT: Final = "demo_project"
_OWNER: Final = "demo_owner"
SIMULATOR_LIMIT_S: Final = 120.0


@dataclass(frozen=True)
class Options:
    """The user's options.

    Args:
        cloud: ``simulator``, ``lab``, or an entry of clouds.yaml.
        report: Markdown file for the measurements, None for none.
    """

    state: Path
    cloud: str = SIMULATOR
    bin_dir: Path | None = None
    report: Path | None = None
    plan: Plan = field(default_factory=Plan)


def run(options: Options, screen: Screen) -> None:
    """Run a demo with setup and cleanup; with ``keeps`` the cluster stays.

    Raises:
        RigError: a part failed; the message names it.
    """
    rig = _rig(options, screen)
    if rig.processes.names() and not _was_killed(rig):
        raise DemoError(f"a demo is still up in {options.state}: end it with `make demo-end`")
    rig.down(wipe=True)
    if options.cloud in {SIMULATOR, LAB} and not options.plan.keeps:
        rig.layout.create()
        rig.layout.write_state(**{_OWNER: [os.getpid(), started_at(os.getpid())]})
    screen.heading(f"Set up a management cluster and OpenStack: {options.cloud}")
    try:
        rig.up()
        with _site(rig, options, screen) as site:
            try:
                clusterctl = Clusterctl(rig, rig.layout.root / "clusterctl", site.variables)
                meter = _install(clusterctl, site, screen)
                Story(options.plan, clusterctl, site, screen, meter).tell()
            except (RigError, KeyboardInterrupt):
                _give_back(rig, options, screen)
                raise
            _tell_costs(options, site, screen, meter)
            if not options.plan.keeps:
                _uninstall(clusterctl, screen)
    except BaseException:
        if not options.plan.keeps:
            rig.down()
        screen.say(f"the logs of every process are in {rig.layout.log}", source="rig")
        raise
    if options.plan.keeps:
        _tell_what_to_try(rig, options, screen)
    else:
        rig.down(wipe=True)


def _was_killed(rig: Rig) -> bool:
    """Return whether the rig is of a demo that was to remove it, and whose process is gone.

    What it created in a cloud of the user must not be forgotten: such a demo, like a kept one, has no owner here.
    """
    pid, started = rig.layout.read_state().get(_OWNER, (0, None))
    return started is not None and started_at(pid) != started


def end(options: Options, screen: Screen) -> None:
    """Delete the cluster of a demo that was kept, and stop everything."""
    rig = _rig(options, screen)
    if not rig.processes.names():
        screen.say(f"nothing of {options.state} is running")
        return
    screen.heading("Delete the cluster, end everything")
    _delete(rig, options, screen)
    kept = rig.layout.read_state().get(_PROJECT)
    if kept:
        clouds.remove_lab_project(_lab_folder(), kept)
    rig.down(wipe=True)


def _rig(options: Options, screen: Screen) -> Rig:
    return Rig(options.state, bin_dir=options.bin_dir, say=lambda line: screen.say(line, source="rig"))


def _delete(rig: Rig, options: Options, screen: Screen) -> None:
    objects = Objects(rig.api, options.plan.namespace)
    watch = Watch(objects, screen, rig.check)
    watch.skip_past()
    delete_cluster(options.plan, objects, watch)


def _give_back(rig: Rig, options: Options, screen: Screen) -> None:
    """After a failure delete the demo's resources from a real cloud, if still possible; the simulator ends anyway."""
    if options.cloud == SIMULATOR or options.plan.keeps:
        return
    screen.heading("Something failed; deleting what was created")
    with suppress(RigError):
        _delete(rig, options, screen)


def _lab_folder() -> Path:
    return Path(os.environ.get("LAB_DIR") or Path.home() / ".cache/openstack-lab")


@contextmanager
def _site(rig: Rig, options: Options, screen: Screen) -> Iterator[Site]:
    if options.cloud == SIMULATOR:
        yield _simulated(rig)
    elif options.cloud == LAB:
        site = clouds.lab(_lab_folder())
        rig.layout.write_state(**{_PROJECT: site.member.project_id})
        try:
            yield site
        finally:
            if not options.plan.keeps:
                _remove_project(site, screen)
    else:
        yield clouds.named(options.cloud)


def _remove_project(site: Site, screen: Screen) -> None:
    left = [item for item in inventory.take(site.member).values() if item.owner]
    if left:
        screen.say(f"{len(left)} resources are left in project {site.member.project_id}", source="WARNING")
    else:
        clouds.remove_lab_project(_lab_folder(), site.member.project_id)


def _simulated(rig: Rig) -> Site:
    """Start a simulator beside the rig; it is stopped with the rig."""
    clouds_yaml, port = rig.layout.root / "clouds.yaml", rig.ports["simulator"]
    argv = [sys.executable, "-m", "capo", "simulate", f"--port={port}", f"--clouds={clouds_yaml}"]
    url = f"http://127.0.0.1:{port}"
    rig.start("simulator", argv, ready_url=f"{url}/_simulator/counts", limit_s=SIMULATOR_LIMIT_S)
    return clouds.simulated(clouds_yaml, url)


def _install(clusterctl: Clusterctl, site: Site, screen: Screen) -> Meter:
    """Install the provider as users do, and run its Deployment's manager.

    Returns:
        The meter of the manager.
    """
    rig = clusterctl.rig
    clusterctl.prepare()
    screen.say(f"clusterctl init --infrastructure={PROVIDER}, from {clusterctl.repository}")
    installed.install(clusterctl)
    # On 127.0.0.1: what the manager costs is read off its metrics without a token.
    installed.start(rig, "--insecure-diagnostics=true")
    installed.settle(rig)
    said = " ".join(installed.arguments(rig))
    screen.say(f"the Deployment's manager runs as ServiceAccount {components.SERVICE_ACCOUNT}: {said}")
    screen.say(f"its log: {rig.processes.log(installed.MANAGER)}")

    def text() -> str:
        return scrape(f"http://127.0.0.1:{rig.ports['capo-metrics']}/metrics")

    return Meter(site.counter, text, rig.processes.pid(installed.MANAGER) or 0)


def _uninstall(clusterctl: Clusterctl, screen: Screen) -> None:
    screen.heading("Uninstall the provider")
    installed.uninstall(clusterctl)
    screen.say("clusterctl delete left neither kinds nor roles nor webhooks", source="check")


def _tell_costs(options: Options, site: Site, screen: Screen, meter: Meter) -> None:
    title = f"What it cost (requests: {meter.source}; Go: the Go provider in the same scenario)"
    screen.table(title, report.COLUMNS, report.rows(meter.phases))
    if any(phase.is_shared for phase in meter.phases):
        screen.say(report.SHARED, source="note")
    if options.report:
        text = report.markdown(meter.phases, cloud=site.name, source=meter.source)
        layout.write_file(options.report.absolute(), text, mode=0o644)
        screen.say(f"wrote {options.report}")


def _tell_what_to_try(rig: Rig, options: Options, screen: Screen) -> None:
    name = options.plan.cluster
    without = json.dumps({"spec": {"bastion": {"enabled": False}}})
    screen.heading("The cluster is kept; things to try")
    for line in (
        f"export KUBECONFIG={rig.kubeconfig}",
        "kubectl get clusters,machines,openstackclusters,openstackmachines,openstackservers",
        f"kubectl describe openstackcluster {name}",
        f"kubectl scale machinedeployment {name}-md-0 --replicas 5",
        f"kubectl patch openstackcluster {name} --type merge -p '{without}'",
        f"{rig.clusterctl()} describe cluster {name}",
        f"tail -f {rig.processes.log(installed.MANAGER)}",
        "make demo-end    # deletes the cluster and ends everything",
    ):
        screen.say(line, source="try")
