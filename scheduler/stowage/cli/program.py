"""The program ``stowage``: imports the command line without garbage collection, and calls it."""

from __future__ import annotations

import errno
import os
import signal
from pathlib import Path

from stowage.cli.imports import garbage_collection_paused
from stowage.cli.standard_streams import flush_standard_output

_INTERRUPTED = 128 + 2
"""The exit status of a shell's command that SIGINT ends."""

_TERMINATED = 128 + 15
"""The exit status of a shell's command that SIGTERM ends."""

_CANNOT_WRITE = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EPIPE})
"""Why standard output takes no more: the disk is full, or the reader, such as head, has enough."""


def main(program: str | None = None) -> None:
    """Run the command of the process's arguments, and exit.

    Args:
        program: What help texts call the program; None for the file that was called.
    """
    _obey_sigterm()
    _find_home()
    try:
        with garbage_collection_paused():
            from stowage.cli.main import app  # noqa: PLC0415

        try:
            app(prog_name=program)
        except SystemExit as ended:
            lost = flush_standard_output()
            if lost is not None and not ended.code:
                raise SystemExit(_cannot_write(lost)) from lost
            raise
    except KeyboardInterrupt:
        # During an import; the commands handle it themselves.
        raise SystemExit(_INTERRUPTED) from None
    except OSError as error:
        if error.errno not in _CANNOT_WRITE:
            raise
        flush_standard_output()
        raise SystemExit(_cannot_write(error)) from error


def _cannot_write(error: OSError) -> str | int:
    """What ends a command whose answer cannot be written: silence, if its reader has enough."""
    return 1 if error.errno == errno.EPIPE else f"error: {error}"


def _obey_sigterm() -> None:
    """Let SIGTERM end the first process of a container, until a command has its own handler.

    The kernel drops a signal to process 1 that has no handler. A scheduler that is told to end
    while it starts would go on, take the Lease, and hold it when the kubelet kills it.
    """
    if os.getpid() == 1:
        signal.signal(signal.SIGTERM, lambda *_: os._exit(_TERMINATED))


def _find_home() -> None:
    """Give a user without a home folder the one that container runtimes give, the root.

    The Kubernetes client looks for a kubeconfig there when it is imported, and fails without one.
    """
    try:
        Path.home()
    except RuntimeError:
        os.environ["HOME"] = "/"
