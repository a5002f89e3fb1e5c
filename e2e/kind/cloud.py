"""The simulated cloud in the management cluster: a Deployment and a Service in a namespace of their own."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any, Final

NAMESPACE: Final = "cloud"
NAME: Final = "simulator"
PORT: Final = 8100
LISTENING: Final = f"http://0.0.0.0:{PORT}"
"""Address in the clouds.yaml that the simulator writes."""
SERVICE: Final = f"http://{NAME}.{NAMESPACE}.svc.cluster.local:{PORT}"
DEPLOYMENT: Final = f"deployment/{NAME}"
SERVICE_REF: Final = f"service/{NAME}"
IN_NAMESPACE: Final = f"--namespace={NAMESPACE}"
_CLOUDS: Final = "/tmp/clouds.yaml"
# The image has no shell and no cat.
READ_CLOUDS: Final = ("/opt/capo/bin/python", "-c", f"print(open({_CLOUDS!r}).read())")


def objects(image: str) -> list[dict[str, Any]]:
    """Return the objects that run the simulator; pure."""
    labels = {"app": NAME}
    metadata = {"name": NAME, "namespace": NAMESPACE, "labels": labels}
    command = ["/opt/capo/bin/capo", "simulate", "--host=0.0.0.0", f"--port={PORT}", f"--clouds={_CLOUDS}"]
    container = {
        "name": NAME,
        "image": image,
        "command": command,
        "readinessProbe": {"tcpSocket": {"port": PORT}},
        "volumeMounts": [{"name": "tmp", "mountPath": "/tmp"}],
    }
    pod = {"containers": [container], "volumes": [{"name": "tmp", "emptyDir": {}}]}
    template = {"metadata": {"labels": labels}, "spec": pod}
    spec = {"selector": {"matchLabels": labels}, "template": template}
    return [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}},
        {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec},
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": metadata,
            "spec": {"ports": [{"port": PORT}], "selector": labels},
        },
    ]


def for_manager(variables: Mapping[str, str], url: str) -> dict[str, str]:
    """Return the template's variables with the address by which the manager reaches the cloud; pure.

    Args:
        url: address by which the test reaches it.
    """
    text = base64.b64decode(variables["OPENSTACK_CLOUD_YAML_B64"]).decode().replace(url, SERVICE)
    return {**variables, "OPENSTACK_CLOUD_YAML_B64": base64.b64encode(text.encode()).decode()}
