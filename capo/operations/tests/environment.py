"""A cluster with all that it has in a simulated cloud, and operators' access to it."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from capo.__main__ import main
from capo.kube.kinds import CLUSTER, NAMESPACE, SECRET
from capo.kube.tests.fake_apiserver import BUILT_IN, FakeApiServer
from capo.operations import access, owners
from capo.operations.access import CloudAccess, Management
from capo.operations.console import Console
from controllers.openstackcluster.tests.environment import ClusterEnvironment
from controllers.tests import stamps
from environments.cloud_provider import WorkloadStandIn


class OperatorsEnvironment(ClusterEnvironment):
    """A management cluster whose objects an operator reads; they are copied when :meth:`served` begins."""

    @contextlib.contextmanager
    def served(self) -> Iterator[FakeApiServer]:
        """Yield an API server with the present objects."""
        kinds = (*owners.KINDS, CLUSTER, SECRET)
        with FakeApiServer((*kinds, *BUILT_IN)).running() as api:
            api.put(NAMESPACE, {"metadata": {"name": "kube-system", "uid": f"uid-{api.port}"}})
            for kind in kinds:
                for obj in self.kube.list(kind):
                    api.put(kind, obj)
            yield api

    @contextlib.contextmanager
    def management(self, name: str = "mgmt") -> Iterator[Management]:
        """Yield the management cluster with the present objects."""
        with self.served() as api:
            yield access.of_connection(api.connection(), name=name)

    def named_cloud(self) -> Any:
        """Return the project as an operator names it."""
        return CloudAccess().open(access.credentials_in(self.simulator.clouds_yaml, "sim"))

    def unstamp(self) -> None:
        """Leave everything in the cloud as the Go provider does, without stamps."""
        self.simulator.call(lambda: stamps.remove_all(self.cloud))

    def workloads(self, cluster: str) -> WorkloadStandIn:
        """Return a cloud controller and CSI driver that know their cluster by a name."""
        return WorkloadStandIn(self.member, cluster)


def kubeconfig(path: Path, api: FakeApiServer) -> str:
    """Write a kubeconfig and return its path."""
    connection = api.connection()
    config = {
        "current-context": "it",
        "contexts": [{"name": "it", "context": {"cluster": "it", "user": "it", "namespace": "default"}}],
        "clusters": [{"name": "it", "cluster": {"server": connection.server}}],
        "users": [{"name": "it", "user": {"token": "t"}}],
    }
    path.write_text(yaml.safe_dump(config))
    return str(path)


def console() -> tuple[Console, io.StringIO]:
    """Return a console and what it prints."""
    out = io.StringIO()
    return Console(out=out, err=out), out


def capo(*arguments: str) -> int:
    """Run a command and return its exit status."""
    try:
        return main(list(arguments))
    except SystemExit as ended:
        return int(ended.code or 0)
