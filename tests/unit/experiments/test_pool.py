"""A sweep begins in the calling process, and takes others when that is worth their start."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from stowage.experiments.experiment import Experiment, Outcome, outcome_of
from stowage.experiments.pool import WORTH_GROWING_S, GrowingPool
from tests.unit.experiments.experiments import Tiny


class Elsewhere:
    """Notes what it runs; can be opened and closed."""

    def __init__(self) -> None:
        self.keys: list[str] = []
        self.is_open = False

    @contextmanager
    def opened(self) -> Iterator[Elsewhere]:
        self.is_open = True
        yield self
        self.is_open = False

    def run(self, experiments: Iterable[Experiment]) -> Iterator[Outcome]:
        for each in experiments:
            self.keys.append(each.key)
            yield outcome_of(each)


def seeds_run(seconds_each: float, num: int) -> tuple[list[str], Elsewhere]:
    """The keys of all outcomes, and what ran elsewhere, if an experiment takes some time."""
    elsewhere, clock = Elsewhere(), iter(range(10_000))
    with GrowingPool(elsewhere.opened, lambda: next(clock) * seconds_each) as pool:
        keys = [each.key for each in pool.run(Tiny(seed) for seed in range(num))]
        assert elsewhere.is_open == bool(elsewhere.keys)
    assert not elsewhere.is_open
    return keys, elsewhere


def test_short_sweeps_stay_in_the_calling_process() -> None:
    keys, elsewhere = seeds_run(WORTH_GROWING_S / 10, 11)
    assert keys == [f"t/p/{seed}" for seed in range(11)]
    assert elsewhere.keys == []


def test_long_sweeps_go_on_elsewhere_after_the_first_experiment() -> None:
    keys, elsewhere = seeds_run(WORTH_GROWING_S / 10, 12)
    assert keys == [f"t/p/{seed}" for seed in range(12)]
    assert elsewhere.keys == keys[1:]
