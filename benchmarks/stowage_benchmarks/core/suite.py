"""Measures the workloads of ``stowage bench core``, one after the other."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import msgspec
from rich.console import Console

from stowage_benchmarks.core.claims import measure_claims, measure_network_devices
from stowage_benchmarks.core.failing_preemption import measure_failing_preemption
from stowage_benchmarks.core.gangs import measure_gangs
from stowage_benchmarks.core.many_terms import measure_many_terms
from stowage_benchmarks.core.preemption import measure_preemption
from stowage_benchmarks.core.report import print_core_results
from stowage_benchmarks.core.requeue_storm import StormResult, measure_storms, print_storms
from stowage_benchmarks.core.run import CoreResult, MemoryResult, measure_core, measure_memory
from stowage_benchmarks.workloads import (
    CLAIMS,
    FAILING_PREEMPTION,
    GANG_SIZES,
    MANY_TERMS,
    NETWORK_DEVICES,
    PREEMPTION,
    REQUEUE_STORM,
)

_SPECIAL: Mapping[str, Callable[[int, int], CoreResult]] = {
    PREEMPTION: measure_preemption,
    FAILING_PREEMPTION: measure_failing_preemption,
    CLAIMS: measure_claims,
    NETWORK_DEVICES: measure_network_devices,
    **{name: measure_gangs(name) for name in GANG_SIZES},
}
"""Workload -> its measurement, by numbers of nodes and of pods; `measure_core` has the others."""


class CoreReport(msgspec.Struct, frozen=True):
    """All results, as ``--json`` prints them."""

    core: list[CoreResult]
    memory: list[MemoryResult]
    requeue_storms: list[StormResult]

    @property
    def has_failed(self) -> bool:
        """Whether a pod found no node, or a storm moved other pods than those that it helps."""
        unscheduled = any(each.unscheduled for each in self.core)
        return unscheduled or not all(each.valid for each in self.requeue_storms)

    def print(self, console: Console) -> None:
        """Print the results as tables."""
        if self.core:
            print_core_results(console, self.core, self.memory)
        if self.requeue_storms:
            print_storms(console, self.requeue_storms)


def measure_workloads(
    workloads: Sequence[str], sizes: Sequence[int], num_pods: int, running_a_node: int
) -> CoreReport:
    """Measure each workload with each number of nodes.

    Args:
        workloads: Their names.
        sizes: Numbers of nodes.
        num_pods: Number of pods to measure; many-terms and requeue-storm have their own.
        running_a_node: Number of pods that run on each node at the start.
    """
    of_pods = [name for name in workloads if name not in (MANY_TERMS, REQUEUE_STORM)]
    results = [
        _SPECIAL[name](size, num_pods)
        if name in _SPECIAL
        else measure_core(name, size, num_pods, running_a_node)
        for name in of_pods
        for size in sizes
    ]
    if MANY_TERMS in workloads:
        results += [each for size in sizes for each in measure_many_terms(size)]
    storm_sizes = sizes if REQUEUE_STORM in workloads else ()
    storms = [each for size in storm_sizes for each in measure_storms(size)]
    memory = [measure_memory(size, running_a_node) for size in sizes] if of_pods else []
    return CoreReport(results, memory, storms)
