"""Servers that wait: for the address of their pool, for an image of ORC; and the example of the docs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from e2e.servers.environment import ServersEnvironment

pytestmark = pytest.mark.integration

PAGE: Final = Path(__file__).parents[2] / "docs/how-to/server-by-hand.md"
CRDS: Final = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
ORC_NAME: Final = "images.openstack.k-orc.cloud"
ORC_CRD: Final[dict[str, Any]] = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": ORC_NAME},
    "spec": {
        "group": "openstack.k-orc.cloud",
        "scope": "Namespaced",
        "names": {"plural": "images", "singular": "image", "kind": "Image", "listKind": "ImageList"},
        "versions": [
            {
                "name": "v1alpha1",
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
            }
        ],
    },
}
"""The part of ORC's kind that the provider reads."""


@pytest.fixture
def without_orc(ground: ServersEnvironment) -> Iterator[None]:
    remove_orc(ground)
    yield
    remove_orc(ground)


def remove_orc(ground: ServersEnvironment) -> None:
    """Delete the definition and wait until it is gone; one that is being deleted would be changed, and then vanish."""
    path = f"{CRDS}/{ORC_NAME}"
    ground.rig.api.delete(path)
    ground.wait_until("ORC is gone", lambda: ground.rig.api.find(path) is None)


def words(ground: ServersEnvironment, name: str, type_: str = "Ready") -> str:
    return str(ground.condition("openstackservers", name, type_).get("message", ""))


def remove(ground: ServersEnvironment, name: str) -> None:
    """Delete a server and wait until it is gone."""
    ground.delete("openstackservers", name)
    ground.wait_until(f"{name} is gone", lambda: ground.server(name) is None)


@pytest.mark.usefixtures("without_orc")
def test_image_of_orc_is_waited_for_before_orc_is_installed_and_until_it_is_available(
    ground: ServersEnvironment,
) -> None:
    ground.apply(ground.server_object("of-orc", image={"imageRef": {"name": "node"}}))
    ground.wait_until("the absence of ORC is told", lambda: "is not served" in words(ground, "of-orc"))

    ground.rig.apply([ORC_CRD])
    ground.wait_until("the absence of the object is told", lambda: "does not exist" in words(ground, "of-orc"))
    image = {"apiVersion": "openstack.k-orc.cloud/v1alpha1", "kind": "Image", "metadata": {"name": "node"}}
    ground.apply({**image, "spec": {}})
    ground.wait_until("its state is told", lambda: "not available yet" in words(ground, "of-orc"))
    condition = {"type": "Available", "status": "True", "reason": "Success", "message": ""}
    status = {"id": ground.image["id"], "conditions": [{**condition, "lastTransitionTime": "2026-01-01T00:00:00Z"}]}
    ground.patch_status("images", "node", status)

    obj = ground.wait_until_ready("of-orc")
    assert obj["status"]["resolved"]["imageID"] == ground.image["id"]
    assert ground.show("server", obj["status"]["instanceID"])["image"]["id"] == ground.image["id"]
    remove(ground, "of-orc")


def test_address_of_a_pool_leads_to_the_server_and_is_given_back(ground: ServersEnvironment) -> None:
    pool = {"apiGroup": "ipam.example.org", "kind": "AnyPool", "name": "outer"}
    name, claim_name = "with-address", "with-address-floating-ip-address"
    subnet = [{"subnet": {"id": ground.subnets[0]["id"]}}]
    ports = [{"network": {"id": ground.network["id"]}, "fixedIPs": subnet}]
    ground.apply(ground.server_object(name, floatingIPPoolRef=pool, ports=ports))

    claim = ground.wait_until("a claim is made", lambda: ground.find("ipaddressclaims", claim_name))
    assert claim["spec"]["poolRef"] == pool
    ground.wait_until("the pool is waited for", lambda: "AnyPool outer" in words(ground, name))
    assert ground.server(name)["status"].get("resources", {}).get("records", []) == []  # type: ignore[index]

    floating_ip = ground.make("network", "/floatingips", "floatingip", floating_network_id=ground.external_id)
    address = floating_ip["floating_ip_address"]
    spec = {"claimRef": {"name": claim_name}, "poolRef": pool, "address": address, "prefix": 32}
    kind = {"apiVersion": "ipam.cluster.x-k8s.io/v1beta2", "kind": "IPAddress"}
    ground.apply({**kind, "metadata": {"name": claim_name}, "spec": spec})
    ground.patch_status("ipaddressclaims", claim_name, {"addressRef": {"name": claim_name}})

    obj = ground.wait_until_ready(name)
    (port,) = ground.records(obj, "port")
    assert ground.show("floating_ip", floating_ip["id"])["port_id"] == port["id"]
    external = {"type": "ExternalIP", "address": address}
    ground.wait_until("the address is told", lambda: external in (ground.server(name) or {})["status"]["addresses"])
    remove(ground, name)
    assert ground.find("ipaddressclaims", claim_name) is None
    assert ground.show("floating_ip", floating_ip["id"])["port_id"] is None
    ground.delete("ipaddresses", claim_name)


def test_example_of_the_docs_makes_a_server_without_a_cluster(ground: ServersEnvironment) -> None:
    (text,) = re.findall(r"```yaml\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    secret, user_data, wanted = yaml.safe_load_all(text)
    entry = next(iter(yaml.safe_load(secret["stringData"]["clouds.yaml"])["clouds"]))
    cloud = yaml.safe_dump({"clouds": {entry: ground.tenant.entry}})
    names = {
        "my-network": ground.network["name"],
        "my-group": ground.groups[0]["name"],
        "my-key": f"{ground.namespace}-key",
        "my-image": "tiny-image",
        "my-flavor": "m1.tiny",
    }
    written = yaml.safe_dump(wanted)
    for ours, theirs in names.items():
        assert ours in written
        written = re.sub(rf"\b{ours}\b", theirs, written)

    ground.apply({**secret, "stringData": {"clouds.yaml": cloud}}, user_data, yaml.safe_load(written))

    obj = ground.wait_until_ready(wanted["metadata"]["name"])
    server = ground.show("server", obj["status"]["instanceID"])
    assert server["key_name"] == f"{ground.namespace}-key"
    assert len(ground.records(obj, "volume")) == 1
    remove(ground, wanted["metadata"]["name"])
