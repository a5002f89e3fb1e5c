"""``capo simulate``: an OpenStack in memory, for the plain ``openstack`` client and for the provider."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any


def add_parser(subparsers: Any) -> None:
    """Add the command to the parser of ``capo``."""
    parser = subparsers.add_parser("simulate", help="serve an OpenStack cloud that lives in memory")
    parser.add_argument("--port", type=int, default=0, help="port to serve on (default: a free one)")
    parser.add_argument(
        "--host", default="127.0.0.1", help="address to serve on (default: 127.0.0.1; passwords are public)"
    )
    parser.add_argument("--clouds", type=Path, required=True, metavar="FILE", help="where to write clouds.yaml")
    parser.add_argument("--config", type=Path, metavar="FILE", help="YAML: cloud, timings, quotas, faults")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Serve until SIGINT or SIGTERM, and return the exit status."""
    import asyncio

    from capo.simulator import configuration, services
    from capo.simulator.faults import BadFaultError

    try:
        document = configuration.read(arguments.config)
        cloud = services.new_cloud(configuration.make_cloud(document))
        configuration.apply(document, cloud)
    except (configuration.BadConfigurationError, BadFaultError, OSError) as error:
        print(f"capo simulate: {error}", file=sys.stderr)
        return 2
    try:
        asyncio.run(_serve(cloud, arguments))
    except OSError as error:
        print(f"capo simulate: port {arguments.port}: {error.strerror}", file=sys.stderr)
        return 1
    return 0


async def _serve(cloud: Any, arguments: argparse.Namespace) -> None:
    import asyncio
    import signal

    from capo.simulator import simulator
    from capo.simulator.clouds import write_clouds_yaml

    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stopped.set)
    runner, url = await simulator.serve(cloud, arguments.port, arguments.host)
    write_clouds_yaml(cloud, url, arguments.clouds)
    print(url, flush=True)
    print(f"try: OS_CLIENT_CONFIG_FILE={arguments.clouds} OS_CLOUD=sim openstack network list", flush=True)
    await stopped.wait()
    await runner.cleanup()
