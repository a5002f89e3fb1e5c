"""``capo run``: the manager process, with the flags of the Go provider's ``/manager``."""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import sys
import threading
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from capo import logs, settings
from capo.version import VERSION

if TYPE_CHECKING:
    from capo.engine.manager import Factory
    from capo.settings import Settings
    from capo.webhooks.supervisor import Webhooks

log = logging.getLogger(__name__)

WRONG_USE: Final = 2
ENDING_S: Final = 0.5
"""How long threads without further work may take to end."""


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command; ``settings.py`` parses its flags, as Go programs do."""
    # No argument begins with this prefix, so that every flag reaches settings.py unchanged.
    parser = subparsers.add_parser("run", help="run the controllers", prefix_chars="\0", add_help=False)
    parser.add_argument("arguments", nargs=argparse.REMAINDER)
    parser.set_defaults(run=lambda parsed: main(parsed.arguments))


def main(arguments: Sequence[str]) -> int:
    """Run the manager until it is stopped; return the exit status."""
    try:
        wanted = settings.read(arguments)
    except settings.SettingsError as error:
        print(f"capo run: {error}", file=sys.stderr)
        return WRONG_USE
    except settings.HelpWanted as help_text:
        print(help_text)
        return 0
    except settings.VersionWanted:
        print(f"capo {VERSION}")
        return 0
    logs.set_up(verbosity_level=wanted.verbosity, layout=wanted.logging_format)
    with _webhooks(wanted) as webhooks:
        status = _run(wanted, webhooks)
    return _ended(status)


def _webhooks(wanted: Settings) -> Webhooks:
    """Return the webhook server, which needs only the flags and starts before the other imports."""
    from capo.webhooks.server import Options
    from capo.webhooks.supervisor import Webhooks

    options = Options(
        wanted.webhook_cert_dir,
        wanted.tls_min_version,
        wanted.tls_cipher_suites,
        verbosity=wanted.verbosity,
        layout=wanted.logging_format,
    )
    return Webhooks(options, wanted.webhook_host, wanted.webhook_port)


def _run(wanted: Settings, webhooks: Webhooks) -> int:
    # Heavy imports come after the flags were validated.
    from capo.engine import manager
    from capo.kube import config
    from capo.kube.client import Kube
    from capo.kube.errors import KubeError
    from controllers import all_controllers

    log.info("Starting", extra={"version": VERSION})
    for flag in settings.given_without_effect(wanted):
        log.info("Flag is accepted but has no effect", extra={"flag": flag})
    try:
        connection = config.find(kubeconfig=wanted.kubeconfig, context=wanted.kube_context)
        log.info("API server", extra={"server": connection.server, "proxy": getattr(connection.proxy, "url", "none")})
        kube = Kube(connection)
        return asyncio.run(_managed(wanted, kube, all_controllers, webhooks))
    except (KubeError, manager.StartError) as error:
        log.error("Cannot start", extra={"err": str(error)})
        return 1


async def _managed(wanted: Settings, kube: Any, factory: Factory, webhooks: Webhooks) -> int:
    from capo.engine import health, manager

    checks = health.Health()
    checks.add("webhook", webhooks.fault)
    return await manager.Manager(wanted, kube, factory, health=checks).run()


def _ended(status: int) -> int:
    """Return the status, or end the process with it if a hanging thread would delay the interpreter's exit."""
    ends_s = time.monotonic() + ENDING_S
    others = [t for t in threading.enumerate() if not t.daemon and t is not threading.main_thread()]
    for thread in others:
        thread.join(max(0.0, ends_s - time.monotonic()))
    if hanging := [thread.name for thread in others if thread.is_alive()]:
        log.warning("Threads still hang at the end", extra={"threads": hanging})
        logging.shutdown()
        os._exit(status)
    return status
