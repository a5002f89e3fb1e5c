"""Label selectors of namespaces, as OpenStackClusterIdentities have them; pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from capo.errors import IdentityError

MAX_TEXT: Final = 200


def text(selector: Mapping[str, Any]) -> str:
    """Return a label selector in the notation of kubectl."""
    parts = [f"{name}={value}" for name, value in (selector.get("matchLabels") or {}).items()]
    for rule in selector.get("matchExpressions") or ():
        values = f"({','.join(rule.get('values') or ())})"
        forms = {"In": f"{rule['key']} in {values}", "NotIn": f"{rule['key']} notin {values}"}
        forms |= {"Exists": rule["key"], "DoesNotExist": f"!{rule['key']}"}
        parts.append(forms.get(rule["operator"], f"{rule['key']} {rule['operator']}"))
    whole = ",".join(parts)
    return whole if len(whole) <= MAX_TEXT else f"{whole[:MAX_TEXT]}..."


def selects(selector: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    """Return whether labels match a selector.

    Raises:
        IdentityError: an operator is not known.
    """
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
        case other:
            raise IdentityError(f"namespaceSelector: operator {other!r} is not known")
