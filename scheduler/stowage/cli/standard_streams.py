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
