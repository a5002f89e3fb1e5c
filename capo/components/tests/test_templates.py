"""The templates of clusters against the page that describes them; whether they work is tested in ``e2e/clusterctl``."""

from __future__ import annotations

import re

import pytest
import yaml

from capo.components import release
from capo.json_types import Json

pytestmark = pytest.mark.lint

PAGES = release.CHECKOUT / "docs" / "how-to"
CLASS: Json = next(
    obj
    for obj in yaml.safe_load_all((release.CHECKOUT / "templates" / "clusterclass-openstack.yaml").read_text())
    if obj["kind"] == "ClusterClass"
)


def schema_of(variable: Json) -> Json:
    return dict(variable["schema"]["openAPIV3Schema"])


def described_as(schema: Json) -> str:
    """Return the type of a variable as the page spells it."""
    if schema["type"] == "array":
        return f"list of {described_as(schema['items'])}"
    if schema["type"] == "object":
        return ", ".join(f"`{name}`" for name in schema["properties"])
    return str(schema["type"])


def test_the_page_has_a_row_for_each_variable_of_the_class() -> None:
    wanted = [
        (variable["name"], described_as(schema), "yes" if variable["required"] else "no", schema["description"])
        for variable in CLASS["spec"]["variables"]
        for schema in (schema_of(variable),)
    ]
    text = (PAGES / "cluster-class.md").read_text(encoding="utf-8")

    rows = re.findall(r"^\| `(\w+)` \| (.+?) \| (yes|no) \| (.+?) \|$", text, re.MULTILINE)

    assert rows == wanted


def test_each_field_of_a_variable_is_described() -> None:
    def bare(schema: Json, path: str) -> list[str]:
        fields = [(f"{path}.{name}", field) for name, field in schema.get("properties", {}).items()]
        fields += [(f"{path}[]", schema["items"])] if schema.get("items", {}).get("properties") else []
        own = [] if schema.get("description") or path.endswith("[]") else [path]
        return own + [found for name, field in fields for found in bare(field, name)]

    assert [found for each in CLASS["spec"]["variables"] for found in bare(schema_of(each), each["name"])] == []


def test_each_variable_is_used_by_a_patch() -> None:
    patches = str([patch["definitions"] for patch in CLASS["spec"]["patches"]])

    unused = [
        v["name"] for v in CLASS["spec"]["variables"] if not re.search(rf"('variable': '| \.){v['name']}\b", patches)
    ]

    assert unused == []


def test_the_install_page_lists_each_flavor() -> None:
    flavors = {path.stem.removeprefix("cluster-template-") for path in release.templates()}
    flavors -= {"cluster-template", "clusterclass-openstack"}
    text = (PAGES / "install.md").read_text(encoding="utf-8").partition("## Flavors")[2]

    assert set(re.findall(r"^\| `([\w-]+)` \|", text, re.MULTILINE)) == flavors
