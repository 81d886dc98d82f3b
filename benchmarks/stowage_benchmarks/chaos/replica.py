"""``python -m`` this ``FILE run ...`` is ``stowage run ...`` with a clock on the wall that jumps.

The file says by how many seconds it differs from the machine's; it is read at each look, and may be
missing. The monotonic clock is left alone: no process can see that one jump, except by being
stopped.
"""

from __future__ import annotations

import sys
import time
from datetime import UTC, datetime, timedelta, tzinfo
from pathlib import Path
from typing import Self

from stowage.operator import clock


def offset_s(file: Path) -> float:
    """What a clock file says; 0 if there is none, or it is just being written."""
    try:
        return float(file.read_text(encoding="ascii"))
    except (OSError, ValueError):
        return 0.0


def let_clock_jump(file: Path) -> None:
    """Have the scheduler's wall clock differ from the machine's by what the file says."""
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
    from stowage.cli.main import app  # noqa: PLC0415 - with the clock as it is to be

    file, arguments = Path(sys.argv[1]), sys.argv[2:]
    let_clock_jump(file)
    app(arguments, prog_name="stowage")


if __name__ == "__main__":
    main()
