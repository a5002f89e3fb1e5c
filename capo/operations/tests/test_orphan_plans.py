"""The plan file: written for a review, and read with what the review approved."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, cast

import pytest
import yaml

from capo.json_types import Json
from capo.operations.access import Management
from capo.operations.errors import OperatorError
from capo.operations.inventory.project import Project
from capo.operations.orphans import findings, plan
from capo.operations.tests.test_orphans import HERE, LOST, Scripted, known, resource, stamped

NOW: Final = datetime.datetime(2026, 3, 1, 12, tzinfo=datetime.UTC)


def document() -> Json:
    resources = [
        stamped("network", "net", name="n"),
        stamped("server", "srv", status="ACTIVE", name="s"),
        stamped("load_balancer", "lb", provisioning_status="PENDING_UPDATE"),
        resource("security_group", "grp", name="k8s-cluster-team-a-gone-secgroup-worker"),
    ]
    evidence = known()
    return plan.document(findings.find(Project(HERE, resources), evidence), evidence, now=NOW)


def reviewed(path: Path, change: Callable[[Any], object] = lambda _plan: None) -> plan.Plan:
    found = yaml.safe_load(yaml.safe_dump(document()))
    change(found)
    path.write_text(yaml.safe_dump(found))
    return plan.read(path, now=NOW + datetime.timedelta(hours=1))


def approve(*owners: str, singly: tuple[str, ...] = ()) -> Callable[[Any], object]:
    return lambda found: found["delete"].update(owners=list(owners), singly=list(singly))


def test_a_plan_has_each_orphan_with_proof_and_doubts(tmp_path: Path) -> None:
    plan.write(tmp_path / "plan", document())

    text = (tmp_path / "plan").read_text()
    found = {each["id"]: each for each in yaml.safe_load(text)["orphans"]}
    assert text.startswith("# Orphans that `capo orphans` found. As it is, this plan deletes nothing.")
    assert found["net"]["proof"] == f"stamp of owner {LOST}, which no object in mgmt has"
    assert "it is ACTIVE" in found["srv"]["doubts"]
    assert "PENDING_UPDATE" in found["lb"]["refused"]
    assert found["grp"]["owner"] == ""
    assert (tmp_path / "plan").stat().st_mode & 0o077 == 0


def test_a_name_that_hides_or_reorders_text_is_escaped_in_a_plan(tmp_path: Path) -> None:
    written = document()
    written["orphans"][0]["name"] = "a\u202eb\u200b"

    plan.write(tmp_path / "plan", written)

    assert (tmp_path / "plan").read_bytes().isascii()


def test_a_plan_under_review_is_not_replaced(tmp_path: Path) -> None:
    plan.write(tmp_path / "plan", document())

    with pytest.raises(OperatorError, match="exists, and is not replaced"):
        plan.write(tmp_path / "plan", document())


def test_a_plan_that_was_not_edited_approves_nothing(tmp_path: Path) -> None:
    plan.write(tmp_path / "plan", document())

    with pytest.raises(OperatorError, match="approves nothing"):
        plan.read(tmp_path / "plan", now=NOW)


def test_owners_and_single_resources_are_approved(tmp_path: Path) -> None:
    by_owner = reviewed(tmp_path / "a", approve(LOST))
    singly = reviewed(tmp_path / "b", approve(singly=("grp",)))

    assert {each.key[1] for each in by_owner.approved} == {"net", "srv", "lb"}
    assert {each.key[1] for each in singly.approved} == {"grp"}


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (approve("nnnnnnnnnnnnn"), "approves what it does not have: nnnnnnnnnnnnn"),
        (approve(""), "approves what it does not have"),
        (approve(singly=("other",)), "approves what it does not have: other"),
        (lambda found: (approve(LOST)(found), found.update(version=2)), "no plan of this version"),
        (lambda found: found.update(delete={"owners": LOST, "singly": []}), "are lists"),
        (lambda found: found["orphans"][0].update(kind="image"), "no plan of this version"),
        (lambda found: found["orphans"][0].update(id="../../x"), "no plan of this version"),
        (lambda found: found["orphans"][0].update(id=".."), "no plan of this version"),
        (lambda found: found["orphans"][0].update(id="a/b?c"), "no plan of this version"),
        (lambda found: found["orphans"][0].pop("mark"), "no plan of this version"),
        (lambda found: (approve(LOST)(found), found.update(managementClusters=[])), "names no management cluster"),
        (lambda found: (approve(LOST)(found), found.update(created="2026-02-27T12:00:00+00:00")), "last 24 hours"),
        (lambda found: (approve(LOST)(found), found.update(created="2026-03-02T12:00:00+00:00")), "last 24 hours"),
        (lambda found: (approve(LOST)(found), found.update(created="2026-03-01T12:00:00")), "no plan of this version"),
    ],
)
def test_a_plan_that_cannot_be_trusted_is_refused(tmp_path: Path, change: Callable[[Any], object], text: str) -> None:
    with pytest.raises(OperatorError, match=text):
        reviewed(tmp_path / "plan", change)


@pytest.mark.parametrize("text", ["", "- a", "{", "version: 1"])
def test_a_file_that_is_no_plan_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "plan").write_text(text)

    with pytest.raises(OperatorError, match=r"no plan of this version|cannot be read"):
        plan.read(tmp_path / "plan", now=NOW)


def test_all_management_clusters_of_a_plan_must_be_given(tmp_path: Path) -> None:
    found = reviewed(tmp_path / "plan", approve(LOST))

    found.expect(cast("list[Management]", [Scripted("uid"), Scripted("more")]))
    with pytest.raises(OperatorError, match="not given: mgmt"):
        found.expect(cast("list[Management]", [Scripted("other")]))
