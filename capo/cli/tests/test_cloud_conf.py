"""The cloud.conf for a cluster: credentials, subnet and external network, and the options that go with it."""

from __future__ import annotations

import configparser
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from capo.__main__ import main

AUTH = {
    "auth_url": "https://keystone.example.com/v3",
    "username": "workloads",
    "password": 'a"b\\c#d;e',
    "project_name": "team-a",
    "user_domain_name": "Default",
    "project_domain_name": "Default",
}
STATUS = {
    "network": {"id": "n1", "name": "net", "subnets": [{"id": "s1", "name": "sub", "cidr": "10.6.0.0/24"}]},
    "externalNetwork": {"id": "x1", "name": "public"},
}


def written(folder: Path, *, spec: Any = None, status: Any = None, entry: Any = None) -> list[str]:
    """Write both files, and return the arguments of the command."""
    obj = {
        "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2",
        "kind": "OpenStackCluster",
        "metadata": {"name": "shop-x7k2", "namespace": "team-a", "labels": {"cluster.x-k8s.io/cluster-name": "shop"}},
        "spec": {"identityRef": {"name": "cloud", "cloudName": "prod"}, **(spec or {})},
        "status": STATUS if status is None else status,
    }
    clouds = {"clouds": {"prod": {"auth": AUTH, "region_name": "one", **(entry or {})}}}
    (folder / "cluster.yaml").write_text(yaml.safe_dump(obj))
    (folder / "clouds.yaml").write_text(yaml.safe_dump(clouds))
    return ["cloud-conf", str(folder / "cluster.yaml"), "--clouds", str(folder / "clouds.yaml")]


def parsed(text: str) -> dict[str, dict[str, str]]:
    """Return the file as its sections, its values as gcfg reads them."""
    found = configparser.RawConfigParser()
    found.read_string(text)
    return {
        name: {key: value[1:-1].replace('\\"', '"').replace("\\\\", "\\") for key, value in found[name].items()}
        for name in found.sections()
    }


