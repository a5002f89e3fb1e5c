"""The adversary: each feature draws operations for plans and executes them.

A temporary operation is reverted when its time is over, and in any case before the final checks.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from capo.json_types import Json
from e2e.simulation import claims, failures, pauses, rebuilds
from e2e.simulation.plan import ADVERSARY_S, Draw, Operation, Shape

if TYPE_CHECKING:
    from e2e.simulation.plan_run import PlanRun

Act = Callable[["PlanRun", Json], None]

SERVICES: Final = ("compute", "network", "volume", "load-balancer", "identity", "*")
WINDOW_SHARE_S: Final = 15.0
"""Freezes, stalls and late effects together stay below the 60 s in which a lost create may still take effect."""


@dataclass(frozen=True)
class Feature:
    """One kind of operation of the adversary.

    Args:
        draw: returns an operation; None if plans have it because of their objects (``plan.py``).
        act: executes an operation.
    """

    name: str
    draw: Draw | None
    act: Act


FEATURES: Final[dict[str, Feature]] = {}
_WRITES: Final = (
    r"^POST .*/ports$",
    r"^POST .*/servers$",
    r"^POST .*/volumes$",
    r"^POST .*/networks$",
    r"^POST .*/(loadbalancers|listeners|pools|members)",
    r"^POST .*/(floatingips|routers|security-groups)",
    r"^(POST|PUT|DELETE) /(network|compute|volume|load-balancer)",
    r"^PATCH .*/status$",
    r"^PATCH .*openstack",
    r"^GET /(network|compute|volume|load-balancer)",
    r"^DELETE /",
    r"^SEND POST /(network|compute|volume|load-balancer)",
    r"^SEND (PUT|DELETE) /",
)


def feature(name: str, draw: Draw | None) -> Callable[[Act], Act]:
    """Register the decorated function as the execution of a feature."""

    def register(act: Act) -> Act:
        FEATURES[name] = Feature(name, draw, act)
        return act

    return register


def _at(source: random.Random) -> tuple[float, str, int]:
    """Draw a moment: by the clock, or by an event."""
    at_s = source.choice((0.0, source.uniform(0, 20), source.uniform(0, ADVERSARY_S)))
    if source.random() < 0.35:
        return at_s, "", 1
    return at_s, source.choice(_WRITES), source.choice((1, 1, 1, 2, 3, 5, 8))


def _drawn(name: str, values: Callable[[random.Random, Shape], Json | None]) -> Draw:
    def drawn(source: random.Random, shape: Shape) -> Operation | None:
        found = values(source, shape)
        return None if found is None else Operation(name, *_at(source), found)

    return drawn


def _span(source: random.Random) -> float:
    return source.choice((source.uniform(1, 15), source.uniform(10, 120), source.uniform(60, 300)))


# -- the way to OpenStack ---------------------------------------------------------------------------------------------


def _disturbed(name: str, kind: str, *, writes: str = "", seconds: tuple[float, float] = (0.0, 0.0)) -> None:
    """Register a feature that disturbs requests to a service for a while."""

    is_page = kind.isdigit() or kind == "flood"

    def values(source: random.Random, _shape: Shape) -> Json:
        return {
            "service": source.choice(SERVICES),
            # A proxy without its service answers so to all clients.
            "rate": source.choice((1.0, 1.0, 0.3) if is_page else (0.2, 0.5, 1.0)),
            "left": source.choice((1000, 1000, 1) if is_page else (1, 1, 2, 5, 1000)),
            "seconds": round(source.uniform(*seconds), 3),
            "for_s": round(_span(source), 1),
        }

    @feature(name, _drawn(name, values))
    def act(story: PlanRun, wanted: Json) -> None:
        failures.disturb(story, kind, only=writes, **wanted)


_disturbed("cut-before", "cut-before")
_disturbed("cut-after", "cut-after")
_disturbed("hang", "hang")
_disturbed("refused", "refused")
_disturbed("slow", "slow", seconds=(0.5, 20.0))
_disturbed("busy", "429")
_disturbed("error-503", "503")
_disturbed("proxy-404", "404")
_disturbed("proxy-200", "200")
_disturbed("proxy-403", "403")
_disturbed("proxy-flood", "flood")
_disturbed("tls-after", "tls-after", writes="POST")
_disturbed("create-late", "late", writes="POST", seconds=(0.5, WINDOW_SHARE_S))
_disturbed("create-again", "again", writes="POST", seconds=(0.1, WINDOW_SHARE_S))


# -- the clouds -------------------------------------------------------------------------------------------------------


@feature("octavia-away", _drawn("octavia-away", lambda source, _: {"for_s": round(_span(source), 1)}))
def _octavia_away(story: PlanRun, wanted: Json) -> None:
    failures.disturb(story, "refused", service="load-balancer", rate=1.0, left=10_000, seconds=0.0, **wanted)


@feature("cell-down", _drawn("cell-down", lambda source, _: {"for_s": round(_span(source), 1)}))
def _cell_down(story: PlanRun, wanted: Json) -> None:
    failures.set_cell(story, is_down=True)
    story.take_back(wanted["for_s"], lambda: failures.set_cell(story, is_down=False))


def _namesake_values(source: random.Random, _shape: Shape) -> Json:
    return {"number": source.randrange(4), "has_stamp": source.random() < 0.5}


@feature("namesake", _drawn("namesake", _namesake_values))
def _namesake(story: PlanRun, wanted: Json) -> None:
    story.make_namesake(**wanted)


def _balanced(values: Callable[[random.Random], Json]) -> Callable[[random.Random, Shape], Json | None]:
    """Draw only for clusters with a load balancer."""
    return lambda source, shape: values(source) if "apiServer" in (shape.cluster or {}) else None


@feature("user-balancer", _drawn("user-balancer", _balanced(lambda _source: {})))
def _user_balancer(story: PlanRun, _wanted: Json) -> None:
    story.make_balancer()


@feature("quota", _drawn("quota", _balanced(lambda source: {"for_s": round(_span(source), 1)})))
def _quota(story: PlanRun, wanted: Json) -> None:
    story.refuse_balancers(wanted["for_s"])


_EXHAUSTIBLE: Final = (
    ("compute", "cores"),
    ("compute", "instances"),
    ("network", "port"),
    ("network", "floatingip"),
    ("network", "security_group"),
    ("network", "security_group_rule"),
    ("volume", "gigabytes"),
    ("load-balancer", "load_balancer"),
)


def _exhausted_values(source: random.Random, _shape: Shape) -> Json:
    service, resource = source.choice(_EXHAUSTIBLE)
    return {"for_s": round(_span(source), 1), "service": service, "resource": resource, "limit": source.randrange(4)}


@feature("exhausted", _drawn("exhausted", _exhausted_values))
def _exhausted(story: PlanRun, wanted: Json) -> None:
    story.exhaust(**wanted)


def _dns_values(source: random.Random, shape: Shape) -> Json | None:
    if "host" not in (shape.cluster or {}).get("controlPlaneEndpoint", {}):
        return None
    return {"for_s": round(_span(source), 1), "gives_up_s": source.choice((0.0, 5.0, 40.0))}


@feature("dns-away", _drawn("dns-away", _dns_values))
def _dns_away(story: PlanRun, wanted: Json) -> None:
    failures.break_dns(story, **wanted)


# -- processes --------------------------------------------------------------------------------------------------------


@feature("kill", _drawn("kill", lambda source, _: {"down_s": source.choice((0.0, source.uniform(0, 40)))}))
def _kill(story: PlanRun, wanted: Json) -> None:
    failures.kill(story, wanted["down_s"])


def _crash_loop_values(source: random.Random, _shape: Shape) -> Json:
    return {"every_s": source.choice((15.0, 20.0, 30.0, 50.0)), "times": source.choice((4, 8, 16))}


@feature("crash-loop", _drawn("crash-loop", _crash_loop_values))
def _crash_loop(story: PlanRun, wanted: Json) -> None:
    failures.crash_loop(story, wanted["every_s"], wanted["times"])


@feature("freeze", _drawn("freeze", lambda source, _: {"for_s": round(source.uniform(1, WINDOW_SHARE_S), 1)}))
def _freeze(story: PlanRun, wanted: Json) -> None:
    story.manager.freeze(wanted["for_s"])


@feature("second-manager", _drawn("second-manager", lambda source, _: {"for_s": round(_span(source), 1)}))
def _second_manager(story: PlanRun, wanted: Json) -> None:
    failures.second_manager(story, wanted["for_s"], is_standby=False)


@feature("standby", _drawn("standby", lambda source, _: {"for_s": round(_span(source), 1)}))
def _standby(story: PlanRun, wanted: Json) -> None:
    failures.second_manager(story, wanted["for_s"], is_standby=True)


def _step(sign: int) -> Callable[[random.Random, Shape], Json]:
    return lambda source, _shape: {"by_s": sign * source.choice((5.0, 90.0, 3600.0, 86_400.0))}


@feature("clock-forward", _drawn("clock-forward", _step(1)))
@feature("clock-back", _drawn("clock-back", _step(-1)))
def _step_clock(story: PlanRun, wanted: Json) -> None:
    story.manager.step_clock(wanted["by_s"])


# -- the API server ---------------------------------------------------------------------------------------------------


def _line(name: str, values: Callable[[random.Random], Json]) -> None:
    """Register a feature that changes the connection to the API server for a while."""

    @feature(name, _drawn(name, lambda source, _: {**values(source), "for_s": round(_span(source), 1)}))
    def act(story: PlanRun, wanted: Json) -> None:
        failures.change_line(story, **wanted)


_line("api-slow", lambda source: {"latency_s": source.choice((0.3, 2.0))})
_line("api-down", lambda _source: {"is_down": True})
_line("api-lossy", lambda source: {"lost": source.choice((0.05, 0.3)), "refused": source.choice((0.0, 0.2))})
_line("watch-late", lambda source: {"watch_s": source.choice((5.0, 30.0))})
_line("events-denied", lambda source: {"denied": source.choice(("/events.k8s.io/", "/events"))})
_line("watch-dropped", lambda source: {"dropped": source.choice((0.05, 0.5))})


# -- users ------------------------------------------------------------------------------------------------------------

_EDITS: Final[tuple[Json, ...]] = (
    {"controlPlaneOmitAvailabilityZone": True},
    {"apiServer": {"managedLoadBalancer": {"allowedCIDRs": ["192.0.2.0/24"]}}},
    {"bastion": {"spec": {"flavor": {"filter": {"name": "m1.tiny"}}}}},
    {"bastion": {"enabled": False}},
)


def _edit_values(source: random.Random, shape: Shape) -> Json | None:
    if shape.cluster is None:
        return None
    fitting = [edit for edit in _EDITS if not set(edit) & {"bastion", "apiServer"} or set(edit) <= set(shape.cluster)]
    if shape.octavia == "ovn":  # which cannot enforce allowed CIDRs, so that the cluster would not become ready
        fitting = [edit for edit in fitting if "apiServer" not in edit]
    return {"spec": source.choice(fitting), "back_s": source.choice((0.0, 5.0, 60.0))}


@feature("edit", _drawn("edit", _edit_values))
def _edit(story: PlanRun, wanted: Json) -> None:
    story.edit(wanted["spec"], wanted["back_s"])


def _edit_in_pass(source: random.Random, shape: Shape) -> Operation | None:
    values = _edit_values(source, shape)
    on = source.choice((r"^PATCH .*openstackclusters/c/status$", r"^(POST|PUT) /network", r"^GET /load-balancer"))
    return None if values is None else Operation("edit-in-pass", 0.0, on, source.randint(1, 12), values)


@feature("edit-in-pass", _edit_in_pass)
def _edit_in(story: PlanRun, wanted: Json) -> None:
    story.edit(wanted["spec"], wanted["back_s"])


@feature("pause", _drawn("pause", lambda source, _: {"for_s": round(_span(source), 1)}))
def _pause(story: PlanRun, wanted: Json) -> None:
    pauses.pause(story, wanted["for_s"])


@feature("recreate", _drawn("recreate", lambda _source, _shape: {}))
def _recreate(story: PlanRun, _wanted: Json) -> None:
    story.recreate()


@feature("delete-early", _drawn("delete-early", lambda _source, _shape: {}))
def _delete_early(story: PlanRun, _wanted: Json) -> None:
    story.delete_all()


def _moved(source: random.Random, shape: Shape) -> Json | None:
    if not shape.neighbour or shape.cluster is None:
        return None
    return {"is_deleted": source.random() < 0.3, "back_s": source.choice((None, None, 60.0, 600.0))}


@feature("move", _drawn("move", _moved))
def _move(story: PlanRun, wanted: Json) -> None:
    story.move(is_deleted=wanted["is_deleted"], back_s=wanted["back_s"])


def _secret(kind: str) -> None:
    name = f"secret-{kind}"

    def values(source: random.Random, _shape: Shape) -> Json:
        # Long enough for a read: a Secret is read again once in a sync period.
        return {"for_s": round(source.choice((_span(source), source.uniform(620, 900))), 1)}

    @feature(name, _drawn(name, values))
    def act(story: PlanRun, wanted: Json) -> None:
        story.swap_secret(kind, wanted["for_s"])


for _kind in ("user", "project", "region", "host"):
    _secret(_kind)


def _rotation(kind: str) -> None:
    name = f"secret-{kind}"

    @feature(name, _drawn(name, lambda source, _shape: {"for_s": round(_span(source), 1)}))
    def act(story: PlanRun, wanted: Json) -> None:
        story.rotate_secret(kind, wanted["for_s"])


for _kind in ("rotation", "slip"):
    _rotation(_kind)


@feature("tenant-annotation", _drawn("tenant-annotation", lambda source, _: {"copies_owner": source.random() < 0.4}))
def _tenant(story: PlanRun, wanted: Json) -> None:
    story.place_evil(copies_owner=wanted["copies_owner"])


@feature("tenant-texts", _drawn("tenant-texts", lambda source, _: {"number": source.randrange(4)}))
def _tenant_texts(story: PlanRun, wanted: Json) -> None:
    story.place_hostile_texts(wanted["number"])


@feature("restore-status", _drawn("restore-status", lambda source, _: {"after_s": round(_span(source), 1)}))
def _restore_status(story: PlanRun, wanted: Json) -> None:
    story.restore_statuses(wanted["after_s"], is_early=False)


@feature("restore-early", _drawn("restore-early", lambda source, _: {"after_s": round(_span(source), 1)}))
def _restore_early(story: PlanRun, wanted: Json) -> None:
    story.restore_statuses(wanted["after_s"], is_early=True)


@feature("restore-etcd", _drawn("restore-etcd", lambda source, _: {"after_s": round(_span(source), 1)}))
def _restore_etcd(story: PlanRun, wanted: Json) -> None:
    story.restore_etcd(wanted["after_s"], is_live=False)


@feature("restore-etcd-live", _drawn("restore-etcd-live", lambda source, _: {"after_s": round(_span(source), 1)}))
def _restore_etcd_live(story: PlanRun, wanted: Json) -> None:
    story.restore_etcd(wanted["after_s"], is_live=True)


@feature("tenant-status", _drawn("tenant-status", lambda _source, _shape: {}))
def _tenant_status(story: PlanRun, _wanted: Json) -> None:
    story.claim_by_status()


def _takeover(source: random.Random, shape: Shape) -> Json | None:
    if shape.neighbour:
        return None  # the neighbour's resources keep its stamps
    if shape.anti_affinity or "additionalManagedSubnet" in (shape.cluster or {}):
        return None  # the Go provider creates neither, so no cluster of its own has one without a stamp
    return {"namesake": source.choice(("", "s-root", "s-data", "s-scratch")), "is_deleted": source.random() < 0.5}


@feature("takeover", _drawn("takeover", _takeover))
def _take_over(story: PlanRun, wanted: Json) -> None:
    story.take_over(wanted["namesake"], is_deleted=wanted["is_deleted"])


@feature(claims.STRANGER, None)
def _use_floating_ip(story: PlanRun, wanted: Json) -> None:
    claims.use(story, wanted["for_s"])
    if wanted["down_s"]:
        failures.kill(story, wanted["down_s"])


@feature(rebuilds.REBUILD, None)
def _rebuild(story: PlanRun, wanted: Json) -> None:
    rebuilds.play(story, **wanted)


def act(story: PlanRun, operation: Operation) -> None:
    """Execute an operation."""
    FEATURES[operation.feature].act(story, operation.values)


def draws(names: Any) -> dict[str, Draw]:
    """Return the draw functions of these features."""
    return {name: draw for name in names if (draw := FEATURES[name].draw) is not None}
