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


DEFAULTS = {"architecture": "arm64", "operatingSystem": "linux"}


def info_of(specs: Any = None, defaults: dict[str, str] | None = None, **properties: Any) -> capacity.NodeInfo:
    flavor = Flavor({"extra_specs": specs}) if specs is not None else None
    return capacity.node_info(flavor, Image({"id": "i", **properties}), defaults=defaults or {})


@pytest.mark.parametrize(
    ("properties", "expected"),
    [
        ({"hw_architecture": "x86_64", "os_type": "Linux"}, {"architecture": "amd64", "operatingSystem": "linux"}),
        ({"hw_architecture": "AARCH64"}, {"architecture": "arm64"}),
        ({"hw_architecture": "i686", "os_type": "plan9"}, {}),
        ({"hw_architecture": 7, "os_type": None}, {}),
        ({"os_distro": "Windows"}, {"operatingSystem": "windows"}),
        ({"os_distro": "windows", "os_type": "linux"}, {"operatingSystem": "linux"}),
        ({"os_distro": "ubuntu"}, {}),
        ({}, {}),
    ],
)
def test_only_values_of_the_contract_are_reported_c_76(properties: dict[str, Any], expected: dict[str, str]) -> None:
    assert info_of(**properties).values == expected


def test_what_nothing_states_is_assumed_and_named() -> None:
    found = info_of({}, DEFAULTS)

    assert found.values == DEFAULTS
    assert found.message == (
        "architecture arm64 is assumed: hw_architecture of the image is not set; "
        "operatingSystem linux is assumed: os_type of the image is not set"
    )


@pytest.mark.parametrize("specs", [None, {}])
def test_what_the_image_states_is_never_replaced_by_an_assumption(specs: Any) -> None:
    unknown = info_of(specs, DEFAULTS, hw_architecture="i686", os_type="plan9")

    assert unknown.values == {}
    assert (
        unknown.message
        == "architecture is left out: i686 is not supported; operatingSystem is left out: plan9 is not supported"
    )
    assert info_of(specs, DEFAULTS, hw_architecture="x86_64", os_distro="windows").values == {
        "architecture": "amd64",
        "operatingSystem": "windows",
    }


@pytest.mark.parametrize(
    ("specs", "architecture"),
    [
        ({"trait:HW_ARCH_X86_64": "required"}, "amd64"),
        ({"trait:HW_ARCH_X86_64": "forbidden"}, "arm64"),
        ({"trait:HW_ARCH_AARCH64": "forbidden"}, None),
        ({"trait:HW_ARCH_X86_64": "required", "trait:HW_ARCH_AARCH64": "required"}, None),
    ],
)
def test_what_the_flavor_requires_or_forbids_is_not_contradicted(specs: Any, architecture: str | None) -> None:
    assert info_of(specs, DEFAULTS).values.get("architecture") == architecture


def test_a_long_word_of_an_image_is_cut() -> None:
    assert len(info_of(hw_architecture="x" * 5000, os_type="y" * 5000).message) < 300


def test_two_required_architectures_are_none() -> None:
    specs = {"trait:HW_ARCH_X86_64": "required", "trait:HW_ARCH_AARCH64": "required"}

    assert info_of(specs).values == {}
    assert info_of({"trait:HW_ARCH_X86_64": "forbidden"}).values == {}


@pytest.mark.parametrize(
    "text", ["amd64", "architecture", "architecture=", "architecture=x86_64", "os=linux", "operatingSystem=amd64"]
)
def test_a_default_that_the_contract_does_not_have_is_refused(text: str) -> None:
    with pytest.raises(SettingsError):
        settings.read([f"--node-info-defaults={text}"], {})


@pytest.mark.parametrize(
    ("text", "expected"), [("", ()), ("architecture=arm64, ", (("architecture", "arm64"),))], ids=["none", "one"]
)
def test_defaults_are_read(text: str, expected: tuple[tuple[str, str], ...]) -> None:
    assert settings.read([f"--node-info-defaults={text}"], {}).node_info_defaults == expected


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