def test_it_has_the_credentials_and_the_networks_of_the_cluster(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(written(tmp_path, spec={"managedSecurityGroups": {}})) == 0

    printed = capsys.readouterr()
    assert parsed(printed.out) == {
        "Global": {
            "auth-url": AUTH["auth_url"],
            "username": "workloads",
            "password": AUTH["password"],
            "tenant-name": "team-a",
            "user-domain-name": "Default",
            "tenant-domain-name": "Default",
            "region": "one",
            "os-endpoint-type": "public",
        },
        "LoadBalancer": {"subnet-id": "s1", "floating-network-id": "x1", "manage-security-groups": "true"},
    }
    assert "--cluster-name=team-a.shop\n" in printed.err
    assert "--cluster=team-a.shop\n" in printed.err


def test_an_application_credential_needs_no_names(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    auth = {"auth_url": AUTH["auth_url"], "application_credential_id": "1", "application_credential_secret": "2"}
    arguments = written(tmp_path, entry={"auth_type": "v3applicationcredential", "auth": auth, "verify": False})

    assert main([*arguments, "--ca-file", "/etc/ssl/ca.pem"]) == 0

    assert parsed(capsys.readouterr().out)["Global"] == {
        "auth-url": AUTH["auth_url"],
        "application-credential-id": "1",
        "application-credential-secret": "2",
        "region": "one",
        "os-endpoint-type": "public",
        "ca-file": "/etc/ssl/ca.pem",
        "tls-insecure": "true",
    }


OVN = {"lb-provider": "ovn", "lb-method": "SOURCE_IP_PORT"}


def balanced(provider: str) -> dict[str, Any]:
    return {"apiServer": {"managedLoadBalancer": {"enabled": True, "provider": provider}}}


@pytest.mark.parametrize(
    ("spec", "options", "expected"),
    [
        pytest.param({}, [], {}, id="default"),
        pytest.param(balanced("ovn"), [], OVN, id="ovn"),
        pytest.param(balanced("octavia"), [], {"lb-provider": "octavia"}, id="amphora by its other name"),
        pytest.param({}, ["--lb-provider", "ovn"], OVN, id="ovn by the option"),
        pytest.param(balanced("ovn"), ["--lb-provider", "amphora"], {"lb-provider": "amphora"}, id="option first"),
    ],
)
def test_services_get_the_provider_of_the_cluster_with_an_algorithm_that_it_has(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    spec: dict[str, Any],
    options: list[str],
    expected: dict[str, str],
) -> None:
    assert main([*written(tmp_path, spec=spec), *options]) == 0

    found = parsed(capsys.readouterr().out)["LoadBalancer"]
    assert {name: value for name, value in found.items() if name.startswith("lb-")} == expected


PAGE: Final = Path(__file__).parents[3] / "docs/how-to/cloud-controller.md"


def test_commands_of_the_page_print_what_it_shows(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    written(tmp_path)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "shop.yaml").write_bytes((tmp_path / "cluster.yaml").read_bytes())
    clouds = yaml.safe_load((tmp_path / "clouds.yaml").read_text())
    (tmp_path / "clouds.yaml").write_text(yaml.safe_dump({"clouds": {"workloads": clouds["clouds"]["prod"]}}))
    lines = [line.strip() for line in PAGE.read_text(encoding="utf-8").splitlines()]
    commands = [line for line in lines if line.startswith("capo cloud-conf ")]
    assert len(commands) == 2

    for command in commands:
        assert main(command.removeprefix("capo ").split()) == 0
        assert "[Global]" in (tmp_path / "cloud.conf").read_text()

    notes = capsys.readouterr().err.splitlines()
    assert notes
    assert set(notes) <= set(lines)


def test_a_written_file_is_for_its_user_alone_also_in_place_of_one_that_was_not(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, arguments = tmp_path / "cloud.conf", written(tmp_path)
    assert main(arguments) == 0
    printed = capsys.readouterr().out
    path.write_text("old")
    path.chmod(0o644)

    assert main([*arguments, "-o", str(path)]) == 0

    assert capsys.readouterr().out == ""
    assert path.read_text() == printed
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_file_that_cannot_be_written_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*written(tmp_path), "-o", str(tmp_path / "absent" / "cloud.conf")]) == 1

    assert "cannot be written: No such file" in capsys.readouterr().err


def test_the_table_of_the_page_has_every_key(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    spec = {**balanced("ovn"), "managedSecurityGroups": {}}
    assert main([*written(tmp_path, spec=spec), "--ca-file", "/ca.pem"]) == 0
    printed = parsed(capsys.readouterr().out)
    rows = "".join(line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("|"))

    keys = {*printed["LoadBalancer"], "region", "ca-file"}

    assert {key for key in keys if f"`{key}`" not in rows} == set()


def test_the_options_have_the_name_that_the_cluster_is_given(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(written(tmp_path, spec={"workloadLeftovers": {"clusterName": "prod-7"}})) == 0

    assert "--cluster-name=prod-7\n" in capsys.readouterr().err


REORDERED = "a\u202eb"
"""A terminal shows its characters in another order."""


@pytest.mark.parametrize(
    ("change", "error"),
    [
        pytest.param(
            {"spec": {"workloadLeftovers": {"clusterName": "team-b.shop"}}},
            "must begin with the namespace and a dot, here 'team-a.'",
            id="the name of another namespace",
        ),
        pytest.param({"status": {}}, "has no subnet in its status yet", id="no network yet"),
        pytest.param({"entry": {"auth": {**AUTH, "password": "a\nb"}}}, "has a line break", id="a line break"),
        pytest.param({"entry": {"auth": {**AUTH, "password": REORDERED}}}, "does not see", id="a bidirectional mark"),
        pytest.param({"entry": {"auth": {**AUTH, "username": "a\u200bb"}}}, "of username has", id="no width"),
        pytest.param({"entry": {"auth": {}}}, "auth_url is missing", id="no credentials"),
    ],
)
def test_what_cannot_be_written_is_an_error_without_secrets(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], change: dict[str, Any], error: str
) -> None:
    assert main(written(tmp_path, **change)) == 1

    printed = capsys.readouterr()
    assert (printed.out, error in printed.err) == ("", True), printed.err
    assert AUTH["password"] not in printed.err


@pytest.mark.parametrize("text", ["kind: Cluster", "a: [", "- 1", ""])
def test_a_file_that_is_no_cluster_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str) -> None:
    arguments = written(tmp_path)
    (tmp_path / "cluster.yaml").write_text(text)

    assert main(arguments) == 1

    assert "cluster.yaml is not" in capsys.readouterr().err
