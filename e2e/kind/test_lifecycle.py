"""Lifecycle of a cluster in a cluster of containers, as far as possible where no machine boots: `make e2e-kind`.

The manager runs as the components describe it. While servers are created, its image is replaced and its pod evicted.
"""

from __future__ import annotations

import json
import subprocess
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

import pytest
import yaml

from capo import components
from capo.components import deployment
from capo.local.demo import inventory, scenario
from capo.local.demo.clouds import Site
from capo.version import VERSION
from e2e.kind.management import DEPLOYMENT, IN_NAMESPACE, LIMIT, Management

pytestmark = pytest.mark.kind

CLUSTER: Final = "demo"
FIRST: Final = "cluster.x-k8s.io/control-plane"
LIMIT_S: Final = 600.0
PER_EVENT: Final = 8
"""Servers that are created before, while and after the manager is replaced."""


@dataclass
class Load:
    """Creates an OpenStackServer each second, like a user who retries.

    Args:
        refused: how often an apply failed; with one replica there is a short time without a webhook.
    """

    management: Management
    site: Site
    names: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    _ended: threading.Event = field(default_factory=threading.Event)

    def __enter__(self) -> Load:
        self._thread = threading.Thread(target=self._run, name="load")
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def wait_for(self, more: int) -> None:
        """Wait until so many more servers were accepted."""
        wanted = len(self.names) + more
        until(lambda: len(self.names) >= wanted, f"{wanted} servers accepted")

    def _run(self) -> None:
        while not self._ended.is_set():
            name = f"load-{len(self.names)}"
            try:
                self.management.kubectl(
                    *("apply", "--server-side", "--filename=-"),
                    input=yaml.safe_dump(self._server(name)),
                    stderr=subprocess.STDOUT,
                )
                self.names.append(name)
            except subprocess.CalledProcessError as error:
                self.refused.append(str(error.output))
            self._ended.wait(1)

    def _server(self, name: str) -> dict[str, Any]:
        variables = self.site.variables
        network = f"k8s-clusterapi-cluster-default-{CLUSTER}"
        return {
            "apiVersion": "infrastructure.cluster.x-k8s.io/v1alpha1",
            "kind": "OpenStackServer",
            "metadata": {"name": name, "namespace": "default", "labels": {"load": "yes"}},
            "spec": {
                "identityRef": {"name": f"{CLUSTER}-cloud-config", "cloudName": variables["OPENSTACK_CLOUD"]},
                "flavor": variables["OPENSTACK_NODE_MACHINE_FLAVOR"],
                "image": {"filter": {"name": variables["OPENSTACK_IMAGE_NAME"]}},
                "sshKeyName": variables["OPENSTACK_SSH_KEY_NAME"],
                "ports": [{"network": {"filter": {"name": network}}}],
            },
        }


def until(condition: Callable[[], object], what: str) -> None:
    """Wait for a condition."""
    ends_s = time.monotonic() + LIMIT_S
    while not condition():
        assert time.monotonic() < ends_s, f"not in {LIMIT_S:.0f} s: {what}"
        time.sleep(0.5)


def posts(site: Site) -> int:
    """Return how many creates of servers were sent."""
    assert site.counter is not None
    return sum(
        n
        for (_, request), n in site.counter.tally().items()
        if request.startswith("POST ") and request.endswith("/servers")
    )


def create_cluster(management: Management, site: Site) -> None:
    """Create a cluster with a bastion, and wait for what becomes ready where no machine boots."""
    text = management.clusterctl(
        *("generate", "cluster", CLUSTER, f"--infrastructure=openstack:v{VERSION}", "--target-namespace=default"),
        *("--kubernetes-version=v1.31.0", "--control-plane-machine-count=1", "--worker-machine-count=1"),
        **site.variables,
    )
    objects = scenario.with_bastion([document for document in yaml.safe_load_all(text) if document], site.variables)
    management.kubectl("apply", "--server-side", "--filename=-", input=yaml.safe_dump_all(objects))
    management.kubectl("wait", f"openstackcluster/{CLUSTER}", "--for=condition=Ready", f"--timeout={LIMIT}")
    control_plane, has_machine = f"kubeadmcontrolplane/{CLUSTER}-control-plane", "--for=jsonpath={.status.replicas}=1"
    management.kubectl("wait", control_plane, has_machine, f"--timeout={LIMIT}")
    provisioned = "--for=jsonpath={.status.phase}=Provisioned"
    management.kubectl("wait", "machines", f"--selector={FIRST}", provisioned, f"--timeout={LIMIT}")
    until(lambda: bastion(management).get("state") == "ACTIVE", "a bastion")


