from __future__ import annotations

import json
from typing import Any, ClassVar, Literal

import pytest

from api import v1alpha1, v1beta2
from api.meta import KubernetesObject
from api.schema import Column, Names
from capo.crdgen import definitions
from capo.crdgen.definitions import Definition


class OlderMachine(KubernetesObject):
    """An earlier version of a machine."""

    names: ClassVar[Names] = v1beta2.OpenStackMachine.names
    columns: ClassVar[tuple[Column, ...]] = (Column("Ready", ".status.ready", "Whether it is ready", priority=1),)

    api_version: Literal["infrastructure.cluster.x-k8s.io/v1beta1"] = "infrastructure.cluster.x-k8s.io/v1beta1"
    """Version."""
    kind: Literal["OpenStackMachine"] = "OpenStackMachine"
    """Kind."""


TWO = Definition((v1beta2.OpenStackMachine, OlderMachine))


def test_the_first_version_is_stored_and_all_are_served() -> None:
    versions = definitions.manifest(TWO)["spec"]["versions"]

    assert [(v["name"], v["served"], v["storage"]) for v in versions] == [
        ("v1beta2", True, True),
        ("v1beta1", True, False),
    ]


@pytest.mark.parametrize(
    ("definition", "expected"),
    [
        pytest.param(TWO, {"v1beta1", "v1beta2"}, id="two versions"),
        pytest.param(Definition((v1beta2.OpenStackMachine,)), {"v1beta2"}, id="one version"),
        pytest.param(Definition((v1alpha1.OpenStackServer,)), set(), id="not in the contract"),
    ],
)
def test_contract_labels_name_served_versions_only(definition: Definition, expected: set[str]) -> None:
    labels = definitions.manifest(definition)["metadata"]["labels"]

    assert labels.pop("cluster.x-k8s.io/provider") == "infrastructure-openstack"
    assert labels == {f"cluster.x-k8s.io/{version}": version for version in expected}


def test_columns_show_their_priority_when_it_is_not_the_default() -> None:
    older = definitions.manifest(TWO)["spec"]["versions"][1]

    assert older["additionalPrinterColumns"] == [
        {
            "name": "Ready",
            "type": "string",
            "jsonPath": ".status.ready",
            "description": "Whether it is ready",
            "priority": 1,
        }
    ]


def test_only_kinds_with_a_status_have_the_subresource() -> None:
    with_status = {d.kind for d in definitions.DEFINITIONS if has_status(definitions.manifest(d))}

    assert with_status == {
        "OpenStackCluster",
        "OpenStackMachine",
        "OpenStackMachineTemplate",
        "OpenStackServer",
        "OpenStackFloatingIPPool",
        "OpenStackClusterIdentity",
    }


def has_status(crd: dict[str, Any]) -> str:
    return str(crd["spec"]["versions"][0].get("subresources", ""))


def test_conversion_is_asked_for_where_there_are_two_versions() -> None:
    crd = definitions.with_conversion(definitions.manifest(TWO), {"url": "https://127.0.0.1:9443/convert"})

    assert crd["spec"]["conversion"] == {
        "strategy": "Webhook",
        "webhook": {
            "clientConfig": {"url": "https://127.0.0.1:9443/convert"},
            "conversionReviewVersions": ["v1", "v1beta1"],
        },
    }


def test_conversion_is_not_asked_for_where_there_is_one_version() -> None:
    crd = definitions.manifest(Definition((v1beta2.OpenStackMachine,)))

    assert definitions.with_conversion(crd, {"url": "https://127.0.0.1:9443/convert"}) == crd


@pytest.mark.parametrize("definition", definitions.DEFINITIONS, ids=lambda d: d.kind)
def test_a_definition_fits_into_the_annotation_of_kubectl_apply(definition: Definition) -> None:
    """Annotations have 256 KiB in all; ``kubectl apply`` without ``--server-side`` stores the whole object in one."""
    assert len(json.dumps(definitions.manifest(definition))) < 200 * 1024
