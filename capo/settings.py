"""Every setting of the manager, read once from flags and environment.

The flags of the Go provider keep their names, defaults and spelling (G-38); all are listed in
``docs/reference/settings.md``, and a test compares both ways.
"""

from __future__ import annotations

import dataclasses
import ipaddress
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from capo import flag_values, names, tls
from capo.durations import duration_s, positive_duration_s

_INERT_GATES: Final = frozenset({"PriorityQueue"})
DENIED_NETWORKS: Final = (
    "169.254.0.0/16",
    "fe80::/10",
    "fd00:ec2::254/128",
    "100.100.100.200/32",
    "168.63.129.16/32",
    "192.0.0.192/32",
    "0.0.0.0/8",
    "::/128",
    "224.0.0.0/4",
    "ff00::/8",
)
"""Link-local addresses, the metadata services that public clouds have elsewhere, and addresses that no host has."""
LOOPBACK_NETWORKS: Final = ("127.0.0.0/8", "::1/128")
OPERATORS_DENIED_NETWORKS: Final = (*DENIED_NETWORKS, *LOOPBACK_NETWORKS)
"""What operators' commands deny, too: in a Pod, loopback has the manager alone; on their machine, it has their own."""
_NAMESPACE_FILE: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")


class SettingsError(Exception):
    """A flag or variable cannot be used; the message is one line for the user."""


class HelpWanted(Exception):  # noqa: N818 - a wish, not an error
    """``--help`` was given; the message is the help text."""


class VersionWanted(Exception):  # noqa: N818
    """``--version`` was given."""


def _flag(
    name: str, default: Any, parse: Callable[[str], Any], text: str, *, shown: str | None = None, **more: Any
) -> Any:
    """Return a dataclass field that a flag fills.

    Args:
        shown: the default as help and documentation spell it.
        more: ``short``: one-letter name; ``is_switch``: needs no value; ``repeats``: values add up; ``is_inert``: it is
            accepted for existing manifests and has no effect; ``env``: a variable that sets it, too; ``env_text``: its
            text.
    """
    metadata = {"flag": name, "parse": parse, "text": text, "shown": shown if shown is not None else str(default)}
    return field(default=default, metadata={**metadata, **more})


def _switch(name: str, text: str, **more: Any) -> Any:
    return _flag(name, False, flag_values.boolean, text, shown="false", is_switch=True, **more)


def _duration(name: str, default: str, text: str, **more: Any) -> Any:
    return _flag(name, duration_s(default), positive_duration_s, text, shown=default, **more)


