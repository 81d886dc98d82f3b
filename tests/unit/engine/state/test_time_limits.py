"""Time limits within a call, whose passed checks a replay repeats."""

from __future__ import annotations

from stowage.engine.state.time_limits import TimeLimits


class _Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_checks_are_counted_over_all_limits_and_those_that_found_one_passed_are_recorded() -> None:
    clock = _Clock()
    limits = TimeLimits(clock)
    short, long = limits.start(1.0), limits.start(5.0)
    assert [short(), long()] == [False, False]
    clock.now = 2.0
    assert [short(), long(), short()] == [True, False, True]
    assert limits.passed == [2, 4]
    limits.clear()
    assert short()
    assert limits.passed == [0]


def test_a_limit_passes_after_its_time_not_at_it() -> None:
    clock = _Clock()
    has_passed = TimeLimits(clock).start(1.0)
    clock.now = 1.0
    assert not has_passed()


def test_a_repeated_record_decides_whatever_the_time_and_is_not_cleared() -> None:
    limits = TimeLimits(_Clock())
    limits.repeat([1, 3])
    has_passed = limits.start(1.0)
    assert [has_passed() for _ in range(2)] == [False, True]
    limits.clear()
    assert [has_passed() for _ in range(3)] == [False, True, False]
    assert limits.passed == [1, 3]
