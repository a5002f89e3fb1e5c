"""What a kubeconfig or a pod's account means."""

from __future__ import annotations

import base64
import json
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import yaml

from capo.kube import connection
from capo.kube.errors import KubeError


def kubeconfig(tmp_path: Path, *, user: dict[str, Any] | None = None, cluster: dict[str, Any] | None = None) -> str:
    config = {
        "current-context": "main",
        "contexts": [
            {"name": "main", "context": {"cluster": "c", "user": "u", "namespace": "mine"}},
            {"name": "other", "context": {"cluster": "c2", "user": "u"}},
        ],
        "clusters": [
            {"name": "c", "cluster": {"server": "https://one:6443/", **(cluster or {})}},
            {"name": "c2", "cluster": {"server": "https://two:6443"}},
        ],
        "users": [{"name": "u", "user": user or {}}],
    }
    file = tmp_path / "kubeconfig"
    file.write_text(yaml.safe_dump(config))
    return str(file)


def test_the_current_context_is_used_unless_one_is_named(tmp_path: Path) -> None:
    path = kubeconfig(tmp_path)

    assert connection.from_kubeconfig(path).server == "https://one:6443"
    assert connection.from_kubeconfig(path).namespace == "mine"
    assert connection.from_kubeconfig(path, context="other").server == "https://two:6443"


def test_certificates_come_from_data_or_from_files_beside_the_kubeconfig(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text("CA")
    user = {"client-certificate-data": base64.b64encode(b"CERT").decode(), "client-key-data": "S0VZ"}

    found = connection.from_kubeconfig(kubeconfig(tmp_path, user=user, cluster={"certificate-authority": "ca.pem"}))

    assert found.ca_pem == "CA"
    assert found.client_pem == ("CERT", "KEY")
    assert found.authorization() == {}


def test_a_token_a_token_file_and_a_password_are_sent(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("from-file\n")
    sent = [
        connection.from_kubeconfig(kubeconfig(tmp_path, user=user)).authorization()["Authorization"]
        for user in ({"token": "plain"}, {"tokenFile": "token"}, {"username": "me", "password": "pw"})
    ]

    assert sent == ["Bearer plain", "Bearer from-file", "Basic " + base64.b64encode(b"me:pw").decode()]


def test_a_credential_plugin_is_asked(tmp_path: Path) -> None:
    answer = {"status": {"token": "from-plugin", "expirationTimestamp": "2999-01-01T00:00:00Z"}}
    plugin = {
        "apiVersion": "client.authentication.k8s.io/v1",
        "command": sys.executable,
        "args": ["-c", f"print({json.dumps(json.dumps(answer))})"],
    }

    found = connection.from_kubeconfig(kubeconfig(tmp_path, user={"exec": plugin}))

    assert found.authorization() == {"Authorization": "Bearer from-plugin"}


def test_a_plugin_that_fails_is_one_clear_error_without_its_output(tmp_path: Path) -> None:
    script = "import sys; print('s3cret'); sys.exit(1)"
    plugin = {"apiVersion": "client.authentication.k8s.io/v1", "command": sys.executable, "args": ["-c", script]}
    found = connection.from_kubeconfig(kubeconfig(tmp_path, user={"exec": plugin}))

    with pytest.raises(KubeError, match="credential plugin") as caught:
        found.authorization()

    assert "s3cret" not in str(caught.value)


def test_the_token_of_a_pod_is_read_again_after_a_minute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, text in (("token", "old"), ("ca.crt", "CA"), ("namespace", "capo-system")):
        (tmp_path / name).write_text(text)
    found = connection.in_cluster({"KUBERNETES_SERVICE_HOST": "10.0.0.1"}, folder=tmp_path)
    assert found.authorization() == {"Authorization": "Bearer old"}
    (tmp_path / "token").write_text("new")
    assert found.authorization() == {"Authorization": "Bearer old"}

    now_s = time.monotonic()
    monkeypatch.setattr(time, "monotonic", lambda: now_s + 61)

    assert found.authorization() == {"Authorization": "Bearer new"}
    assert (found.server, found.namespace) == ("https://10.0.0.1:443", "capo-system")


def test_an_ipv6_service_address_is_bracketed(tmp_path: Path) -> None:
    (tmp_path / "ca.crt").write_text("CA")

    found = connection.in_cluster({"KUBERNETES_SERVICE_HOST": "fd00::1"}, folder=tmp_path)

    assert found.server == "https://[fd00::1]:443"


@pytest.mark.parametrize("missing", ["context", "file"])
def test_what_cannot_be_used_is_one_clear_error(tmp_path: Path, missing: str) -> None:
    path = kubeconfig(tmp_path) if missing == "context" else str(tmp_path / "nowhere")

    with pytest.raises(KubeError, match="kubeconfig"):
        connection.from_kubeconfig(path, context="nobody")


def test_flags_come_before_the_environment(tmp_path: Path) -> None:
    given = kubeconfig(tmp_path)
    environ = {"KUBECONFIG": str(tmp_path / "nowhere"), "KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBECONTEXT": "other"}

    found = connection.find(kubeconfig=given, context=None, environ=environ)

    assert found.server == "https://two:6443"
