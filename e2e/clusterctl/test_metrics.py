"""A real Prometheus scrapes the manager that clusterctl installed, with the job of ``docs/reference/metrics.md``.

Two things differ from a cluster: the target is named, because a rig has no pods that could be discovered and Debian
builds Prometheus without discovery in Kubernetes, and the token is in a file of the test.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import requests
import yaml

from capo.components import metrics, release
from capo.json_types import Json
from capo.local import manifests
from capo.local.binaries import Binaries
from capo.local.rig import Rig
from capo.local.testing import spare_ports
from environments.manager_process import wait_until

pytestmark = pytest.mark.integration


PAGE = release.CHECKOUT / "docs" / "reference" / "metrics.md"
NAMESPACE = "monitoring"
TOKEN_FILE = "/var/run/secrets/kubernetes.io/serviceaccount/token"
PROGRAM = shutil.which("prometheus")
HOW_TO_INSTALL = "prometheus is not installed; on Debian: apt-get install --no-install-recommends prometheus"


def configuration() -> str:
    """Return the configuration of the page."""
    (text,) = re.findall(r"```yaml\n(scrape_configs:.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    return str(text)


def job(token: Path, target: str) -> Json:
    """Return the job of the page, with a target of this machine instead of discovery."""
    (found,) = yaml.safe_load(configuration().replace(TOKEN_FILE, str(token)))["scrape_configs"]
    del found["kubernetes_sd_configs"], found["relabel_configs"]
    return {**found, "scrape_interval": "1s", "scrape_timeout": "1s", "static_configs": [{"targets": [target]}]}


def account(rig: Rig, name: str) -> str:
    """Create a ServiceAccount; return its token."""
    rig.apply([{"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": NAMESPACE}}])
    text = rig.service_account_kubeconfig(NAMESPACE, name).read_text(encoding="utf-8")
    (user,) = yaml.safe_load(text)["users"]
    return str(user["user"]["token"])


def bind(rig: Rig) -> None:
    """Bind the account ``prometheus`` to the role by the command of the page."""
    (command,) = re.findall(r"^ {4}(kubectl .*)$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    kubectl = Binaries.from_environment().require(["kubectl"], say=print)["kubectl"]
    env = {"KUBECONFIG": str(rig.kubeconfig), "PATH": f"{kubectl.parent}:{os.environ['PATH']}"}
    subprocess.run(["bash", "-c", command], env=env, check=True)


class Prometheus:
    """A running Prometheus, queried by its HTTP API."""

    def __init__(self, port: int) -> None:
        self._url = f"http://127.0.0.1:{port}/api/v1"

    def target(self) -> tuple[str, str]:
        """Return the health of the one target, and the error of the last scrape."""
        targets = self._get("targets")["activeTargets"]
        return (targets[0]["health"], targets[0]["lastError"]) if targets else ("unknown", "")

    def query(self, expression: str) -> list[Json]:
        """Return the series of an expression."""
        return list(self._get("query", query=expression)["result"])

    def _get(self, path: str, **parameters: str) -> Json:
        answer = requests.get(f"{self._url}/{path}", params=parameters, timeout=60)
        answer.raise_for_status()
        return dict(answer.json()["data"])


def jobs(running: Prometheus, metric: str) -> set[str]:
    """Return the jobs that have a metric."""
    return {series["metric"]["job"] for series in running.query(metric)}


@pytest.fixture
def prometheus(provider: Rig, tmp_path: Path) -> Iterator[Callable[[str], Prometheus]]:
    """Return what starts Prometheus with a token, on 127.0.0.1; it ends with the test."""
    if PROGRAM is None:
        pytest.skip(HOW_TO_INSTALL)

    def start(token: str) -> Prometheus:
        (tmp_path / "token").write_text(token)
        scraped = job(tmp_path / "token", f"127.0.0.1:{provider.ports['capo-metrics']}")
        (tmp_path / "prometheus.yml").write_text(yaml.safe_dump({"scrape_configs": [scraped]}))
        port = spare_ports("prometheus")["prometheus"]
        argv = [
            str(PROGRAM),
            f"--config.file={tmp_path / 'prometheus.yml'}",
            f"--storage.tsdb.path={tmp_path / 'data'}",
            f"--web.listen-address=127.0.0.1:{port}",
        ]
        provider.start("prometheus", argv, ready_url=f"http://127.0.0.1:{port}/-/ready")
        return Prometheus(port)

    yield start
    provider.stop("prometheus")


@pytest.fixture
def monitoring(provider: Rig) -> Rig:
    """Return the rig with a namespace for Prometheus."""
    provider.apply([manifests.namespace(NAMESPACE)])
    return provider


def test_the_discovery_of_the_page_keeps_the_port_that_is_installed() -> None:
    (found,) = yaml.safe_load(configuration())["scrape_configs"]
    (discovery,), (rule,) = found["kubernetes_sd_configs"], found["relabel_configs"]
    service = metrics.service()
    (port,) = service["spec"]["ports"]

    assert discovery["namespaces"]["names"] == [service["metadata"]["namespace"]]
    assert rule["regex"] == f"{service['metadata']['name']};{port['name']}"


def test_prometheus_scrapes_the_installed_manager_with_the_token_of_its_account(
    monitoring: Rig, prometheus: Callable[[str], Prometheus]
) -> None:
    token = account(monitoring, "prometheus")
    bind(monitoring)

    running = prometheus(token)

    wait_until("the target is up", lambda: running.target()[0] == "up")
    wait_until("a metric of ours is stored", lambda: running.query("capo_cache_entries"))
    # A later scrape that took more than its second would hide the series of the former one for a moment.
    wait_until("the process is measured", lambda: jobs(running, "process_resident_memory_bytes") == {"capo"})


def test_an_account_that_the_role_is_not_bound_to_reads_no_metrics(
    monitoring: Rig, prometheus: Callable[[str], Prometheus]
) -> None:
    running = prometheus(account(monitoring, "stranger"))

    wait_until(
        "the scrape is refused", lambda: running.target() == ("down", "server returned HTTP status 403 Forbidden")
    )
    assert running.query("capo_cache_entries") == []


def test_metrics_are_not_served_to_clients_without_a_token(provider: Rig) -> None:
    address = f"127.0.0.1:{provider.ports['capo-metrics']}/metrics"

    with pytest.warns(Warning, match="Unverified HTTPS request"):
        answer = requests.get(f"https://{address}", verify=False, timeout=60)

    assert answer.status_code == 401
    with pytest.raises(requests.RequestException):
        requests.get(f"http://{address}", timeout=60)