@dataclass(frozen=True)
class Settings:
    """All settings; the defaults are those of a bare ``capo run``."""

    leader_elect: bool = _switch("leader-elect", "Take part in leader election; only the leader acts.")
    lease_duration_s: float = _duration(
        "leader-elect-lease-duration", "15s", "Time after which others may acquire a lease that was not renewed."
    )
    renew_deadline_s: float = _duration(
        "leader-elect-renew-deadline", "10s", "The leader exits if it cannot renew its lease within this time."
    )
    retry_period_s: float = _duration("leader-elect-retry-period", "2s", "Pause between two attempts at the lease.")
    lease_name: str = _flag(
        "leader-elect-resource-name",
        names.LEASE,
        flag_values.object_name,
        "Name of the lease. Managers of different objects in one namespace need one each; another name than the "
        "default needs `--watch-filter` or `--namespace`.",
    )
    namespace: str = _flag("namespace", "", str, "Watch only this namespace; empty: all.")
    watch_filter: str = _flag(
        "watch-filter", "", str, "Act only on objects whose label `cluster.x-k8s.io/watch-filter` has this value."
    )
    cluster_concurrency: int = _flag(
        "openstackcluster-concurrency",
        10,
        flag_values.at_least(1),
        "Maximum concurrent OpenStackCluster reconciles per cloud.",
    )
    machine_concurrency: int = _flag(
        "openstackmachine-concurrency",
        10,
        flag_values.at_least(1),
        "Maximum concurrent OpenStackMachine reconciles, and OpenStackServer reconciles, per cloud.",
    )
    template_concurrency: int = _flag(
        "openstackmachinetemplate-concurrency",
        10,
        flag_values.at_least(1),
        "Maximum concurrent OpenStackMachineTemplate reconciles.",
    )
    sync_period_s: float = _duration(
        "sync-period", "10m", "Resync period, after which every object is reconciled again."
    )
    kube_api_qps: float = _flag(
        "kube-api-qps",
        20.0,
        flag_values.number,
        "No effect: the API server's own fairness limits us.",
        shown="20",
        is_inert=True,
    )
    kube_api_burst: int = _flag(
        "kube-api-burst", 30, flag_values.integer, "No effect, as `--kube-api-qps`.", is_inert=True
    )
    webhook_port: int = _flag(
        "webhook-port", 9443, flag_values.at_least(0, 65535), "HTTPS port of admission and conversion."
    )
    webhook_host: str = _flag("webhook-host", "", str, "Address that webhooks are served on; empty: all.")
    webhook_cert_dir: str = _flag(
        "webhook-cert-dir",
        "/tmp/k8s-webhook-server/serving-certs/",  # noqa: S108 - the Go provider's default
        str,
        "Folder with `tls.crt` and `tls.key`; read again when they change.",
    )
    health_address: str = _flag(
        "health-addr", ":9440", flag_values.address, "Address of `/healthz` and `/readyz`; plain HTTP."
    )
    diagnostics_address: str = _flag(
        "diagnostics-address", ":8443", flag_values.address, "Address of `/metrics`; `0`: none."
    )
    insecure_diagnostics: bool = _switch(
        "insecure-diagnostics", "Serve `/metrics` over plain HTTP to everybody who can reach the address."
    )
    profiler_address: str = _flag("profiler-address", "", str, "No effect: there is no Go profiler.", is_inert=True)
    tls_min_version: str = _flag(
        "tls-min-version", "VersionTLS12", flag_values.one_of(*tls.VERSIONS), "Lowest TLS version of our servers."
    )
    tls_cipher_suites: tuple[str, ...] = _flag(
        "tls-cipher-suites",
        (),
        flag_values.cipher_suites,
        "IANA names of the cipher suites of our servers up to TLS 1.2, best first; empty: Python's choice.",
        shown="",
    )
    lb_provider: str = _flag(
        "lb-provider",
        "amphora",
        str,
        "No effect: a cluster names its provider, else Octavia takes its default one.",
        is_inert=True,
    )
    ca_certs: str = _flag(
        "ca-certs",
        "",
        flag_values.file,
        "PEM file: certificate authorities of OpenStack end points without a `cacert`.",
    )
    scope_cache_max_size: int = _flag(
        "scope-cache-max-size",
        10,
        flag_values.at_least(0),
        "Maximum number of cached authenticated clouds; 0: no cache.",
    )
    skip_crd_migration_phases: tuple[str, ...] = _flag(
        "skip-crd-migration-phases",
        (),
        flag_values.phases,
        "Phases of the storage version migration to leave out; repeatable.",
        shown="",
        repeats=True,
    )
    feature_gates: Mapping[str, bool] = field(
        default_factory=lambda: dict(flag_values.GATES),
        metadata={
            "flag": "feature-gates",
            "parse": flag_values.feature_gates,
            "text": "`Name=true,Name=false`; known: `AutoScaleFromZero`, which reports what nodes of a template will "
            "have, `PriorityQueue`, without effect yet, `AllAlpha`, `AllBeta`.",
            "shown": "PriorityQueue=true,AutoScaleFromZero=true",
        },
    )
    flavor_resources: tuple[tuple[str, str], ...] = _flag(
        "flavor-resources",
        (),
        flag_values.flavor_resources,
        "Resources of nodes by the devices that their flavors request: `VGPU=nvidia.com/gpu` for a resource class, "
        "`alias:NAME=nvidia.com/gpu` for a PCI alias; separated by commas.",
        shown="",
    )
    node_info_defaults: tuple[tuple[str, str], ...] = _flag(
        "node-info-defaults",
        (("architecture", "amd64"), ("operatingSystem", "linux")),
        flag_values.node_info_defaults,
        "Architecture and operating system that templates report for nodes if neither image nor flavor states them; "
        "empty: they are left out, and no Pod that selects them scales up from zero.",
        shown="architecture=amd64,operatingSystem=linux",
    )
    verbosity: int = _flag(
        "v", 0, flag_values.at_least(0), "Log messages up to this verbosity; 2 is usual, 6 shows requests."
    )
    vmodule: str = _flag("vmodule", "", str, "No effect: verbosity per file is not supported.", is_inert=True)
    logging_format: str = _flag("logging-format", "text", flag_values.one_of("text", "json"), "Layout of the log.")
    log_flush_frequency_s: float = _duration(
        "log-flush-frequency", "5s", "No effect: log lines are not buffered.", is_inert=True
    )
    log_text_split_stream: bool = _switch(
        "log-text-split-stream", "No effect: the log is written to standard error.", is_inert=True
    )
    log_json_split_stream: bool = _switch(
        "log-json-split-stream", "No effect: the log is written to standard error.", is_inert=True
    )
    log_text_info_buffer_size: str = _flag(
        "log-text-info-buffer-size", "0", str, "No effect: log lines are not buffered.", is_inert=True
    )
    log_json_info_buffer_size: str = _flag(
        "log-json-info-buffer-size", "0", str, "No effect: log lines are not buffered.", is_inert=True
    )
    kubeconfig: str = _flag(
        "kubeconfig", "", flag_values.file, "Kubeconfig file; empty: `KUBECONFIG`, then the pod's own account."
    )
    ambiguous_create_window_s: float = _duration(
        "ambiguous-create-window", "60s", "Time within which a create whose answer was lost may still take effect."
    )
    server_build_timeout_s: float = _duration(
        "server-build-timeout",
        "5m",
        "Time that a server may stay in BUILD before it counts as failed; an annotation may say otherwise for one.",
        env="CLUSTER_API_OPENSTACK_INSTANCE_CREATE_TIMEOUT",
        env_text="Minutes that a server may stay in BUILD, unless `--server-build-timeout` is given.",
    )
    cloud_concurrency: int = _flag(
        "cloud-concurrency",
        10,
        flag_values.at_least(1),
        "Maximum concurrent reconciles per cloud (host and port of `auth_url`, and region), over all controllers.",
    )
    worker_threads: int = _flag(
        "worker-threads",
        128,
        flag_values.at_least(1),
        "Maximum concurrent reconciles, over all controllers and clouds; a namespace gets half, an address a quarter.",
    )
    openstack_quota_interval_s: float = _flag(
        "openstack-quota-interval",
        duration_s("30m"),
        duration_s,
        "Interval at which the quotas of each project in use are read for metrics, up to a fifth more; 0: never.",
        shown="30m",
    )
    openstack_connect_timeout_s: float = _duration(
        "openstack-connect-timeout", "10s", "Timeout of connecting to an OpenStack service."
    )
    openstack_read_timeout_s: float = _duration(
        "openstack-read-timeout", "60s", "Timeout between two packets of an OpenStack service's answer."
    )
    openstack_request_timeout_s: float = _duration(
        "openstack-request-timeout",
        "3m",
        "Timeout of a request to OpenStack, from its first byte to the end of its answer.",
    )
    openstack_max_response_bytes: int = _flag(
        "openstack-max-response-size",
        flag_values.size_bytes("32Mi"),
        flag_values.response_size,
        "Maximum size of an answer of OpenStack, and a quarter of that of a list with all its pages; 1,000 servers or "
        "ports have 1Mi to 4Mi. In a list each resource counts 1Ki more and each value at least 64 bytes: 1,000 "
        "servers or ports 5Mi to 8Mi.",
        shown="32Mi",
    )
    openstack_denied_networks: tuple[ipaddress.IPv4Network | ipaddress.IPv6Network, ...] = _flag(
        "openstack-denied-networks",
        flag_values.networks(",".join(DENIED_NETWORKS)),
        flag_values.networks,
        "Networks that OpenStack end points must not be in, as CIDRs; empty: none.",
        shown=",".join(DENIED_NETWORKS),
    )
    openstack_uses_proxies: bool = _flag(
        "openstack-use-proxies",
        True,
        flag_values.boolean,
        "Reach OpenStack by the proxies of the environment.",
        shown="true",
        is_switch=True,
    )
    kube_context: str = field(default="", metadata={"env": "KUBECONTEXT", "text": "Context of the kubeconfig to use."})
    pod_namespace: str = field(
        default="",
        metadata={
            "env": "POD_NAMESPACE",
            "text": "Namespace of the lease; if unset the pod's own, or that of the kubeconfig's context.",
        },
    )

    def __post_init__(self) -> None:
        if not self.retry_period_s < self.renew_deadline_s < self.lease_duration_s:
            raise SettingsError(
                "--leader-elect-retry-period must be less than --leader-elect-renew-deadline, and that less than "
                "--leader-elect-lease-duration"
            )
        if self.lease_name != names.LEASE and not (self.watch_filter or self.namespace):
            raise SettingsError(
                "--leader-elect-resource-name needs --watch-filter or --namespace: managers with different leases act "
                "at the same time, so they must not have the same objects"
            )


