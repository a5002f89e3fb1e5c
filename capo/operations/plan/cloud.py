"""The cloud of a plan: reads pass to the live one, each once; writes are recorded and change later reads."""

from __future__ import annotations

import datetime
import email.utils
import json
from collections.abc import Callable, Hashable, Mapping
from typing import Any, Final

import requests

from capo.clock import Clock
from capo.errors import CapoError, CloudUnavailableError, IdentityError, NotAuthorizedError, RateLimitedError
from capo.json_types import Body, Json
from capo.openstack import answers, faults
from capo.openstack.cloud import Cloud
from capo.openstack.clouds import Clouds
from capo.openstack.connections import Limits
from capo.openstack.identity import Credentials
from capo.openstack.list_poller import ListPoller
from capo.openstack.transport import ReadOnlySession
from capo.operations.plan import neutron, writes
from capo.operations.plan.changes import Recorder
from capo.operations.plan.overlay import BALANCING, COMPUTE, NETWORK, VOLUME, MissingError, Overlay, Place, RefusedError
from capo.operations.plan.writes import Call
from capo.settings import Settings

FAILURES: Final = (CloudUnavailableError, RateLimitedError, NotAuthorizedError, IdentityError)
"""Answers to reads from which nothing follows; the others, as 403 and 404, are facts that the controllers handle."""


