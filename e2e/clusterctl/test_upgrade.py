"""The real clusterctl upgrades the provider from one release to the next; runs after the other tests of the folder."""

from __future__ import annotations

import pytest

from capo import components
from capo.components import deployment, release
from capo.local import installed
from capo.local.clusterctl import Clusterctl
from capo.local.rig import Rig
from e2e.clusterctl.objects import generated, is_ours, kept_parts

pytestmark = [pytest.mark.integration, pytest.mark.incremental]

NEXT = "v1.0.99"


@pytest.fixture(scope="module")
def offered(clusterctl: Clusterctl, provider: Rig) -> Rig:
    """Return the rig after the next release was published."""
    clusterctl.prepare(version=NEXT)
    return provider


def test_the_next_release_is_offered(clusterctl: Clusterctl, offered: Rig) -> None:
    plan = clusterctl("upgrade", "plan")

    assert NEXT in next(line for line in plan.splitlines() if line.startswith(release.LABEL))


def test_an_upgrade_keeps_the_objects_and_brings_the_new_manager(clusterctl: Clusterctl, offered: Rig) -> None:
    offered.apply(obj for obj in generated(clusterctl, "kept") if is_ours(obj))
    paths = [offered.api.path_of(obj) for obj in generated(clusterctl, "kept") if is_ours(obj)]
    before = [kept_parts(offered.api.get(path)) for path in paths]

    installed.upgrade(clusterctl, NEXT)
    installed.start(offered)

    path = f"/apis/apps/v1/namespaces/{components.NAMESPACE}/deployments/{deployment.NAME}"
    (container,) = offered.api.get(path)["spec"]["template"]["spec"]["containers"]
    inventory = "/apis/clusterctl.cluster.x-k8s.io/v1alpha3"
    entry = offered.api.get(f"{inventory}/namespaces/{components.NAMESPACE}/providers/{release.LABEL}")
    assert container["image"].endswith(f":{NEXT}")
    assert entry["version"] == NEXT
    assert [kept_parts(offered.api.get(path)) for path in paths] == before
