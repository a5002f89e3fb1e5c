"""Latency of the webhooks: `python -m tools.bench.webhooks`.

1. 50 admission requests a second over TLS, beside reconcilers that compute all the time: in the process of the manager
   and in a process of their own. The limit is 200 ms for 99 of 100.
2. One ConversionReview of 1,000 machines. The limit is one second.

The client is a separate process and keeps its connections, as the API server does.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import multiprocessing
import socket
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import aiohttp

from capo import listening
from capo.local import pki
from capo.webhooks import server, supervisor
from capo.webhooks.application import CONVERT, admission_path

RATE: Final = 50
P99_LIMIT_S: Final = 0.2
CONVERSION_LIMIT_S: Final = 1.0
OBJECTS: Final = 1000
GROUP: Final = "infrastructure.cluster.x-k8s.io"
MACHINE: Final[dict[str, Any]] = {
    "flavor": {"filter": {"name": "m1.medium"}},
    "image": {"filter": {"name": "ubuntu-2404-kube-v1.34.1"}},
    "sshKeyName": "admin",
    "identityRef": {"type": "Secret", "name": "cloud-config", "cloudName": "openstack"},
    "rootVolume": {"sizeGiB": 40, "type": "fast", "availabilityZone": {"from": "Name", "name": "az-1"}},
    "ports": [
        {
            "network": {"filter": {"name": f"net-{number}", "tags": ["a", "b"]}},
            "fixedIPs": [{"subnet": {"filter": {"name": f"sub-{number}"}}}],
            "allowedAddressPairs": [{"ipAddress": "10.244.0.0/16"}],
            "enablePortSecurity": True,
        }
        for number in range(3)
    ],
    "tags": ["kube", "worker"],
    "serverMetadata": [{"key": f"key-{number}", "value": "value"} for number in range(5)],
}
STATUS: Final = {
    "initialization": {"provisioned": True},
    "instanceID": "0f3d7e64-5d5c-4a8e-8d3f-6f8d3c6d9a11",
    "addresses": [{"type": "InternalIP", "address": "10.6.0.10"}, {"type": "InternalDNS", "address": "node-1"}],
    "conditions": [
        {
            "type": name,
            "status": "True",
            "reason": "Ready",
            "message": "",
            "lastTransitionTime": "2026-01-02T03:04:05Z",
            "observedGeneration": 1,
        }
        for name in ("Ready", "InstanceReady", "OpenStackAuthenticationSucceeded")
    ],
}


def machine(number: int, **change: Any) -> dict[str, Any]:
    """Return a machine of usual size."""
    metadata = {"name": f"node-{number}", "namespace": "default", "uid": str(number), "generation": 1}
    return {
        "apiVersion": f"{GROUP}/v1beta2",
        "kind": "OpenStackMachine",
        "metadata": metadata,
        "spec": MACHINE | change,
        "status": STATUS,
    }


def update() -> bytes:
    """Return the review of an update that changes an immutable field."""
    request = {
        "uid": "a",
        "operation": "UPDATE",
        "name": "node-1",
        "oldObject": machine(1),
        "object": machine(1, sshKeyName="other"),
    }
    return json.dumps({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}).encode()


def conversion() -> bytes:
    """Return the review of a long list."""
    request = {
        "uid": "a",
        "desiredAPIVersion": f"{GROUP}/v1beta1",
        "objects": [machine(number) for number in range(OBJECTS)],
    }
    return json.dumps(
        {"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview", "request": request}
    ).encode()


async def ask(url: str, seconds: float) -> list[float]:
    """Send requests at the rate, whether or not earlier ones are answered; return how long each took."""
    body, times = update(), list[float]()

    async def one(session: aiohttp.ClientSession) -> None:
        began = time.perf_counter()
        async with session.post(url + admission_path("OpenStackMachine"), data=body, ssl=False) as answer:
            assert (await answer.json())["response"]["allowed"] is False
        times.append(time.perf_counter() - began)

    async with aiohttp.ClientSession() as session, asyncio.TaskGroup() as group:
        began = time.perf_counter()
        for number in range(int(RATE * seconds)):
            await asyncio.sleep(max(0.0, began + number / RATE - time.perf_counter()))
            group.create_task(one(session))
    return times


async def convert(url: str, rounds: int) -> list[float]:
    """Return the duration of each conversion of the long list."""
    body, times = conversion(), list[float]()
    async with aiohttp.ClientSession() as session:
        for _ in range(rounds):
            began = time.perf_counter()
            async with session.post(url + CONVERT, data=body, ssl=False) as answer:
                text = await answer.read()
            times.append(time.perf_counter() - began)
            assert len(json.loads(text)["response"]["convertedObjects"]) == OBJECTS
    return times


def client(what: str, url: str, amount: float, results: Any) -> None:
    """Run a client; the target of a separate process."""
    work = ask(url, amount) if what == "ask" else convert(url, int(amount))
    results.put(asyncio.run(work))


def measured(what: str, url: str, amount: float) -> list[float]:
    """Return the times that a client in a process of its own measured."""
    context = multiprocessing.get_context("spawn")
    results = context.Queue()
    process = context.Process(target=client, args=(what, url, amount, results))
    process.start()
    times: list[float] = results.get(timeout=amount + 120)
    process.join()
    return times


@contextlib.contextmanager
def busy(threads: int) -> Iterator[None]:
    """Compute in threads of this process, like busy reconcilers."""
    ended = threading.Event()

    def compute() -> None:
        while not ended.is_set():
            json.loads(json.dumps(machine(1)))

    workers = [threading.Thread(target=compute, daemon=True) for _ in range(threads)]
    for worker in workers:
        worker.start()
    try:
        yield
    finally:
        ended.set()
        for worker in workers:
            worker.join()


@contextlib.contextmanager
def in_this_process(folder: Path) -> Iterator[str]:
    """Serve from a thread of this process."""
    listener = listening.listener("127.0.0.1", 0)
    listener.setblocking(False)
    loop, stopped = asyncio.new_event_loop(), asyncio.Event()
    work = server.serve(server.Options(str(folder)), listener, stopped)
    thread = threading.Thread(target=loop.run_until_complete, args=(work,), daemon=True)
    thread.start()
    try:
        yield _url(listener)
    finally:
        loop.call_soon_threadsafe(stopped.set)
        thread.join()


@contextlib.contextmanager
def in_a_process(folder: Path) -> Iterator[str]:
    """Serve as the manager does."""
    with supervisor.Webhooks(server.Options(str(folder)), "127.0.0.1") as webhooks:
        limit = time.monotonic() + 30
        while fault := webhooks.fault():
            assert time.monotonic() < limit, fault
            time.sleep(0.1)
        yield f"https://127.0.0.1:{webhooks.port}"


def _url(listener: socket.socket) -> str:
    return f"https://127.0.0.1:{listener.getsockname()[1]}"


def report(title: str, times: list[float], limit_s: float) -> bool:
    """Print the times; return whether 99 of 100 keep the limit."""
    percentiles = statistics.quantiles(times, n=100, method="inclusive")
    is_kept = percentiles[98] <= limit_s
    print(
        f"{title:<44} n={len(times):<5} p50={percentiles[49] * 1000:7.1f} ms  p99={percentiles[98] * 1000:7.1f} ms  "
        f"max={max(times) * 1000:7.1f} ms  {'ok' if is_kept else 'TOO SLOW'}"
    )
    return is_kept


def main() -> int:
    """Measure and print; return 0 if the variant that ships keeps its limits."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=20, help="of each measurement")
    parser.add_argument("--threads", type=int, nargs="+", default=[0, 1, 4], help="busy reconcilers")
    arguments = parser.parse_args()
    kept = []
    with tempfile.TemporaryDirectory() as folder:
        pki.create(Path(folder))
        for threads in arguments.threads:
            for title, serving in (("in one process", in_this_process), ("in a process of its own", in_a_process)):
                with serving(Path(folder) / "webhook") as url, busy(threads):
                    is_kept = report(
                        f"{title}, {threads} busy threads", measured("ask", url, arguments.seconds), P99_LIMIT_S
                    )
                    kept.append(is_kept or serving is in_this_process)
        with in_a_process(Path(folder) / "webhook") as url:
            kept.append(report(f"{OBJECTS} objects converted", measured("convert", url, 10), CONVERSION_LIMIT_S))
    return 0 if all(kept) else 1


if __name__ == "__main__":
    sys.exit(main())
