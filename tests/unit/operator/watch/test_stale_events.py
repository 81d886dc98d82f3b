"""Each change of an object is new once, in any order and however often it arrives."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from stowage.operator.watch.stale_events import StaleEventFilter

A, B = ("d", "a"), ("d", "b")


def test_what_a_list_showed_is_no_news() -> None:
    order = StaleEventFilter()
    order.listed(10)
    assert [order.is_new(A, version) for version in (9, 10, 11, 11)] == [False, False, True, False]


def test_an_older_event_of_another_object_is_news() -> None:
    order = StaleEventFilter()
    order.listed(10)
    assert order.is_new(A, 12)
    assert order.is_new(B, 11)
    assert not order.is_new(A, 11)


def test_what_is_older_than_all_that_is_remembered_is_no_news() -> None:
    order = StaleEventFilter(size=2)
    assert [order.is_new(("d", str(number)), number) for number in (5, 6, 7)] == [True] * 3
    assert not order.is_new(("d", "5"), 5)
    assert not order.is_new(("d", "new"), 5)
    assert order.is_new(("d", "new"), 8)


def test_an_unknown_version_is_always_news() -> None:
    order = StaleEventFilter()
    assert order.is_new(A, 0)
    assert order.is_new(A, 0)


@given(st.lists(st.integers(0, 4), min_size=1, max_size=40), st.randoms(use_true_random=False))
def test_the_last_word_on_each_object_is_the_last_change_of_it(
    names: list[int], rng: object
) -> None:
    """Told twice and in any order, as long as the order remembers all objects."""
    changes = [(("d", str(name)), version) for version, name in enumerate(names, 1)]
    told = changes * 2
    rng.shuffle(told)  # type: ignore[attr-defined]
    order, heard = StaleEventFilter(), dict[tuple[str, str], int]()
    for key, version in told:
        if order.is_new(key, version):
            heard[key] = version
    assert heard == dict(changes)
