"""A name for workloads that begins with another namespace is refused where it is new, and only there."""

from __future__ import annotations

from typing import Any

import pytest

from api import validation
from capo.json_types import Json

KIND = "OpenStackCluster"
GOOD = ["prod", "prod-7", "team-a.shop", "team-a.shop.v2"]
BAD = ["team-b.shop", "team-a-b.shop", "team.shop", "shop.example.com", "Team-a.shop"]


def cluster(name: Any, **spec: Any) -> Json:
    metadata = {"name": "shop", "namespace": "team-a"}
    return {"metadata": metadata, "spec": {"workloadLeftovers": {"clusterName": name}, **spec}}


@pytest.mark.parametrize("name", GOOD)
def test_a_name_without_a_dot_or_of_the_own_namespace_is_accepted(name: str) -> None:
    assert validation.faults_of_create(KIND, cluster(name)) == []
    assert validation.faults_of_update(KIND, cluster("old"), cluster(name), is_dry_run=False) == []


@pytest.mark.parametrize("name", BAD)
def test_a_name_of_another_namespace_is_refused_where_it_is_new(name: str) -> None:
    (created,) = validation.faults_of_create(KIND, cluster(name))
    (changed,) = validation.faults_of_update(KIND, cluster("old"), cluster(name), is_dry_run=False)

    assert created == changed
    assert created.field == "spec.workloadLeftovers.clusterName"
    assert created.message.endswith("a name with a dot must begin with the namespace and a dot, here `team-a.`")


@pytest.mark.parametrize("name", BAD)
def test_a_cluster_that_was_stored_with_one_can_still_be_changed(name: str) -> None:
    released = cluster(name) | {"metadata": {"name": "shop", "namespace": "team-a", "finalizers": []}}
    edited = cluster(name, controlPlaneOmitAvailabilityZone=True)
    corrected = cluster("team-a.shop")

    for new in (released, edited, corrected):
        assert validation.faults_of_update(KIND, cluster(name), new, is_dry_run=False) == []


def test_a_template_may_have_any_name_because_its_clusters_may_be_in_another_namespace() -> None:
    template = {"metadata": {"name": "t", "namespace": "classes"}, "spec": {"template": cluster("team-a.shop")}}

    assert validation.faults_of_create("OpenStackClusterTemplate", template) == []


@pytest.mark.parametrize("spec", [{}, {"workloadLeftovers": None}, {"workloadLeftovers": {"clusterName": 1}}])
def test_another_shape_is_left_to_the_schema(spec: Json) -> None:
    assert validation.faults_of_create(KIND, {"metadata": {"name": "o", "namespace": "a"}, "spec": spec}) == []
