"""Threads that never delay the end of the process."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


async def run(function: Callable[[], T], *, name: str = "helper") -> T:
    """Return the result of a blocking function, run in a daemon thread of its own."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()

    def settle(result: T | None, error: BaseException | None) -> None:
        if future.done():
            return
        if error is not None:
            future.set_exception(error)
        else:
            future.set_result(result)  # type: ignore[arg-type]

    def work() -> None:
        result: T | None = None
        fault: BaseException | None = None
        try:
            result = function()
        except BaseException as error:  # noqa: BLE001 - it is raised where the result is awaited
            fault = error
        try:
            loop.call_soon_threadsafe(settle, result, fault)
        except RuntimeError:
            return  # the loop is closed: the result is not awaited any more

    threading.Thread(target=work, name=name, daemon=True).start()
    return await future
