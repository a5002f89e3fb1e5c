"""Cost of a conditional write of a status, as merge patch and as JSON patch: `python -m tools.bench.status_patch`.

On a real API server, in turns, with the status of an OpenStackMachine that has its usual conditions and records. One
condition changes with each write, as in most reconciles.
"""

from __future__ import annotations

import argparse
import copy
import json
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import jsonpatch

from capo.json_types import Json
from capo.kube import config
from capo.kube.client import Kube
from capo.kube.kinds import NAMESPACE, OPENSTACK_SERVER
from tools.bench import environment

PLACE: Final = "status-patch"
SERVER_ID: Final = "5d2d0b1e-6d6c-4a0e-9a4c-1f6b1a4c2f10"
TYPES: Final = ("Ready", "DependenciesResolved", "InstanceReady", "PortsReady", "TrunksReady", "VolumesReady")


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--writes", type=int, default=300, help="writes of each kind")
    wanted = parser.parse_args(arguments)
    with environment.api_server() as rig:
        kube = Kube(config.from_kubeconfig(str(rig.kubeconfig)))
        kube.apply(NAMESPACE, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": PLACE}})
        pid = rig.processes.pid("kube-apiserver")
        assert pid is not None
        print("| Patch | Bytes sent | ms (median) | ms of the client's processor | ms of the API server's processor |")
        print("| --- | --- | --- | --- | --- |")
        for name, write in WAYS.items():
            print(f"| {name} | {' | '.join(_measured(kube, pid, write, wanted.writes))} |", flush=True)
    return 0


def _measured(kube: Kube, pid: int, write: Callable[[Kube, Json, Json], tuple[Json, int]], count: int) -> list[str]:
    obj = _created(kube)
    for number in range(20):
        obj, _ = write(kube, obj, _status(number))
    took, sizes, served_s, own_s = [], [], _cpu_s(pid), time.process_time()
    for number in range(count):
        began_s = time.perf_counter()
        obj, size = write(kube, obj, _status(number))
        took.append(time.perf_counter() - began_s)
        sizes.append(size)
    stored = kube.get(OPENSTACK_SERVER, PLACE, "s") or {}
    assert stored["status"] == _status(count - 1), "the writes had no effect"
    own, served = time.process_time() - own_s, _cpu_s(pid) - served_s
    kube.delete(OPENSTACK_SERVER, PLACE, "s")
    values = (statistics.median(took), own / count, served / count)
    return [f"{statistics.mean(sizes):.0f}", *(f"{1000 * value:.2f}" for value in values)]


def _created(kube: Kube) -> Json:
    spec = {
        "identityRef": {"name": "cloud", "cloudName": "sim"},
        "flavor": "m1.tiny",
        "image": {"filter": {"name": "tiny-image"}},
        "sshKeyName": "key",
        "ports": [{"network": {"id": "5d2d0b1e-6d6c-4a0e-9a4c-1f6b1a4c2f10"}}],
    }
    made = kube.create(
        OPENSTACK_SERVER,
        {
            "apiVersion": OPENSTACK_SERVER.api_version,
            "kind": OPENSTACK_SERVER.kind,
            "metadata": {"name": "s", "namespace": PLACE},
            "spec": spec,
        },
    )
    return kube.patch(OPENSTACK_SERVER, PLACE, made["metadata"]["name"], {"status": _status(-1)}, subresource="status")


def _status(number: int) -> Json:
    conditions = [
        {
            "type": type_,
            "status": "False",
            "reason": "InstanceNotReady",
            "message": f"server {SERVER_ID} is being built, {number if type_ == 'Ready' else 0}",
            "lastTransitionTime": "2030-01-01T00:00:00Z",
            "observedGeneration": 1,
        }
        for type_ in TYPES
    ]
    records = [{"kind": kind, "role": f"{kind}-0", "id": SERVER_ID} for kind in ("port", "server")]
    return {"ready": False, "instanceState": "BUILD", "conditions": conditions, "resources": {"records": records}}


def _merge(kube: Kube, obj: Json, status: Json) -> tuple[Json, int]:
    """Send the changed fields of the status, with the resourceVersion; lists are sent whole."""
    changed = {name: value for name, value in status.items() if (obj.get("status") or {}).get(name) != value}
    body = {"metadata": {"resourceVersion": obj["metadata"]["resourceVersion"]}, "status": changed}
    return kube.patch(OPENSTACK_SERVER, PLACE, "s", body, subresource="status"), len(json.dumps(body))


def _json(kube: Kube, obj: Json, status: Json) -> tuple[Json, int]:
    """Send the operations of the change, after a test of the resourceVersion."""
    new = {**copy.deepcopy(obj), "status": {**obj["status"], **status}}
    test = {"op": "test", "path": "/metadata/resourceVersion", "value": obj["metadata"]["resourceVersion"]}
    operations = [test, *jsonpatch.make_patch(obj, new)]
    answer = kube.json_patch(OPENSTACK_SERVER, PLACE, "s", operations, subresource="status")
    return answer, len(json.dumps(operations))


def _cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / 100


WAYS: Final = {"merge patch": _merge, "JSON patch": _json, "merge patch, again": _merge, "JSON patch, again": _json}


if __name__ == "__main__":
    sys.exit(main())
