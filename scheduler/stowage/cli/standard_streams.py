"""Standard input, output and error of a process that was started without them."""

from __future__ import annotations

import os
import sys


def open_standard_streams() -> None:
    """Open ``/dev/null`` for each missing standard stream, as Go's runtime does.

    Otherwise the next connection would get the descriptor of stderr, and log lines would be
    written into it.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
    sys.stdout = sys.stdout or open(1, "w", closefd=False)  # noqa: SIM115 - never closed
    sys.stderr = sys.stderr or open(2, "w", closefd=False)  # noqa: SIM115 - never closed


def flush_standard_output() -> OSError | None:
    """Write what is buffered: when the interpreter ends, it does not tell every failure.

    Returns:
        Why it cannot be written; then it is dropped, and so is what is written later.
    """
    if sys.stdout is None:
        return None
    try:
        sys.stdout.flush()
    except OSError as error:
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, 1)
        os.close(null)
        return error
    return None
