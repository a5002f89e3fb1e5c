"""The provider as clusterctl installed it on a rig: its Deployment has no kubelet, so its manager runs as a process.

The process has the Deployment's own arguments, and the token of its ServiceAccount, so that a wrong flag and a missing
right have the same effect as in a cluster.
"""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Any, Final

from capo import components
from capo.components import deployment, manifest
from capo.engine.migration import is_migrated
from capo.local import clusterctl as ctl
from capo.local.errors import NotReadyError
from capo.version import VERSION

if TYPE_CHECKING:
    from pathlib import Path

    from capo.local.clusterctl import Clusterctl
    from capo.local.rig import Rig

MANAGER: Final = "capo"
LONG_TERMS: Final = ("--leader-elect-lease-duration=120s", "--leader-elect-renew-deadline=100s")
"""A manager that loses its lease ends, and no kubelet restarts it: a busy machine must not delay a renewal so long."""
_DELETION_S: Final = 60.0
_SETTLING_S: Final = 180.0
_POLL_S: Final = 0.2
_CLUSTER_WIDE: Final = (
    "apiextensions.k8s.io/v1/customresourcedefinitions",
    "rbac.authorization.k8s.io/v1/clusterroles",
    "rbac.authorization.k8s.io/v1/clusterrolebindings",
    "admissionregistration.k8s.io/v1/validatingwebhookconfigurations",
)
_DEPLOYMENT: Final = f"/apis/apps/v1/namespaces/{components.NAMESPACE}/deployments/{deployment.NAME}"


def install(clusterctl: Clusterctl, version: str | None = None) -> None:
    """Install the provider by ``clusterctl init``, with webhooks at the port ``capo-webhook``.

    Args:
        clusterctl: with the version in its repository.
        version: what is installed; None for the newest.

    Raises:
        ClusterctlError: it could not be installed.
    """
    rig = clusterctl.rig
    rig.apply(ctl.cert_manager())
    ctl.point_back(rig)
    clusterctl("init", f"--infrastructure={ctl.PROVIDER}{f':{manifest.tag(version)}' if version else ''}")
    ctl.repoint(rig)


def upgrade(clusterctl: Clusterctl, version: str = VERSION) -> None:
    """Install another version by ``clusterctl upgrade apply``; its manager is not started.

    Raises:
        ClusterctlError: it could not be installed.
    """
    rig = clusterctl.rig
    rig.stop(MANAGER)  # clusterctl scales its Deployment down, and a kubelet would end it
    ctl.point_back(rig)
    clusterctl("upgrade", "apply", f"--infrastructure={ctl.PROVIDER}:{manifest.tag(version)}")
    ctl.repoint(rig)


def settle(rig: Rig) -> None:
    """Wait until the manager leads and has migrated stored objects, so that those writes count as part of its start.

    Raises:
        NotReadyError: it did not in time.
    """
    ends_s = time.monotonic() + _SETTLING_S
    while waiting := [crd["metadata"]["name"] for crd in ctl.definitions(rig) if not is_migrated(crd)]:
        if time.monotonic() > ends_s:
            raise NotReadyError(f"the manager has not looked through {', '.join(waiting)} after {_SETTLING_S:.0f} s")
        time.sleep(_POLL_S)


def uninstall(clusterctl: Clusterctl) -> None:
    """Delete the provider by ``clusterctl delete``, with CRDs and namespace.

    Raises:
        ClusterctlError: it could not be deleted; objects of its kinds may be left.
        NotReadyError: something cluster-wide is left after some time.
    """
    rig = clusterctl.rig
    rig.stop(MANAGER)  # the pod would end with the Deployment
    clusterctl("delete", f"--infrastructure={ctl.PROVIDER}", "--include-crd", "--include-namespace")
    ends_s = time.monotonic() + _DELETION_S
    while remaining := left(rig):  # a CRD is deleted after the API server has checked for objects of it
        if time.monotonic() > ends_s:
            raise NotReadyError(f"clusterctl delete left {', '.join(remaining)}")
        time.sleep(_POLL_S)


def left(rig: Rig) -> list[str]:
    """Return the paths of cluster-wide objects with the provider's label; its namespace may be terminating."""
    selector = ",".join(f"{label}={value}" for label, value in deployment.PROVIDER_LABEL.items())
    found = []
    for kinds in _CLUSTER_WIDE:
        items = rig.api.request("GET", f"/apis/{kinds}", params={"labelSelector": selector})["items"]
        found += [f"{kinds.rpartition('/')[2]} {item['metadata']['name']}" for item in items]
    return found


def arguments(rig: Rig) -> list[str]:
    """Return the arguments of the installed Deployment's manager."""
    pod: dict[str, Any] = rig.api.get(_DEPLOYMENT)["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    return list(container["args"])


def start(rig: Rig, *more: str, python: Path | None = None) -> None:
    """Start the installed manager as a process of the rig, and wait until it is ready.

    Args:
        rig: where it is installed.
        more: flags after those of the Deployment.
        python: interpreter of an environment in which another version is installed; None runs this one.
    """
    kubeconfig = rig.service_account_kubeconfig(components.NAMESPACE, components.SERVICE_ACCOUNT)
    ports = rig.ports
    health = f"127.0.0.1:{ports['capo-health']}"
    # The last of two equal flags is used: replaced are settings that a pod would have for itself, and the lease's.
    elsewhere = (
        f"--kubeconfig={kubeconfig}",
        "--webhook-host=127.0.0.1",
        f"--webhook-port={ports['capo-webhook']}",
        f"--webhook-cert-dir={rig.webhook_cert_dir}",
        f"--health-addr={health}",
        f"--diagnostics-address=127.0.0.1:{ports['capo-metrics']}",
        *LONG_TERMS,
    )
    argv = [str(python or sys.executable), "-m", "capo", "run", *arguments(rig), *elsewhere, *more]
    env = {"POD_NAMESPACE": components.NAMESPACE}
    if python:  # neither the process nor its children import from the working directory
        env["PYTHONSAFEPATH"] = "1"
    rig.start(MANAGER, argv, env=env, ready_url=f"http://{health}/readyz")
