"""Error answers of kube-apiserver, with its texts.

Source: ``k8s.io/apimachinery/pkg/api/errors``. ``details.kind`` is the plural, except where the object is invalid.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from capo.json_types import Json
from capo.kube.errors import KubeError, class_of
from capo.kube.kinds import Kind

MODIFIED: Final = "the object has been modified; please apply your changes to the latest version and try again"
COMPACTED: Final = (
    "The provided continue parameter is too old to display a consistent list result. You can start a new list without "
    "the continue parameter, or use the continue token in this response to retrieve the remainder of the results. "
    "Continuing with the provided token results in an inconsistent list - objects that were created, modified, or "
    "deleted between the time the first chunk was returned and now may show up in the list."
)


@dataclass(frozen=True)
class Cause:
    """One invalid field."""

    field: str
    message: str
    reason: str = "FieldValueInvalid"


class Refusal(Exception):  # noqa: N818 - named for the answer
    """A request is not carried out; handlers of the simulated API server raise it.

    Args:
        status: HTTP status.
        reason: ``Status.reason``; empty for an answer that is no Status but a plain page.
        details: ``Status.details``.
        metadata: ``Status.metadata``.
    """

    def __init__(
        self, status: int, reason: str, message: str, details: Json | None = None, *, metadata: Json | None = None
    ) -> None:
        super().__init__(message)
        self.status, self.reason, self.message, self.details = status, reason, message, details
        self.metadata = metadata or {}

    def body(self) -> Json:
        """Return the ``metav1.Status``."""
        body: Json = {"kind": "Status", "apiVersion": "v1", "metadata": self.metadata, "status": "Failure"}
        body |= {"message": self.message} | ({"reason": self.reason} if self.reason else {})
        if self.details is not None:
            body["details"] = self.details
        return {**body, "code": self.status}

    def error(self) -> KubeError:
        """Return the error that the project's client raises for this answer."""
        return class_of(self.status)(self.message, status=self.status, reason=self.reason)


def page_not_found() -> Refusal:
    """Return the answer for an unknown path."""
    return Refusal(404, "", "404 page not found")


def not_found(kind: Kind, name: str) -> Refusal:
    """Return the answer for an object that does not exist."""
    return Refusal(404, "NotFound", f'{_resource(kind)} "{name}" not found', _details(kind, name))


def already_exists(kind: Kind, name: str, *, is_deleting: bool) -> Refusal:
    """Return the answer to the creation of an object that exists."""
    text = f'{_resource(kind)} "{name}" already exists'
    message = f"object is being deleted: {text}" if is_deleting else text
    return Refusal(409, "AlreadyExists", message, _details(kind, name))


def conflict(kind: Kind, name: str, why: str = MODIFIED) -> Refusal:
    """Return the answer to a write whose condition does not hold."""
    message = f'Operation cannot be fulfilled on {_resource(kind)} "{name}": {why}'
    return Refusal(409, "Conflict", message, _details(kind, name))


def precondition_failed(kind: Kind, name: str, why: str) -> Refusal:
    """Return the answer to a deletion whose precondition does not hold."""
    message = f'Operation cannot be fulfilled on {_head(kind.kind, kind.group)} "{name}": {why}'
    return Refusal(409, "Conflict", message, _details(kind, name) | {"kind": kind.kind})


def forbidden(kind: Kind, name: str, why: str, causes: Iterable[Json] = ()) -> Refusal:
    """Return the answer to a write that admission refuses."""
    details = _details(kind, name) | ({"causes": list(causes)} if causes else {})
    return Refusal(403, "Forbidden", f'{_resource(kind)} "{name}" is forbidden: {why}', details)


def invalid(kind: Kind, name: str, *causes: Cause) -> Refusal:
    """Return the answer to a write whose result is no valid object."""
    return _invalid(kind.kind, kind.group, name, *causes)


def without_version(kind: Kind, name: str) -> Refusal:
    """Return the answer to an update without the required resourceVersion."""
    cause = Cause("metadata.resourceVersion", "Invalid value: 0: must be specified for an update")
    return _invalid(kind.plural, kind.group, name, cause)


def wrong_kind(kind: Kind, found: str, name: str) -> Refusal:
    """Return the answer to an object of another kind than the path's."""
    cause = Cause("kind", f'Invalid value: "{found}": must be {kind.kind}')
    return _invalid(found, kind.group, name, cause)


def unrecognized(kind: Kind, why: str) -> Refusal:
    """Return the answer to a body that is not an object."""
    return bad_request(f"the object provided is unrecognized (must be of type {kind.kind}): {why}")


def bad_request(message: str) -> Refusal:
    """Return the answer to a malformed request."""
    return Refusal(400, "BadRequest", message)


def expired_page(token: str) -> Refusal:
    """Return the answer to a request for a page of an expired list.

    Args:
        token: continues with the objects as they are now.
    """
    return Refusal(410, "Expired", COMPACTED, metadata={"continue": token})


def too_large(asked: int, newest: int) -> Refusal:
    """Return the answer to a request for a future version."""
    causes = [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}]
    message = f"Timeout: Too large resource version: {asked}, current: {newest}"
    return Refusal(504, "Timeout", message, {"causes": causes, "retryAfterSeconds": 1})


def not_supported(kind: Kind, verb: str) -> Refusal:
    """Return the answer to a verb that the resource does not have."""
    message = f'{verb} is not supported on resources of kind "{_resource(kind)}"'
    return Refusal(405, "MethodNotAllowed", message, {"group": kind.group, "kind": kind.plural})


def no_such_resource() -> Refusal:
    """Return the answer for a subresource that a built-in kind does not have."""
    return Refusal(404, "NotFound", "the server could not find the requested resource", {})


def rejected() -> Refusal:
    """Return the answer to a JSON patch that does not fit the object."""
    return Refusal(422, "Invalid", "the server rejected our request due to an error in our request", {})


def unsupported_media_type(accepted: Iterable[str]) -> Refusal:
    """Return the answer to a patch of an unknown kind."""
    message = f"the body of the request was in an unknown format - accepted media types include: {', '.join(accepted)}"
    return Refusal(415, "UnsupportedMediaType", message)


def _invalid(what: str, group: str, name: str, *causes: Cause) -> Refusal:
    texts = [f"{cause.field}: {cause.message}" for cause in causes]
    text = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
    details: Json = {"name": name} | ({"group": group} if group else {}) | {"kind": what}
    details["causes"] = [{"reason": c.reason, "message": c.message, "field": c.field} for c in causes]
    return Refusal(422, "Invalid", f'{_head(what, group)} "{name}" is invalid: {text}', details)


def _head(what: str, group: str) -> str:
    return f"{what}.{group}" if group else what


def _resource(kind: Kind) -> str:
    return _head(kind.plural, kind.group)


def _details(kind: Kind, name: str) -> Json:
    details = {"name": name} | ({"group": kind.group} if kind.group else {})
    return {**details, "kind": kind.plural}