@dataclass(frozen=True)
class Flag:
    """One flag as it is documented."""

    name: str
    setting: str
    default: str
    text: str
    parse: Callable[[str], Any]
    is_switch: bool = False
    repeats: bool = False
    is_inert: bool = False


def _flag_of(spec: dataclasses.Field[Any]) -> Flag:
    data = spec.metadata
    more = {name: data.get(name, False) for name in ("is_switch", "repeats", "is_inert")}
    return Flag(data["flag"], spec.name, data["shown"], data["text"], data["parse"], **more)


FLAGS: Final = tuple(_flag_of(f) for f in dataclasses.fields(Settings) if "flag" in f.metadata)
VARIABLES: Final = {
    f.metadata["env"]: f.metadata.get("env_text", f.metadata["text"])
    for f in dataclasses.fields(Settings)
    if "env" in f.metadata
}
_BY_NAME: Final = {flag.name: flag for flag in FLAGS}


def read(arguments: Sequence[str], environ: Mapping[str, str] = os.environ) -> Settings:
    """Return the settings from flags and environment.

    Raises:
        SettingsError: one of them cannot be used.
        HelpWanted: ``--help`` was given.
        VersionWanted: ``--version`` was given.
    """
    values: dict[str, Any] = dict(_from_environment(environ))
    rest = list(arguments)
    while rest:
        flag, value = _next(rest)
        parsed = _parsed(f"--{flag.name}", flag.parse, value)
        values[flag.setting] = (*values.get(flag.setting, ()), *parsed) if flag.repeats else parsed
    return Settings(**values)


