"""Pods that the API server has bound are read back until the watch shows them."""

from __future__ import annotations

from stowage.api.instructions import PodReference
from stowage.engine.state.unconfirmed_bindings import CONFIRM_WITHIN_S, UnconfirmedBindings

P, Q = (PodReference("default", name, f"uid-{name}") for name in "pq")


def _bound() -> UnconfirmedBindings:
    """A pod that was bound at 0 s, and one at 1 s."""
    unconfirmed = UnconfirmedBindings()
    unconfirmed.add(P, 0.0)
    unconfirmed.add(Q, 1.0)
    return unconfirmed


def test_a_confirmed_pod_is_not_read_back() -> None:
    unconfirmed = _bound()
    unconfirmed.confirm("uid-p")
    assert list(unconfirmed) == [Q]
    assert unconfirmed.next_deadline() == 1.0 + CONFIRM_WITHIN_S
    unconfirmed.confirm("uid-q")
    assert unconfirmed.next_deadline() is None


def test_a_pod_that_stays_unconfirmed_is_read_back_again_and_again() -> None:
    unconfirmed = _bound()
    for read in range(1, 4):
        assert list(unconfirmed.take_overdue(read * CONFIRM_WITHIN_S, lambda _: True)) == [P]
        assert list(unconfirmed.take_overdue(read * CONFIRM_WITHIN_S + 1.0, lambda _: True)) == [Q]


def test_a_pod_that_is_no_longer_assumed_is_dropped() -> None:
    unconfirmed = _bound()
    assert list(unconfirmed.take_overdue(CONFIRM_WITHIN_S, lambda uid: uid == "uid-q")) == []
    assert list(unconfirmed) == [Q]
