from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import requests
import yaml

from capo.__main__ import main
from capo.local.testing import spare_ports

CONFIGURATION = """
cloud: {region: Elsewhere}
timings: {server_build_s: 0.1}
quotas: {network: {capi: {router: 1}}}
faults:
  - match: {service: network, method: POST, route: /v2.0/security-groups}
    effect: {status: 503, message: out for lunch}
"""


@pytest.fixture
def served(tmp_path: Path) -> Iterator[tuple[str, Path]]:
    """Run `capo simulate` in a process of its own; yield its URL and clouds.yaml."""
    clouds, configuration = tmp_path / "clouds.yaml", tmp_path / "config.yaml"
    configuration.write_text(CONFIGURATION, encoding="utf-8")
    command = [sys.executable, "-m", "capo", "simulate", "--clouds", str(clouds), "--config", str(configuration)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield process.stdout.readline().strip(), clouds
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=60) == 0


def openstack(clouds: Path, *commands: str) -> str:
    """Run commands in one plain client and return its output."""
    environment = {**os.environ, "OS_CLIENT_CONFIG_FILE": str(clouds), "OS_CLOUD": "sim"}
    client = Path(sys.executable).with_name("openstack")
    asked = subprocess.run(
        [client], input="\n".join(commands), env=environment, capture_output=True, text=True, timeout=300, check=False
    )
    return asked.stdout + asked.stderr


def test_it_writes_clouds_yaml_for_its_owner_alone(served: tuple[str, Path]) -> None:
    url, clouds = served

    entries = yaml.safe_load(clouds.read_text(encoding="utf-8"))["clouds"]

    assert clouds.stat().st_mode & 0o777 == 0o600
    assert set(entries) == {"sim", "sim-appcred", "sim-admin"}
    assert entries["sim"]["auth"]["auth_url"] == f"{url}/identity/v3"
    assert entries["sim"]["region_name"] == "Elsewhere"


@pytest.mark.slow
def test_the_plain_openstack_client_makes_and_lists(served: tuple[str, Path]) -> None:
    url, clouds = served

    said = openstack(
        clouds,
        "network create net -f value -c status",
        "subnet create sub --network net --subnet-range 10.0.0.0/24 -f value -c gateway_ip",
        "port create --network net port -f value -c status",
        "server create --flavor m1.tiny --image tiny-image --port port --wait vm -f value -c status",
        "loadbalancer create --name lb --vip-subnet-id sub -f value -c provisioning_status",
        "network list -f json",
        "port list -f json",
        "server list -f json",
        "loadbalancer list -f json",
        "router create one -f value -c status",
        "router create two",
        "security group create g",
    )

    networks, ports, servers, balancers = lists(said)
    assert {network["Name"] for network in networks} == {"net", "public"}
    assert ("port", "ACTIVE") in {(port["Name"], port["Status"]) for port in ports}
    assert [(server["Name"], server["Status"], server["Flavor"]) for server in servers] == [("vm", "ACTIVE", "m1.tiny")]
    assert [balancer["name"] for balancer in balancers] == ["lb"]
    assert {"10.0.0.1", "PENDING_CREATE"} <= set(said.split())
    assert "Quota exceeded for resources: ['router']." in said
    assert "out for lunch" in said
    inventory = requests.get(f"{url}/_simulator/inventory", timeout=60).json()
    assert [server["name"] for server in inventory["compute"]["servers"]] == ["vm"]


def lists(said: str) -> list[list[dict[str, Any]]]:
    """Return the JSON lists in the client's output."""
    return [json.loads(text) for text in re.findall(r"^\[\n.*?^\]", said, re.MULTILINE | re.DOTALL)]


def test_it_serves_on_the_port_that_is_asked_for(tmp_path: Path) -> None:
    port = spare_ports("ours")["ours"]
    clouds = tmp_path / "clouds.yaml"
    command = [sys.executable, "-m", "capo", "simulate", "--port", str(port), "--clouds", str(clouds)]

    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        said = [process.stdout.readline(), process.stdout.readline()]
        answer = requests.get(f"http://127.0.0.1:{port}/identity/v3", timeout=60)
        process.terminate()

    assert answer.status_code == 200
    assert said[0] == f"http://127.0.0.1:{port}\n"
    assert f"OS_CLIENT_CONFIG_FILE={clouds} OS_CLOUD=sim" in said[1]


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        pytest.param("color: red", "the file has unknown keys color", id="section"),
        pytest.param("timings: {build: 1}", "timings has unknown keys build", id="timing"),
        pytest.param("faults: [{effect: {explode: 1}}]", "unknown keys in effect: explode", id="fault"),
        pytest.param("[]", "is not a mapping", id="no mapping"),
    ],
)
def test_a_bad_configuration_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: str, sentence: str
) -> None:
    configuration = tmp_path / "config.yaml"
    configuration.write_text(content, encoding="utf-8")

    status = main(["simulate", "--clouds", str(tmp_path / "clouds.yaml"), "--config", str(configuration)])

    assert status == 2
    assert sentence in capsys.readouterr().err


def test_a_port_in_use_is_said(served: tuple[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    port = served[0].rpartition(":")[2]

    assert main(["simulate", "--clouds", str(tmp_path / "other.yaml"), "--port", port]) == 1
    assert capsys.readouterr().err == f"capo simulate: port {port}: Address already in use\n"


def test_faults_are_ordered_while_it_serves(served: tuple[str, Path]) -> None:
    order = {"match": {"service": "identity"}, "effect": {"status": 503, "body": {"say": "no"}}}

    made = requests.post(f"{served[0]}/_simulator/faults", data=json.dumps(order), timeout=60)
    answer = requests.get(f"{served[0]}/identity/v3", timeout=60)

    assert made.status_code == 201
    assert (answer.status_code, answer.json()) == (503, {"say": "no"})
