"""Runs each test on both clouds: as ``[simulator]``, and with the marker ``lab`` as ``[lab]``."""

from __future__ import annotations

import contextlib
import re
import secrets
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from capo.names import Stamp
from capo.openstack import flavor, network, subnet
from capo.openstack.network import WantedNetwork
from capo.openstack.subnet import WantedSubnet
from e2e.contract import differences
from e2e.contract.environment import CIDR, POOL, ContractEnvironment, ContractSession
from e2e.contract.recordings import Recorder
from environments import sweep, targets, tenancy
from environments.targets import LAB, SIMULATOR
from environments.wire import Wire

HERE: Final = Path(__file__).parent
WHOLE: Final = pytest.StashKey[bool]()
"""Whether all tests of the cloud were collected: computed before markers deselect some."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option that rewrites the recordings."""
    parser.addoption("--record", action="store_true", help="write what the lab answers to e2e/contract/recordings")


def pytest_configure(config: pytest.Config) -> None:
    """Declare the marker of tests that run on one cloud alone."""
    config.addinivalue_line("markers", "not_on(cloud, entry): stands in e2e/contract/differences.md under this heading")
    config.addinivalue_line("markers", "looks_back: is about the whole run, so it runs last and only after all tests")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Parametrize each test that uses a cloud with both."""
    if "world" in metafunc.fixturenames:
        clouds = [SIMULATOR, pytest.param(LAB, marks=pytest.mark.lab)]
        metafunc.parametrize("ground", clouds, indirect=True, scope="session")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect tests that do not run on a cloud; run the completeness test last, and only after a whole run."""
    ours = [item for item in items if HERE in item.path.parents]
    left_out = [item for item in ours if differences.excludes(item)]
    config.stash[WHOLE] = _is_whole(config, ours)
    if not config.stash[WHOLE]:
        left_out += [item for item in ours if item.get_closest_marker("looks_back")]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]
    items.sort(key=lambda item: item.get_closest_marker("looks_back") is not None)


def _is_whole(config: pytest.Config, ours: list[pytest.Item]) -> bool:
    modules = {item.path for item in ours}
    is_narrowed = config.option.keyword or any("::" in argument for argument in config.args)
    return not is_narrowed and modules >= set(HERE.glob("test_*.py"))


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Generator[None, Any, Any]:
    """Fail a test whose cloud gave an answer that is not recorded."""
    result = yield
    world = pyfuncitem.funcargs.get("world")
    if isinstance(world, ContractEnvironment) and (complaints := world.ground.recorder.take_complaints()):
        raise AssertionError("differs from the recordings:\n" + "\n".join(complaints))
    return result


@pytest.fixture(scope="session")
def ground(request: pytest.FixtureRequest) -> Iterator[ContractSession]:
    """Yield a cloud with two projects of this run; delete them and their resources at the end."""
    config = request.config
    if config.getoption("--record", False) and request.param != LAB:
        pytest.fail("recordings are made from the lab: add -m lab")
    recorder = Recorder(is_recording=bool(config.getoption("--record", False)), is_whole=config.stash[WHOLE])
    with targets.running(request.param) as target:
        wire = Wire(target.auth_url, [recorder.note])
        with _ground(target, wire, recorder) as made:
            yield made
        if recorder.is_recording:
            recorder.write()


@contextlib.contextmanager
def _ground(target: targets.Target, wire: Wire, recorder: Recorder) -> Iterator[ContractSession]:
    run = f"contract-{secrets.token_hex(3)}"
    admin = tenancy.cloud_of(wire, tenancy.credentials_of(target.admin))
    tenants = (tenancy.make(wire, target, admin, run), tenancy.make(wire, target, admin, f"{run}-other"))
    ground = ContractSession(target, wire, recorder, run, admin, *tenants)
    for service, (_, _, nothing) in tenancy.NOTHING.items():
        tenancy.limit(admin, tenants[1].project_id, service, nothing)
    try:
        _furnish(ground)
        yield ground
    finally:
        wire.listeners.clear()
        for tenant in tenants:
            sweep.empty(tenant.cloud, admin, tenant.project_id, every_s=target.every_s)
        for service in tenancy.NOTHING:
            tenancy.unlimit(admin, tenants[1].project_id, service)
        for tenant in tenants:
            tenancy.remove(admin, tenant)


def _furnish(ground: ContractSession) -> None:
    cloud, stamp = ground.tenant.cloud, Stamp("contractsuite", "base")
    ground.network = network.create(cloud, WantedNetwork(stamp, f"{ground.run}-base"))
    wanted = WantedSubnet(stamp, f"{ground.run}-base", ground.network["id"], CIDR, allocation_pools=[POOL])
    ground.subnet = subnet.create(cloud, wanted)
    external = network.external(cloud, None)
    assert external is not None, "the cloud has no external network"
    ground.external = external
    ground.flavor_id = flavor.resolve(cloud, name="m1.tiny")
    ground.image_id = cloud.get("image", "/images", params={"name": "tiny-image"})["images"][0]["id"]


@pytest.fixture
def world(ground: ContractSession, request: pytest.FixtureRequest) -> Iterator[ContractEnvironment]:
    module = str(request.module.__name__).rpartition(".")[2]
    test = re.sub(rf"-?\b({SIMULATOR}|{LAB})\b-?", "", request.node.name).removesuffix("[]")
    made = ContractEnvironment(ground, module, test)
    yield made
    made.undo()
    ground.recorder.take_complaints()
