"""The simulated API server gives the recorded answers of a real one, word for word, and the real one still does.

``truth.json`` has the real one's answers; with ``RECORD=1`` the integration tests of this file write it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from capo.crdgen import files
from capo.json_types import Json
from capo.kube.kinds import OPENSTACK_SERVER
from capo.local.rig import Rig
from capo.webhooks import configuration
from capo.webhooks.server import Options
from capo.webhooks.supervisor import Webhooks
from capo.webhooks.tests.clients import until
from e2e.simulation.admission import Admission
from e2e.simulation.tests import scenarios
from e2e.simulation.tests.play import MERGE, Play
from e2e.simulation.tests.scenarios import SCENARIOS
from e2e.simulation.tests.servers import Real, Simulated, new_server, session_of

TRUTH: Final = Path(__file__).parent / "truth.json"


def truth() -> Json:
    found: Json = json.loads(TRUTH.read_text()) if TRUTH.exists() else {}
    return found


@pytest.fixture(scope="module")
def real(api_server: Rig) -> Iterator[Real]:
    with session_of(api_server) as session:
        port = api_server.ports["capo-webhook"]
        with Webhooks(Options(str(api_server.webhook_cert_dir)), "127.0.0.1", port) as webhooks:
            until(lambda: webhooks.fault() is None)
            api_server.install_crds(files.load(), strip_conversion=False)
            api_server.install_webhooks([configuration.validating()])
            made = Real(api_server.url, session)
            until(lambda: _is_validating(made))
            yield made
            base = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
            api_server.api.delete(f"{base}/{configuration.NAME}")
            api_server.install_crds(files.load())
            # Until it has noticed the deletion, the API server refuses all writes without the webhooks.
            until(lambda: not _is_validating(made))


def _is_validating(real: Real) -> bool:
    """Return whether the API server calls the webhooks, which begins some time after it has their configuration."""
    play = Play(real, "default")
    play.server_object("probe")
    path = play.path(OPENSTACK_SERVER, "probe")
    status, _ = real.send("PATCH", path, {}, MERGE, {"spec": {"flavor": "big"}})
    real.send("DELETE", path, {}, MERGE, None)
    return status == 422


@pytest.mark.parametrize("name", SCENARIOS)
def test_the_simulated_server_answers_as_the_real_one_did(name: str) -> None:
    assert scenarios.played(Simulated(new_server(Admission())), name) == truth()[name]


@pytest.mark.integration
@pytest.mark.parametrize("name", SCENARIOS)
def test_the_real_server_answers_as_it_did(real: Real, name: str) -> None:
    record = scenarios.played(real, name)

    if os.environ.get("RECORD"):
        TRUTH.write_text(json.dumps({**truth(), name: record}, indent=1, sort_keys=True) + "\n")
    assert record == truth()[name]
