"""Each change of an object is new once, in any order and however often it arrives."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from stowage.operator.watch.stale_events import StaleEventFilter

A, B = ("d", "a"), ("d", "b")


def test_versions_up_to_a_list_are_stale() -> None:
    seen = StaleEventFilter()
    seen.listed(10)
    assert [seen.is_new(A, version) for version in (9, 10, 11, 11)] == [False, False, True, False]


def test_an_older_event_of_another_object_is_new() -> None:
    seen = StaleEventFilter()
    seen.listed(10)
    assert seen.is_new(A, 12)
    assert seen.is_new(B, 11)
    assert not seen.is_new(A, 11)


def test_versions_older_than_all_remembered_ones_are_stale() -> None:
    seen = StaleEventFilter(size=2)
    assert [seen.is_new(("d", str(number)), number) for number in (5, 6, 7)] == [True] * 3
    assert not seen.is_new(("d", "5"), 5)
    assert not seen.is_new(("d", "new"), 5)
    assert seen.is_new(("d", "new"), 8)


def test_an_event_without_a_version_is_always_new() -> None:
    seen = StaleEventFilter()
    assert seen.is_new(A, 0)
    assert seen.is_new(A, 0)


@given(st.lists(st.integers(0, 4), min_size=1, max_size=40), st.randoms(use_true_random=False))
def test_the_last_new_event_of_each_object_is_its_latest_change(
    names: list[int], rng: object
) -> None:
    """Each change arrives twice and in any order; the filter remembers all objects."""
    changes = [(("d", str(name)), version) for version, name in enumerate(names, 1)]
    events = changes * 2
    rng.shuffle(events)  # type: ignore[attr-defined]
    seen, latest = StaleEventFilter(), dict[tuple[str, str], int]()
    for key, version in events:
        if seen.is_new(key, version):
            latest[key] = version
    assert latest == dict(changes)
