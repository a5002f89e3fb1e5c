"""The pages about settings and metrics say what the program has, no more and no less."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from prometheus_client import REGISTRY

import capo
from capo import settings
from capo.engine import metrics as engine_metrics
from capo.kube import client
from capo.openstack import metrics as openstack_metrics

REFERENCE = Path(capo.__file__).parent.parent / "docs" / "reference"


def rows(page: str, *, first_cell: str = r"`([^`]+)`") -> dict[str, str]:
    """Return the table rows of a page by what stands in their first cell."""
    lines = (REFERENCE / page).read_text().splitlines()
    return {found[1]: line for line in lines if (found := re.match(rf"\| {first_cell} \|", line))}


def test_each_flag_is_documented_with_its_default_and_no_other_is() -> None:
    documented = rows("settings.md", first_cell="`--([^`]+)`")

    assert set(documented) == {flag.name for flag in settings.FLAGS} | {"version"}
    for flag in settings.FLAGS:
        default = f"`{flag.default}`" if flag.default else "empty"
        assert documented[flag.name] == f"| `--{flag.name}` | {default} | {flag.text} |"


def test_each_variable_is_documented_and_no_other_is() -> None:
    documented = {name for name in rows("settings.md") if not name.startswith("--")}

    assert documented == {*settings.VARIABLES, "KUBECONFIG"}


def test_each_metric_is_documented_with_its_labels_and_no_other_is() -> None:
    assert engine_metrics.DEPTH
    assert client.WRITES
    assert openstack_metrics.__name__
    documented = rows("metrics.md")
    known = {}
    collectors: list[Any] = list(REGISTRY._collector_to_names)
    for collector in collectors:
        if hasattr(collector, "_labelnames"):
            name = collector._name + ("_total" if collector._type == "counter" else "")
            labels = ", ".join(f"`{label}`" for label in collector._labelnames) or "-"
            known[name] = f"| `{name}` | {collector._type} | {labels} | {collector._documentation} |"

    assert documented == known
