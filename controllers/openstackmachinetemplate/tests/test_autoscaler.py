"""What the cluster autoscaler reads of our templates (C-75 to C-77), by a reader of the facts in ``autoscaler.py``."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import pytest

from api.v1beta2.openstackmachinetemplate import NodeInfo, OpenStackMachineTemplateStatus
from capo import names
from capo.json_types import Json
from capo.settings import Settings
from controllers.openstackmachinetemplate import capacity
from controllers.openstackmachinetemplate.tests import autoscaler
from controllers.openstackmachinetemplate.tests.environment import KIND, TemplateEnvironment

GPU = "nvidia.com/gpu"
PAGE = Path(__file__).parents[3] / "docs/reference/openstackmachinetemplate.md"


@pytest.fixture(scope="module")
def template() -> Iterator[Json]:
    """Yield a template in use, with everything that a flavor and an image can say."""
    with TemplateEnvironment(Settings(flavor_resources=(("VGPU", GPU),))) as world:
        world.flavor("gpu", vcpus=8, ram=7777, disk=40, extra_specs={"resources:VGPU": "2"})
        world.image(hw_architecture="x86_64", os_type="linux")
        world.place(flavor={"filter": {"name": "gpu"}})
        world.refer()
        world.settle()
        yield world.get(KIND, "t")


def test_it_scales_from_zero_with_our_capacity_alone_c_75(template: Json) -> None:
    assert autoscaler.scales_from_zero(template, {})
    assert autoscaler.capacity(template, {}) == {
        "cpu": 8,
        "memory": 7777 * 2**20,
        "ephemeral-storage": 40 * 2**30,
        "storage": 40 * 2**30,
        GPU: 2,
        "pods": 110,
    }


def test_capacity_and_node_info_are_maps_of_strings_c_75_c_76(template: Json) -> None:
    status = template["status"]

    assert autoscaler.string_map(status["capacity"]) == status["capacity"]
    assert autoscaler.node_info(template) == status["nodeInfo"]
    assert autoscaler.node_info(template) == {"architecture": "amd64", "operatingSystem": "linux"}


@pytest.mark.parametrize(
    ("selector", "is_met"),
    [
        ({"kubernetes.io/os": "linux"}, True),
        ({"kubernetes.io/arch": "amd64"}, True),
        ({"kubernetes.io/arch": "arm64"}, False),
        ({"kubernetes.io/os": "windows"}, False),
    ],
)
def test_pods_that_select_what_the_autoscaler_defaults_to_scale_up_with_an_image_without_properties_c_76(
    selector: dict[str, str], is_met: bool
) -> None:
    with TemplateEnvironment() as world:
        world.place()
        world.refer()
        world.settle()
        labels = autoscaler.labels(world.get(KIND, "t"), {})

    assert (selector.items() <= labels.items()) is is_met
    assert labels == autoscaler.labels(None, {})


def test_labels_of_the_deployment_win_c_77(template: Json) -> None:
    given = {f"{autoscaler.PREFIX}labels": "kubernetes.io/arch=arm64,pool=a"}

    assert autoscaler.labels(template, given) == {
        "kubernetes.io/arch": "arm64",
        "kubernetes.io/os": "linux",
        "pool": "a",
    }


@pytest.mark.parametrize("region", [None, "RegionOne"])
def test_a_machine_is_found_by_the_end_of_its_provider_id_c_14(region: str | None) -> None:
    assert autoscaler.machine_key(names.provider_id("11111111-2222-3333-4444-555555555555", region)) == (
        "11111111-2222-3333-4444-555555555555"
    )


def test_the_schema_has_the_fields_that_are_read_c_75_c_76() -> None:
    fields = {field.alias or name for name, field in NodeInfo.model_fields.items()}

    assert {"capacity", "node_info"} <= OpenStackMachineTemplateStatus.model_fields.keys()
    assert fields == set(autoscaler.NODE_INFO)
    assert set(get_args(get_args(NodeInfo.model_fields["architecture"].annotation)[0])) == autoscaler.ARCHITECTURES


@pytest.mark.parametrize(
    ("annotations", "resource", "value"),
    [
        ({"cpu": "2"}, "cpu", 2),
        ({"memory": "1Gi"}, "memory", 2**30),
        ({"ephemeral-disk": "5Gi"}, "ephemeral-storage", 5 * 2**30),
        ({"gpu-type": GPU, "gpu-count": "7"}, GPU, 7),
        ({"gpu-count": "7"}, GPU, 2),
        ({"maxPods": "20"}, "pods", 20),
    ],
)
def test_annotations_of_the_deployment_win_key_by_key_c_77(
    template: Json, annotations: dict[str, str], resource: str, value: int
) -> None:
    given = {f"{autoscaler.PREFIX}{name}": text for name, text in annotations.items()}
    before = autoscaler.capacity(template, {})

    found = autoscaler.capacity(template, given)

    assert found[resource] == value
    assert {k: v for k, v in found.items() if k != resource} == {k: v for k, v in before.items() if k != resource}


def test_annotations_of_the_autoscaler_are_never_written_and_are_documented_c_77(template: Json) -> None:
    sources = Path(capacity.__file__).parent.glob("*.py")
    page = PAGE.read_text(encoding="utf-8")

    assert not [path for path in sources if autoscaler.PREFIX in path.read_text(encoding="utf-8")]
    assert "annotations" not in template["metadata"]
    assert [name for name in autoscaler.ANNOTATIONS if f"`{name}`" not in page] == []


@pytest.mark.parametrize("mib", [1, 1023, 1024, 1025, 8192, 7777, 2**40 - 1, 2**43 - 1])
def test_any_number_of_bytes_is_read_as_it_is_c_75(mib: int) -> None:
    assert autoscaler.number(capacity.binary(mib * 2**20)) == mib * 2**20


def test_what_is_written_in_another_type_would_lose_the_whole_map_c_75(template: Json) -> None:
    spoiled: Any = {"status": {"capacity": {**template["status"]["capacity"], "cpu": 8}}}

    assert not autoscaler.scales_from_zero(spoiled, {})
