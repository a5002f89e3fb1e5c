"""Conditions as Cluster API had them in its v1beta1."""

from __future__ import annotations

from typing import Annotated

from api.model import Model
from api.schema import Required, Schema, Timestamp


class Condition(Model):
    """One condition of the object, in the format of Cluster API v1beta1."""

    type: Annotated[str, Schema(min_length=1, max_length=256)]
    """What the condition describes, CamelCase; unique in the list."""
    status: str
    """True, False or Unknown."""
    severity: Annotated[str, Schema(max_length=32)] = ""
    """Severity when the status is False: Error, Warning or Info. v1beta2 has none."""
    last_transition_time: Required[Timestamp] = ""
    """When the status last changed, RFC 3339, whole seconds."""
    reason: Annotated[str, Schema(min_length=1, max_length=256)] = ""
    """Reason for the status, in one CamelCase word for programs."""
    message: Annotated[str, Schema(min_length=1, max_length=10240)] = ""
    """Message for users."""


Conditions = tuple[Condition, ...]