def bastion(management: Management) -> dict[str, Any]:
    """Return the status of the cluster's bastion."""
    found: dict[str, Any] = management.get("openstackcluster", CLUSTER)["status"].get("bastion") or {}
    return found


def edit_bastion(management: Management, site: Site) -> None:
    """Change the bastion's flavor, and wait until its server is replaced."""
    old, flavor = bastion(management)["id"], site.variables["OPENSTACK_CONTROL_PLANE_MACHINE_FLAVOR"]
    patch = {"spec": {"bastion": {"spec": {"flavor": {"filter": {"name": flavor}}}}}}
    management.kubectl("patch", "openstackcluster", CLUSTER, "--type=merge", f"--patch={json.dumps(patch)}")

    def is_replaced() -> bool:
        now = bastion(management)
        return now.get("state") == "ACTIVE" and now["id"] != old

    until(is_replaced, "another bastion")


def roll_out(management: Management, image: str) -> None:
    """Replace the manager's image, and wait until its pods run it."""
    management.kubectl("set", "image", DEPLOYMENT, f"manager={image}", IN_NAMESPACE)
    management.kubectl("rollout", "status", DEPLOYMENT, IN_NAMESPACE, f"--timeout={LIMIT}")
    management.follow_logs()


def evict(management: Management) -> None:
    """Evict the manager's pod, and wait until its successor is ready."""
    (pod,) = [pod for pod in management.pods() if "deletionTimestamp" not in pod["metadata"]]
    name = pod["metadata"]["name"]
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}}
    path = f"/api/v1/namespaces/{components.NAMESPACE}/pods/{name}/eviction"
    management.kubectl("create", "--raw", path, "--filename=-", input=json.dumps(eviction))

    def is_replaced() -> bool:
        return any(is_ready(pod) for pod in management.pods() if pod["metadata"]["name"] != name)

    until(is_replaced, "another pod of the manager")
    management.follow_logs()


def is_ready(pod: Any) -> bool:
    """Return whether a pod passes its probes."""
    return any(each["type"] == "Ready" and each["status"] == "True" for each in pod["status"].get("conditions", ()))


def all_ready(management: Management, count: int) -> bool:
    """Return whether there are ``count`` servers of the load, all ready."""
    servers = management.get("openstackservers", "--selector=load")["items"]
    return len(servers) == count and all((server.get("status") or {}).get("ready") for server in servers)


@pytest.mark.timeout(1800)
def test_the_pod_runs_as_the_components_describe_it(management: Management) -> None:
    (pod,) = management.pods()
    (container,) = pod["spec"]["containers"]
    security = {**pod["spec"]["securityContext"], **container["securityContext"]}

    assert security["readOnlyRootFilesystem"]
    assert security["runAsUser"] == deployment.USER_ID
    assert security["capabilities"] == {"drop": ["ALL"]}
    assert container["resources"]["limits"]["memory"] == deployment.RESOURCES["limits"]["memory"]
    assert {"livenessProbe", "readinessProbe"} <= container.keys()
    assert is_ready(pod)


@pytest.mark.timeout(3600)
def test_a_cluster_comes_up_and_goes_without_a_trace_while_managers_are_replaced(
    management: Management, site: Site, next_image: str
) -> None:
    before = inventory.take(site.member)
    create_cluster(management, site)
    edit_bastion(management, site)
    made, asked = inventory.change(before, inventory.take(site.member)), posts(site)

    with Load(management, site) as load:
        load.wait_for(PER_EVENT)
        roll_out(management, next_image)
        load.wait_for(PER_EVENT)
        evict(management)
        load.wait_for(PER_EVENT)
    until(lambda: all_ready(management, len(load.names)), "every server of the load ready")
    servers = [item.name for item in inventory.take(site.member).values() if item.kind == "server"]
    asked_under_load = posts(site) - asked
    management.kubectl("delete", "openstackservers", "--selector=load", f"--timeout={LIMIT}")
    management.kubectl("delete", "cluster", CLUSTER, f"--timeout={LIMIT}")
    management.kubectl("delete", "secret", f"{CLUSTER}-cloud-config")

    assert {item.kind for item in made.added} >= {"server", "load balancer", "router", "security group"}
    assert sorted(name for name in servers if name.startswith("load-")) == sorted(load.names)
    assert asked_under_load == len(load.names)
    assert management.followed == 3
    assert management.faults() == []
    assert inventory.change(before, inventory.take(site.member)).is_empty
