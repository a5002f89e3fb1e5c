"""The simulator's own API, under `/_simulator/`: counts, log, inventory, faults, state."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from aiohttp import web

from capo.simulator.cloud import Cloud, Json, public
from capo.simulator.faults import BadFaultError
from capo.simulator.routing import Fault, Service


def register(application: web.Application, cloud: Cloud, services: Sequence[Service]) -> None:
    """Add the admin routes to the application."""
    control = Control(cloud, services)
    router = application.router
    router.add_get("/_simulator/counts", control.counts)
    router.add_get("/_simulator/log", control.log)
    router.add_post("/_simulator/reset", control.reset)
    router.add_get("/_simulator/inventory", control.inventory)
    router.add_patch("/_simulator/inventory/{service}/{kind}/{id}", control.patch_resource)
    router.add_get("/_simulator/faults", control.list_faults)
    router.add_post("/_simulator/faults", control.add_fault)
    router.add_delete("/_simulator/faults", control.clear_faults)
    router.add_delete("/_simulator/faults/{id}", control.remove_fault)
    router.add_put("/_simulator/quotas/{service}/{project}", control.put_quotas)
    router.add_get("/_simulator/timings", control.get_timings)
    router.add_patch("/_simulator/timings", control.patch_timings)
    router.add_post("/_simulator/release", control.release)
    router.add_post("/_simulator/tokens/expire", control.expire_tokens)
    router.add_post("/_simulator/tweaks/{service}/{name}", control.tweak)


class Control:
    """The admin handlers of one cloud."""

    def __init__(self, cloud: Cloud, services: Sequence[Service]) -> None:
        self.cloud = cloud
        self.services = {service.name: service for service in services}

    async def counts(self, _: web.Request) -> web.Response:
        counter = self.cloud.counter
        return web.json_response({"total": counter.total, "writes": counter.writes, "counts": counter.rows()})

    async def log(self, _: web.Request) -> web.Response:
        return web.json_response({"calls": self.cloud.counter.log()})

    async def reset(self, _: web.Request) -> web.Response:
        self.cloud.counter.reset()
        return web.Response(status=204)

    async def inventory(self, _: web.Request) -> web.Response:
        self.cloud.run_due()
        return web.json_response(self.cloud.inventory())

    async def patch_resource(self, raw: web.Request) -> web.Response:
        table = self.cloud.table(raw.match_info["service"], raw.match_info["kind"])
        resource = table.get(raw.match_info["id"])
        if resource is None:
            return _refuse(404, "no such resource")
        resource.update(await _document(raw))
        return web.json_response(public(resource))

    async def list_faults(self, _: web.Request) -> web.Response:
        return web.json_response({"faults": [order.shown() for order in self.cloud.faults.orders]})

    async def add_fault(self, raw: web.Request) -> web.Response:
        try:
            order = self.cloud.faults.add(await _document(raw))
        except (BadFaultError, TypeError, ValueError) as error:
            return _refuse(400, str(error))
        return web.json_response(order.shown(), status=201)

    async def clear_faults(self, _: web.Request) -> web.Response:
        self.cloud.faults.clear()
        return web.Response(status=204)

    async def remove_fault(self, raw: web.Request) -> web.Response:
        self.cloud.faults.remove(raw.match_info["id"])
        return web.Response(status=204)

    async def put_quotas(self, raw: web.Request) -> web.Response:
        for resource, limit in (await _document(raw)).items():
            self.cloud.set_quota(raw.match_info["service"], raw.match_info["project"], resource, int(limit))
        return web.Response(status=204)

    async def get_timings(self, _: web.Request) -> web.Response:
        return web.json_response(dataclasses.asdict(self.cloud.timings))

    async def patch_timings(self, raw: web.Request) -> web.Response:
        changes = await _document(raw)
        unknown = set(changes) - {field.name for field in dataclasses.fields(self.cloud.timings)}
        if unknown:
            return _refuse(400, f"unknown timings: {', '.join(sorted(unknown))}")
        for name, value in changes.items():
            setattr(self.cloud.timings, name, value if name == "latency" else float(value))
        return await self.get_timings(raw)

    async def release(self, _: web.Request) -> web.Response:
        return web.json_response({"released": self.cloud.release()})

    async def expire_tokens(self, _: web.Request) -> web.Response:
        self.cloud.tokens.clear()
        return web.Response(status=204)

    async def tweak(self, raw: web.Request) -> web.Response:
        service = self.services.get(raw.match_info["service"])
        change = service.tweaks.get(raw.match_info["name"]) if service else None
        if change is None:
            return _refuse(404, "no such tweak")
        try:
            return web.json_response(change(self.cloud, await _document(raw)))
        except Fault as fault:
            return _refuse(fault.status, fault.message)


async def _document(raw: web.Request) -> Json:
    document = await raw.json()
    if not isinstance(document, dict):
        raise web.HTTPBadRequest(text="a JSON object is expected\n")
    return document


def _refuse(status: int, message: str) -> web.Response:
    return web.json_response({"error": message}, status=status)
