"""stdin, stdout and stderr, also where a process was started without them."""

from __future__ import annotations

import os
import sys


def open_standard_streams() -> None:
    """Give a process that was started without stdin, stdout or stderr empty ones.

    Otherwise the next connection gets one of their numbers, and is written into by whoever means
    stderr. Go's runtime does the same.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
    sys.stdout = sys.stdout or open(1, "w", closefd=False)  # noqa: SIM115 - for ever
    sys.stderr = sys.stderr or open(2, "w", closefd=False)  # noqa: SIM115 - for ever
