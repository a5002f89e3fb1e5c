"""The ``cloud.conf`` of cloud-provider-openstack for a cluster of this provider; pure.

Source: kubernetes/cloud-provider-openstack, ``pkg/client/client.go`` (``[Global]``) and ``pkg/openstack/openstack.go``
(``[LoadBalancer]``); values are quoted as gopkg.in/gcfg.v1 reads them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from api.v1beta2 import OpenStackCluster
from capo.errors import InvalidSpecError
from capo.openstack import octavia_providers
from capo.openstack.identity import Credentials
from capo.printable import is_printable

_GLOBAL: Final = {
    "auth_url": "auth-url",
    "username": "username",
    "user_id": "user-id",
    "password": "password",
    "user_domain_name": "user-domain-name",
    "user_domain_id": "user-domain-id",
    "project_name": "tenant-name",
    "project_id": "tenant-id",
    "project_domain_name": "tenant-domain-name",
    "project_domain_id": "tenant-domain-id",
    "token": "token",
    "trust_id": "trust-id",
    "application_credential_id": "application-credential-id",
    "application_credential_name": "application-credential-name",
    "application_credential_secret": "application-credential-secret",
}
"""Field of ``auth`` in clouds.yaml: key in cloud.conf."""


def render(
    credentials: Credentials, cluster: OpenStackCluster, *, ca_file: str | None = None, provider: str | None = None
) -> str:
    """Return the file.

    Args:
        cluster: with a status: its subnet gets the VIPs of Services, its external network their floating IPs.
        ca_file: path of the certificates to trust, in the pods of both programs.
        provider: of Octavia; None for the one that the cluster names.

    Raises:
        InvalidSpecError: the cluster has no network yet, or a value cannot be written.
    """
    balancers = {**_load_balancer(cluster), **_provider(provider or _provider_of(cluster))}
    return f"{_section('Global', _global(credentials, ca_file))}\n{_section('LoadBalancer', balancers)}"


def _global(credentials: Credentials, ca_file: str | None) -> dict[str, str]:
    entry = credentials.entry
    auth: Mapping[str, Any] = entry["auth"]
    if unknown := sorted(name for name in auth if name not in _GLOBAL):
        raise InvalidSpecError(f"cloud.conf has no key for {', '.join(unknown)} of clouds.yaml")
    values = {_GLOBAL[name]: str(value) for name, value in auth.items() if value}
    more = {
        "region": credentials.region_name,
        "os-endpoint-type": entry["interface"],
        "ca-file": ca_file,
        "tls-insecure": "true" if entry["verify"] is False else None,
    }
    return {**values, **{name: str(value) for name, value in more.items() if value}}


def _load_balancer(cluster: OpenStackCluster) -> dict[str, str]:
    status = cluster.status
    if status.network is None or not status.network.subnets:
        raise InvalidSpecError(f"OpenStackCluster {cluster.metadata.name} has no subnet in its status yet")
    external = {"floating-network-id": status.external_network.id} if status.external_network else {}
    # Without it, our security groups keep load balancers away from the ports of Services on the nodes.
    groups = {"manage-security-groups": "true"} if cluster.spec.managed_security_groups else {}
    return {"subnet-id": status.network.subnets[0].id, **external, **groups}


def _provider_of(cluster: OpenStackCluster) -> str | None:
    api = cluster.spec.api_server
    return (api.managed_load_balancer.provider if api and api.managed_load_balancer else None) or None


def _provider(name: str | None) -> dict[str, str]:
    """Return provider and algorithm: the controller's defaults, amphora and ROUND_ROBIN, are refused elsewhere."""
    if name is None:
        return {}
    algorithm = octavia_providers.of(name).algorithm
    return {"lb-provider": name, **({"lb-method": algorithm} if algorithm != octavia_providers.ROUND_ROBIN else {})}


def _section(name: str, values: Mapping[str, str]) -> str:
    return "".join([f"[{name}]\n", *(f"{key}={_quoted(key, value)}\n" for key, value in values.items())])


def _quoted(key: str, value: str) -> str:
    if any(character in value for character in "\n\r\0"):
        raise InvalidSpecError(f"the value of {key} has a line break, which cloud.conf cannot contain")
    if not all(is_printable(character) or character == "\t" for character in value):
        raise InvalidSpecError(f"the value of {key} has a character that a reader does not see, or that hides others")
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
