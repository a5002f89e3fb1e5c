"""As much of Helm as our chart uses: values, if, range, default and toJson; anything else is an error.

It proves that the chart's text yields the components, not that Helm reads it as this does.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # five times as fast where libyaml is there
_BLOCK = re.compile(r"^\{\{- (if|range) (\.Values\.[\w.]+) \}\}\n(.*?)^\{\{- end \}\}\n", re.MULTILINE | re.DOTALL)
_EXPRESSION = re.compile(r"\{\{ (.*?) \}\}")


def template(chart: Mapping[Path, str], *, namespace: str, values: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the objects of ``helm template --namespace`` with these values over the chart's own."""
    texts = {path.name: text for path, text in chart.items()}
    scope = {
        "Values": _merged(yaml.safe_load(texts["values.yaml"]), values),
        "Release": {"Namespace": namespace},
        "Chart": {"AppVersion": yaml.safe_load(texts["Chart.yaml"])["appVersion"]},
    }
    templates = [text for path, text in sorted(chart.items()) if path.parent.name == "templates"]
    return [obj for text in templates for obj in yaml.load_all(_rendered(text, scope), _LOADER) if obj]


def _merged(base: Any, over: Any) -> Any:
    if not (isinstance(base, dict) and isinstance(over, Mapping)):
        return over
    return {**base, **{name: _merged(base.get(name), value) for name, value in over.items()}}


def _rendered(text: str, scope: Mapping[str, Any]) -> str:
    def block(found: re.Match[str]) -> str:
        keyword, path, body = found.groups()
        value = _value(path, scope)
        if keyword == "if":
            return _rendered(body, scope) if value else ""
        return "".join(_rendered(body, {**scope, "": item}) for item in value)

    return _EXPRESSION.sub(lambda found: _printed(found[1], scope), _BLOCK.sub(block, text))


def _printed(expression: str, scope: Mapping[str, Any]) -> str:
    match expression.split():
        case ["toJson", path]:
            return json.dumps(_value(path, scope))
        case ["default", fallback, path]:
            return _plain(_value(path, scope) or _value(fallback, scope))
        case [path]:
            return _plain(_value(path, scope))
    raise ValueError(f"no part of Helm that this knows: {expression}")


def _plain(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _value(path: str, scope: Mapping[str, Any]) -> Any:
    if not path.startswith("."):
        raise ValueError(f"no path: {path}")
    value: Any = scope
    for name in path[1:].split("."):
        value = value[name]
    return value