def given_without_effect(settings: Settings) -> list[str]:
    """Return the flags without effect that have another value than their default, gates by their names."""
    defaults = Settings()
    flags = [
        f"--{f.name}" for f in FLAGS if f.is_inert and getattr(settings, f.setting) != getattr(defaults, f.setting)
    ]
    given = ((name, settings.feature_gates[name]) for name in sorted(_INERT_GATES))
    gates = [f"{name}={str(is_on).lower()}" for name, is_on in given if is_on != flag_values.GATES[name]]
    return flags + [f"--feature-gates={gate}" for gate in gates]


def _next(rest: list[str]) -> tuple[Flag, str]:
    """Remove one flag with its value from the arguments and return both."""
    argument = re.sub(r"^-v(?=\d)", "-v=", rest.pop(0))
    if not re.match(r"--?[A-Za-z]", argument):
        raise SettingsError(f"unexpected argument {argument!r}: only flags are taken")
    name, has_value, value = argument.lstrip("-").partition("=")
    name = name.replace("_", "-")
    if name in ("h", "help"):
        raise HelpWanted(help_text())
    if name == "version":
        raise VersionWanted
    if name not in _BY_NAME or (not argument.startswith("--") and len(name) > 1):
        raise SettingsError(f"unknown flag {argument.partition('=')[0]}; see --help")
    flag = _BY_NAME[name]
    if has_value:
        return flag, value
    if flag.is_switch:
        return flag, "true"
    if not rest:
        raise SettingsError(f"flag --{name} needs a value")
    return flag, rest.pop(0)


def _parsed(name: str, parse: Callable[[str], Any], value: str) -> Any:
    try:
        return parse(value)
    except ValueError as error:
        raise SettingsError(f"{name}: {value!r} is not {error}") from None


def _from_environment(environ: Mapping[str, str]) -> Mapping[str, Any]:
    values: dict[str, Any] = {"kube_context": environ.get("KUBECONTEXT", "")}
    namespace = environ.get("POD_NAMESPACE", "")
    if not namespace and _NAMESPACE_FILE.exists():
        namespace = _NAMESPACE_FILE.read_text().strip()
    values["pod_namespace"] = namespace
    name = "CLUSTER_API_OPENSTACK_INSTANCE_CREATE_TIMEOUT"
    if minutes := environ.get(name):
        values["server_build_timeout_s"] = 60.0 * _parsed(name, flag_values.at_least(1), minutes)
    return values


def help_text() -> str:
    """Return all flags and variables, one line each."""
    lines = ["Runs the controllers.", "", "Flags:"]
    lines += [f"  --{flag.name:<38} {flag.text} [{flag.default}]" for flag in FLAGS]
    lines += [f"  --{'version':<38} Print the version.", "", "Environment:"]
    lines += [f"  {name:<40} {text}" for name, text in VARIABLES.items()]
    return "\n".join(lines)
