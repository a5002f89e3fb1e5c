"""Events on a real kube-apiserver: as readers select them, and with roles that allow a part of it."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any

import pytest

from capo.kube import config
from capo.kube.client import Kube
from capo.kube.event_objects import CORE_EVENT, EVENT
from capo.kube.events import Events

pytestmark = pytest.mark.integration

GROUP = "infrastructure.cluster.x-k8s.io"
RBAC = "rbac.authorization.k8s.io"
ACCOUNT = "events"
MODERN, CORE = EVENT.group, CORE_EVENT.group
WARNING = ("Warning", "FailedCreateServer", "No valid host was found")


class Place:
    """A namespace with a ServiceAccount that may write Events as given.

    Args:
        rights: verbs by API group.
    """

    def __init__(self, api_server: Any, rights: Mapping[str, list[str]]) -> None:
        self.api = api_server
        self.name = f"events-{uuid.uuid4().hex[:8]}"
        api_server.apply([{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.name}}])
        api_server.apply([{"apiVersion": "v1", "kind": "ServiceAccount", "metadata": self._named(ACCOUNT)}])
        self.allow(rights)
        self.kube = Kube(config.from_kubeconfig(str(api_server.service_account_kubeconfig(self.name, ACCOUNT))))
        self.events = Events(self.kube, instance="pod-1")

    def allow(self, rights: Mapping[str, list[str]], *, account_of: Place | None = None) -> None:
        """Allow the account of this place, or of another one, these rights here; wait until they apply."""
        namespace = (account_of or self).name
        rules = [{"apiGroups": [group], "resources": ["events"], "verbs": verbs} for group, verbs in rights.items()]
        subject = {"kind": "ServiceAccount", "name": ACCOUNT, "namespace": namespace}
        role = {"apiVersion": f"{RBAC}/v1", "kind": "Role", "metadata": self._named(ACCOUNT), "rules": rules}
        reference = {"apiGroup": RBAC, "kind": "Role", "name": ACCOUNT}
        binding = {"kind": "RoleBinding", "metadata": self._named(ACCOUNT), "subjects": [subject], "roleRef": reference}
        self.api.apply([role, {"apiVersion": f"{RBAC}/v1", **binding}])
        user = f"system:serviceaccount:{namespace}:{ACCOUNT}"
        for group, verbs in rights.items():
            for verb in verbs:
                self.api.api.wait_allowed(user, verb, group, "events", namespace=self.name)

    def emit(self, *notes: str, about: Mapping[str, Any] | None = None) -> None:
        """Emit an Event for each note and wait until all are sent."""
        for note in notes:
            self.events.emit(about or self.cluster(), "Warning", "FailedCreateServer", note)
        self.events.stop(60)
        self.events._thread = None

    def cluster(self, name: str = "demo") -> dict[str, Any]:
        """Return an OpenStackCluster as the manager reads it; Events need not regard one that exists."""
        return {
            "apiVersion": f"{GROUP}/v1beta2",
            "kind": "OpenStackCluster",
            "metadata": {**self._named(name), "uid": "u"},
        }

    def selected(self, **fields: str) -> list[dict[str, Any]]:
        """Return the Events that field selectors of the core group find, in the order in which the API has them."""
        selector = ",".join(f"{key.replace('_', '.')}={value}" for key, value in fields.items())
        path = f"/api/v1/namespaces/{self.name}/events"
        found: list[dict[str, Any]] = self.api.api.request("GET", path, params={"fieldSelector": selector})["items"]
        return found

    def modern(self) -> list[dict[str, Any]]:
        """Return the Events as events.k8s.io shows them."""
        path = f"/apis/{MODERN}/v1/namespaces/{self.name}/events"
        found: list[dict[str, Any]] = self.api.api.request("GET", path)["items"]
        return found

    def _named(self, name: str) -> dict[str, str]:
        return {"name": name, "namespace": self.name}


def test_drivers_find_the_last_event_of_a_cluster_as_the_last_of_the_list(api_server: Any) -> None:
    place = Place(api_server, {MODERN: ["create", "patch"]})
    place.emit(*(f"note {number}" for number in range(20)))

    found = place.selected(
        involvedObject_name="demo",
        involvedObject_apiVersion=f"{GROUP}/v1beta1",
        involvedObject_kind="OpenStackCluster",
    )

    assert [event["message"] for event in found] == [f"note {number}" for number in range(20)]
    assert place.selected(involvedObject_apiVersion=f"{GROUP}/v1beta2") == []
    # As kubectl describe, and Headlamp without the uid.
    assert len(place.selected(involvedObject_kind="OpenStackCluster", involvedObject_uid="u")) == 20


def test_objects_with_names_of_the_greatest_length_have_events(api_server: Any) -> None:
    place = Place(api_server, {MODERN: ["create", "patch"]})
    name = "a" * 234 + "-." + "b" * 17

    place.emit("one", "two", about=place.cluster(name))

    assert [event["message"] for event in place.selected(involvedObject_name=name)] == ["one", "two"]


def test_a_role_with_events_k8s_io_has_series(api_server: Any) -> None:
    place = Place(api_server, {MODERN: ["create", "patch"]})

    place.emit("again", "again", "again")

    (modern,), (core,) = place.modern(), place.selected()
    assert modern["series"]["count"] == core["series"]["count"] == 3
    assert (core["reportingComponent"], core["lastTimestamp"]) == ("capo-controller-manager", None)


def test_a_role_with_core_events_has_counts(api_server: Any) -> None:
    place = Place(api_server, {CORE: ["create", "patch"]})

    place.emit("again", "again", "again", "once")

    again, once = place.selected()
    assert (again["message"], again["count"], again["source"]["host"]) == ("again", 3, "pod-1")
    assert again["lastTimestamp"] >= again["firstTimestamp"]
    assert (once["message"], once["count"]) == ("once", 1)
    assert [event["deprecatedCount"] for event in place.modern()] == [3, 1]
    assert again["involvedObject"]["apiVersion"] == f"{GROUP}/v1beta1"


def test_a_series_of_one_group_is_counted_through_the_other(api_server: Any) -> None:
    place = Place(api_server, {MODERN: ["create"], CORE: ["patch"]})

    place.emit("again", "again", "again")

    (event,) = place.modern()
    assert event["series"]["count"] == 3


def test_a_role_that_allows_no_changes_has_an_event_for_each(api_server: Any) -> None:
    place = Place(api_server, {CORE: ["create"]})

    place.emit("again", "again", "again")

    assert [event["message"] for event in place.selected()] == ["again"] * 3


def test_each_namespace_has_the_events_that_the_role_allows_there(api_server: Any) -> None:
    one = Place(api_server, {CORE: ["create", "patch"]})
    other = Place(api_server, {})
    other.allow({MODERN: ["create", "patch"]}, account_of=one)

    one.emit("one", "one")
    one.emit("other", "other", about=other.cluster())

    ((core,), (modern,)) = one.selected(), other.selected()
    assert (core["count"], modern["series"]["count"]) == (2, 2)


def test_a_namespace_that_is_being_deleted_is_not_asked_twice(
    api_server: Any, caplog: pytest.LogCaptureFixture
) -> None:
    place = Place(api_server, {MODERN: ["create", "patch"], CORE: ["create", "patch"]})
    api_server.api.request("DELETE", f"/api/v1/namespaces/{place.name}")

    place.emit("too late")

    assert len(place.events._denials._until) == 0
    assert [record.levelname for record in caplog.records if record.name == "capo.kube.events"] == []
