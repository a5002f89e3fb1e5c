"""The roles of resources in ledgers and stamps, and the suffixes of the managed security groups.

Controllers read each other's records by role, so both sides take the role from here. A role is stored in the status and
in the cloud: a changed one orphans resources.
"""

from __future__ import annotations

import hashlib
import re
from typing import Final

# -- of a cluster -----------------------------------------------------------------------------------------------------

NETWORK: Final = "network"
SUBNET: Final = "subnet"
ADDITIONAL_SUBNET: Final = "subnet-2"
ROUTER: Final = "router"
ROUTER_INTERFACE: Final = "router-interface"
"""The port that connects the router; it identifies the router to disconnect, also one that the user provides."""
ADDITIONAL_ROUTER_INTERFACE: Final = "router-interface-2"
LOAD_BALANCER: Final = "lb-api"
API_FLOATING_IP: Final = "fip-api"
BASTION_FLOATING_IP: Final = "fip-bastion"

CONTROL_PLANE: Final = "controlplane"
"""The suffix of a managed security group, as are the next two."""
WORKER: Final = "worker"
BASTION: Final = "bastion"

_POOL: Final = "pool-"
_SERVERS: Final = "servers-"


def group(suffix: str) -> str:
    """Return the role of a managed security group."""
    return f"group-{suffix}"


def servers(policy: str, template: str) -> str:
    """Return the role of the server group of a template's machines.

    Args:
        policy: ``soft`` or ``hard``.
        template: the template's name, empty for machines without one; its hash makes it fit into a stamp.
    """
    return f"{_SERVERS}{policy}-{hashlib.sha256(template.encode()).hexdigest()[:20]}"


def listener(port: int) -> str:
    """Return the role of the listener of an API port."""
    return f"listener-{port}"


def pool(port: int) -> str:
    """Return the role of the pool of an API port; control plane machines find their pool by it."""
    return f"{_POOL}{port}"


def port_of_pool(role: str) -> int:
    """Return the API port of a pool's role."""
    return int(role.removeprefix(_POOL))


def monitor(port: int) -> str:
    """Return the role of the health monitor of an API port."""
    return f"monitor-{port}"


# -- of a machine -----------------------------------------------------------------------------------------------------

_MEMBER: Final = "member-"
_ADDITIONAL: Final = "-2"


def member(port: int) -> str:
    """Return the role of the machine's member in the pool of an API port."""
    return f"{_MEMBER}{port}"


def additional_member(port: int) -> str:
    """Return the role of the machine's member of the other IP version, for the second virtual IP."""
    return f"{_MEMBER}{port}{_ADDITIONAL}"


def members(port: int) -> tuple[str, str]:
    """Return the roles that members of a machine have in the pool of an API port."""
    return member(port), additional_member(port)


def port_of_member(role: str) -> int:
    """Return the API port of a member's role."""
    return int(role.removeprefix(_MEMBER).removesuffix(_ADDITIONAL))


# -- of a server ------------------------------------------------------------------------------------------------------

SERVER: Final = "server"

_VOLUME: Final = "volume-"


def port(index: int) -> str:
    """Return the role of the port at an index of ``spec.ports``."""
    return f"port-{index}"


def trunk(index: int) -> str:
    """Return the role of the trunk on the port at an index of ``spec.ports``."""
    return f"trunk-{index}"


def volume(index: int | None) -> str:
    """Return the role of an additional block device by its index, or of the root volume for None."""
    return f"{_VOLUME}root" if index is None else f"{_VOLUME}{index}"


def is_volume(role: str) -> bool:
    """Return whether a role is that of a volume."""
    return role.startswith(_VOLUME)


# -- of a pool of floating IPs ----------------------------------------------------------------------------------------


def floating_ip_of(uid: str) -> str:
    """Return the role of the floating IP that is created for a claim, or adopted, by the uid of the claim or its id.

    It fits into a stamp: 32 hexadecimal digits, or a hash of another uid.
    """
    digits = uid.replace("-", "").lower()
    if not re.fullmatch("[0-9a-f]{32}", digits):
        digits = hashlib.sha256(uid.encode()).hexdigest()[:32]
    return f"ip-{digits}"


# -- as stamps and files have them ------------------------------------------------------------------------------------

_INDEX: Final = "(0|[1-9][0-9]?[0-9]?)"
"""No server has a thousand ports or volumes."""
_API_PORT: Final = "[1-9][0-9]{0,4}"
_OF_CLUSTER: Final = re.compile(
    f"network {NETWORK}|subnet ({SUBNET}|{ADDITIONAL_SUBNET})|router {ROUTER}"
    f"|port ({ROUTER_INTERFACE}|{ADDITIONAL_ROUTER_INTERFACE})"
    f"|security_group group-({CONTROL_PLANE}|{WORKER}|{BASTION})"
    f"|server_group {_SERVERS}(soft|hard)-[0-9a-f]{{20}}"
    f"|floating_ip ({API_FLOATING_IP}|{BASTION_FLOATING_IP})|load_balancer {LOAD_BALANCER}"
    f"|listener listener-{_API_PORT}|pool {_POOL}{_API_PORT}|health_monitor monitor-{_API_PORT}"
)
_OF_SERVER: Final = re.compile(
    f"server {SERVER}|port port-{_INDEX}|trunk trunk-{_INDEX}|volume {_VOLUME}(root|{_INDEX})"
)


def is_of_cluster(kind: str, role: str) -> bool:
    """Return whether a resource of a kind can have a role in an OpenStackCluster."""
    return _OF_CLUSTER.fullmatch(f"{kind} {role}") is not None


def is_of_server(kind: str, role: str) -> bool:
    """Return whether a resource of a kind can have a role in an OpenStackServer."""
    return _OF_SERVER.fullmatch(f"{kind} {role}") is not None
