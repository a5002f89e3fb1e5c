"""The entry point of ``capo`` and of ``python -m capo``."""

from __future__ import annotations

import sys

from capo import cli
from capo.cli import completion


def main(argv: list[str] | None = None) -> int:
    """Run a command and return its exit status.

    Args:
        argv: the arguments after the program's name; None: those of the command line.
    """
    arguments = sys.argv[1:] if argv is None else argv
    parser = cli.build_parser(arguments, cli.program(sys.argv[0]))
    completion.answer_shell(parser)
    parsed = parser.parse_args(arguments)
    try:
        status: int = parsed.run(parsed)
    except ModuleNotFoundError as error:
        text = cli.missing_extra(error)
        if text is None:
            raise
        sys.stderr.write(f"capo {arguments[0]}: {text}\n")
        return 1
    return status


if __name__ == "__main__":
    sys.exit(main())
