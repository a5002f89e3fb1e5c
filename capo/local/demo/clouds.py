"""The cloud that the demo runs on: the simulator, the real services on this machine, or any entry of clouds.yaml."""

from __future__ import annotations

import base64
import os
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import yaml

from capo.json_types import Json
from capo.local.demo.counting import LogCounter, RequestCounter, SimulatorCounter
from capo.local.demo.openstack import OpenStack
from capo.local.demo.watch import DemoError

SIMULATOR: Final = "simulator"
LAB: Final = "lab"
PROVIDER_AGENT: Final = "cluster-api-provider-openstack"


@dataclass(frozen=True)
class Site:
    """The cloud of a demo, with its clients.

    Args:
        name: for users.
        entry: the entry of clouds.yaml that the cluster gets.
        member: the cloud as the cluster's own user.
        admin: the cloud as a user that may read user data, None if there is none.
        counter: counts the provider's requests, None if only the manager itself can.
    """

    name: str
    entry: Json
    member: OpenStack
    admin: OpenStack | None = None
    counter: RequestCounter | None = None
    variables: Mapping[str, str] = field(default_factory=dict)


def find_entry(document: Json, name: str) -> Json:
    """Return an entry of a clouds.yaml.

    Raises:
        DemoError: it does not exist.
    """
    known = document.get("clouds") or {}
    if name not in known:
        raise DemoError(f"clouds.yaml has no cloud {name}; it has {', '.join(sorted(known)) or 'none'}")
    found: Json = known[name]
    return found


def read(path: Path) -> Json:
    """Return a clouds.yaml.

    Raises:
        DemoError: there is none.
    """
    if not path.is_file():
        raise DemoError(f"there is no {path}")
    document: Json = yaml.safe_load(path.read_text(encoding="utf-8")) or {}
    return document


def places(environ: Mapping[str, str] = os.environ) -> list[Path]:
    """Return the paths where OpenStack's clients search for clouds.yaml, in order."""
    home = Path(environ.get("HOME", "~")).expanduser()
    given = environ.get("OS_CLIENT_CONFIG_FILE")
    usual = [Path("clouds.yaml"), home / ".config/openstack/clouds.yaml", Path("/etc/openstack/clouds.yaml")]
    return [Path(given)] if given else usual


def simulated(clouds_yaml: Path, url: str) -> Site:
    """Return the simulator that listens at an address."""
    document = read(clouds_yaml)
    entry, admin = find_entry(document, "sim"), find_entry(document, "sim-admin")
    return _site("the simulator", entry, OpenStack(admin), SimulatorCounter(url))


def lab(folder: Path) -> Site:
    """Return the real services on this machine, as a new project for this demo alone.

    So everything that the project has can be compared, even if other projects use the services at the same time.

    Args:
        folder: that of ``tools/openstack-lab``.
    """
    document = read(folder / "clouds.yaml")
    entry, admin = find_entry(document, "lab"), OpenStack(find_entry(document, "lab-admin"))
    project_id = _new_project(admin, OpenStack(entry))
    auth = {name: value for name, value in entry["auth"].items() if not name.startswith("project_")}
    own = {**entry, "auth": {**auth, "project_id": project_id}}
    return _site("the real services on this machine", own, admin, LogCounter(folder / "log", PROVIDER_AGENT))


def named(name: str) -> Site:
    """Return a cloud of the user's clouds.yaml; ``<name>-admin``, if it exists, reads user data.

    Raises:
        DemoError: it is in none of the files.
    """
    path = next((path for path in places() if path.is_file()), None)
    if path is None:
        raise DemoError(f"no clouds.yaml found in {', '.join(map(str, places()))}")
    document = read(path)
    entry, admin = find_entry(document, name), document["clouds"].get(f"{name}-admin")
    return _site(name, entry, OpenStack(admin) if admin else None, None)


def _site(name: str, entry: Json, admin: OpenStack | None, counter: RequestCounter | None) -> Site:
    member = OpenStack(entry)
    return Site(name, entry, member, admin, counter, variables(member, entry))


def _new_project(admin: OpenStack, member: OpenStack) -> str:
    """Return the id of a new project in which the member's user has the roles that it has in its own."""
    body = {"project": {"name": f"capo-demo-{secrets.token_hex(4)}", "domain_id": "default"}}
    project_id = str(admin.send("POST", "identity", "/projects", body)["project"]["id"])
    for role in admin.list("identity", "/roles", "roles"):
        if role["name"] in member.roles:
            admin.send("PUT", "identity", f"/projects/{project_id}/users/{member.user_id}/roles/{role['id']}")
    return project_id


