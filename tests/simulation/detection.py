"""``python -m tests.simulation.detection``: which lives find planted faults, and what they cost.

Whoever changes the lives compares how many faults are found in a second of CPU. A fault that no
life finds leaves the cost of its lives in the sums.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import partial
from typing import NamedTuple

from rich.console import Console
from rich.table import Table

from tests.simulation import (
    test_planted_device_faults,
    test_planted_engine_faults,
    test_planted_faults,
    test_planted_gang_faults,
)
from tests.simulation.plan import MANY_EVENTS
from tests.simulation.planted import PlantedFault, is_found, planted

FAULTS: dict[str, PlantedFault] = {
    **test_planted_faults.PLANTED,
    **test_planted_engine_faults.PLANTED,
    **test_planted_device_faults.PLANTED,
    **test_planted_gang_faults.PLANTED,
}

#: The number of actions of each kind of lives; 0 draws it.
LENGTHS = {"usual": 0, "long": MANY_EVENTS}

_FORK = multiprocessing.get_context("fork")


class Found(NamedTuple):
    """The lives that found a fault.

    Attributes:
        seeds: Their seeds.
        cpu_s: The CPU time of all lives, those that found nothing included.
    """

    seeds: tuple[int, ...]
    cpu_s: float

    def __str__(self) -> str:
        """The number of lives, their cost, and the first seed."""
        first = f", from {self.seeds[0]}" if self.seeds else ""
        return f"{len(self.seeds)} in {self.cpu_s:.1f} s{first}"


def search(seeds: range, name: str) -> list[Found]:
    """The lives of each of `LENGTHS` that find a fault while it is planted."""
    return list(_searched(FAULTS[name], seeds))


def _searched(fault: PlantedFault, seeds: range) -> Iterator[Found]:
    with planted(fault):
        for num_events in LENGTHS.values():
            emphasis = replace(fault.emphasis, num_events=num_events)
            judged = fault._replace(emphasis=emphasis)
            started = time.process_time()
            found = tuple(seed for seed in seeds if is_found(judged, seed))
            yield Found(found, time.process_time() - started)


def main() -> None:
    """Search all faults, and print a table."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.simulation.detection", description=__doc__
    )
    parser.add_argument("--seeds", type=int, default=20, help="how many lives, from seed 0 on")
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    options = parser.parse_args()
    with ProcessPoolExecutor(options.processes, _FORK) as pool:
        rows = list(pool.map(partial(search, range(options.seeds)), FAULTS))
    Console(soft_wrap=True).print(table_of(rows))


def table_of(rows: Sequence[Sequence[Found]]) -> Table:
    """A row for each fault, and a last one with all."""
    table = Table("fault", *(f"{name} lives" for name in LENGTHS), show_footer=True)
    for name, row in zip(FAULTS, rows, strict=True):
        table.add_row(name, *map(str, row))
    for column, found in zip(table.columns[1:], zip(*rows, strict=True), strict=True):
        num_found = sum(len(each.seeds) for each in found)
        cpu_s = sum(each.cpu_s for each in found)
        column.footer = f"{num_found} in {cpu_s:.0f} s: {num_found / cpu_s:.2f} a second"
    return table


if __name__ == "__main__":
    main()
