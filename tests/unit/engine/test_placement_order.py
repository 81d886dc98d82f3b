"""Which placements of a pod group are tried, and when the search ends."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from stowage.engine.pod_groups.placement_order import EQUALS_TRIED, PlacementOrder
from stowage.framework import Outlook


def _no_draw(num_tied: int) -> int:
    raise AssertionError(f"a draw of {num_tied}")


def _order(
    most: list[int],
    highest: list[int],
    *,
    least: int = 1,
    likeness: list[int] | None = None,
    draw: Callable[[int], int] = _no_draw,
    breaks_ties: bool = False,
) -> PlacementOrder:
    alike = likeness or list(range(len(most)))
    outlook = Outlook(
        np.array(most),
        least,
        frozenset({"Fit"}),
        np.array(highest),
        np.array(alike, dtype=np.uint64),
    )
    return PlacementOrder(outlook, len(most), draw, breaks_ties=breaks_ties)


def _take_all(order: PlacementOrder) -> list[int]:
    taken = []
    while (index := order.take()) is not None:
        taken.append(index)
    return taken


def test_the_highest_come_first_and_all_are_tried_while_none_is_feasible() -> None:
    assert _take_all(_order([3, 3, 3], [10, 30, 20])) == [1, 2, 0]


def test_nothing_is_tried_after_a_placement_that_took_as_many_as_any_can() -> None:
    order = _order([3, 3, 3], [10, 30, 20])
    assert order.take() == 1
    order.note_feasible(1, 3)
    assert order.take() is None


def test_a_placement_with_fewer_members_does_not_end_the_search() -> None:
    order = _order([3, 3, 3], [10, 30, 20])
    assert order.take() == 1
    order.note_feasible(1, 2)
    assert order.take() == 2
    order.note_feasible(2, 3)
    assert order.take() is None


def test_placements_without_room_for_enough_members_are_not_tried() -> None:
    order = _order([3, 1, 2], [10, 30, 20], least=2)
    assert _take_all(order) == [2, 0]
    assert order.ruled_out_by == {"Fit"}
    assert _order([3, 2], [1, 2], least=2).ruled_out_by == frozenset()


def test_if_none_has_room_the_one_with_most_is_tried() -> None:
    order = _order([0, 2, 1], [10, 20, 30], least=3)
    assert _take_all(order) == [1]
    assert order.ruled_out_by == {"Fit"}


@pytest.mark.parametrize("choice", [0, 1, 2])
def test_chance_decides_which_of_equal_placements_is_tried_first(choice: int) -> None:
    order = _order([3, 3, 3], [10, 10, 10], draw=lambda num_tied: choice % num_tied)
    assert order.take() == choice
    order.note_feasible(choice, 3)
    assert order.take() is None


def test_equal_placements_are_tried_for_a_plugin_that_chooses_among_them() -> None:
    order = _order([3, 3, 3, 3], [5, 10, 10, 10], breaks_ties=True)
    for index in (1, 2, 3):
        assert order.take() == index
        order.note_feasible(index, 3)
    assert order.take() is None


def test_one_of_equal_placements_is_tried_for_all_that_are_alike() -> None:
    order = _order([3] * 4, [10] * 4, likeness=[7, 8, 7, 8], breaks_ties=True)
    assert order.take() == 0
    order.note_feasible(0, 3)
    assert order.take() == 1
    order.note_feasible(1, 3)
    assert order.take() is None


def test_one_that_is_not_feasible_stands_for_no_other() -> None:
    order = _order([3] * 3, [10] * 3, likeness=[7, 7, 7], breaks_ties=True)
    assert _take_all(order) == [0, 1, 2]


def test_as_many_equal_placements_as_are_tried_leave_nothing_to_chance() -> None:
    order = _order([3] * EQUALS_TRIED, [10] * EQUALS_TRIED, breaks_ties=True)
    assert order.take() == 0


def test_of_very_many_equal_placements_a_few_are_tried_by_chance() -> None:
    number = 3 * EQUALS_TRIED
    order = _order([3] * number, [10] * number, draw=lambda num: num - 1, breaks_ties=True)
    taken = []
    while (index := order.take()) is not None:
        taken.append(index)
        order.note_feasible(index, 3)
    assert taken == list(range(number))[::-1][:EQUALS_TRIED]


def test_without_an_outlook_all_are_tried_in_their_order() -> None:
    order = PlacementOrder(None, 3, _no_draw, breaks_ties=False)
    taken = []
    while (index := order.take()) is not None:
        taken.append(index)
        order.note_feasible(index, 3)
    assert taken == [0, 1, 2]
    assert order.ruled_out_by == frozenset()
