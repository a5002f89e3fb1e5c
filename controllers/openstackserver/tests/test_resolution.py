from __future__ import annotations

from capo.errors import CapoError, CloudUnavailableError, FlavorNotFoundError, ImageNotFoundError, NotAuthorizedError
from controllers.openstackserver.resolve import Resolution


def message_of(**errors: CapoError) -> str:
    error = Resolution({}, {}, errors).error
    assert error is not None
    return error.message


def test_all_references_that_lead_nowhere_are_told_at_once() -> None:
    errors = {"Image": ImageNotFoundError("no image"), "Flavor": FlavorNotFoundError("no flavor")}

    assert message_of(**errors) == "no image; also FlavorNotFound: no flavor"


def test_refused_credentials_alone_are_told() -> None:
    refused = NotAuthorizedError("requires authentication")

    assert message_of(Image=ImageNotFoundError("no image"), Flavor=refused, Ports=refused) == refused.message


def test_the_same_failure_of_several_references_is_told_once() -> None:
    down = [CloudUnavailableError("the network is down") for _ in range(3)]

    assert message_of(Image=down[0], Flavor=down[1], Ports=down[2]) == "the network is down"
