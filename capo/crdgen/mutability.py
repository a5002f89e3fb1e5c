"""Documents for every field of a spec when it may change, at its place in each kind; pure.

A type is used in several places: the spec of a machine never changes, that of a bastion may change at any time, and in
a template nothing may. A docstring describes the kind that the type was written for; ``RULES`` describe the other
places. A field without a sentence of its own inherits that of its parent. The verdicts are those of
:mod:`api.validation`; a test compares the two.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from capo.json_types import Json

SENTENCE: Final = re.compile(
    r"\s*\b(?:Cannot change|May change|May be added later|Can be set once)\b.*?\.(?=\s|$)", flags=re.DOTALL
)
OWN: Final = None
"""The sentence of the docstring."""
ALWAYS: Final = "May change at any time."
NEVER: Final = "Cannot change."
REPLACED: Final = "May change at any time: the bastion is replaced."
IDLE: Final = "May change at any time, without effect."
NEW_TEMPLATE: Final = "Cannot change: create a new template."
_DEFAULT: Final = re.compile(r"\s*\bDefault: .*?\.(?=\s|$)", flags=re.DOTALL)


class Rule(NamedTuple):
    """The sentence for a place; kind and path are regular expressions that must match completely."""

    kind: str
    path: str
    sentence: str | None


RULES: Final = (
    Rule("OpenStackCluster", r"spec\.bastion\.spec\.identityRef\.region", OWN),
    Rule("OpenStackCluster", r"spec\.bastion\.spec\.(identityRef|providerID).*", IDLE),
    Rule("OpenStackCluster", r"spec\.bastion\.spec\..+", REPLACED),
    Rule("OpenStackMachineTemplate", r"spec\.template\.spec\.ports", OWN),
    Rule("OpenStackMachineTemplate", r"spec\.template\.spec\.ports\[\]\.allowedAddressPairs.*", ALWAYS),
    Rule(".*Template", r"spec\.template\.spec\..+", NEW_TEMPLATE),
    Rule("OpenStackServer", r"spec\.ports\[\]\.allowedAddressPairs.*", NEVER),
)
"""The first match is used."""
_INHERITED: Final = (("Cannot change, but for", NEVER), ("May change, but for", ALWAYS), ("May be added later", ALWAYS))
"""The sentence that fields inherit from an object whose own sentence has exceptions."""


def told(kind: str, schema: Json) -> Json:
    """Return the schema of a kind in which every field of the spec, and none of the status, documents its changes."""
    parts = {
        name: _told(kind, name, part, "") if name == "spec" else _without(part) if name == "status" else part
        for name, part in schema["properties"].items()
    }
    return schema | {"properties": parts}


def _told(kind: str, path: str, schema: Json, inherited: str) -> Json:
    """Return a part of a spec and all below it."""
    text = schema.get("description", "")
    sentence = _sentence(kind, path, text) or inherited
    result = dict(schema)
    if text and path.rpartition(".")[0]:
        result["description"] = " ".join(filter(None, (SENTENCE.sub("", text).strip(), sentence)))
    below = next((short for start, short in _INHERITED if sentence.startswith(start)), sentence)
    for step, child in _children(schema):
        if step == "properties":
            result[step] = {name: _told(kind, f"{path}.{name}", part, below) for name, part in child.items()}
        else:
            result[step] = _told(kind, path + ("[]" if step == "items" else "{}"), child, below)
    return result


def _sentence(kind: str, path: str, text: str) -> str:
    for rule in RULES:
        if re.fullmatch(rule.kind, kind) and re.fullmatch(rule.path, path):
            if rule.sentence is not OWN:
                return rule.sentence
            break
    return " ".join(match.strip() for match in SENTENCE.findall(text))


def _without(schema: Json) -> Json:
    """Return a part of a status without sentences about changes and defaults: users neither set nor change it."""
    result = dict(schema)
    if "description" in schema:
        result["description"] = _DEFAULT.sub("", SENTENCE.sub("", schema["description"])).strip()
    for step, child in _children(schema):
        is_map = step == "properties"
        result[step] = {name: _without(part) for name, part in child.items()} if is_map else _without(child)
    return result


def _children(schema: Json) -> Iterator[tuple[str, Json]]:
    for step in ("properties", "items", "additionalProperties"):
        if step in schema:
            yield step, schema[step]
