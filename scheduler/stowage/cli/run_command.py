"""The command ``stowage run``: its usage errors are log lines where its logs are JSON."""

from __future__ import annotations

from typing import Any

import typer
from typer.exceptions import TyperException

from stowage.cli.go_flags import GoFlagsCommand
from stowage.cli.run_flags import LoggingFormat

_FORMAT_FLAG = "--logging-format"


class RunCommand(GoFlagsCommand):
    """A command whose refused flags are logged as JSON unless stderr is a terminal."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the flags; exits with 2 after a logged refusal."""
        try:
            return super().parse_args(ctx, list(args))
        except TyperException as refusal:
            # Imported late: it is needed only to log.
            from stowage.cli import composition  # noqa: PLC0415

            log_failure = composition.failure_log(0, _logging_format(args))
            if log_failure is None:
                raise
            describe = getattr(refusal, "format_message", refusal.__str__)
            log_failure("cannot run", [describe()])
            raise typer.Exit(2) from refusal


def _logging_format(args: list[str]) -> LoggingFormat | None:
    """The format among flags that may not be parsed as a whole."""
    for format_ in LoggingFormat:
        if f"{_FORMAT_FLAG}={format_.value}" in args:
            return format_
        if [_FORMAT_FLAG, format_.value] in [args[i : i + 2] for i in range(len(args))]:
            return format_
    return None
