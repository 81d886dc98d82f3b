"""CPU time and memory of a process, as the kernel accounts for them (Linux)."""

from __future__ import annotations

import os
from pathlib import Path


def cpu_seconds(pid: int) -> float:
    """User and system time of a process since it started, all threads, ended ones included.

    Raises:
        OSError: there is no such process.
    """
    # The name in field 2 may hold spaces and brackets: count from the last bracket.
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    user_ticks, system_ticks = int(fields[11]), int(fields[12])
    return (user_ticks + system_ticks) / os.sysconf("SC_CLK_TCK")


def peak_memory_mib(pid: int) -> float:
    """Peak resident memory of a process (VmHWM).

    Raises:
        OSError: there is no such process.
    """
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) / 1024
    raise OSError(f"/proc/{pid}/status has no VmHWM: the process is ending")
