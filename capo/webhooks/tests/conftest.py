from __future__ import annotations

import uuid
from collections.abc import Iterator

import pytest
import requests
from requests.adapters import HTTPAdapter

from capo.crdgen import files
from capo.json_types import Json
from capo.local.rig import Rig
from capo.webhooks import configuration
from capo.webhooks.server import Options
from capo.webhooks.supervisor import Webhooks
from capo.webhooks.tests.clients import Client, until
from capo.webhooks.tests.serving import WebhookServer, serving

SERVER: Json = {
    "identityRef": {"type": "Secret", "name": "credentials", "cloudName": "openstack"},
    "flavor": "small",
    "image": {"filter": {"name": "ubuntu"}},
    "ports": [{"network": {"filter": {"name": "net"}}}],
    "sshKeyName": "",
}


@pytest.fixture(scope="session")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebhookServer]:
    with serving(tmp_path_factory.mktemp("webhooks")) as running:
        yield running


@pytest.fixture(scope="package")
def administrator(api_server: Rig) -> Iterator[requests.Session]:
    with requests.Session() as session:
        session.trust_env = False
        session.verify = str(api_server.layout.pki / "ca.crt")
        session.cert = (str(api_server.layout.pki / "admin.crt"), str(api_server.layout.pki / "admin.key"))
        session.mount("https://", HTTPAdapter(pool_maxsize=8))
        yield session


@pytest.fixture(scope="package")
def installed(api_server: Rig, administrator: requests.Session) -> Iterator[Rig]:
    """Serve all versions of our kinds, with webhooks, while this package is tested."""
    port = api_server.ports["capo-webhook"]
    with Webhooks(Options(str(api_server.webhook_cert_dir)), "127.0.0.1", port) as webhooks:
        until(lambda: webhooks.fault() is None)
        api_server.install_crds(files.load(), strip_conversion=False)
        api_server.install_webhooks([configuration.validating()])
        until(lambda: _refuses(Client(api_server, administrator, "default")))
        try:
            yield api_server
        finally:
            base = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
            api_server.api.delete(f"{base}/{configuration.NAME}")
            api_server.install_crds(files.load())
            # Until it has noticed the deletion, the API server refuses all writes without the webhooks.
            until(lambda: not _refuses(Client(api_server, administrator, "default")))


def _refuses(client: Client) -> bool:
    """Return whether the API server calls the webhooks, which it begins some time after they are registered."""
    if client.apply("v1alpha1", "OpenStackServer", SERVER, name="probe").status_code not in (200, 201):
        return False
    changed = client.apply("v1alpha1", "OpenStackServer", SERVER | {"flavor": "big"}, name="probe")
    client.delete("v1alpha1", "OpenStackServer", "probe")
    return changed.status_code == 422


@pytest.fixture
def client(installed: Rig, administrator: requests.Session) -> Client:
    namespace = f"webhooks-{uuid.uuid4().hex[:8]}"
    installed.apply([{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}])
    made = Client(installed, administrator, namespace)
    # Conversion of a CRD that was just restored is not served at once.
    until(lambda: administrator.get(made.path("v1beta1", "OpenStackMachine"), timeout=120).ok)
    return made
