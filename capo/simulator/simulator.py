"""A running simulator: in this process with its own thread, or in the foreground for the command line."""

from __future__ import annotations

import asyncio
import socket
import tempfile
import threading
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from types import TracebackType
from typing import TypeVar

from aiohttp import web

from capo.simulator import services
from capo.simulator.cloud import Cloud
from capo.simulator.clouds import write_clouds_yaml
from capo.simulator.server import Server

T = TypeVar("T")
HOST = "127.0.0.1"
START_LIMIT_S = 120.0


class Simulator:
    """A simulator that serves in a thread; use it as a context manager.

    Attributes:
        url: Root of the server, such as `http://127.0.0.1:4711`.
        clouds_yaml: A file with the clouds `sim`, `sim-appcred` and `sim-admin`.
        cloud: The state; read it freely, change it through `call`.
    """

    def __init__(self, cloud: Cloud, *, port: int = 0) -> None:
        self.cloud = cloud
        self.url = ""
        self.clouds_yaml = Path()
        self._port = port
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._serve, name="openstack-simulator", daemon=True)
        self._ready: Future[str] = Future()
        self._folder = tempfile.TemporaryDirectory(prefix="capo-simulator-")

    @classmethod
    def start(cls, cloud: Cloud | None = None, *, port: int = 0) -> Simulator:
        """Start a simulator with a seeded cloud; a given unseeded cloud is seeded."""
        simulator = cls(services.new_cloud(cloud), port=port)
        simulator._thread.start()
        try:
            simulator.url = simulator._ready.result(START_LIMIT_S)
        except OSError:
            simulator._thread.join()
            simulator._folder.cleanup()
            raise
        simulator.clouds_yaml = Path(simulator._folder.name) / "clouds.yaml"
        write_clouds_yaml(simulator.cloud, simulator.url, simulator.clouds_yaml)
        return simulator

    def call(self, function: Callable[[], T]) -> T:
        """Run a function in the simulator's thread and return its result."""

        async def run() -> T:
            return function()

        return asyncio.run_coroutine_threadsafe(run(), self._loop).result()

    def stop(self) -> None:
        """Stop serving."""
        if self._loop.is_closed():
            return
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._folder.cleanup()

    def __enter__(self) -> Simulator:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _serve(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            runner, url = self._loop.run_until_complete(serve(self.cloud, self._port))
        except OSError as error:
            self._ready.set_exception(error)
            self._loop.close()
            return
        # Not before the loop runs until it is stopped: a stop in its first run would end that alone.
        self._loop.call_soon(self._ready.set_result, url)
        self._loop.run_forever()
        self._loop.run_until_complete(runner.cleanup())
        self._loop.close()


async def serve(cloud: Cloud, port: int, host: str = HOST) -> tuple[web.AppRunner, str]:
    """Serve the cloud and return the runner and the URL; port 0 chooses a free one."""
    cloud.attach(asyncio.get_running_loop())
    application = Server(cloud, services.SERVICES).application()
    runner = web.AppRunner(application, access_log=None, shutdown_timeout=0.5)
    await runner.setup()
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
    except OSError:
        listener.close()
        await runner.cleanup()
        raise
    await web.SockSite(runner, listener).start()
    url = f"http://{host}:{listener.getsockname()[1]}"
    cloud.base_url = url
    return runner, url
