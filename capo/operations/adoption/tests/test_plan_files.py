"""The file of an adoption: what a command writes is taken back, and what no command writes is refused."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from capo.json_types import Json
from capo.operations.adoption import plan
from capo.operations.adoption.plan import Place, Plan
from capo.operations.adoption.tests.environment import AdoptionEnvironment, HandmadeEnvironment
from capo.operations.errors import OperatorError


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Path]]:
    """Plans as the commands write them."""
    with AdoptionEnvironment(tmp_path_factory.mktemp("plans")) as lost:
        lost.build()
        lost.lose_management_cluster()
        lost.write()
        cluster = max(lost.folder.glob("*.yaml"))
        with HandmadeEnvironment(tmp_path_factory.mktemp("plans")) as handmade:
            handmade.prepare()
            handmade.write_bastion("Jump Host")
            yield {"cluster": cluster, "bastion": max(handmade.folder.glob("*.yaml"))}


def changed(folder: Path, original: Path, change: Callable[[Any], object]) -> Path:
    """Return the path of a plan that was edited."""
    found = yaml.safe_load(original.read_text())
    change(found)
    path = folder / "changed.yaml"
    path.write_text(yaml.safe_dump(found))
    return path


@pytest.mark.parametrize("name", ["cluster", "bastion"])
def test_a_plan_is_for_its_user_alone_and_read_as_it_was_written(files: dict[str, Path], name: str) -> None:
    content = files[name].read_text()

    assert files[name].stat().st_mode & 0o777 == 0o600
    assert plan.read(files[name]).to_yaml() == content


def test_a_finding_that_hides_or_reorders_text_is_escaped_in_a_plan() -> None:
    place = Place(auth_host="keystone", project_id="p", region="r")
    text = "server 1 (a\u202eb\u200bc) is left out"

    written = Plan(location=place, findings=[text], to_complete=[], resources=[], objects=[]).to_yaml()

    assert written.isascii()
    assert yaml.safe_load(written)["findings"] == [text]


def _resource(**values: Any) -> Callable[[Json], None]:
    return lambda found: found["resources"][0].update(values)


def _role(kind: str, role: str) -> Callable[[Json], None]:
    def change(found: Json) -> None:
        each = next(each for each in found["resources"] if each["kind"] == kind)
        stamp = each["stamp"].rpartition(":")[0]
        each.update(role=role, stamp=f"{stamp}:{role}")

    return change


def _object(change: Callable[[Json], object], kind: str = "OpenStackCluster") -> Callable[[Json], object]:
    return lambda found: change(next(each for each in found["objects"] if each["kind"] == kind))


NO_ROLE: Final = "kind and role are not those of a resource that it can own"
NO_KIND: Final = "the object is of a kind that cannot be adopted"
CHANGES: Final[dict[str, tuple[Callable[[Any], object], str]]] = {
    "an index without end": (_role("volume", "volume-999999999"), NO_ROLE),
    "an index of many digits": (_role("port", "port-1000"), NO_ROLE),
    "a port of the API without end": (_role("pool", "pool-999999999"), NO_ROLE),
    "the role of another kind": (_role("volume", "port-0"), NO_ROLE),
    "a role of a cluster for a server": (_role("port", "router-interface"), NO_ROLE),
    "no kind": (_resource(kind="image"), NO_ROLE),
    "a path as id": (_resource(id="../../servers/x"), "resources.0: the id is none"),
    "a folder as id": (_resource(id=".."), "resources.0: the id is none"),
    "a query in an id": (_resource(id="x?force=true"), "resources.0: the id is none"),
    "an id without end": (_resource(id="x" * 256), "resources.0: the id is none"),
    "an id of several lines": (_resource(id="x\ny"), "resources.0: the id is none"),
    "of another kind": (_resource(of="Secret prod"), "of names no OpenStackCluster"),
    "of no name": (_resource(of="OpenStackCluster ../x"), "of names no OpenStackCluster"),
    "a stamp of another role": (_resource(stamp="capo:aaaaaaaaaaaaa:server"), "the stamp is none of its role"),
    "more before a stamp": (_resource(stamp="x capo:aaaaaaaaaaaaa:network"), "the stamp is none of its role"),
    "a number as id": (_resource(id=5), "resources.0.id: Input should be a valid string"),
    "an unknown field": (_resource(more=1), "resources.0.more: Extra inputs"),
    "a Secret": (_object(lambda obj: obj.update(kind="Secret")), NO_KIND),
    "a list as kind": (_object(lambda obj: obj.update(kind=["Cluster"])), NO_KIND),
    "another version": (_object(lambda obj: obj.update(apiVersion="v1")), NO_KIND),
    "no metadata": (_object(lambda obj: obj.update(metadata=[])), "no valid name and namespace"),
    "no name": (_object(lambda obj: obj["metadata"].update(name={})), "no valid name and namespace"),
    "a path as namespace": (_object(lambda obj: obj["metadata"].update(namespace="../x")), "no valid name and"),
    "annotations of lists": (_object(lambda obj: obj["metadata"].update(annotations={"a": []})), "must have texts"),
    "labels that are none": (_object(lambda obj: obj["metadata"].update(labels=[1])), "must have texts"),
    "no spec": (_object(lambda obj: obj.update(spec=None), "Machine"), "the object has no spec"),
    "a field that is none": (_object(lambda obj: obj["spec"].update(bogus=1)), 'unknown field "spec.bogus"'),
    "a text for a structure": (_object(lambda obj: obj["spec"].update(identityRef="x")), "must be of type object"),
    "no cluster": (lambda found: found.update(objects=[], resources=[]), "neither an OpenStackCluster nor a bastion"),
    "a list": (lambda found: found.update(location=[]), "location: Input should be"),
}


@pytest.mark.parametrize(("change", "text"), CHANGES.values(), ids=CHANGES)
def test_a_plan_that_no_command_writes_is_refused_before_anything_is_read(
    tmp_path: Path, files: dict[str, Path], change: Callable[[Any], object], text: str
) -> None:
    path = changed(tmp_path, files["cluster"], change)

    with pytest.raises(OperatorError, match="is no plan of an adoption: ") as caught:
        plan.read(path)

    assert text in str(caught.value)


@pytest.mark.parametrize(
    ("edit", "text"),
    [({"cluster": "../x"}, "bastion: it has no valid cluster"), ({"spec": {"spec": 5}}, "bastion.spec.spec: ")],
    ids=["name", "spec"],
)
def test_a_bastion_that_no_command_writes_is_refused(
    tmp_path: Path, files: dict[str, Path], edit: Json, text: str
) -> None:
    path = changed(tmp_path, files["bastion"], lambda found: found["bastion"].update(edit))

    with pytest.raises(OperatorError, match=f"is no plan of an adoption: {text}"):
        plan.read(path)


def test_the_edits_that_a_reviewer_may_do_are_accepted(tmp_path: Path, files: dict[str, Path]) -> None:
    def edit(found: Json) -> None:
        cluster = next(each for each in found["objects"] if each["kind"] == "OpenStackCluster")
        cluster["metadata"]["labels"]["team"] = "a"
        cluster["spec"]["tags"] = ["kept"]
        found["findings"] = []

    read = plan.read(changed(tmp_path, files["cluster"], edit))

    assert next(each for each in read.objects if each["kind"] == "OpenStackCluster")["spec"]["tags"] == ["kept"]
