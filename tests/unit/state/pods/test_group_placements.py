"""The numbers of pods of label groups by row are those of a plain counter."""

from __future__ import annotations

from collections import Counter
from random import Random

from stowage.state.pods.group_placements import GroupPlacements

SLOTS, ROWS = 5, 40


def test_columns_have_the_pods_of_each_pair_through_additions_and_removals() -> None:
    rng, placements = Random(7), GroupPlacements()
    entries: dict[tuple[int, int], int] = {}
    twin: Counter[tuple[int, int]] = Counter()
    for _ in range(3000):
        pair = rng.randrange(SLOTS), rng.randrange(ROWS)
        if pair not in entries:
            entries[pair] = placements.add(*pair)
            twin[pair] = 1
            continue
        delta = rng.choice((1, -1, -1))
        twin[pair] += delta
        assert placements.change(entries[pair], delta) == twin[pair]
        if not twin[pair]:
            del entries[pair], twin[pair]
    slots, rows, numbers = (column.tolist() for column in placements.columns)
    found = {
        (slot, row): number
        for slot, row, number in zip(slots, rows, numbers, strict=True)
        if number
    }
    assert found == twin
    assert {pair: placements.number(entry) for pair, entry in entries.items()} == twin


def test_entries_without_pods_are_used_again() -> None:
    placements = GroupPlacements()
    for row in range(1000):
        placements.change(placements.add(0, row), -1)
    assert len(placements.columns.rows) == 1
