"""Question after question about a cluster that is kept in memory.

Each question is answered in a forked child, which shares the loaded cluster with the shell: it may
change its copy, an interrupt ends it alone, and the next question finds the cluster as it was. What
every child needs is imported and made before, or each child would spend its time on it.

The answer of compact takes long and depends on the cluster alone. The child hands it to the shell,
which keeps it until the cluster is read again.
"""

from __future__ import annotations

import errno
import os
import shlex
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, NoReturn

import msgspec
import numpy.ma  # noqa: F401 - numpy.unique imports it
import typer
from rich.console import Console

import stowage.cli.ask.answers  # noqa: F401 - the commands import it late
from stowage.analysis.compact import CompactAnswer
from stowage.cli.ask import capacity, compact, explain, what_if
from stowage.cli.ask.flags import ClusterFlags
from stowage.cli.ask.source import ClusterContents, failures_reported, kept, read_contents
from stowage.cli.failures import print_error
from stowage.cli.plain_help import PlainCommand, PlainGroup
from stowage.cli.standard_streams import flush_standard_output
from stowage.cli.terminal import terminal

PROMPT = "stowage> "
_RELOAD = "reload"
_EXITS = frozenset({"exit", "quit"})
_PIPE_READ = 2**20

_questions = typer.Typer(cls=PlainGroup, add_completion=False, rich_markup_mode=None)
_questions.add_typer(explain.app, name="explain")
_COMMANDS: Mapping[str, Callable[..., None]] = {
    "what-if": what_if.what_if_command,
    "capacity": capacity.capacity_command,
    "compact": compact.compact_command,
}
for _name, _command in _COMMANDS.items():
    _questions.command(_name, cls=PlainCommand)(_command)
_ASK = typer.main.get_command(_questions)
_HINT = "ask: explain, what-if, capacity, compact; reload; help; exit"
_WORDS = frozenset({"explain", *_COMMANDS, "--help", "-h"})


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
            contents = _reloaded(flags, console) or contents
        elif line:
            answer_line(line, contents, console)


def _loaded(flags: ClusterFlags, console: Console) -> ClusterContents:
    with failures_reported(console):
        contents = read_contents(flags, console)
        contents.load(console, {"default-scheduler"})
    counts = contents.objects.counts()
    text = ", ".join(f"{counts.get(kind, 0)} {kind.lower()}s" for kind in ("Node", "Pod"))
    console.print(f"{text}; {_HINT}")
    return contents


def _reloaded(flags: ClusterFlags, console: Console) -> ClusterContents | None:
    """The cluster as it is now; None if it cannot be read, or an interrupt ends the reading."""
    try:
        return _loaded(flags, console)
    except typer.Exit:
        pass  # the reason is printed
    except KeyboardInterrupt:
        console.print()
    console.print("the cluster is not read again; answers are about the one that was read before")
    return None


def answer_line(line: str, contents: ClusterContents, console: Console) -> None:
    """Answer one line in a child process; the answer of compact is kept in `contents`."""
    try:
        arguments = shlex.split(line)
    except ValueError as error:
        print_error(console, error)
        return
    if arguments[:1] == ["help"]:
        arguments = [*arguments[1:], "--help"]
    if not _WORDS.intersection(arguments[:1]):
        print_error(console, f"no question begins with {arguments[0]}; {_HINT}")
        return
    sys.stdout.flush()
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        _answer_and_exit(arguments, contents, writing)
    os.close(writing)
    found = _received(reading)
    if _ended(child) == 0 and found:
        contents.compacted = msgspec.msgpack.decode(found, type=CompactAnswer)


def _answer_and_exit(arguments: Sequence[str], contents: ClusterContents, writing: int) -> NoReturn:
    """Answer in this process, write a new answer of compact to a pipe, and end."""
    status = 1
    was_known = contents.compacted is not None
    try:
        status = _flushed(_status(arguments, contents))
        if not was_known and contents.compacted is not None:
            with open(writing, "wb") as pipe:
                pipe.write(msgspec.msgpack.encode(contents.compacted))
    except KeyboardInterrupt:
        status = 130
    except Exception:
        traceback.print_exc()  # as in `_status`
        status = 1
    finally:
        os._exit(status)


def _received(reading: int) -> bytes:
    """What a child writes to a pipe until it ends; an interrupt ends the child, too."""
    parts: list[bytes] = []
    try:
        while True:
            with suppress(KeyboardInterrupt):
                part = os.read(reading, _PIPE_READ)
                if not part:
                    return b"".join(parts)
                parts.append(part)
    finally:
        os.close(reading)


def _ended(child: int) -> int:
    """Wait for a child; its exit status."""
    while True:
        with suppress(KeyboardInterrupt):  # the child gets the interrupt as well, and ends
            return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


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
    return 0


def _flushed(status: int) -> int:
    """Write what is buffered, and say why it cannot be written, unless the reader has enough."""
    lost = flush_standard_output()
    with suppress(OSError):
        if lost is not None and not status and lost.errno != errno.EPIPE:
            print_error(terminal(stderr=True), lost)
        sys.stderr.flush()
    return status or int(lost is not None)


def _code(code: Any) -> int:
    return code if isinstance(code, int) else 1
