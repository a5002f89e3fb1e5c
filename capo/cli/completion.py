"""``capo completion``: shell completion of commands, arguments and names of objects, for shells and for kubectl.

``argcomplete`` reads the parsers of the commands; names come from :mod:`capo.cli.completers`.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from typing import IO, Any, Final

SHELLS: Final = ("bash", "zsh", "fish")
_NO_SPACE, _NO_FILES = 2, 4
"""Directives of the shell completions of kubectl, which is written with cobra."""
_DESCRIPTION: Final = """\
Prints a script that completes commands, arguments, and names of clusters, namespaces, contexts and clouds.
"""
_EPILOG: Final = """\
examples:
  # bash, for this session and for each one
  source <(capo completion bash)
  capo completion bash >~/.local/share/bash-completion/completions/capo
  # zsh, in a folder of $fpath
  capo completion zsh >~/.zfunc/_capo
  # fish
  capo completion fish >~/.config/fish/completions/capo.fish
  # `kubectl capo`: nothing to do; kubectl's own completion calls kubectl_complete-capo
"""


def add_parser(subparsers: Any) -> None:
    """Add the command to the parser of ``capo``."""
    parser = subparsers.add_parser(
        "completion",
        help="print a script for the completion of a shell",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("shell", choices=SHELLS, help="the shell")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Print the script; return the exit status."""
    import argcomplete

    print(argcomplete.shellcode(["capo"], shell=arguments.shell), end="")
    return 0


def answer_shell(parser: argparse.ArgumentParser) -> None:
    """Print completions and end the process, if a shell's script has called it."""
    if "_ARGCOMPLETE" in os.environ:
        import argcomplete

        argcomplete.autocomplete(parser)


def kubectl() -> None:
    """Answer kubectl, which calls ``kubectl_complete-capo`` with the words after ``capo``; end the process.

    Source: kubectl, "Extend kubectl with plugins", "Shell completion for plugins".
    """
    answer_kubectl(sys.argv[1:], sys.stdout)
    # A thread may still wait for an API server that does not answer.
    os._exit(0)


def answer_kubectl(words: Sequence[str], out: IO[str]) -> None:
    """Print the completions of the last word, and the directive for kubectl."""
    from argcomplete.finders import CompletionFinder

    from capo import cli

    *before, word = words or [""]
    finder = CompletionFinder(cli.build_parser([]), append_space=False)
    found = [each.rstrip() for each in finder._get_completions(["capo", *before], word, "", None)]
    directive = _NO_FILES | (_NO_SPACE if any(each.endswith("/") for each in found) else 0)
    out.write("".join(f"{each}\n" for each in found) + f":{directive}\n")
    out.flush()
