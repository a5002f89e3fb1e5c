"""Flavors, images and settings with implausible values."""

from __future__ import annotations

from typing import Any

import pytest

from capo import settings
from capo.openstack.flavor import Flavor
from capo.openstack.image import Image
from capo.settings import SettingsError
from controllers.openstackmachinetemplate import capacity


def of(mapping: dict[str, str] | None = None, root: int | None = None, **body: Any) -> capacity.Capacity:
    usual = {"id": "f", "name": "f", "vcpus": 2, "ram": 1024, "disk": 10, "OS-FLV-EXT-DATA:ephemeral": 0}
    return capacity.of(Flavor({**usual, **body}), root_volume_gib=root, mapping=mapping or {})


@pytest.mark.parametrize("value", [-1, 2**63, 10**30])
@pytest.mark.parametrize(("field", "key"), [("vcpus", "cpu"), ("ram", "memory"), ("disk", "storage")])
def test_an_impossible_number_is_left_out_and_named(field: str, key: str, value: int) -> None:
    body: dict[str, Any] = {field: value}

    found = of(**body)

    assert key not in found.resources
    assert f"{key} is left out" in found.message


@pytest.mark.parametrize("value", [None, "8", 8.5, True, [], {}])
def test_what_is_no_number_is_no_key(value: Any) -> None:
    assert "cpu" not in of(vcpus=value).resources


def test_a_number_whose_bytes_exceed_a_quantity_is_left_out() -> None:
    assert of(ram=2**43).resources.keys() == {"cpu", "ephemeral-storage", "storage"}
    assert of(ram=2**43 - 1).resources["memory"] == f"{2**43 - 1}Mi"


@pytest.mark.parametrize("count", ["", "-1", "1.5", "\uff19", "1" * 20, "0x1", "1_0", "many", " "])
def test_a_count_that_is_no_plausible_number_is_left_out_and_named(count: str) -> None:
    found = of({"VGPU": "x.y/z"}, extra_specs={"resources:VGPU": count})

    assert "x.y/z" not in found.resources
    assert "x.y/z is left out" in found.message


def test_counts_that_add_up_to_too_many_are_left_out() -> None:
    specs = {f"resources{group}:VGPU": "9" * 18 for group in range(20)}

    found = of({"VGPU": "x.y/z"}, extra_specs=specs)

    assert "x.y/z" not in found.resources


@pytest.mark.parametrize(
    "specs", [None, {"resources:VGPU": 1}, {"resources:": "1"}, [], {"pci_passthrough:alias": ","}]
)
def test_extra_specs_in_any_shape_do_no_harm(specs: Any) -> None:
    assert of({"VGPU": "x.y/z"}, extra_specs=specs).resources["cpu"] == "2"


def test_a_flood_of_words_is_cut() -> None:
    aliases = ",".join(f"{'a' * 1000}{number}:1" for number in range(1000))

    found = of(extra_specs={"pci_passthrough:alias": aliases})

    assert len(found.message) < 1000
    assert found.message.endswith("and 995 more")


@pytest.mark.parametrize(
    ("properties", "expected"),
    [
        ({"hw_architecture": "x86_64", "os_type": "Linux"}, {"architecture": "amd64", "operatingSystem": "linux"}),
        ({"hw_architecture": "AARCH64"}, {"architecture": "arm64"}),
        ({"hw_architecture": "i686", "os_type": "plan9"}, {}),
        ({"hw_architecture": 7, "os_type": None}, {}),
        ({}, {}),
    ],
)
def test_only_values_of_the_contract_are_reported_c_76(properties: dict[str, Any], expected: dict[str, str]) -> None:
    assert capacity.node_info(None, Image({"id": "i", **properties})) == expected


def test_two_required_architectures_are_none() -> None:
    specs = {"trait:HW_ARCH_X86_64": "required", "trait:HW_ARCH_AARCH64": "required"}

    assert capacity.node_info(Flavor({"extra_specs": specs}), Image({})) == {}
    assert capacity.node_info(Flavor({"extra_specs": {"trait:HW_ARCH_X86_64": "forbidden"}}), Image({})) == {}


@pytest.mark.parametrize(
    "text",
    ["VGPU", "VGPU=gpu", "vgpu=a.b/c", "alias:=a.b/c", "VGPU=a b/c", "VGPU=a.b/", "VGPU=A.b/c", "VGPU=a.b/" + "c" * 64],
)
def test_a_mapping_that_names_no_extended_resource_is_refused(text: str) -> None:
    with pytest.raises(SettingsError):
        settings.read([f"--flavor-resources={text}"], {})


def test_a_mapping_is_read() -> None:
    found = settings.read(["--flavor-resources=VGPU=nvidia.com/gpu, alias:a100=x.y/z"], {})

    assert found.flavor_resources == (("VGPU", "nvidia.com/gpu"), ("alias:a100", "x.y/z"))
