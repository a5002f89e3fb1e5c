"""Connections from a kubeconfig or a pod's account."""

from __future__ import annotations

import base64
import json
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import pytest
import yaml

from capo.kube import config
from capo.kube.connection import Connection
from capo.kube.errors import KubeError
from capo.kube.proxies import Proxy

NO_ENVIRONMENT: dict[str, str] = {}


def kubeconfig(
    folder: Path, *, user: dict[str, Any] | None = None, cluster: dict[str, Any] | None = None, **more: Any
) -> str:
    content = {
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
        **more,
    }
    file = folder / "kubeconfig"
    file.write_text(yaml.safe_dump(content))
    return str(file)


def read(path: str, *, context: str | None = None) -> Connection:
    return config.from_kubeconfig(path, context=context, environ=NO_ENVIRONMENT)


def authorization(connection: Connection) -> str | None:
    return connection.credentials.current().authorization


def test_the_current_context_is_used_unless_one_is_named(tmp_path: Path) -> None:
    path = kubeconfig(tmp_path)

    assert read(path).server == "https://one:6443"
    assert read(path).namespace == "mine"
    assert read(path, context="other").server == "https://two:6443"


def test_certificates_come_from_data_or_from_files_beside_the_kubeconfig(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    (tmp_path / "ca.pem").write_text("CA")
    user = {"client-certificate-data": base64.b64encode(b"CERT").decode(), "client-key-data": "S0VZ"}

    for _ in range(2):  # the loader remembers files that are removed
        found = read(kubeconfig(tmp_path, user=user, cluster={"certificate-authority": "ca.pem"}))

        assert found.tls.ca is not None
        assert found.tls.ca.path == tmp_path / "ca.pem"
        assert found.tls.certificate is not None
        assert [pem.read() for pem in found.tls.certificate] == ["CERT", "KEY"]
        assert authorization(found) is None
        assert "S0VZ" not in repr(found)
        assert "KEY" not in repr(found)
        assert list((tmp_path / "temporary").iterdir()) == []


def test_tls_is_as_the_kubeconfig_says(tmp_path: Path) -> None:
    cluster = {"insecure-skip-tls-verify": True, "tls-server-name": "kubernetes"}

    found = read(kubeconfig(tmp_path, cluster=cluster)).tls

    assert (found.is_verified, found.server_name) == (False, "kubernetes")


def test_a_server_without_tls_needs_no_certificate(tmp_path: Path) -> None:
    user = {"client-certificate": "nowhere", "client-key": "nowhere", "token": "t"}

    found = read(kubeconfig(tmp_path, user=user, cluster={"server": "http://127.0.0.1:8001"}))

    assert (found.server, found.tls.certificate, authorization(found)) == ("http://127.0.0.1:8001", None, "Bearer t")


def test_a_token_a_token_file_and_a_password_are_sent(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("from-file\n")
    users = [{"token": "plain"}, {"tokenFile": "token", "token": "old"}, {"username": "me", "password": "pw"}]

    sent = [authorization(read(kubeconfig(tmp_path, user=user))) for user in users]

    assert sent == ["Bearer plain", "Bearer from-file", "Basic " + base64.b64encode(b"me:pw").decode()]


def test_a_credential_plugin_beside_the_kubeconfig_is_asked_when_its_token_is_needed(tmp_path: Path) -> None:
    answer = {"status": {"token": "from-plugin", "expirationTimestamp": "2999-01-01T00:00:00Z"}}
    script = tmp_path / "plugin"
    script.write_text(f"#!{sys.executable}\nprint({json.dumps(json.dumps(answer))})")
    plugin = {"apiVersion": "client.authentication.k8s.io/v1", "command": "./plugin"}
    found = read(kubeconfig(tmp_path, user={"exec": plugin}))
    script.chmod(0o700)

    assert authorization(found) == "Bearer from-plugin"


def test_of_several_files_the_first_counts_for_each_entry_and_paths_are_relative_to_their_file(tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    (tmp_path / "two" / "token").write_text("of-two")
    clusters = [{"name": "c", "cluster": {"server": "https://first:6443"}}]
    first = tmp_path / "one" / "kubeconfig"
    first.write_text(yaml.safe_dump({"clusters": clusters, "current-context": "other"}))
    second = kubeconfig(tmp_path / "two", user={"tokenFile": "token"})
    environ = {"KUBECONFIG": os.pathsep.join([str(tmp_path / "nowhere"), str(first), second])}

    current = config.find(kubeconfig=None, context=None, environ=environ)
    named = config.find(kubeconfig=None, context="main", environ=environ)

    assert (current.server, authorization(current)) == ("https://two:6443", "Bearer of-two")
    assert (named.server, authorization(named)) == ("https://first:6443", "Bearer of-two")


def test_the_proxy_is_that_of_the_kubeconfig_or_of_the_environment(tmp_path: Path) -> None:
    environ = {"HTTPS_PROXY": "http://of-environment:3128"}
    path = kubeconfig(tmp_path, cluster={"proxy-url": "http://of-kubeconfig:3128"})

    one = config.from_kubeconfig(path, environ=environ)
    two = config.from_kubeconfig(path, context="other", environ=environ)

    assert one.proxy == Proxy("http://of-kubeconfig:3128")
    assert two.proxy == Proxy("http://of-environment:3128")
    assert read(path, context="other").proxy is None


@pytest.fixture
def account(tmp_path: Path) -> Path:
    for name, text in (("token", "old"), ("ca.crt", "CA"), ("namespace", "capo-system")):
        (tmp_path / name).write_text(text)
    return tmp_path


def test_a_pod_has_its_account_and_its_token_is_read_again_after_a_minute(
    account: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    environ = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": "443", "HTTPS_PROXY": "proxy:3128"}
    found = config.in_cluster(environ, folder=account)
    assert authorization(found) == "Bearer old"
    (account / "token").write_text("new")
    assert authorization(found) == "Bearer old"

    now_s = time.monotonic()
    monkeypatch.setattr(time, "monotonic", lambda: now_s + 61)

    assert authorization(found) == "Bearer new"
    assert (found.server, found.namespace) == ("https://10.0.0.1:443", "capo-system")
    assert found.proxy == Proxy("http://proxy:3128")
    assert config.in_cluster({**environ, "NO_PROXY": "10.0.0.0/16"}, folder=account).proxy is None


def test_an_ipv6_service_address_is_bracketed(account: Path) -> None:
    environ = {"KUBERNETES_SERVICE_HOST": "fd00::1", "KUBERNETES_SERVICE_PORT": "443"}

    assert config.in_cluster(environ, folder=account).server == "https://[fd00::1]:443"


def test_a_pod_without_an_account_is_one_clear_error(tmp_path: Path) -> None:
    environ = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": "443"}

    with pytest.raises(KubeError, match="service account"):
        config.in_cluster(environ, folder=tmp_path)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ({"user": {"as": "admin"}}, "impersonation"),
        ({"user": {"auth-provider": {"name": "oidc"}}}, "auth-provider"),
        ({"user": {"client-certificate-data": "Q0VSVA=="}}, "there is one alone"),
        ({"user": {"client-certificate-data": "!s3cret", "client-key-data": "!s3cret"}}, "cannot be used"),
        ({"user": {"token": "s3cret\nX-Header: 1"}}, "token"),
        ({"user": {"exec": {"command": "x"}}}, "apiVersion"),
        ({"user": {"exec": "s3cret"}}, "cannot be used"),
        ({"cluster": {"server": None, "proxy-url": "http://u:s3cret@proxy"}}, "server"),
        ({"user": {"exec": {"apiVersion": "v1", "env": [{"name": "A"}]}, "password": "s3cret"}}, "command"),
        ({"cluster": {"server": "one:6443"}}, "https://"),
        ({"cluster": {"certificate-authority": "nowhere"}}, "nowhere"),
        ({"cluster": {"proxy-url": "socks5://u:s3cret@proxy"}}, "socks5"),
        ({"users": []}, "u"),
        ({"users": [{"name": "u"}, {"name": "v", "user": None}], "cluster": {"server": 7}}, "https://"),
        ({"contexts": None}, "contexts"),
        ({"clusters": "s3cret"}, "not a kubeconfig"),
        ({"current-context": ""}, "current-context"),
    ],
)
def test_what_cannot_be_used_is_one_clear_error_without_secrets(
    tmp_path: Path, content: dict[str, Any], says: str
) -> None:
    path = kubeconfig(tmp_path, **content)

    with pytest.raises(KubeError, match=says) as caught:
        authorization(read(path))

    assert "s3cret" not in str(caught.value)
    assert "s3cret" not in str(caught.value.__cause__)


@pytest.mark.parametrize("text", [None, "", "a: [", "- a", "\x00", "[" * 5000])
def test_a_file_that_is_no_kubeconfig_is_one_clear_error(tmp_path: Path, text: str | None) -> None:
    file = tmp_path / "kubeconfig"
    if text is not None:
        file.write_text(text)

    with pytest.raises(KubeError, match="kubeconfig"):
        read(str(file))


def test_a_context_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(KubeError, match="nobody"):
        read(kubeconfig(tmp_path), context="nobody")


def test_flags_come_before_the_environment(tmp_path: Path) -> None:
    given = kubeconfig(tmp_path)
    environ = {"KUBECONFIG": str(tmp_path / "nowhere"), "KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBECONTEXT": "other"}

    found = config.find(kubeconfig=given, context=None, environ=environ)

    assert found.server == "https://two:6443"
