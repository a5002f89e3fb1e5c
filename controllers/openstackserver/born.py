"""Once its server is made, what was needed to make it holds nothing back any more.

Whatever becomes of image, network, ports or pool, a server that vanishes or stops is told of at once; so the steps
before that of the server only tell what they find.
"""

from __future__ import annotations

from collections.abc import Callable

from capo.controllers.openstackserver.scope import ServerScope
from capo.engine.steps import Done, Outcome, Wait
from capo.errors import CapoError, IdentityError, NotAuthorizedError

Ensure = Callable[[ServerScope], Outcome]


def until_born(ensure: Ensure) -> Ensure:
    """Return a step that waits and fails as long as the server is not made, and after that only tells."""

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
