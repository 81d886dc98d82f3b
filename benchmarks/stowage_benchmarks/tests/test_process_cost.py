"""The cost of a process is read from the kernel."""

import os

from stowage_benchmarks.process_cost import cpu_seconds, memory_mib, peak_memory_mib


def test_a_process_has_used_time_and_memory() -> None:
    assert cpu_seconds(os.getpid()) > 0
    assert 1 < memory_mib(os.getpid()) <= peak_memory_mib(os.getpid())
