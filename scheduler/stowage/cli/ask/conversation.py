"""Question after question about a cluster that is kept in memory.

Each question is answered in a forked child, which shares the loaded cluster with the shell: it may
change its copy, an interrupt ends it alone, and the next question finds the cluster as it was. What
every child needs is imported and made before, or each child would spend its time on it.
"""

from __future__ import annotations

import os
import shlex
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy.ma  # noqa: F401 - numpy.unique imports it
import typer
from rich.console import Console

import stowage.cli.ask.answers  # noqa: F401 - the commands import it late
from stowage.cli.ask import capacity, compact, explain, what_if
from stowage.cli.ask.flags import ClusterFlags
from stowage.cli.ask.source import ClusterContents, failures_reported, kept, read_contents
from stowage.cli.failures import print_error
from stowage.cli.plain_help import PlainGroup
from stowage.cli.terminal import terminal

PROMPT = "stowage> "
_RELOAD = "reload"
_EXITS = frozenset({"exit", "quit"})

_questions = typer.Typer(cls=PlainGroup, add_completion=False, rich_markup_mode=None)
_questions.add_typer(explain.app, name="explain")
_COMMANDS: Mapping[str, Callable[..., None]] = {
    "what-if": what_if.what_if_command,
    "capacity": capacity.capacity_command,
    "compact": compact.compact_command,
}
for _name, _command in _COMMANDS.items():
    _questions.command(_name)(_command)
_ASK = typer.main.get_command(_questions)


def converse(flags: ClusterFlags) -> None:
    """Read the cluster, then answer the lines of standard input until it ends."""
    console = terminal(stderr=True)
    contents = _loaded(flags, console)
    with suppress(ImportError):
        import readline  # noqa: F401, PLC0415 - editing and history of input()
    while True:
        try:
            line = input(PROMPT if sys.stdin.isatty() else "").strip()
        except EOFError:
            return
        except KeyboardInterrupt:
            console.print()
            continue
        if line in _EXITS:
            return
        if line == _RELOAD:
            contents = _loaded(flags, console)
        elif line:
            _answer(line, contents, console)


def _loaded(flags: ClusterFlags, console: Console) -> ClusterContents:
    with failures_reported(console):
        contents = read_contents(flags, console)
        contents.load(console, {"default-scheduler"})
    counts = contents.objects.counts()
    text = ", ".join(f"{counts.get(kind, 0)} {kind.lower()}s" for kind in ("Node", "Pod"))
    console.print(f"{text}; ask: explain, what-if, capacity, compact; reload; exit")
    return contents


def _answer(line: str, contents: ClusterContents, console: Console) -> None:
    """Answer one line in a child process."""
    try:
        arguments = shlex.split(line)
    except ValueError as error:
        print_error(console, error)
        return
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        os._exit(_status(arguments, contents))
    while True:
        try:
            os.waitpid(child, 0)
        except KeyboardInterrupt:
            continue  # the child gets the interrupt as well, and ends
        return


def _status(arguments: Sequence[str], contents: ClusterContents) -> int:
    """Answer in this process, which ends afterwards; the exit status."""
    try:
        with kept(contents):
            _ASK(args=list(arguments), prog_name="")
    except SystemExit as end:
        return _code(end.code)
    except KeyboardInterrupt:
        return 130
    except Exception:
        # The process ends without the interpreter's own report.
        traceback.print_exc()
        return 1
    finally:
        with suppress(OSError):
            sys.stdout.flush()
            sys.stderr.flush()
    return 0


def _code(code: Any) -> int:
    return code if isinstance(code, int) else 1
