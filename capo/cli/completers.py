"""Names that complete arguments: of clusters and namespaces, contexts of a kubeconfig, entries of clouds.yaml.

Whatever fails completes nothing: an error would be printed into the line that a user edits.
"""

from __future__ import annotations

import argparse
import os
import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from capo.operations.access import Management

LIMIT_S: Final = 3.0
"""How long a shell waits for an API server."""


def attach(action: argparse.Action, find: Callable[[argparse.Namespace], Iterable[str]]) -> None:
    """Complete an argument with what a function finds."""

    def complete(prefix: str, parsed_args: argparse.Namespace, **_more: Any) -> list[str]:
        return sorted({each for each in _in_time(lambda: list(find(parsed_args))) if each.startswith(prefix)})

    action.completer = complete  # type: ignore[attr-defined]  # where argcomplete looks for it


def clusters(arguments: argparse.Namespace) -> list[str]:
    """Return the Clusters of the namespace that the arguments choose."""
    from capo.kube.kinds import OPENSTACK_CLUSTER
    from capo.operations import owners

    management = _management(arguments)
    namespace = None if getattr(arguments, "all_namespaces", False) else arguments.namespace or management.namespace
    found = management.list(OPENSTACK_CLUSTER, namespace)
    named = (owners.of_object(management.name, OPENSTACK_CLUSTER, obj).cluster for obj in found)
    return [each.name for each in named if each]


def namespaces(arguments: argparse.Namespace) -> list[str]:
    """Return the namespaces that have OpenStackClusters, for which no right to list namespaces is needed."""
    from capo.kube.kinds import OPENSTACK_CLUSTER

    return [each["metadata"]["namespace"] for each in _management(arguments).list(OPENSTACK_CLUSTER)]


def contexts(arguments: argparse.Namespace) -> list[str]:
    """Return the contexts of the kubeconfigs."""
    import yaml

    paths = _kubeconfigs(arguments) or [*_listed(), str(Path.home() / ".kube" / "config")]
    documents = (yaml.safe_load(Path(path).read_bytes()) for path in paths if Path(path).is_file())
    return [str(each["name"]) for found in documents for each in found.get("contexts") or ()]


def clouds(arguments: argparse.Namespace) -> list[str]:
    """Return the entries of clouds.yaml."""
    import yaml

    from capo.operations import access

    found = yaml.safe_load(access.clouds_file(getattr(arguments, "clouds", None)).read_bytes())
    return [str(each) for each in found["clouds"]]


def _management(arguments: argparse.Namespace) -> Management:
    from capo.operations import access

    return access.connect(next(iter(_kubeconfigs(arguments)), None), arguments.context)


def _kubeconfigs(arguments: argparse.Namespace) -> list[str]:
    given = arguments.kubeconfig
    return [given] if isinstance(given, str) else list(given or ())


def _listed() -> list[str]:
    return [each for each in os.environ.get("KUBECONFIG", "").split(os.pathsep) if each]


def _in_time(find: Callable[[], list[str]]) -> list[str]:
    found: list[str] = []

    def work() -> None:
        try:
            found.extend(find())
        except Exception:  # noqa: BLE001 - see above
            return

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(LIMIT_S)
    return list(found)
