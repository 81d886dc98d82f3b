"""The program ``stowage``: imports the command line without garbage collection, and calls it."""

from __future__ import annotations

from stowage.cli.imports import garbage_collection_paused

_INTERRUPTED = 128 + 2
"""The exit status of a shell's command that SIGINT ends."""


def main(program: str | None = None) -> None:
    """Run the command of the process's arguments, and exit.

    Args:
        program: What help texts call the program; None for the file that was called.
    """
    try:
        with garbage_collection_paused():
            from stowage.cli.main import app  # noqa: PLC0415

        app(prog_name=program)
    except KeyboardInterrupt:
        # During an import; the commands handle it themselves.
        raise SystemExit(_INTERRUPTED) from None