class PlannedCloud(Cloud):
    """A project whose writes are recorded instead of sent.

    Args:
        recorder: gets the writes.
    """

    def __init__(self, credentials: Credentials, http: requests.Session, *, recorder: Recorder, **more: Any) -> None:
        super().__init__(credentials, http, **more)
        self.recorder = recorder
        self.overlay = Overlay(self._live, self.timestamp, lambda: self.project_id)
        self._answers: dict[Hashable, tuple[requests.Response | CapoError, float]] = {}

    def timestamp(self) -> str:
        """Return now, in the form of the services."""
        return datetime.datetime.fromtimestamp(self.clock.now(), tz=datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")

    def _send(self, service: str, method: str, path: str, **extras: Any) -> requests.Response:
        call = Call.of(service, method, path, extras)
        try:
            if method == "GET":
                return self._read(call, extras)
            self._endpoint(service)  # a service that the cloud lacks is refused as it is without a plan
            return self._answer(call, 200, self._write(call))
        except MissingError as missing:
            response = self._answer(call, 404, _fault(service, "NotFound", str(missing)))
            raise faults.error_from_response(service, response) from None
        except RefusedError as refused:
            response = self._answer(call, 409, _fault(service, refused.type, str(refused)))
            raise faults.error_from_response(service, response) from None

    def _access(self) -> Any:
        try:
            return super()._access()
        except FAILURES as error:
            self.recorder.fail(error)
            raise

    # -- reads ------------------------------------------------------------------------------------------------------

    def _live(self, place: Place, resource_id: str) -> Body:
        """Return a live resource."""
        kind = place.keys[1]
        microversion = {COMPUTE: "2.69", VOLUME: "3.27"}.get(place.service)
        call = Call.of(place.service, "GET", f"{place.collection}/{resource_id}", {})
        try:
            body = answers.read(self._asked(call, {"microversion": microversion}))
        except CapoError as error:
            raise MissingError(place, resource_id) from error
        return dict(body.get(kind) or {})

    def _read(self, call: Call, extras: Mapping[str, Any]) -> requests.Response:
        place, overlay = call.place, self.overlay
        if call.rest:
            is_new = overlay.is_placeholder(call.id)
            return self._answer(call, 200, _nothing(call)) if is_new else self._asked(call, extras)
        if call.id:
            is_changed = call.id in overlay.deleted.get(place, {}) or call.id in overlay.current.get(place, {})
            if not is_changed and not overlay.is_placeholder(call.id):
                return self._asked(call, extras)
            return self._answer(call, 200, {place.keys[1]: overlay.find(place, call.id)})
        return self._list(call, extras)

    def _list(self, call: Call, extras: Mapping[str, Any]) -> requests.Response:
        place, key = call.place, call.place.keys[0]
        params = dict(call.params)
        since = params.pop("changes-since", None)  # of a plan, everything may have changed
        is_new = any(self.overlay.is_placeholder(each) for each in (*map(str, params.values()), *_ids_in(place)))
        if is_new:
            shown = self.overlay.merged(place, (), params, is_last=True)
            return self._answer(call, 200, {key: shown})
        live = self._asked(call, {**extras, "params": params})
        body = answers.read(live)
        if not isinstance(body.get(key), list):
            return live
        for each in body[key]:
            self.overlay.note(place, each)
        is_last = body.next_page(key) is None
        shown = self.overlay.merged(place, body[key], params, is_last=is_last)
        if since is not None and is_last:
            shown += [{**each, "status": "DELETED"} for each in self.overlay.deleted.get(place, {}).values()]
        return self._answer(call, 200, {**body, key: shown}, like=live)

    def _asked(self, call: Call, extras: Mapping[str, Any]) -> requests.Response:
        """Return the live answer to a read; the same read is sent once for a plan."""
        sent = {name: value for name, value in extras.items() if value is not None}
        key = (
            call.service,
            call.path,
            tuple(sorted(map(str, dict(sent.get("params") or {}).items()))),
            sent.get("microversion"),
        )
        if key not in self._answers:
            self._answers[key] = self._sent(call, sent), self.clock.now()
        answer, _ = self._answers[key]
        if isinstance(answer, CapoError):
            raise answer
        return answer

    def _sent(self, call: Call, extras: Mapping[str, Any]) -> requests.Response | CapoError:
        try:
            return super()._send(call.service, "GET", call.path, **extras)
        except FAILURES as error:
            self.recorder.fail(error)
            raise
        except CapoError as error:
            return error

    def _answer(
        self, call: Call, status: int, body: Mapping[str, Any] | None, *, like: requests.Response | None = None
    ) -> requests.Response:
        """Return an answer as the service would send it now."""
        response = requests.Response()
        response.status_code = status
        response._content = b"" if body is None else json.dumps(body).encode()
        response.encoding = "utf-8"
        response.headers.update(like.headers if like is not None else {"Content-Type": "application/json"})
        response.headers["Date"] = email.utils.formatdate(self.clock.now(), usegmt=True)
        response.url = like.url if like is not None else f"https://planned.invalid{call.path}"
        response.request = requests.Request(call.method, response.url).prepare()
        return response

    # -- writes -----------------------------------------------------------------------------------------------------

    def _write(self, call: Call) -> Json | None:
        """Record a write and return its answer.

        Raises:
            MissingError: the resource does not exist.
        """
        before = dict(self.overlay.find(call.place, call.id)) if call.id and call.place != neutron.RULES else {}
        answer = writes.effect(self.overlay, call)
        self.recorder.add(writes.change(self.overlay, call, before, answer or {}))
        return answer


def _ids_in(place: Place) -> list[str]:
    return place.collection.split("/")


def _nothing(call: Call) -> Json:
    """Return the answer to a read of what belongs to a planned resource: it has none yet."""
    name = call.rest.rpartition("/")[2]
    return {{"os-instance-actions": "instanceActions", "os-interface": "interfaceAttachments"}.get(name, name): []}


def _fault(service: str, type_: str, text: str) -> Json:
    if service == NETWORK:
        return {"NeutronError": {"type": type_, "message": text, "detail": ""}}
    if service == BALANCING:
        return {"faultcode": "Client", "faultstring": text, "debuginfo": None}
    return {"itemNotFound": {"code": 404, "message": text}}


# -- the clouds of a plan --------------------------------------------------------------------------------------------


class PlannedClouds(Clouds):
    """Clouds whose writes are recorded, and whose lists are polled by the plan in its own time."""

    def __init__(
        self,
        clock: Clock,
        wake: Callable[[Any], None],
        *,
        recorder: Recorder,
        settings: Settings,
    ) -> None:
        self.recorder = recorder
        self.made: list[PlannedCloud] = []
        super().__init__(
            clock,
            wake,
            limits=Limits.of(settings),
            ca_certs=settings.ca_certs,
            uses_proxies=settings.openstack_uses_proxies,
            session_kind=ReadOnlySession,
        )

    @property
    def pollers(self) -> list[ListPoller]:
        """Return the lists of all clouds; each has its own, which show its planned writes."""
        return [cloud.joined.poller for cloud in self.made if cloud.joined]

    @property
    def assigned(self) -> Mapping[str, str]:
        """Return ids and addresses that the clouds would choose, by their placeholder."""
        return {name: words for cloud in self.made for name, words in cloud.overlay.assigned.items()}

    def _made(self, credentials: Credentials) -> Cloud:
        cloud = PlannedCloud(
            credentials, self._http.of(credentials), recorder=self.recorder, clock=self.clock, wake=self.wake
        )
        self.made.append(cloud)
        return cloud
