"""The program ``stowage``: imports the command line without garbage collection, and calls it."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from stowage.cli.imports import garbage_collection_paused

_INTERRUPTED = 128 + 2
"""The exit status of a shell's command that SIGINT ends."""

_TERMINATED = 128 + 15
"""The exit status of a shell's command that SIGTERM ends."""


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

        app(prog_name=program)
    except KeyboardInterrupt:
        # During an import; the commands handle it themselves.
        raise SystemExit(_INTERRUPTED) from None


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
