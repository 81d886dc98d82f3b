"""``python -m tests.perf``: measure, and compare with the recorded figures."""

from __future__ import annotations

import argparse

from rich.console import Console
from rich.table import Table

from tests.perf.figures import Comparison, Figures, compare, load, save
from tests.perf.measuring import measure


def main() -> None:
    """Measure, then compare or record."""
    arguments = argparse.ArgumentParser(prog="python -m tests.perf", description=__doc__)
    arguments.add_argument("--runs", type=int, default=3, help="how often to take each figure")
    arguments.add_argument("--record", action="store_true", help="replace the recorded figures")
    options = arguments.parse_args()
    console = Console(highlight=False)
    fresh = measure(options.runs, lambda name: console.print(f"[dim]{name}[/dim]"))
    if options.record:
        save(fresh)
        return
    recorded = load()
    console.print(_heading(recorded), _table(list(compare(recorded.figures, fresh.figures))))


def _heading(recorded: Figures) -> str:
    machine = recorded.machine
    return (
        f"recorded on {recorded.date}: {machine.processor}, {machine.cores} cores, "
        f"Python {machine.python}\n"
    )


def _table(comparisons: list[Comparison]) -> Table:
    table = Table("figure", "recorded, ms", "fresh, ms", "by calibration", "", box=None)
    for each in comparisons:
        table.add_row(
            each.recorded.name,
            _range(each.recorded.cpu_ms),
            _range(each.fresh.cpu_ms),
            f"x{each.ratio:.2f}",
            ("slower" if each.ratio > 1 else "faster") if each.is_noteworthy else "",
        )
    return table


def _range(values: list[float]) -> str:
    return f"{min(values):.3f} .. {max(values):.3f}"


if __name__ == "__main__":
    main()
