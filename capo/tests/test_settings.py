"""Flags as Go programs spell them (G-38)."""

from __future__ import annotations

from typing import Any

import pytest

from capo import durations, settings
from capo.settings import Settings, SettingsError


def read(*arguments: str, **environ: str) -> Settings:
    return settings.read(arguments, environ)


UPSTREAM = {
    "leader-elect": False,
    "leader-elect-lease-duration": 15.0,
    "leader-elect-renew-deadline": 10.0,
    "leader-elect-retry-period": 2.0,
    "namespace": "",
    "watch-filter": "",
    "openstackcluster-concurrency": 10,
    "openstackmachine-concurrency": 10,
    "openstackmachinetemplate-concurrency": 10,
    "sync-period": 600.0,
    "kube-api-qps": 20.0,
    "kube-api-burst": 30,
    "webhook-port": 9443,
    "webhook-cert-dir": "/tmp/k8s-webhook-server/serving-certs/",
    "health-addr": ":9440",
    "diagnostics-address": ":8443",
    "insecure-diagnostics": False,
    "profiler-address": "",
    "tls-min-version": "VersionTLS12",
    "tls-cipher-suites": (),
    "lb-provider": "amphora",
    "ca-certs": "",
    "scope-cache-max-size": 10,
    "skip-crd-migration-phases": (),
    "feature-gates": {"PriorityQueue": True, "AutoScaleFromZero": True},
    "flavor-resources": (),
    "v": 0,
    "vmodule": "",
    "logging-format": "text",
    "log-flush-frequency": 5.0,
    "kubeconfig": "",
}


@pytest.mark.parametrize("flag", UPSTREAM)
def test_each_flag_of_the_go_provider_has_its_default(flag: str) -> None:
    (known,) = (f for f in settings.FLAGS if f.name == flag)

    assert getattr(read(), known.setting) == UPSTREAM[flag]


@pytest.mark.parametrize(
    ("arguments", "setting", "expected"),
    [
        pytest.param(["--namespace", "x"], "namespace", "x", id="value-apart"),
        pytest.param(["--namespace=x"], "namespace", "x", id="value-after-equals"),
        pytest.param(["--watch_filter=x"], "watch_filter", "x", id="underscores"),
        pytest.param(["--namespace="], "namespace", "", id="empty-value"),
        pytest.param(["--leader-elect"], "leader_elect", True, id="switch"),
        pytest.param(["--leader-elect=false"], "leader_elect", False, id="switch-off"),
        pytest.param(["--leader-elect=T"], "leader_elect", True, id="switch-in-short"),
        pytest.param(["--sync-period=1h30m"], "sync_period_s", 5400.0, id="compound-duration"),
        pytest.param(["--sync-period", "1.5h"], "sync_period_s", 5400.0, id="fractional-duration"),
        pytest.param(["--sync-period=500ms"], "sync_period_s", 0.5, id="milliseconds"),
        pytest.param(["-v", "4"], "verbosity", 4, id="short-flag"),
        pytest.param(["-v=4"], "verbosity", 4, id="short-flag-with-equals"),
        pytest.param(["-v4"], "verbosity", 4, id="short-flag-glued"),
        pytest.param(["--v=4"], "verbosity", 4, id="short-flag-with-two-dashes"),
        pytest.param(["--v=2", "--v=5"], "verbosity", 5, id="the-last-one-counts"),
        pytest.param(["--kube-api-qps=20"], "kube_api_qps", 20.0, id="number"),
        pytest.param(
            ["--tls-cipher-suites=TLS_AES_128_GCM_SHA256,TLS_AES_256_GCM_SHA384"],
            "tls_cipher_suites",
            ("TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384"),
            id="list",
        ),
        pytest.param(
            ["--skip-crd-migration-phases=StorageVersionMigration", "--skip-crd-migration-phases=CleanupManagedFields"],
            "skip_crd_migration_phases",
            ("StorageVersionMigration", "CleanupManagedFields"),
            id="repeated",
        ),
        pytest.param(
            ["--feature-gates=AutoScaleFromZero=true,PriorityQueue=false"],
            "feature_gates",
            {"PriorityQueue": False, "AutoScaleFromZero": True},
            id="gates",
        ),
        pytest.param(
            ["--feature-gates=AllAlpha=true,AutoScaleFromZero=false"],
            "feature_gates",
            {"PriorityQueue": True, "AutoScaleFromZero": False},
            id="single-gates-come-after-groups",
        ),
        pytest.param(
            ["--feature-gates=AllAlpha=true"],
            "feature_gates",
            {"PriorityQueue": True, "AutoScaleFromZero": True},
            id="all-alpha",
        ),
    ],
)
def test_values_are_read_as_go_reads_them(arguments: list[str], setting: str, expected: Any) -> None:
    assert getattr(read(*arguments), setting) == expected


