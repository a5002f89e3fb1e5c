"""What the credentials of one object cost does not grow with the credentials of others, though all are of one cloud."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any, Final

import pytest

from capo.errors import IdentityError
from capo.kube.kinds import SECRET
from controllers.tests.test_credentials import CredentialsEnvironment
from environments import operations

FEW: Final = 100
MANY: Final = 1000
GROWTH: Final = 1.1
PERIOD_S: Final = 600.0

Act = Callable[[CredentialsEnvironment], object]


def ref(number: int) -> dict[str, Any]:
    return {"name": f"cloud-{number}", "cloudName": "here"}


def obj(generation: int) -> dict[str, Any]:
    metadata = {"uid": "uid", "namespace": "default", "generation": generation}
    return {"metadata": metadata, "spec": {"identityRef": ref(7)}}


@contextlib.contextmanager
def tenancy(count: int) -> Iterator[CredentialsEnvironment]:
    """Yield so many credentials, each used a resync period ago."""
    world = CredentialsEnvironment()
    world.clouds.max_idle = count
    for number in range(count):
        world.apply_secret(f"password-{number}", f"cloud-{number}")
        cloud = world.identities.cloud(ref(number), "default")
        world.clouds._taken_s[cloud.fingerprint] = world.clock.now() - PERIOD_S
    world.identities.note_edit(obj(1))
    world.clock.advance(PERIOD_S / 2)
    world.identities.cloud(ref(8), "default")  # searches for clouds that no object uses, as once a minute
    yield world
    world.clouds.close()


def use(world: CredentialsEnvironment) -> object:
    return world.identities.cloud(ref(7), "default")


def read_again(world: CredentialsEnvironment) -> object:
    world.identities.forget(ref(7), "default")
    return use(world)


def read_changed(world: CredentialsEnvironment) -> object:
    world.apply_secret("new", "cloud-7")
    return read_again(world)


def read_nothing(world: CredentialsEnvironment) -> None:
    world.kube.delete(SECRET, "default", "cloud-7")
    with pytest.raises(IdentityError):
        read_again(world)


def edit(world: CredentialsEnvironment) -> None:
    world.identities.note_edit(obj(2))


def edit_of_identity(world: CredentialsEnvironment) -> None:
    world.identities.note_identity_edit("shared")


def login_of_identity(world: CredentialsEnvironment) -> object:
    spec = {"secretRef": {"namespace": "default", "name": "cloud-7"}}
    return world.identities.login({"metadata": {"name": "shared"}, "spec": spec})


@pytest.mark.parametrize(
    "act", [use, read_again, read_changed, read_nothing, edit, edit_of_identity, login_of_identity]
)
def test_credentials_cost_as_much_among_1000_as_among_100(act: Act) -> None:
    with tenancy(FEW) as few, tenancy(MANY) as many:
        counted = [operations.count(lambda world=world: act(world)) for world in (few, many)]  # type: ignore[misc]

    assert counted[1] <= GROWTH * counted[0], f"{counted[0]} instructions among {FEW}, {counted[1]} among {MANY}"
