"""The demo's scenario in a cluster of containers, as far as it goes where no machine boots: `make e2e-kind`."""

from __future__ import annotations

import pytest
import yaml

from capo.local.demo import inventory, story
from capo.local.demo.clouds import Site
from capo.version import VERSION
from e2e.kind.conftest import LIMIT, Management

pytestmark = pytest.mark.kind

CLUSTER = "demo"
FIRST = "cluster.x-k8s.io/control-plane"


@pytest.mark.timeout(3600)
def test_a_cluster_comes_up_and_goes_without_a_trace(management: Management, site: Site) -> None:
    before = inventory.take(site.member)
    text = management.clusterctl(
        *("generate", "cluster", CLUSTER, f"--infrastructure=openstack:v{VERSION}", "--target-namespace=default"),
        *("--kubernetes-version=v1.31.0", "--control-plane-machine-count=1", "--worker-machine-count=1"),
        **site.variables,
    )
    objects = story.with_bastion([document for document in yaml.safe_load_all(text) if document], site.variables)

    management.kubectl("apply", "--server-side", "--filename=-", input=yaml.safe_dump_all(objects))
    management.kubectl("wait", f"openstackcluster/{CLUSTER}", "--for=condition=Ready", f"--timeout={LIMIT}")
    control_plane, has_machine = f"kubeadmcontrolplane/{CLUSTER}-control-plane", "--for=jsonpath={.status.replicas}=1"
    management.kubectl("wait", control_plane, has_machine, f"--timeout={LIMIT}")
    provisioned = "--for=jsonpath={.status.phase}=Provisioned"
    management.kubectl("wait", "machines", f"--selector={FIRST}", provisioned, f"--timeout={LIMIT}")
    made = inventory.change(before, inventory.take(site.member))
    management.kubectl("delete", "cluster", CLUSTER, f"--timeout={LIMIT}")
    management.kubectl("delete", "secret", f"{CLUSTER}-cloud-config")

    assert management.faults() == []
    assert {item.kind for item in made.added} >= {"server", "load balancer", "router", "security group"}
    assert inventory.change(before, inventory.take(site.member)).is_empty
