"""The store shows every revision that its history keeps."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simcluster.store.compaction import Compactor
from simcluster.store.store import HistoryLostError, Store
from simcluster.tests.support.manual_cluster import ManualTime

Snapshot = list[tuple[str, int]]


def _content(store: Store, revision: int) -> Snapshot:
    return [
        (stored.name, stored.obj["value"])
        for stored in store.collection("things").range_at(revision)
    ]


@given(st.lists(st.tuples(st.sampled_from("abcd"), st.integers(0, 2)), max_size=30))
def test_items_at_a_revision_equal_the_state_of_that_revision(
    writes: list[tuple[str, int]],
) -> None:
    """A write of 0 deletes; at the end the state after each write can be read back."""
    store = Store()
    expected: dict[int, Snapshot] = {}
    state: dict[str, int] = {}
    for name, value in writes:
        stored = store.get("things", "", name)
        if value:
            store.put("things", {"metadata": {"name": name}, "value": value})
            state[name] = value
        elif stored is not None:
            store.remove("things", stored)
            del state[name]
        expected[store.revision] = sorted(state.items())
    assert {revision: _content(store, revision) for revision in expected} == expected


def _put(store: Store, collection: str, value: int) -> int:
    return store.put(collection, {"metadata": {"name": "a"}, "value": value}).revision


def test_changes_are_kept_for_one_to_two_intervals() -> None:
    store, time = Store(), ManualTime()
    before = _put(store, "things", 1)
    Compactor(store, time, interval_s=300.0).start()
    kept = _put(store, "things", 2)
    first = _put(store, "things", 3)
    time.run_until(time.now + 299.0)
    assert len(store.collection("things").changes_since(before)) == 2
    time.run_until(time.now + 2.0)
    second = _put(store, "things", 4)
    assert len(store.collection("things").changes_since(kept)) == 2
    time.run_until(time.now + 300.0)
    with pytest.raises(HistoryLostError):
        store.collection("things").changes_since(kept)
    assert len(store.collection("things").changes_since(first)) == 1
    assert store.collection("things").changes_since(second) == []


def test_a_watch_of_a_kind_that_does_not_change_goes_on_after_a_compaction() -> None:
    store, time = Store(), ManualTime()
    Compactor(store, time, interval_s=300.0).start()
    idle = store.revision
    _put(store, "others", 1)
    time.run_until(time.now + 1_000.0)
    assert store.collection("things").changes_since(idle) == []


def test_nothing_is_known_from_before_the_start() -> None:
    store, time = Store(), ManualTime()
    before = store.revision
    _put(store, "things", 1)
    Compactor(store, time, interval_s=300.0).start()
    for collection in ("things", "others"):
        with pytest.raises(HistoryLostError):
            store.collection(collection).changes_since(before)
