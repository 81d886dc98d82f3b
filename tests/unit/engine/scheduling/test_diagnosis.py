from __future__ import annotations

from collections import Counter

import pytest

from stowage.api.status import unresolvable
from stowage.framework import Diagnosis, fit_error_message


@pytest.mark.parametrize(
    ("counts", "want"),
    [
        ({}, "0/5 nodes are available:"),
        ({"Insufficient cpu": 5}, "0/5 nodes are available: 5 Insufficient cpu."),
        (
            {"node(s) had untolerated taint(s)": 3, "Insufficient cpu": 2},
            "0/5 nodes are available: 2 Insufficient cpu, 3 node(s) had untolerated taint(s).",
        ),
        (
            {"Insufficient cpu": 9, "Too many pods": 10},
            "0/5 nodes are available: 10 Too many pods, 9 Insufficient cpu.",
        ),
    ],
)
def test_reasons_are_counted_and_sorted(counts: dict[str, int], want: str) -> None:
    assert fit_error_message(Diagnosis(5, Counter(counts))) == want


def test_a_rejection_by_pre_filter_counts_for_all_nodes() -> None:
    diagnosis = Diagnosis(3, pre_filter_status=unresolvable("pod affinity terms conflict"))
    assert fit_error_message(diagnosis) == "0/3 nodes are available: pod affinity terms conflict."


def test_the_message_of_post_filter_is_last() -> None:
    diagnosis = Diagnosis(1, Counter({"Insufficient cpu": 1})).with_post_filter_message(
        "preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling."
    )
    assert fit_error_message(diagnosis) == (
        "0/1 nodes are available: 1 Insufficient cpu. "
        "preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling."
    )
