"""Plugins that cannot judge what-ifs are asked about one node at a time."""

from __future__ import annotations

from stowage.api.status import error, unresolvable, unschedulable
from stowage.framework.runtime.row_filter import as_verdict


def test_rejections_and_errors_of_single_nodes_become_one_verdict() -> None:
    verdict = as_verdict(
        {0: unschedulable("full"), 2: error("lost"), 3: unresolvable("gone", "full")}, 5
    )
    assert [(each.reason, each.mask.nonzero()[0].tolist()) for each in verdict.rejections] == [
        ("full", [0]),
        ("gone", [3]),
        ("full", [3]),
    ]
    assert verdict.errors is not None
    assert verdict.errors.mask.nonzero()[0].tolist() == [2]
    assert verdict.errors.text(2) == "lost"
    assert verdict.rejected(5).tolist() == [True, False, True, True, False]


def test_nodes_that_are_only_rejected_bring_no_error() -> None:
    assert as_verdict({1: unschedulable("full")}, 2).errors is None


def test_a_rejection_without_a_reason_is_one() -> None:
    verdict = as_verdict({0: unschedulable(), 1: unresolvable()}, 3)
    assert verdict.rejected(3).tolist() == [True, True, False]
    assert verdict.unresolvable(3).tolist() == [False, True, False]
    assert [each.reason for each in verdict.rejections] == [
        "Unschedulable",
        "UnschedulableAndUnresolvable",
    ]
