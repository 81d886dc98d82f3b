"""The pods of rows in flat arrays equal plain lists of them, whatever pods came and went."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stowage.state.cache import ClusterCache
from stowage.state.pods import ranked_pods
from stowage.state.pods.pod_info import PodInfo, make_pod_info
from stowage.state.pods.ranked_pods import started_at
from stowage.state.what_if.row_local import RowWhatIf
from tests.support.builders import make_node, make_pod

NODES = ("n0", "n1", "n2", "n3")

changes = st.tuples(
    st.sampled_from([f"p{number}" for number in range(12)]),
    st.sampled_from((*NODES, "n0", "n0", None)),
    st.integers(-1, 2),
    st.sampled_from((None, "2026-01-01T00:00:09Z", "2026-01-01T00:01:00Z", "2025-12-31T23:59:59Z")),
    st.booleans(),
    st.sampled_from(({}, {"cpu": "2"}, {"memory": "3", "example.com/gpu": "1"})),
)
Change = tuple[str, str | None, int, str | None, bool, dict[str, str]]


def _carry_out(cache: ClusterCache, placed: dict[str, PodInfo], change: Change) -> None:
    name, node, priority, started, terminating, requests = change
    if name in placed:
        cache.remove_pod(placed.pop(name).uid)
    if node is None:
        return
    pod = make_pod(
        name,
        node=node,
        priority=priority,
        started=started,
        terminating=terminating,
        requests=requests,
    )
    placed[name] = make_pod_info(pod, cache.classes)
    cache.update_pod(placed[name])


def _assert_equal(what_if: RowWhatIf, rows: list[int], placed: dict[str, PodInfo]) -> None:
    """The arrays against the pods of each row, in the order in which they came."""
    ranked, variants = what_if.ranked, what_if.snapshot.pod_variants
    expected = [
        sorted(
            (pod for pod in placed.values() if what_if.snapshot.row_of(pod.node_name) == row),
            key=lambda pod: (-pod.priority, started_at(pod)),
        )
        for row in rows
    ]
    flat = [pod for pods in expected for pod in pods]
    assert [list(ranked.pods_at(position)) for position in range(len(rows))] == expected
    assert [ranked.pod_in(slot) for slot in range(ranked.num_slots)] == flat
    assert [flat[ranked.slots_at(position)] for position in range(len(rows))] == expected
    assert ranked.priority.tolist() == [pod.priority for pod in flat]
    assert ranked.start.tolist() == [started_at(pod) for pod in flat]
    of_codes = [variants[code] for code in ranked.variants.tolist()]
    assert of_codes == [(pod.pod_class, pod.terminating) for pod in flat]


@given(data=st.data(), steps=st.lists(st.lists(changes, max_size=10), min_size=1, max_size=4))
def test_the_arrays_equal_the_lists_of_the_rows_asked_for(
    data: st.DataObject, steps: list[list[Change]]
) -> None:
    cache, placed = ClusterCache(), dict[str, PodInfo]()
    for name in NODES:
        cache.update_node(make_node(name, allocatable={"example.com/gpu": "9"}))
    with pytest.MonkeyPatch.context() as patch:
        # Few enough for these clusters to be ordered in parts, and moved together.
        patch.setattr(ranked_pods, "_ROWS_AT_ONCE", 2)
        patch.setattr(ranked_pods, "_SPARE_SLOTS", 1)
        for step in steps:
            for change in step:
                _carry_out(cache, placed, change)
            rows = data.draw(st.lists(st.sampled_from(range(len(NODES))), unique=True))
            what_if = RowWhatIf(cache.snapshot(), np.array(rows, dtype=np.int64))
            _assert_equal(what_if, rows, placed)
            for priority in range(-2, 4):
                expected = any(pod.priority < priority for pod in placed.values())
                assert cache.snapshot().has_pods_below(priority) is expected


@given(st.lists(changes, max_size=20), st.data())
def test_sums_and_usage_equal_those_over_the_pods_of_each_row(
    placing: list[Change], data: st.DataObject
) -> None:
    cache, placed = ClusterCache(), dict[str, PodInfo]()
    for name in NODES:
        cache.update_node(make_node(name, allocatable={"example.com/gpu": "9"}))
    for change in placing:
        _carry_out(cache, placed, change)
    snapshot = cache.snapshot()
    rows = list(range(len(NODES)))
    what_if = RowWhatIf(snapshot, np.array(rows))
    ranked = what_if.ranked
    size = ranked.num_slots
    chosen = data.draw(st.lists(st.booleans(), min_size=size, max_size=size))
    values = data.draw(st.lists(st.integers(-(2**40), 2**40), min_size=size, max_size=size))
    mask, numbers = np.array(chosen, dtype=np.bool_), np.array(values, dtype=np.int64)
    parts = [chosen[ranked.slots_at(row)] for row in rows]
    assert ranked.count(mask).tolist() == [sum(part) for part in parts]
    assert ranked.total(numbers).tolist() == [sum(values[ranked.slots_at(row)]) for row in rows]
    so_far = [sum(part[: place + 1]) for part in parts for place in range(len(part))]
    assert ranked.count_so_far(mask).tolist() == so_far
    positions = sorted(data.draw(st.sets(st.sampled_from(rows))))
    slots, counts = ranked.slots_of(mask, np.array(positions, dtype=np.int64))
    starts = ranked.ends.tolist()
    assert counts.tolist() == [sum(parts[row]) for row in positions]
    assert slots.tolist() == [
        starts[row] + place for row in positions for place, on in enumerate(parts[row]) if on
    ]
    what_if.remove(mask)
    for slot in range(size):
        if chosen[slot]:
            cache.remove_pod(ranked.pod_in(slot).uid)
    left, view = cache.snapshot(), what_if.view(np.array(rows))
    assert view.requested.tolist() == left.requested[rows].tolist()
    assert view.nonzero_requested.tolist() == left.nonzero_requested[rows].tolist()
    assert view.num_pods.tolist() == left.num_pods[rows].tolist()
