"""Runs ``stowage`` with a wall clock that can jump: ``python -m <this module> FILE run ...``.

FILE holds the offset to the machine's wall clock in seconds. It is read at each use of the clock
and may be missing. The monotonic clock stays as it is, since it never jumps in reality.
"""

from __future__ import annotations

import sys
import time
from datetime import UTC, datetime, timedelta, tzinfo
from pathlib import Path
from typing import Self

from stowage.operator import clock


def offset_s(file: Path) -> float:
    """The offset in a clock file; 0 if the file is missing or incomplete."""
    try:
        return float(file.read_text(encoding="ascii"))
    except (OSError, ValueError):
        return 0.0


def let_clock_jump(file: Path) -> None:
    """Add the offset in the file to the wall clock of this process."""
    real_time, real_time_ns = time.time, time.time_ns

    class JumpingDatetime(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> Self:
            jumped = datetime.now(tz or UTC) + timedelta(seconds=offset_s(file))
            return cls.fromtimestamp(jumped.timestamp(), tz)

    time.time = lambda: real_time() + offset_s(file)
    time.time_ns = lambda: real_time_ns() + int(offset_s(file) * 1e9)
    vars(clock)["datetime"] = JumpingDatetime


def main() -> None:
    """Run ``stowage`` with the rest of the command line."""
    from stowage.cli.main import app  # noqa: PLC0415 - after the clock is patched

    file, arguments = Path(sys.argv[1]), sys.argv[2:]
    let_clock_jump(file)
    app(arguments, prog_name="stowage")


if __name__ == "__main__":
    main()