def remove_lab_project(folder: Path, project_id: str) -> None:
    """Delete a project with its default group, which Neutron created."""
    admin = OpenStack(find_entry(read(folder / "clouds.yaml"), "lab-admin"))
    for group in admin.list("network", f"/security-groups?project_id={project_id}", "security_groups"):
        if group["name"] == "default":
            admin.send("DELETE", "network", f"/security-groups/{group['id']}")
    admin.send("DELETE", "identity", f"/projects/{project_id}")


def variables(cloud: OpenStack, entry: Json, environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Return the variables of the cluster template: those of the environment, else defaults that fit the cloud.

    Raises:
        DemoError: one is neither set nor has a default.
    """
    # The provider cannot read a path on this machine: the certificate is put into the Secret.
    document = yaml.safe_dump({"clouds": {"demo": {name: value for name, value in entry.items() if name != "cacert"}}})
    guesses: dict[str, Callable[[], str]] = {
        "KUBERNETES_VERSION": lambda: "v1.31.0",
        "OPENSTACK_DNS_NAMESERVERS": lambda: "1.1.1.1",
        "OPENSTACK_EXTERNAL_NETWORK_ID": lambda: _external_network(cloud),
        "OPENSTACK_IMAGE_NAME": lambda: _only("OPENSTACK_IMAGE_NAME", _kube_images(cloud)),
        "OPENSTACK_NODE_MACHINE_FLAVOR": lambda: _flavors(cloud)[0],
        "OPENSTACK_CONTROL_PLANE_MACHINE_FLAVOR": lambda: _flavors(cloud)[1],
        "OPENSTACK_SSH_KEY_NAME": lambda: next(iter(_key_pairs(cloud)), ""),
        "OPENSTACK_FAILURE_DOMAIN": lambda: _zones(cloud)[0],
        "OPENSTACK_CLOUD_CACERT_B64": lambda: _encoded(_cacert(entry)),
    }
    found = {name: environ[name] if name in environ else guess() for name, guess in guesses.items()}
    return {**found, "OPENSTACK_CLOUD": "demo", "OPENSTACK_CLOUD_YAML_B64": _encoded(document)}


def _external_network(cloud: OpenStack) -> str:
    found = cloud.list("network", "/networks?router:external=true", "networks")
    return _only("OPENSTACK_EXTERNAL_NETWORK_ID", [network["id"] for network in found])


def _kube_images(cloud: OpenStack) -> list[str]:
    return [image["name"] for image in cloud.list("image", "/images", "images") if "kube" in (image["name"] or "")]


def _flavors(cloud: OpenStack) -> list[str]:
    """Return two flavors for nodes and control plane: the usual names, else the two smallest that suffice."""
    found = sorted(cloud.list("compute", "/flavors/detail", "flavors"), key=lambda f: (f["ram"], f["vcpus"]))
    known = [flavor["name"] for flavor in found]
    if {"m1.small", "m1.medium"} <= set(known):
        return ["m1.small", "m1.medium"]
    large = [flavor["name"] for flavor in found if flavor["ram"] >= 2048 and flavor["vcpus"] >= 2]
    if not large:
        raise DemoError(f"no flavor has 2 CPUs and 2 GiB: set OPENSTACK_NODE_MACHINE_FLAVOR; there are {known}")
    return [large[0], large[min(1, len(large) - 1)]]


def _key_pairs(cloud: OpenStack) -> list[str]:
    return [entry["keypair"]["name"] for entry in cloud.list("compute", "/os-keypairs", "keypairs")]


def _zones(cloud: OpenStack) -> list[str]:
    zones = cloud.get("compute", "/os-availability-zone")["availabilityZoneInfo"]
    return sorted(zone["zoneName"] for zone in zones if zone["zoneState"]["available"])


def _only(variable: str, found: list[str]) -> str:
    if len(found) != 1:
        raise DemoError(f"set {variable}: the cloud has {', '.join(found) or 'none'}")
    return found[0]


def _cacert(entry: Json) -> str:
    path = entry.get("cacert")
    return Path(path).read_text(encoding="utf-8") if path else "\n"


def _encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()
