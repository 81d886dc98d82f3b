"""The CPU time and memory of a process."""

import os
import sys

import pytest

from stowage_benchmarks.process_cost import cpu_seconds, cpu_wait_s, memory_mib, peak_memory_mib


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has /proc")
def test_the_time_and_memory_of_a_process_are_measured() -> None:
    assert cpu_seconds(os.getpid()) > 0
    waited_s = cpu_wait_s(os.getpid())
    assert 0 <= waited_s <= cpu_wait_s(os.getpid())
    assert 1 < memory_mib(os.getpid()) <= peak_memory_mib(os.getpid())
