"""Which edits replace the bastion's server, and which cause the replacement reports (G-15, W-60)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import pytest

from api.v1beta2.openstackcluster import Bastion
from controllers.openstackcluster import bastion_hash
from controllers.openstackcluster.tests.objects import BASTION

PORT: dict[str, Any] = {
    "network": {"filter": {"name": "dmz", "tags": ["a", "b"]}},
    "allowedAddressPairs": [{"ipAddress": "192.0.2.1"}, {"ipAddress": "192.0.2.2"}],
    "securityGroups": [{"filter": {"name": "one"}}, {"filter": {"name": "two"}}],
    "tags": ["a", "b"],
    "valueSpecs": [{"name": "a", "key": "x", "value": "1"}, {"name": "b", "key": "y", "value": "2"}],
}
FULL: dict[str, Any] = {
    "tags": ["a", "b"],
    "serverMetadata": [{"key": "a", "value": "1"}, {"key": "b", "value": "2"}],
    "securityGroups": [{"filter": {"name": "one"}}, {"filter": {"name": "two"}}],
    "additionalBlockDevices": [
        {"name": "a", "sizeGiB": 1, "storage": {"type": "Local"}},
        {"name": "b", "sizeGiB": 1, "storage": {"type": "Volume", "volume": {"availabilityZone": {"name": "z"}}}},
    ],
    "schedulerHintAdditionalProperties": [
        {"name": "a", "value": {"type": "Bool", "bool": False}},
        {"name": "b", "value": {"type": "String", "string": "x"}},
    ],
    "rootVolume": {"sizeGiB": 10, "availabilityZone": {"name": "z"}},
    "ports": [PORT, {"network": {"id": "3f1c2b1a-4b6e-4f8e-9d53-0a5a3a3f1c2b"}}],
}


def bastion(machine: Mapping[str, Any] | None = None, **fields: Any) -> Bastion:
    spec = {**BASTION["spec"], **(machine or {})}  # type: ignore[dict-item]
    return Bastion.model_validate({**BASTION, "spec": spec, **fields})


PLAIN = bastion_hash.fingerprint(bastion(), ())


@pytest.mark.parametrize(
    ("machine", "fields"),
    [
        pytest.param({"identityRef": {"name": "other", "cloudName": "c"}}, {}, id="credentials"),
        pytest.param({"antiAffinity": "none"}, {}, id="no anti-affinity"),
        pytest.param({"providerID": "openstack:///x"}, {}, id="provider ID"),
        pytest.param({}, {"floatingIP": "198.51.100.9"}, id="floating IP"),
        pytest.param({"trunk": False, "configDrive": False, "tags": [], "serverMetadata": []}, {}, id="nothing"),
        pytest.param({}, {"availabilityZone": ""}, id="no zone"),
        pytest.param({"ports": []}, {}, id="no ports"),
        pytest.param({"ports": [{}]}, {}, id="the one port"),
        pytest.param(
            {
                "ports": [
                    {
                        "adminStateUp": True,
                        "vnicType": "normal",
                        "nameSuffix": "0",
                        "trunk": False,
                        "profile": {"ovsHWOffload": False, "trustedVF": False},
                        "fixedIPs": [],
                        "securityGroups": [],
                        "allowedAddressPairs": [],
                    }
                ]
            },
            {},
            id="the one port with its defaults",
        ),
    ],
)
def test_a_default_that_is_written_out_replaces_nothing(machine: dict[str, Any], fields: dict[str, Any]) -> None:
    assert bastion_hash.fingerprint(bastion(machine, **fields), ()) == PLAIN


def test_a_default_in_the_depth_that_is_written_out_replaces_nothing() -> None:
    named = {"from": "Name", "name": "z"}
    local, volume = FULL["additionalBlockDevices"]
    written = {**volume, "storage": {"type": "Volume", "volume": {"type": "", "availabilityZone": named}}}
    machine = {
        **FULL,
        "rootVolume": {"sizeGiB": 10, "type": "", "availabilityZone": named},
        "additionalBlockDevices": [local, written],
    }

    assert bastion_hash.fingerprint(bastion(machine), ()) == bastion_hash.fingerprint(bastion(FULL), ())


def test_a_trunk_may_be_asked_for_on_the_server_or_on_each_port() -> None:
    on_ports = {"ports": [{"trunk": True}]}

    assert bastion_hash.fingerprint(bastion({"trunk": True}), ()) == bastion_hash.fingerprint(bastion(on_ports), ())
    assert bastion_hash.fingerprint(bastion({"trunk": True}), ()) != PLAIN


def reversed_lists(value: Any, name: str = "") -> Any:
    """Return a value with each list reversed whose order is insignificant."""
    if isinstance(value, Mapping):
        return {key: reversed_lists(each, key) for key, each in value.items()}
    if isinstance(value, list):
        items = [reversed_lists(each) for each in value]
        return items if name in ("ports", "fixedIPs") else items[::-1]
    return value


def test_another_order_replaces_nothing() -> None:
    turned = reversed_lists(FULL)
    assert turned != FULL

    assert bastion_hash.fingerprint(bastion(turned), ()) == bastion_hash.fingerprint(bastion(FULL), ())


def test_a_tag_may_move_from_the_bastion_to_the_cluster() -> None:
    assert bastion_hash.fingerprint(bastion({"tags": ["a"]}), ("b",)) == bastion_hash.fingerprint(bastion(), ("b", "a"))


@pytest.mark.parametrize(
    ("machine", "fields", "tags", "named"),
    [
        pytest.param({"flavor": {"filter": {"name": "m1.large"}}}, {}, (), "spec.flavor", id="flavor"),
        pytest.param({"image": {"filter": {"name": "debian"}}}, {}, (), "spec.image", id="image"),
        pytest.param({"sshKeyName": "another"}, {}, (), "spec.sshKeyName", id="key"),
        pytest.param({"ports": [{"network": {"filter": {"name": "dmz"}}}]}, {}, (), "spec.ports", id="ports"),
        pytest.param({"ports": [{}, {}]}, {}, (), "spec.ports", id="one more port"),
        pytest.param({"ports": [{"network": {"filter": {"tags": []}}}]}, {}, (), "spec.ports", id="an empty filter"),
        pytest.param({"ports": [{"adminStateUp": False}]}, {}, (), "spec.ports", id="a port that is down"),
        pytest.param({"rootVolume": {"sizeGiB": 10}}, {}, (), "spec.rootVolume", id="root volume"),
        pytest.param({"configDrive": True}, {}, (), "spec.configDrive", id="config drive"),
        pytest.param({"serverMetadata": [{"key": "a", "value": "b"}]}, {}, (), "spec.serverMetadata", id="metadata"),
        pytest.param(
            {"securityGroups": [{"filter": {"name": "a"}}]}, {}, (), "spec.securityGroups", id="security groups"
        ),
        pytest.param(
            {"additionalBlockDevices": FULL["additionalBlockDevices"]},
            {},
            (),
            "spec.additionalBlockDevices",
            id="more disks",
        ),
        pytest.param({"serverGroup": {"filter": {"name": "apart"}}}, {}, (), "spec.serverGroup", id="server group"),
        pytest.param(
            {"schedulerHintAdditionalProperties": FULL["schedulerHintAdditionalProperties"]},
            {},
            (),
            "spec.schedulerHintAdditionalProperties",
            id="scheduler hints",
        ),
        pytest.param(
            {"floatingIPPoolRef": {"kind": "OpenStackFloatingIPPool", "name": "p"}},
            {},
            (),
            "spec.floatingIPPoolRef",
            id="floating IP pool",
        ),
        pytest.param({"tags": ["a"]}, {}, (), "spec.tags", id="own tags"),
        pytest.param({}, {}, ("a",), "spec.tags", id="tags of the cluster"),
        pytest.param({}, {"availabilityZone": "az1"}, (), "availabilityZone", id="zone"),
    ],
)
def test_what_makes_another_server_is_named(
    machine: dict[str, Any], fields: dict[str, Any], tags: tuple[str, ...], named: str
) -> None:
    edited = bastion_hash.fingerprint(bastion(machine, **fields), tags)

    assert bastion_hash.changed_fields(PLAIN, edited) == [f"spec.bastion.{named}"]


def test_a_hint_that_is_false_is_another_than_none() -> None:
    hints = {"schedulerHintAdditionalProperties": [{"name": "a", "value": {"type": "Bool", "bool": False}}]}
    true = {"schedulerHintAdditionalProperties": [{"name": "a", "value": {"type": "Bool", "bool": True}}]}

    assert bastion_hash.fingerprint(bastion(hints), ()) != bastion_hash.fingerprint(bastion(true), ())


def test_the_order_of_ports_counts() -> None:
    turned = {**FULL, "ports": FULL["ports"][::-1]}

    changed = bastion_hash.changed_fields(
        bastion_hash.fingerprint(bastion(FULL), ()), bastion_hash.fingerprint(bastion(turned), ())
    )

    assert changed == ["spec.bastion.spec.ports"]


def test_a_fingerprint_of_another_version_names_nothing_and_cannot_be_compared() -> None:
    assert not bastion_hash.is_known("1-0123456789abcdef")
    assert bastion_hash.changed_fields("1-0123456789abcdef", PLAIN) == []
    assert re.fullmatch(r"2-(\w+:[0-9a-f]{10},?)+", PLAIN)
