"""The values by the load that has arrived."""

from __future__ import annotations

from stowage.analysis.simulation.openb.loads import LOADS, Rows, table_values, value_at


def test_a_value_is_the_mean_of_the_rows_with_the_rounded_load() -> None:
    rows = Rows(num_gpus=1)
    # Loads of 49.6, 50.4 and 51 percent of one GPU.
    for arrived, allocated in ((496, 400), (504, 420), (510, 450)):
        rows.add(arrived, allocated, 100.0, 400)
    values = {each.name: each for each in rows.series()}
    assert value_at(values["alloc_pct"], 50) == 41.0
    assert value_at(values["alloc_pct"], 51) == 45.0
    assert value_at(values["frag_ratio_pct"], 50) == 25.0
    assert value_at(values["frag_amount_pct"], 50) == 10.0


def test_a_load_without_a_row_takes_its_neighbours() -> None:
    rows = Rows(num_gpus=1)
    for arrived, allocated in ((490, 400), (510, 500)):
        rows.add(arrived, allocated, 0.0, 0)
    (alloc, ratio, _) = rows.series()
    assert value_at(alloc, 50) == 45.0
    assert value_at(ratio, 50) == 0.0
    assert value_at(alloc, 80) is None
    assert table_values([alloc])["alloc_pct"] == [45.0, *[None] * (len(LOADS) - 1)]
