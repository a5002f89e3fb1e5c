"""Arguments that operators' commands share, and how such a command is added; imports nothing heavy."""

from __future__ import annotations

import argparse
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from capo import flag_values
from capo.cli import completers

if TYPE_CHECKING:
    from capo.openstack.cloud import Cloud
    from capo.operations.access import CloudAccess, Management
    from capo.operations.console import Console
    from capo.settings import Settings

OUTPUTS: Final = ("json", "wide", "yaml")
_SETTINGS: Final = ("ca_certs", "openstack_denied_networks", "openstack_max_response_bytes")


def add_command(
    subparsers: Any, name: str, run: Callable[[argparse.Namespace], int], *, summary: str, examples: Sequence[str]
) -> argparse.ArgumentParser:
    """Add an operators' command, whose failures are one sentence, and return its parser.

    Args:
        summary: one sentence for the list of commands and the head of its help.
        examples: pairs of a comment and a command line, as ``# comment`` and ``capo ...``.
    """
    description = f"{summary[:1].upper()}{summary[1:]}."
    parser = add_part(subparsers, name, summary=summary, description=description, examples=examples)

    def guarded(arguments: argparse.Namespace) -> int:
        from capo.operations import console

        return console.run(name, run, arguments)

    parser.set_defaults(run=guarded)
    return parser


def add_part(
    parts: Any, name: str, *, summary: str, description: str, examples: Sequence[str]
) -> argparse.ArgumentParser:
    """Add a parser whose help has examples; see :func:`add_command`."""
    lines = "\n".join(f"  {line}" for line in examples)
    parser: argparse.ArgumentParser = parts.add_parser(
        name,
        help=summary,
        description=textwrap.fill(description, 80),
        epilog=f"examples:\n{lines}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    return parser


def add_management(parser: argparse.ArgumentParser, *, is_repeatable: bool = False) -> None:
    """Add the arguments that name a management cluster.

    Args:
        is_repeatable: ``--kubeconfig`` may be given several times; it is a list then, empty without one.
    """
    text = "path of a kubeconfig (default: KUBECONFIG, or ~/.kube/config)"
    if is_repeatable:
        parser.add_argument(
            "--kubeconfig", action="append", default=[], metavar="FILE", help=f"{text}; may be repeated"
        )
    else:
        parser.add_argument("--kubeconfig", metavar="FILE", help=text)
    context = parser.add_argument(
        "--context", metavar="NAME", help="context of the kubeconfig (default: its current one)"
    )
    completers.attach(context, completers.contexts)
    add_requests(parser)


def add_requests(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of requests to clouds, which are flags of the manager."""
    parser.add_argument(
        "--ca-certs", default="", metavar="FILE", help="certificates to trust for clouds without a bundle of their own"
    )
    parser.add_argument(
        "--openstack-denied-networks",
        type=_value_of(flag_values.networks),
        metavar="CIDRS",
        help="networks that no end point of a cloud may be in, empty: none "
        "(default: link-local addresses, metadata services and loopback)",
    )
    parser.add_argument(
        "--openstack-max-response-size",
        type=_value_of(flag_values.response_size),
        dest="openstack_max_response_bytes",
        metavar="SIZE",
        help="maximum size of an answer of a cloud (default: 32Mi)",
    )


def _value_of(parse: Callable[[str], Any]) -> Callable[[str], Any]:
    """Return the type of an argument whose value a flag of the manager has, too."""

    def value(text: str) -> Any:
        try:
            return parse(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(f"{text!r} is not {error}") from None

    return value


def settings_of(arguments: argparse.Namespace) -> Settings:
    """Return the settings of requests to clouds that the arguments choose."""
    from capo.operations import access

    given = {name: getattr(arguments, name) for name in _SETTINGS}
    return replace(access.SETTINGS, **{name: value for name, value in given.items() if value is not None})


def add_namespace(parser: argparse.ArgumentParser, *, has_all: bool = True) -> None:
    """Add ``--namespace``, and ``--all-namespaces``."""
    namespace = parser.add_argument(
        "-n", "--namespace", metavar="NAME", help="namespace of the objects (default: that of the context)"
    )
    completers.attach(namespace, completers.namespaces)
    if has_all:
        parser.add_argument("-A", "--all-namespaces", action="store_true", help="objects of all namespaces")


def add_output(parser: argparse.ArgumentParser, outputs: Sequence[str] = OUTPUTS) -> None:
    """Add ``--output``."""
    parser.add_argument(
        "-o", "--output", choices=outputs, default="", metavar="|".join(outputs), help="another output than text"
    )


def add_project(parser: argparse.ArgumentParser) -> None:
    """Add ``--cloud`` and ``--clouds``, which name projects without an object."""
    cloud = parser.add_argument(
        "--cloud",
        action="append",
        default=[],
        metavar="NAME",
        help="entry of clouds.yaml: read its project, not those of objects; may be repeated",
    )
    completers.attach(cloud, completers.clouds)
    parser.add_argument(
        "--clouds", metavar="FILE", help="path of clouds.yaml (default: as the openstack client finds it)"
    )


def named_clouds(arguments: argparse.Namespace, clouds: CloudAccess) -> list[Cloud]:
    """Return the clouds that ``--cloud`` names; sends no request.

    Raises:
        OperatorError: there is no clouds.yaml, or it cannot be read.
        IdentityError: an entry cannot be used.
    """
    from capo.operations import access

    if not arguments.cloud:
        return []
    path = access.clouds_file(arguments.clouds)
    return [clouds.open(access.credentials_in(path, each)) for each in arguments.cloud]


def console_of(arguments: argparse.Namespace) -> Console:
    """Return the output that the arguments choose."""
    from capo.operations.console import Console

    return Console(getattr(arguments, "output", ""))


def management_of(arguments: argparse.Namespace) -> Management:
    """Return the management cluster that the arguments name, read-only; sends no request.

    Raises:
        OperatorError: there is none, or it cannot be used.
    """
    from capo.operations import access

    clouds = access.CloudAccess(settings_of(arguments))
    return access.connect(arguments.kubeconfig, arguments.context, clouds=clouds)


def namespace_of(arguments: argparse.Namespace, management: Management) -> str | None:
    """Return the namespace that the arguments choose, None for all of them."""
    if getattr(arguments, "all_namespaces", False):
        return None
    return arguments.namespace or management.namespace
