"""Checks bodies and queries against JSON schemas, with Nova's and Cinder's wording of refusals.

Both services use the same library, so its own sentences are identical.
"""

from __future__ import annotations

import base64
import binascii
import ipaddress
import re
import uuid
from collections.abc import Iterator
from datetime import datetime
from typing import Any, Final

import jsonschema
from multidict import MultiMapping

from capo.simulator.cloud import Json
from capo.simulator.routing import Fault

YES_AND_NO: Final = ("0", "1", "f", "false", "n", "no", "off", "on", "t", "true", "y", "yes")
"""Words that services accept as booleans, in any case."""
FORMATS: Final = jsonschema.FormatChecker(formats=())
INVALID_NAME: Final = (
    "An invalid 'name' value was provided. The name must be: printable characters. "
    "Can not start or end with whitespace."
)


@FORMATS.checks("uuid")
def _is_uuid(value: object) -> bool:
    return not isinstance(value, str) or is_uuid(value)


@FORMATS.checks("base64")
def _is_base64(value: object) -> bool:
    if not isinstance(value, str):
        return True
    try:
        base64.b64decode(value, validate=False)
    except (binascii.Error, ValueError):
        return False
    return True


@FORMATS.checks("ipv4")
def _is_ipv4(value: object) -> bool:
    return not isinstance(value, str) or _is_address(value, 4)


@FORMATS.checks("ipv6")
def _is_ipv6(value: object) -> bool:
    return not isinstance(value, str) or _is_address(value, 6)


def _is_address(value: str, version: int) -> bool:
    try:
        return ipaddress.ip_address(value).version == version
    except ValueError:
        return False


@FORMATS.checks("date-time")
def _is_time(value: object) -> bool:
    if not isinstance(value, str):
        return True
    try:
        datetime.fromisoformat(value)
    except ValueError:
        return False
    return True


@FORMATS.checks("regex")
def _is_regex(value: object) -> bool:
    if not isinstance(value, str):
        return True
    try:
        re.compile(value)
    except re.error:
        return False
    return value != ""


@FORMATS.checks("name")
def _is_name(value: object) -> bool:
    return not isinstance(value, str) or (value.isprintable() and value == value.strip())


def is_uuid(value: str) -> bool:
    """Return whether OpenStack accepts a text as an id, with or without dashes."""
    try:
        return str(uuid.UUID(value)).replace("-", "") == value.lower().replace("-", "")
    except ValueError:
        return False


def _number(value: Any) -> float | None:
    try:
        return float(value)
    except (TypeError, ValueError):
        return None


def _at_least(_: Any, minimum: float, value: Any, __: Any) -> Iterator[jsonschema.ValidationError]:
    number = _number(value)
    if number is not None and number < minimum:
        yield jsonschema.ValidationError(f"{number:g} is less than the minimum of {minimum}")


def _at_most(_: Any, maximum: float, value: Any, __: Any) -> Iterator[jsonschema.ValidationError]:
    number = _number(value)
    if number is not None and number > maximum:
        yield jsonschema.ValidationError(f"{number:.0f} is greater than the maximum of {maximum}")


# Numbers may be sent as text, so limits use the text's value.
VALIDATOR: Final = jsonschema.validators.extend(  # type: ignore[no-untyped-call]
    jsonschema.Draft202012Validator, {"minimum": _at_least, "maximum": _at_most}
)


def _first_error(schema: Json, value: Any) -> jsonschema.ValidationError | None:
    errors: Iterator[jsonschema.ValidationError] = VALIDATOR(schema, format_checker=FORMATS).iter_errors(value)
    return next(errors, None)


def check_body(schema: Json, body: Json) -> None:
    """Refuse an invalid body.

    Raises:
        Fault: 400 that names the attribute and its value.
    """
    error = _first_error(schema, body)
    if error is None:
        return
    if error.validator == "format" and error.validator_value == "name":
        raise Fault(400, INVALID_NAME, "badRequest")
    if not error.path:
        raise Fault(400, error.message, "badRequest")
    message = f"Invalid input for field/attribute {error.path[-1]}. Value: {error.instance}. {error.message}"
    raise Fault(400, message, "badRequest")


def check_query(schema: Json, query: MultiMapping[str]) -> None:
    """Refuse invalid query parameters; each value is checked by itself.

    Raises:
        Fault: 400 that names the parameter and its value.
    """
    error = _first_error(schema, {key: query.getall(key) for key in query})
    if error is None:
        return
    if not error.path:
        raise Fault(400, error.message, "badRequest")
    message = f"Invalid input for query parameters {error.path[0]}. Value: {error.instance}. {error.message}"
    raise Fault(400, message, "badRequest")


def many(schema: Json) -> Json:
    """Return the schema of a query parameter whose every value fits the given one."""
    return {"type": "array", "items": schema}
