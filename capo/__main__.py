"""The entry point of ``capo`` and of ``python -m capo``."""

from __future__ import annotations

import sys

from capo import cli


def main(argv: list[str] | None = None) -> int:
    """Run a command and return its exit status.

    Args:
        argv: what comes after the program's name; None takes it from the command line.
    """
    arguments = sys.argv[1:] if argv is None else argv
    parsed = cli.build_parser(arguments).parse_args(arguments)
    status: int = parsed.run(parsed)
    return status


if __name__ == "__main__":
    sys.exit(main())
