"""Application credentials that are replaced and deleted while their servers run."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any, Final

import pytest

from capo.errors import CapoError
from capo.json_types import Json
from e2e.servers.environment import SERVERS, ServersEnvironment
from environments import objects, tenancy
from environments.wire import Wire

pytestmark = pytest.mark.integration

REF: Final = {"name": "rotated", "cloudName": "it"}
AUTHENTICATED: Final = "OpenStackAuthenticationSucceeded"


class Rotation:
    """Application credentials of the run's user, one after the other in the Secret ``rotated``."""

    def __init__(self, ground: ServersEnvironment) -> None:
        self.ground = ground
        self.path = f"/users/{ground.tenant.user_id}/application_credentials"
        self.made: list[Json] = []
        self.numbers = itertools.count()

    def renew(self) -> Json:
        """Create an application credential and put it into the Secret; return it."""
        wanted = {"name": f"{self.ground.namespace}-{next(self.numbers)}"}
        found = self.ground.cloud.post("identity", self.path, json={"application_credential": wanted})
        self.made.append(found["application_credential"])
        self.ground.apply(self.ground.secret("rotated", self.entry(self.made[-1])))
        return self.made[-1]

    def entry(self, credential: Json) -> Json:
        auth = {
            "auth_url": self.ground.target.auth_url,
            "application_credential_id": credential["id"],
            "application_credential_secret": credential["secret"],
        }
        return {"auth_type": "v3applicationcredential", "auth": auth}

    def revoke(self, credential: Json) -> None:
        """Delete an application credential, and see that Keystone refuses it."""
        self.made.remove(credential)
        self.ground.cloud.delete("identity", f"{self.path}/{credential['id']}")
        former = tenancy.cloud_of(Wire(self.ground.target.auth_url, []), tenancy.credentials_of(self.entry(credential)))
        with pytest.raises(CapoError, match="Could not find Application Credential"):
            former.authenticate()

    def serve(self, name: str) -> None:
        """Create a server with the Secret, and wait until it is ready."""
        self.ground.apply(self.ground.server_object(name, identityRef=REF))
        self.ground.wait_until_ready(name)

    def remove(self, name: str) -> None:
        """Delete a server and wait until it is gone."""
        self.ground.delete(SERVERS, name)
        self.ground.wait_until(f"{name} is gone", lambda: self.ground.server(name) is None)

    def shown(self) -> dict[str, Any]:
        """Return the condition of the first server's credentials, with the time of its last transition."""
        return self.ground.condition(SERVERS, "rotated-0", AUTHENTICATED)


@pytest.fixture
def rotation(ground: ServersEnvironment) -> Iterator[Rotation]:
    made = Rotation(ground)
    yield made
    made.renew()  # with which the servers are deleted, however the test ended
    names = [each["metadata"]["name"] for each in ground.list(SERVERS)]
    for name in names:
        if name.startswith("rotated-"):
            made.remove(name)
    for credential in made.made:
        ground.cloud.delete("identity", f"{made.path}/{credential['id']}")


def test_a_server_goes_on_when_its_application_credential_is_replaced_and_deleted(
    ground: ServersEnvironment, rotation: Rotation
) -> None:
    first = rotation.renew()
    rotation.serve("rotated-0")
    before = rotation.shown()
    assert before["status"] == "True"

    rotation.renew()
    rotation.revoke(first)
    rotation.serve("rotated-1")
    assert rotation.shown() == before

    ground.apply(objects.secret("rotated", {"clouds.yaml": b"clouds: {it: [half an edit"}))
    ground.patch(SERVERS, "rotated-0", {"metadata": {"annotations": {"e2e.example.org/rotated": "1"}}})
    rotation.serve("rotated-2")
    assert rotation.shown() == before
