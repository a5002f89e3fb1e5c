"""A management cluster in containers: kind, Cluster API and cert-manager as published, the provider from its image.

Needs a container engine and the network, or root on Debian with `make e2e-kind NODE=local`. The simulated cloud is a
separate Deployment, so that it outlives the manager's pods.
"""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from capo.components import manifest, release
from capo.local.demo import clouds
from capo.local.demo.clouds import Site
from capo.local.testing import spare_ports
from capo.version import VERSION
from e2e.kind import cloud
from e2e.kind.local import programs, providers
from e2e.kind.local.__main__ import LOCAL
from e2e.kind.management import LIMIT, Management
from tools.image import __main__ as images
from tools.image import engines
from tools.image.engines import NoEngineError

ENGINES: Final = ("docker", "podman")
"""The engines that kind supports."""
ENGINE_OF_KIND: Final = "KIND_EXPERIMENTAL_PROVIDER"
"""The variable that kind reads; kind prefers docker without it."""


@pytest.fixture(scope="session")
def engine() -> Iterator[str]:
    """Yield the name of the container engine of this machine; kind uses the same one."""
    try:
        name = engines.find(os.environ.get(ENGINE_OF_KIND), among=ENGINES)
    except NoEngineError as error:
        pytest.fail(f"{error}; kind needs it")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(ENGINE_OF_KIND, name)
        yield name


@pytest.fixture(scope="session")
def local() -> Path | None:
    """Return the folder that replaces clusterctl's downloads; None if they are reachable."""
    folder = os.environ.get(LOCAL)
    return Path(folder) if folder else None


def built(engine: str, local: Path | None, name: str, lock: str = "image", revision: str = "") -> str:
    """Build an image from this checkout and return its name."""
    wanted = images.plan(name, "debian" if local else "slim", lock)
    if revision:
        wanted = replace(wanted, arguments={**wanted.arguments, "REVISION": revision})
    images.build(engine, wanted)
    return name


@pytest.fixture(scope="session")
def image(engine: str, local: Path | None) -> str:
    """Return the name of the manager's image."""
    return built(engine, local, manifest.image())


@pytest.fixture(scope="session")
def next_image(engine: str, local: Path | None, image: str) -> str:
    """Return the name of the manager's image of a later revision."""
    return built(engine, local, f"{image}-next", revision="next")


@pytest.fixture(scope="session")
def simulator_image(engine: str, local: Path | None) -> str:
    """Return the name of an image that contains the simulated cloud."""
    return built(engine, local, manifest.image(f"{manifest.REPOSITORY}-simulator"), lock="simulator")


@pytest.fixture(scope="session")
def loaded(image: str, next_image: str, simulator_image: str) -> tuple[str, str, str]:
    """Return the names of all images that are built here."""
    return image, next_image, simulator_image


@pytest.fixture(scope="session")
def cluster(engine: str, request: pytest.FixtureRequest) -> Any:
    """Return pytest-kind's cluster; kind and kubectl are built from pinned modules where no option names them."""
    options = request.config.option
    if options.kind_bin is None or options.kind_kubectl_bin is None:
        found = programs.clients()
        options.kind_bin, options.kind_kubectl_bin = str(found["kind"]), str(found["kubectl"])
    return request.getfixturevalue("kind_cluster")


@pytest.fixture(scope="session")
def management(
    engine: str,
    local: Path | None,
    loaded: tuple[str, str, str],
    cluster: Any,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Management]:
    """Yield a kind cluster with Cluster API, cert-manager and the provider, whose manager is Available."""
    made = Management(cluster, tmp_path_factory.mktemp("kind"))
    image, _, simulator_image = loaded
    for name in loaded:
        load_from_engine(made, engine, name)
    for archive in sorted((local / "images").glob("*.tar")) if local else ():
        made.load(archive)
    made.kubectl("apply", "--server-side", "--filename=-", input=yaml.safe_dump_all(cloud.objects(simulator_image)))
    folder = release.lay_out(made.folder / "repository", version=VERSION, image=image)
    url = str(folder.parent / "latest" / release.COMPONENTS)
    provider = {"name": "openstack", "type": "InfrastructureProvider", "url": url}
    configuration = yaml.safe_load((local / providers.CONFIGURATION).read_text()) if local else {"providers": []}
    configuration["providers"].append(provider)
    (made.folder / "clusterctl.yaml").write_text(yaml.safe_dump(configuration))
    made.clusterctl("init", "--infrastructure=openstack", "--wait-providers")
    made.follow_logs()
    made.kubectl("rollout", "status", cloud.DEPLOYMENT, cloud.IN_NAMESPACE, f"--timeout={LIMIT}")
    yield made
    made.stop()


def load_from_engine(management: Management, engine: str, image: str) -> None:
    """Load an image of the engine into the node; no registry has it."""
    archive = management.folder / "image.tar"
    subprocess.run([engine, "save", "--output", str(archive), image], check=True)
    management.load(archive)
    archive.unlink()


@pytest.fixture(scope="session")
def site(management: Management) -> Iterator[Site]:
    """Yield the simulated cloud, reached through the API server while the tests run."""
    text = management.kubectl("exec", cloud.DEPLOYMENT, cloud.IN_NAMESPACE, "--", *cloud.READ_CLOUDS)
    port = spare_ports("simulator")["simulator"]
    url, clouds_yaml = f"http://127.0.0.1:{port}", management.folder / "clouds.yaml"
    clouds_yaml.write_text(text.replace(cloud.LISTENING, url))
    forward = ("port-forward", "--address=127.0.0.1", cloud.SERVICE_REF, cloud.IN_NAMESPACE, f"{port}:{cloud.PORT}")
    with management.running(*forward):
        found = reached(clouds_yaml, url)
        # The manager reaches it by the Service's name; the catalogue names the host of the request.
        yield replace(found, variables=cloud.for_manager(found.variables, url))


def reached(clouds_yaml: Path, url: str) -> Site:
    """Return the cloud once it answers."""
    ends_s = time.monotonic() + 30
    while True:
        try:
            return clouds.simulated(clouds_yaml, url)
        except OSError:  # requests' exceptions are OSErrors
            if time.monotonic() > ends_s:
                raise
            time.sleep(0.5)
