from __future__ import annotations

import pytest

from stowage.framework.profile.profile import decode_args
from stowage.plugins.aged_priority_sort import AgedPrioritySortArgs


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        (-1, "from 0 to 1000000000"),
        (float("inf"), "a finite number"),
        (float("nan"), "a finite number"),
    ],
)
def test_the_seconds_of_a_priority_point_are_bounded(seconds: float, expected: str) -> None:
    _, errors = decode_args(
        AgedPrioritySortArgs, {"secondsPerPriorityPoint": seconds}, "pluginConfig[0].args"
    )
    (error,) = errors
    assert error.path == "pluginConfig[0].args.secondsPerPriorityPoint"
    assert error.expectation == expected
