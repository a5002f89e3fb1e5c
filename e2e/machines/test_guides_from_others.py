"""The guides for those who come from other projects: their manifests become clusters, their tables of edits hold."""

from __future__ import annotations

import copy
import re
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest
import yaml

from api import conversion, validation
from capo.json_types import Json
from e2e.machines import foreign_clusters
from e2e.machines.environment import MachinesEnvironment
from e2e.machines.foreign_clusters import Manifest

FOLDER: Final = Path(__file__).parents[2] / "docs/how-to/from"
PAGES: Final = {page.stem: page.read_text(encoding="utf-8") for page in sorted(FOLDER.glob("*.md"))}
NEWER: Final = "infrastructure.cluster.x-k8s.io/v1beta2"
HOSTED: Final = {"hypershift", "k0rdent", "kamaji", "t8s"}
SECTIONS: Final = ["What works as it is", "The objects", "What can be edited later", "What to set"]
UP_S: Final = 800.0


class Edit(NamedTuple):
    """A row of a table of edits.

    Args:
        verdict: begins with ``yes`` or ``no``.
    """

    path: str
    value: Any
    verdict: str


def manifest(page: str) -> list[Json]:
    """Return the objects of a page, as they are written."""
    (text,) = re.findall(r"(?ms)^```yaml\n(.*?)^```$", PAGES[page])
    return list(yaml.safe_load_all(text))


def newer(obj: Json) -> Json:
    return conversion.convert(obj, NEWER)


def edits(page: str) -> list[Edit]:
    """Return the edits of a page."""
    found = []
    for text, verdict in re.findall(r"(?m)^\| `([^`]+)` \| ((?:yes|no)\b[^|]*) \|", PAGES[page]):
        path, value = text.split(": ", 1)
        found.append(Edit(path, yaml.safe_load(value), verdict))
    return found


def edited(obj: Json, edit: Edit) -> Json:
    """Return an object with another value in one field of its spec; null removes it."""
    new = copy.deepcopy(obj)
    *parents, last = [int(part) if part.isdecimal() else part for part in re.findall(r"\w+", edit.path)]
    place: Any = new["spec"]
    for part in parents:
        place = place[part] if isinstance(part, int) else place.setdefault(part, {})
    if edit.value is None:
        del place[last]
    else:
        place[last] = edit.value
    return new


@pytest.mark.integration
@pytest.mark.timeout(1800)
def test_the_manifest_of_every_guide_becomes_a_cluster_with_machines_and_leaves_nothing(
    world: MachinesEnvironment,
) -> None:
    manifests = {page: Manifest([*map(newer, manifest(page))], is_hosted=page in HOSTED) for page in PAGES}

    foreign_clusters.run(world, manifests, limit_s=UP_S)


ALL_EDITS: Final = [pytest.param(page, edit, id=f"{page} {edit.path}") for page in PAGES for edit in edits(page)]


@pytest.mark.lint
@pytest.mark.parametrize(("page", "edit"), ALL_EDITS)
def test_an_edit_is_allowed_or_refused_as_the_guide_says(page: str, edit: Edit) -> None:
    (cluster,) = (obj for obj in manifest(page) if obj["kind"] == "OpenStackCluster")
    old, new = newer(cluster), newer(edited(cluster, edit))

    faults = validation.faults_of_update("OpenStackCluster", old, new, is_dry_run=False)

    assert old["spec"] != new["spec"]
    assert edit.verdict.startswith("no" if faults else "yes"), faults


@pytest.mark.lint
@pytest.mark.parametrize("page", PAGES)
def test_every_guide_says_what_works_what_can_be_edited_and_what_to_set(page: str) -> None:
    verdicts = {edit.verdict[:2] for edit in edits(page)}

    assert re.findall(r"(?m)^## (.+)$", PAGES[page]) == SECTIONS
    assert verdicts == {"ye", "no"}
