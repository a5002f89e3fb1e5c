"""Label selectors of namespaces, as OpenStackClusterIdentities have them; pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def selects(selector: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    """Return whether labels match a selector; one with an operator that Kubernetes does not have matches nothing."""
    wanted = selector.get("matchLabels") or {}
    if any(labels.get(name) != value for name, value in wanted.items()):
        return False
    return all(_matches(rule, labels) for rule in selector.get("matchExpressions") or ())


def _matches(rule: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    present = rule["key"] in labels
    match rule["operator"]:
        case "In":
            return labels.get(rule["key"]) in (rule.get("values") or ())
        case "NotIn":
            return labels.get(rule["key"]) not in (rule.get("values") or ())
        case "Exists":
            return present
        case "DoesNotExist":
            return not present
        case _:
            return False
