"""Once the server is created, steps that prepared its creation block nothing any more.

Steps before that of the server only report afterwards, so that a missing or stopped server is reported at once,
whatever the state of its image, network, ports or pool.
"""

from __future__ import annotations

from collections.abc import Callable

from capo.engine.steps import Done, Outcome, Wait
from capo.errors import CapoError, IdentityError, NotAuthorizedError
from controllers.openstackserver.scope import ServerScope

Ensure = Callable[[ServerScope], Outcome]


def until_born(ensure: Ensure) -> Ensure:
    """Return a step that may wait or fail only until the server is created; after that it only reports."""

    def step(scope: ServerScope) -> Outcome:
        if scope.known_server_id is None:
            return ensure(scope)
        try:
            outcome = ensure(scope)
        except (NotAuthorizedError, IdentityError):
            raise
        except CapoError as error:
            return Done(f"not known: {error.sentence}")
        return Done(outcome.message) if isinstance(outcome, Wait) else outcome

    return step
