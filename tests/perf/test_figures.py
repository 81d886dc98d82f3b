"""Figures are compared relative to the calibration loop that ran beside them."""

from stowage_benchmarks.calibration import calibration_ms
from tests.perf.figures import Figure, compare, load


def figure(*cpu_ms: float, calibration: float = 1.0, name: str = "core") -> Figure:
    return Figure(name, list(cpu_ms), [calibration] * len(cpu_ms))


def test_a_slower_machine_does_not_change_the_ratio() -> None:
    (comparison,) = compare([figure(0.5)], [figure(1.0, calibration=2.0)])
    assert comparison.ratio == 1.0
    assert not comparison.is_noteworthy


def test_a_doubled_figure_is_noteworthy() -> None:
    (comparison,) = compare([figure(0.5)], [figure(1.0)])
    assert comparison.ratio == 2.0
    assert comparison.is_noteworthy


def test_a_change_within_the_spread_of_runs_is_not_noteworthy() -> None:
    (comparison,) = compare([figure(0.5, 0.6, 1.2)], [figure(1.0)])
    assert not comparison.is_noteworthy


def test_a_figure_that_only_one_side_has_is_left_out() -> None:
    assert list(compare([figure(1.0, name="old")], [figure(1.0, name="new")])) == []


def test_the_recorded_figures_name_their_machine() -> None:
    recorded = load()
    assert recorded.machine.cores > 0
    assert all(len(each.cpu_ms) == len(each.calibration_ms) >= 3 for each in recorded.figures)


def test_calibration_takes_time() -> None:
    assert calibration_ms() > 0
