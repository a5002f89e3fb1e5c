"""Nova's availability zones as status.failureDomains, with the networks that the spec gives their machines.

Source: docs/explanation/go-provider.md, G-14, W-67, and docs/reference/contract.md, C-7 and C-8. The domains follow the
cloud and the spec; known ones are kept while Nova or Neutron cannot be asked.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from api.v1beta2.openstackcluster import FailureDomainNetwork
from capo.contract import clusters
from capo.engine.steps import Done, Outcome
from capo.errors import CapoError
from capo.openstack import availability_zone, network, subnet
from controllers.openstackcluster import status, zones
from controllers.openstackcluster.scope import ClusterScope

CONDITION: Final = "FailureDomainsReady"
KEPT_S: Final = 3600.0
"""The zones are listed once an hour."""


def ensure_failure_domains(scope: ClusterScope) -> Outcome:
    """Write Nova's zones to the status; list them once an hour, and when the spec changes."""
    spec, known = scope.cluster.spec, {domain.name: domain for domain in scope.cluster.status.failure_domains}
    source = _source(scope)
    if scope.is_settled(CONDITION) and scope.is_unchanged(scope.zones, source, max_age_s=KEPT_S):
        return Done(zones.note(spec, known))
    scope.found.failure_domains = clusters.failure_domains(
        zones.usable(availability_zone.list_all(scope.cloud), known),
        omits_control_plane=bool(spec.control_plane_omit_availability_zone),
        control_plane_zones=spec.control_plane_availability_zones,
        attributes=_attributes(scope, {name: domain.attributes for name, domain in known.items()}),
    )
    scope.zones.note(scope.uid, source, now_s=scope.context.started_s)
    return Done(zones.note(spec, [domain["name"] for domain in scope.found.failure_domains]))


def _source(scope: ClusterScope) -> Any:
    """Return what the attributes are found from; None if the spec gives no domain a network."""
    found, named = scope.found.network, scope.cluster.spec.failure_domains
    return (found.id if found else None, named) if named else None


def _attributes(scope: ClusterScope, known: Mapping[str, Mapping[str, str]]) -> dict[str, dict[str, str]]:
    """Return the attributes of the domains that the spec gives a network; none until that of the cluster is known.

    Raises:
        CapoError: a network or subnet does not exist, or several match.
    """
    if scope.found.network is None:
        return {}
    found = {}
    for domain in scope.cluster.spec.failure_domains:
        try:
            found[domain.name] = _of_domain(scope, domain, scope.found.network.id, known.get(domain.name, {}))
        except CapoError as error:
            raise error.about(f"spec.failureDomains {domain.name}") from error
    return found


def _of_domain(
    scope: ClusterScope, domain: FailureDomainNetwork, cluster_network_id: str, known: Mapping[str, str]
) -> dict[str, str]:
    network_id = str(network.resolve(scope.cloud, domain.network)["id"]) if domain.network else cluster_network_id
    if domain.subnets:
        bodies = [subnet.resolve(scope.cloud, each, network_id=network_id) for each in domain.subnets]
    else:
        bodies = subnet.list_in_network(scope.cloud, network_id)
    return zones.attributes(network_id, [status.subnet(body) for body in bodies], known)


def cidrs(scope: ClusterScope) -> list[str]:
    """Return the CIDRs of the subnets in which machines of failure domains have ports, besides the cluster's."""
    return [cidr for attributes in _named(scope) for cidr in zones.values(attributes, zones.CIDRS)]


def subnet_ids(scope: ClusterScope) -> list[str]:
    """Return the ids of the subnets in which new machines of failure domains get ports."""
    return [subnet_id for attributes in _named(scope) for subnet_id in zones.values(attributes, zones.SUBNETS)]


def _named(scope: ClusterScope) -> list[Mapping[str, str]]:
    """Return the attributes of the domains that the spec gives a network: as found now, else as in the status."""
    found = scope.found.failure_domains
    known = {domain.name: domain.attributes for domain in scope.cluster.status.failure_domains}
    shown = known if found is None else {domain["name"]: domain.get("attributes", {}) for domain in found}
    return [shown.get(domain.name, {}) for domain in scope.cluster.spec.failure_domains]
