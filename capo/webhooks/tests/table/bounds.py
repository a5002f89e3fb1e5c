"""A bad and a good value for every bound of a schema, and the API server's message for the bad one.

CEL rules have their cases in ``rules.py``.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from capo.json_types import Json
from capo.webhooks.tests.table import places, rules, samples
from capo.webhooks.tests.table.places import Bound, Version


class Trial(NamedTuple):
    """The values to test at the place of a bound.

    Args:
        bad: a value that breaks this bound.
        goods: values that just keep it.
        message: the text of the refusal's cause.
        below: where the cause is, relative to the place.
        field: where the cause is, when that is not at or below the place.
        further: field and message of each further cause, which this value has, too.
    """

    bad: Any
    goods: list[Any]
    message: str
    below: str = ""
    field: str = ""
    further: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Case:
    """Objects for one bound: spec or status, as the path begins.

    Args:
        bad: None if no object can break the bound, because the API server fills in what is missing.
    """

    bound: Bound
    bad: Json | None
    goods: list[Json]
    field: str
    message: str
    further: tuple[tuple[str, str], ...]


def cases(version: Version) -> list[Case]:
    """Return the cases of all bounds of a version, except the rule about regions, which needs an existing object.

    Raises:
        KeyError: a keyword, pattern, format or rule is new and has no case.
    """
    return [case_of(version, bound) for bound in places.bounds(version) if bound.detail != rules.REGION]


def case_of(version: Version, bound: Bound) -> Case:
    """Return the case of one bound."""
    schema = places.at(version, bound.path)
    trial = _rule(schema, bound) if bound.keyword == rules.KEYWORD else KEYWORDS[bound.keyword](schema, bound)

    def whole(value: Any) -> Json:
        steps = places.steps(bound.path)
        return {"spec": {}} | dict(samples.having(version.root, steps, lambda _: value))

    is_filled_in = bound.keyword == "required" and "default" in schema["properties"][bound.detail]
    is_forbidden = bound.path in rules.FORBIDDEN
    return Case(
        bound,
        None if is_filled_in else whole(trial.bad),
        [] if is_forbidden else [whole(good) for good in rules.NARROWED.get(bound.path, trial.goods)],
        trial.field or places.concrete(bound.path) + trial.below,
        trial.message,
        trial.further,
    )


def _rule(schema: Json, bound: Bound) -> Trial:
    (rule,) = [rule for rule in schema[rules.KEYWORD] if rule["message"] == bound.detail]
    bad, goods = rules.CASES[bound.detail](samples.least(schema), schema)
    further = tuple((places.concrete(path), text) for path, text in rules.FURTHER.get((bound.path, bound.detail), ()))
    return Trial(bad, goods, f": {bound.detail}", rule.get("fieldPath", ""), further=further)


def _required(schema: Json, bound: Bound) -> Trial:
    value = samples.least(schema)
    bad = {name: part for name, part in value.items() if name != bound.detail}
    return Trial(bad, [value], "Required value", f".{bound.detail}")


def _type(schema: Json, _bound: Bound) -> Trial:
    wanted = schema["type"]
    good = samples.least(schema)
    if wanted == "string" and "format" in schema:
        return Trial(7, [good], f'must be of type {schema["format"]}: "int64"')
    if wanted in ("string", "boolean"):
        return Trial(7, [good], f'must be of type {wanted}: "integer"')
    return Trial("text", [good], f'must be of type {wanted}: "string"')


def _int_or_string(_schema: Json, _bound: Bound) -> Trial:
    return Trial(True, [4, "4"], 'must be of type integer,string: "boolean"')


def _any_of(_schema: Json, bound: Bound) -> Trial:
    """The API server reports this for the field that contains the map."""
    message = f'"capacity.{places.KEY}" must validate at least one schema (anyOf)'
    return Trial(True, [4, "4"], message, field=bound.path.partition(".")[0])


def _enum(schema: Json, _bound: Bound) -> Trial:
    supported = ", ".join(f'"{value}"' for value in schema["enum"])
    return Trial("Nonsense", schema["enum"], f'Unsupported value: "Nonsense": supported values: {supported}')


def _pattern(schema: Json, _bound: Bound) -> Trial:
    known = samples.PATTERNS[schema["pattern"]]
    return Trial(known.bad, [known.good, known.other], f"should match '{schema['pattern']}'")


def _format(schema: Json, bound: Bound) -> Trial:
    if schema["type"] == "integer":
        return _wide(schema, bound)
    known = samples.FORMATS[schema["format"]]
    return Trial(known.bad, [known.good, known.other], f'must be of type {schema["format"]}: "{known.bad}"')


def _wide(schema: Json, bound: Bound) -> Trial:
    """Return a number that is too wide; of 32 bits, the API server names the field in the message alone."""
    if schema["format"] == "int64":
        return Trial(2**63, [2**63 - 1], 'must be of type int64: "float64"')
    most = min(2**31 - 1, schema.get("maximum", 2**31))
    message = f"must be of type integer with format int32 in {places.concrete(bound.path)}"
    return Trial(2**31, [most], message, field="<nil>")


def _of_length(keyword: str, difference: int, message: str) -> Callable[[Json, Bound], Trial]:
    def trial(schema: Json, bound: Bound) -> Trial:
        limit = schema[keyword]
        # The webhook counts the keys of annotations, too.
        key = len(places.KEY) if bound.path.endswith(".annotations{}") else 0
        return Trial("x" * (limit + difference), ["x" * (limit - key)], message.format(limit))

    return trial


def _of_range(keyword: str, difference: int, message: str) -> Callable[[Json, Bound], Trial]:
    def trial(schema: Json, _bound: Bound) -> Trial:
        limit = int(schema[keyword])
        return Trial(limit + difference, [limit], message.format(limit))

    return trial


def _of_items(keyword: str, difference: int, message: str) -> Callable[[Json, Bound], Trial]:
    def trial(schema: Json, bound: Bound) -> Trial:
        limit = schema[keyword]
        bad, good = (samples.several(schema["items"], amount) for amount in (limit + difference, limit))
        further: tuple[tuple[str, str], ...] = ()
        if limit + difference > len(bad):  # the list may have each of its values: one more is one twice
            bad = [*bad, bad[0]]
            further = ((f"{places.concrete(bound.path)}[{limit}]", f"Duplicate value: {json.dumps(bad[0])}"),)
        return Trial(bad, [good], message.format(limit, limit + difference), further=further)

    return trial


def _min_properties(schema: Json, _bound: Bound) -> Trial:
    return Trial({}, [samples.least(schema)], f"should have at least {schema['minProperties']} properties")


def _max_properties(schema: Json, _bound: Bound) -> Trial:
    limit = schema["maxProperties"]
    parts = {name: samples.least(part) for name, part in schema["properties"].items()}
    goods = [{name: part} for name, part in parts.items()]
    bad = dict(list(parts.items())[: limit + 1])
    return Trial(bad, goods, f"Too many: {limit + 1}: must have at most {limit} item")


def _set(schema: Json, _bound: Bound) -> Trial:
    pair = samples.several(schema["items"], 2)
    return Trial([pair[0]] * 2, [pair], f"Duplicate value: {json.dumps(pair[0])}", "[1]")


def _map(schema: Json, _bound: Bound) -> Trial:
    entry, keys = samples.least(schema["items"]), schema["x-kubernetes-list-map-keys"]
    second = entry | {keys[-1]: samples.other(schema["items"]["properties"][keys[-1]])}
    key = json.dumps({name: entry[name] for name in sorted(keys)}, separators=(",", ":"))
    return Trial([entry, entry], [[entry, second]], f"Duplicate value: {key}", "[1]")


KEYWORDS: Final[dict[str, Callable[[Json, Bound], Trial]]] = {
    "type": _type,
    "required": _required,
    "enum": _enum,
    "pattern": _pattern,
    "format": _format,
    "minLength": _of_length("minLength", -1, "should be at least {} chars long"),
    "maxLength": _of_length("maxLength", 1, "Too long: may not be more than {} bytes"),
    "minimum": _of_range("minimum", -1, "should be greater than or equal to {}"),
    "maximum": _of_range("maximum", 1, "should be less than or equal to {}"),
    "minItems": _of_items("minItems", -1, "should have at least {} items"),
    "maxItems": _of_items("maxItems", 1, "Too many: {1}: must have at most {0} item"),
    "minProperties": _min_properties,
    "maxProperties": _max_properties,
    "x-kubernetes-list-type": _set,
    "x-kubernetes-list-map-keys": _map,
    "x-kubernetes-int-or-string": _int_or_string,
    "anyOf": _any_of,
}
