"""The table of planted faults says how many lives find each, and at what cost."""

from __future__ import annotations

from io import StringIO

from rich.console import Console

from tests.simulation.detection import FAULTS, LENGTHS, Found, search, table_of
from tests.simulation.planted import is_found


def test_lives_of_both_lengths_find_a_fault_while_it_is_planted() -> None:
    name = "every Event is emitted twice"
    assert [each.seeds for each in search(range(2), name)] == [(0, 1)] * len(LENGTHS)
    assert not is_found(FAULTS[name], 0)


def test_the_table_has_each_fault_and_the_sums() -> None:
    rows = [[Found((3, 5), 1.5), Found((), 3.0)] for _ in FAULTS]
    console = Console(width=200, record=True, file=StringIO())
    console.print(table_of(rows))
    text = console.export_text()
    assert text.count(" 2 in 1.5 s, from 3 ") == text.count(" 0 in 3.0 s ") == len(FAULTS)
    assert f" {2 * len(FAULTS)} in {1.5 * len(FAULTS):.0f} s: 1.33 a second " in text