@pytest.mark.parametrize(
    ("argument", "complaint"),
    [
        ("--nonsense", "unknown flag --nonsense"),
        ("--nonsense=1", "unknown flag --nonsense"),
        ("-namespace=x", "unknown flag -namespace"),
        ("word", "unexpected argument 'word'"),
        ("--namespace", "--namespace needs a value"),
        ("--leader-elect=maybe", "--leader-elect: 'maybe' is not true or false"),
        ("--sync-period=10", "--sync-period: '10' is not a duration"),
        ("--sync-period=0", "--sync-period: '0' is not a duration above zero"),
        ("--sync-period=-1m", "--sync-period: '-1m' is not a duration above zero"),
        ("--openstackcluster-concurrency=0", "a whole number from 1 up"),
        ("--openstackcluster-concurrency=x", "a whole number"),
        ("--webhook-port=70000", "a whole number from 0 to 65535"),
        ("--tls-min-version=VersionTLS10", "one of VersionTLS12, VersionTLS13"),
        ("--tls-cipher-suites=TLS_NULL", "'TLS_NULL' is not a list out of TLS_ECDHE_ECDSA_WITH"),
        ("--logging-format=xml", "one of text, json"),
        ("--feature-gates=Unknown=true", "--feature-gates"),
        ("--feature-gates=PriorityQueue=perhaps", "true or false"),
        ("--skip-crd-migration-phases=Nothing", "CleanupManagedFields, StorageVersionMigration"),
        ("--ca-certs=/does/not/exist", "a file that can be read"),
        ("--kubeconfig=/does/not/exist", "a file that can be read"),
        ("--health-addr=nowhere", "host:port"),
        ("--leader-elect-renew-deadline=20s", "must be less than"),
        ("--leader-elect-resource-name=other", "needs --watch-filter or --namespace"),
        ("--leader-elect-resource-name=Other", "a name of a Kubernetes object"),
    ],
)
def test_a_wrong_value_is_one_clear_line(argument: str, complaint: str) -> None:
    with pytest.raises(SettingsError) as caught:
        read(argument)

    assert complaint in str(caught.value)
    assert "\n" not in str(caught.value)


def test_the_environment_is_read() -> None:
    found = read(POD_NAMESPACE="capo-system", KUBECONTEXT="here", CLUSTER_API_OPENSTACK_INSTANCE_CREATE_TIMEOUT="7")

    assert (found.pod_namespace, found.kube_context, found.server_build_timeout_s) == ("capo-system", "here", 420.0)


def test_the_flag_of_the_build_timeout_comes_before_its_variable() -> None:
    found = settings.read(
        ["--server-build-timeout=45m"], environ={"CLUSTER_API_OPENSTACK_INSTANCE_CREATE_TIMEOUT": "7"}
    )

    assert found.server_build_timeout_s == 2700.0


def test_a_wrong_variable_is_one_clear_line() -> None:
    with pytest.raises(SettingsError, match="CLUSTER_API_OPENSTACK_INSTANCE_CREATE_TIMEOUT: 'soon'"):
        read(CLUSTER_API_OPENSTACK_INSTANCE_CREATE_TIMEOUT="soon")


def test_help_and_version_are_wishes_of_their_own() -> None:
    with pytest.raises(settings.HelpWanted, match="--leader-elect"):
        read("--leader-elect", "--help")
    with pytest.raises(settings.VersionWanted):
        read("--version")


def test_flags_that_do_nothing_are_named_when_they_are_given_w_87() -> None:
    assert settings.given_without_effect(read()) == []
    assert settings.given_without_effect(read("--kube-api-qps=50", "--namespace=x")) == ["--kube-api-qps"]
    assert settings.given_without_effect(read("--lb-provider=ovn")) == ["--lb-provider"]
    gate = "--feature-gates=PriorityQueue=false,AutoScaleFromZero=false"
    assert settings.given_without_effect(read(gate)) == ["--feature-gates=PriorityQueue=false"]


@pytest.mark.parametrize(
    ("text", "seconds"), [("0", 0.0), ("15s", 15.0), ("-1.5s", -1.5), ("1h2m3s4ms", 3723.004), (".5s", 0.5)]
)
def test_durations(text: str, seconds: float) -> None:
    assert durations.duration_s(text) == pytest.approx(seconds)
