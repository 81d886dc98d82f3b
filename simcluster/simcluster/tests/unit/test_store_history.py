"""The store shows every revision that its history keeps."""

from hypothesis import given
from hypothesis import strategies as st

from simcluster.store.store import Store

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
