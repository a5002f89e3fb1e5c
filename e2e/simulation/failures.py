"""Failures of processes and of connections, as the adversary's operations cause them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from capo.simulator.nova import servers
from e2e.simulation import primitives
from e2e.simulation.apiclient import Line
from e2e.simulation.network import Disturbance, Sent

if TYPE_CHECKING:
    from e2e.simulation.plan_run import PlanRun


def disturb(
    story: PlanRun, kind: str, *, service: str, rate: float, left: int, seconds: float, for_s: float, only: str = ""
) -> None:
    """Disturb requests to a service for a while; with ``only`` just POST, and no logins."""

    def covers(sent: Sent) -> bool:
        return not only or (sent.is_create and sent.method == only)

    disturbance = Disturbance(kind, service, rate, left, seconds, covers)
    story.network.disturb(disturbance, for_s=for_s)


def set_cell(story: PlanRun, *, is_down: bool) -> None:
    """Take the Nova cell with all servers down, or up again."""
    servers.set_cell(story.simulation.cloud, {"down": is_down})


def break_dns(story: PlanRun, for_s: float, gives_up_s: float) -> None:
    """Disable DNS for a while, each lookup after some time."""
    primitives.set_dns(gives_up_s)
    story.take_back(for_s, lambda: primitives.set_dns(None))


def kill(story: PlanRun, down_s: float) -> None:
    """Kill the manager; restart it after a while."""
    story.manager.kill()
    story.scheduler.after(down_s, lambda: None if story.manager.is_running else story.manager.start())


def crash_loop(story: PlanRun, every_s: float, times: int) -> None:
    """Kill the manager repeatedly, and restart it at once."""
    for number in range(times):
        story.scheduler.after(number * every_s, lambda: None if story.is_calm else kill(story, 0.0))


def second_manager(story: PlanRun, for_s: float, *, is_standby: bool) -> None:
    """Run a second manager beside the first for a while; a standby takes part in the election."""
    if is_standby != story.plan.tuning.leader_elect:
        return
    second = story.simulation.add_manager(story.home, settings=story.settings)
    story.extra.append(second)
    story.take_back(for_s, second.kill)


def change_line(story: PlanRun, *, for_s: float, **values: Any) -> None:
    """Change the connection to the API server for a while."""
    line = story.home.line
    normal = Line(watch_s=story.plan.tuning.watch_s)
    for name, value in values.items():
        setattr(line, name, value)

    def back() -> None:
        for name in values:
            setattr(line, name, getattr(normal, name))

    story.take_back(for_s, back)
