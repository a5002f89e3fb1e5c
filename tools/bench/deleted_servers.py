"""Time until an external deletion of a server is reported: `python -m tools.bench.deleted_servers [--cloud lab]`.

The servers are created by hand and idle, in a manager with default settings; they are deleted at Nova one after the
other, so that each deletion is in another part of the minute between two lists. The limit is 60 s.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import yaml

from capo.local.demo import clouds
from capo.local.demo.openstack import OpenStack
from capo.local.rig import Rig
from environments import objects
from environments.manager_process import wait_until
from environments.objects import in_namespace
from tools.bench import environment
from tools.bench.environment import BenchEnvironment
from tools.bench.floor import Latencies

LIMIT_S: Final = 60.0
REST_S: Final = 15.0
"""After this time nothing waits for a server's last change any more."""
LOOK_S: Final = 0.25
NAMESPACE: Final = "vanished"
PATH: Final = f"/apis/infrastructure.cluster.x-k8s.io/v1alpha1/namespaces/{NAMESPACE}/openstackservers"


class DeletedServers:
    """Servers in a cloud, with access by their owner and by an external client."""

    def __init__(self, rig: Rig, cloud: OpenStack, network_id: str) -> None:
        self._rig, self._cloud, self._network_id = rig, cloud, network_id

    def make(self, names: list[str], cloud_name: str) -> None:
        """Create servers that have been ready for a while."""
        identity = {"name": "cloud", "cloudName": cloud_name}
        wanted = [objects.openstack_server(name, self._network_id, identityRef=identity) for name in names]
        self._rig.apply([objects.placed(obj, NAMESPACE, "bench") for obj in wanted])
        for name in names:
            wait_until(f"{name} is ready", lambda n=name: self._status(n).get("ready"), limit_s=300)
        time.sleep(REST_S)

    def noticed_s(self, names: list[str], *, every_s: float) -> dict[str, float]:
        """Delete a server at Nova every ``every_s`` seconds; return the seconds until each was reported not ready."""
        began_s, since_s, found = time.monotonic(), dict[str, float](), dict[str, float]()
        while len(found) < len(names):
            passed_s = time.monotonic() - began_s
            assert passed_s < len(names) * every_s + 3 * LIMIT_S, f"not noticed: {set(names) - found.keys()}"
            due = names[: int(passed_s / every_s) + 1]
            for name in [name for name in due if name not in since_s]:
                self._cloud.send("DELETE", "compute", f"/servers/{self._status(name)['instanceID']}")
                since_s[name] = time.monotonic()
            for name in since_s.keys() - found.keys():
                if not self._status(name).get("ready"):
                    found[name] = time.monotonic() - since_s[name]
            time.sleep(LOOK_S)
        return found

    def remove(self, names: list[str]) -> None:
        """Delete all of them."""
        for name in names:
            self._rig.api.delete(f"{PATH}/{name}")
        wait_until("all are gone", lambda: not self._rig.api.get(PATH)["items"], limit_s=300)

    def _status(self, name: str) -> Any:
        return self._rig.api.get(f"{PATH}/{name}").get("status") or {}


@contextmanager
def network(cloud: OpenStack) -> Iterator[str]:
    """Create a network of the user's for the duration of the block."""
    made = cloud.send("POST", "network", "/networks", {"network": {"name": "vanished"}})["network"]["id"]
    subnet = {"network_id": made, "cidr": "10.8.0.0/24", "ip_version": 4}
    cloud.send("POST", "network", "/subnets", {"subnet": subnet})
    try:
        yield made
    finally:
        cloud.send("DELETE", "network", f"/networks/{made}")


def main() -> int:
    """Measure and print; return 0 if all were detected in time."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cloud", choices=("simulator", "lab"), default="simulator")
    parser.add_argument("--servers", type=int, default=5)
    wanted = parser.parse_args()
    names = [f"server-{number}" for number in range(wanted.servers)]
    with environment.api_server() as rig:
        place = BenchEnvironment(rig, NAMESPACE, rig.install_provider_account())
        place.open(Latencies())
        name, path = ("lab", _lab()) if wanted.cloud == "lab" else ("sim", rig.layout.root / NAMESPACE / "clouds.yaml")
        document = yaml.safe_load(path.read_bytes())
        entry = yaml.safe_dump({"clouds": {name: document["clouds"][name]}}).encode()
        rig.apply([in_namespace(objects.secret("cloud", {"clouds.yaml": entry}), NAMESPACE)])
        place.start()
        cloud = OpenStack(clouds.find_entry(document, name))
        with network(cloud) as network_id:
            seconds = _measured(DeletedServers(rig, cloud, network_id), names, name)
    print(f"noticed after {', '.join(f'{each:.0f}' for each in seconds)} s; at most {LIMIT_S:.0f} s are allowed")
    return 0 if max(seconds) <= LIMIT_S else 1


def _measured(ground: DeletedServers, names: list[str], cloud_name: str) -> list[float]:
    ground.make(names, cloud_name)
    noticed = ground.noticed_s(names, every_s=LIMIT_S / len(names))
    ground.remove(names)
    return [noticed[name] for name in names]


def _lab() -> Path:
    return Path(os.environ.get("LAB_DIR") or Path.home() / ".cache/openstack-lab") / "clouds.yaml"


if __name__ == "__main__":
    sys.exit(main())
