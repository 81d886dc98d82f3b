"""CPU time and memory of a process, as the kernel accounts for them (Linux)."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path


def cpu_seconds(pid: int) -> float:
    """User and system time of a process and its children since they started, all threads.

    Raises:
        OSError: there is no such process.
    """
    return sum(map(_cpu_seconds_alone, _family(pid)))


def has_children(pid: int) -> bool:
    """Whether a process has children that it has not waited for.

    Raises:
        OSError: there is no such process.
    """
    return len(list(_family(pid))) > 1


def peak_memory_mib(pid: int) -> float:
    """Peak resident memory of a process and its children (VmHWM), added up.

    Raises:
        OSError: there is no such process.
    """
    return sum(_status_mib("VmHWM", each) for each in _family(pid))


def memory_mib(pid: int) -> float:
    """Resident memory of a process and its children now (VmRSS), added up.

    Raises:
        OSError: there is no such process.
    """
    return sum(_status_mib("VmRSS", each) for each in _family(pid))


def cpu_wait_s(pid: int) -> float:
    """Seconds that the main thread of a process could have run and had no CPU, since its start.

    Raises:
        OSError: there is no such process, or the kernel does not count it.
    """
    return int(Path(f"/proc/{pid}/schedstat").read_text().split()[1]) / 1e9


def address_space_bytes(pid: int) -> int:
    """Size of the address space of a process, which RLIMIT_AS limits.

    Raises:
        OSError: there is no such process.
    """
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[0])
    return pages * os.sysconf("SC_PAGE_SIZE")


def _family(pid: int) -> Iterator[int]:
    yield pid
    for task in Path(f"/proc/{pid}/task").iterdir():
        # A thread that ends meanwhile takes no child with it.
        with suppress(FileNotFoundError):
            for child in (task / "children").read_text().split():
                yield from _family(int(child))


def cpu_seconds_with_ended(pid: int) -> float:
    """User and system time of a process, and of its children that have ended.

    Raises:
        OSError: there is no such process.
    """
    return sum(_cpu_fields(pid)[:4]) / os.sysconf("SC_CLK_TCK")


def _cpu_seconds_alone(pid: int) -> float:
    return sum(_cpu_fields(pid)[:2]) / os.sysconf("SC_CLK_TCK")


def _cpu_fields(pid: int) -> list[int]:
    """Ticks of the user and of the system: of the process, and of its ended children."""
    # The name in field 2 may hold spaces and brackets: count from the last bracket.
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return [int(field) for field in fields[11:15]]


def _status_mib(name: str, pid: int) -> float:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) / 1024
    raise OSError(f"/proc/{pid}/status has no {name}: the process is ending")
