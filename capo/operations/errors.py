"""Failures of operators' commands: one sentence for the user, and the exit status of the command."""

from __future__ import annotations

import re
from enum import IntEnum
from typing import Final

from capo.kube.errors import Denied, KubeError
from capo.kube.kinds import Kind

_USER: Final = re.compile(r'User "([^"]{1,253})"')
ROLES: Final = "docs/reference/cli.md lists the rights of each command"


class ExitStatus(IntEnum):
    """Exit statuses of operators' commands; ``docs/reference/cli.md`` has the same table."""

    DONE = 0
    FAILED = 1
    USAGE = 2
    FOUND = 3
    INCOMPLETE = 4
    INTERRUPTED = 130

    @property
    def meaning(self) -> str:
        """Return what scripts may conclude."""
        return _MEANINGS[self]


_MEANINGS: Final = {
    ExitStatus.DONE: "done; nothing was found that needs a decision",
    ExitStatus.FAILED: "failed; stderr has the reason in one sentence",
    ExitStatus.USAGE: "wrong arguments; stderr has the usage",
    ExitStatus.FOUND: "done, and something was found: changes to make, orphans, mismatches",
    ExitStatus.INCOMPLETE: "a part could not be read or done; stderr names it, the rest is printed",
    ExitStatus.INTERRUPTED: "interrupted by Ctrl-C",
}


class OperatorError(Exception):
    """A command cannot go on.

    Args:
        status: of the command.
    """

    def __init__(self, message: str, *, status: ExitStatus = ExitStatus.FAILED) -> None:
        super().__init__(message)
        self.status = status


class NotPermittedError(OperatorError):
    """The user of the kubeconfig lacks a right."""


class NotServedError(OperatorError):
    """The management cluster does not have a kind."""


def of_request(error: KubeError, verb: str, kind: Kind, namespace: str | None) -> OperatorError:
    """Return the failure of a request to the API server.

    Args:
        verb: as in a role: get, list, watch, create, patch.
        namespace: None: all of them, or a kind without.
    """
    resource = f"{kind.plural}.{kind.group}" if kind.group else kind.plural
    if not isinstance(error, Denied):
        return OperatorError(str(error))
    if error.status == 401:
        return NotPermittedError(f"the API server does not accept the credentials of the kubeconfig: {error}")
    named = _USER.search(str(error))
    who = f"user {named[1]}" if named else "the user of the kubeconfig"
    return NotPermittedError(f"{who} may not {verb} {resource}{_where(kind, namespace)}; {ROLES}")


def _where(kind: Kind, namespace: str | None) -> str:
    if not kind.is_namespaced:
        return ""
    return f" in namespace {namespace}" if namespace else " in all namespaces"
