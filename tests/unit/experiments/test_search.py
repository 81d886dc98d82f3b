"""A search finds better settings, does not depend on interruptions, and says what mattered."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from stowage.analysis.simulation.result import ExperimentResult
from stowage.analysis.tuning.search_space import Choice, Setting
from stowage.experiments.experiment import Experiment, Outcome, outcome_of
from stowage.experiments.pool import CallingProcess
from stowage.experiments.results_file import UnusableResults
from stowage.experiments.search import BATCH, Search, SearchOptions, Trial
from tests.unit.experiments.experiments import make_result

SPACE = [
    Setting("Packer.weight", tuple(range(11))),
    Setting("Idle.weight", tuple(range(11))),
    Setting("Fit.type", ("Least", "Most")),
]
START: dict[str, Choice] = {"Packer.weight": 1, "Idle.weight": 1, "Fit.type": "Least"}
OPTIONS = SearchOptions(SPACE, ["packing"], [1, 2], 3 * BATCH, most_unplaced=0.0, start=START)


class Formula(msgspec.Struct, frozen=True):
    """Packing is best with a weight of 8; a weight of 10 leaves a pod without a node."""

    policy: str
    choices: dict[str, Any]
    seed: int

    @property
    def key(self) -> str:
        return f"t/{self.policy}/{self.seed}"

    @property
    def fingerprint(self) -> str:
        return ""

    def run(self) -> ExperimentResult:
        if self.choices["Packer.weight"] == 9:
            raise ZeroDivisionError("the plugin does not like nine")
        distance = abs(self.choices["Packer.weight"] - 8)
        return make_result(
            self.policy,
            self.seed,
            nodes_used=20.0 + 5 * distance + self.seed,
            imbalance=30.0 - 2 * distance,
            failed=float(self.choices["Packer.weight"] == 10),
        )


def make(name: str, choices: Mapping[str, Choice], seeds: Sequence[int]) -> list[Experiment]:
    return [Formula(name, dict(choices), seed) for seed in seeds]


class Counting(CallingProcess):
    """Counts experiments; Ctrl-C comes before a given one."""

    def __init__(self, interrupt_at: int | None = None) -> None:
        self.num_run = 0
        self.interrupt_at = interrupt_at

    def run(self, experiments: Iterable[Experiment]) -> Iterator[Outcome]:
        for each in experiments:
            if self.num_run == self.interrupt_at:
                raise KeyboardInterrupt
            self.num_run += 1
            yield outcome_of(each)


def searched(options: SearchOptions, pool: Counting | None = None) -> Search:
    search = Search(options)
    search.run(make, pool or Counting(), lambda _outcome: None)
    return search


def without_number(trials: Iterable[Trial]) -> list[Trial]:
    return [replace(each, number=0) for each in trials]


@pytest.fixture(scope="module")
def search() -> Search:
    return searched(OPTIONS)


def test_the_first_trial_is_the_present_configuration(search: Search) -> None:
    first, *_ = search.trials()
    assert first.choices == START
    assert first.scores is not None
    assert first.scores.values == (56.5,)  # 20 + 5 * 7, and the mean of the seeds


def test_the_search_gets_better(search: Search) -> None:
    best = min(each.scores.values for each in search.trials() if each.scores is not None)
    assert best <= (26.5,)  # a weight of 7 or 8


def test_trials_that_fail_or_are_hopeless_have_no_scores(search: Search) -> None:
    for trial in search.trials():
        is_failed = trial.choices["Packer.weight"] == 9
        assert (trial.failure is not None) == is_failed
        assert not (is_failed and trial.scores)
    assert any(each.scores is None and each.failure is None for each in search.trials())


def test_hopeless_trials_do_not_run_their_other_seeds() -> None:
    pool = Counting()
    trials = searched(OPTIONS, pool).trials()
    num_scored = sum(each.scores is not None for each in trials)
    assert pool.num_run == len(trials) + num_scored


def test_an_interrupted_search_goes_on_as_if_nothing_had_happened(
    search: Search, tmp_path: Path
) -> None:
    kept = replace(OPTIONS, storage=tmp_path / "trials.journal")
    with pytest.raises(KeyboardInterrupt):
        searched(kept, Counting(interrupt_at=2 * BATCH + 3))
    resumed = Search(kept)
    assert resumed.num_ended == BATCH
    resumed.run(make, Counting(), lambda _outcome: None)
    assert without_number(resumed.trials()) == without_number(search.trials())
    pool = Counting()
    assert searched(kept, pool).num_ended == OPTIONS.num_trials
    assert pool.num_run == 0


def test_a_storage_of_another_search_is_refused(tmp_path: Path) -> None:
    kept = replace(OPTIONS, storage=tmp_path / "trials.journal", inputs="one")
    Search(kept)
    with pytest.raises(UnusableResults, match=r"trials\.journal: it is of a search with other"):
        Search(replace(kept, inputs="two"))


@pytest.mark.parametrize(
    "content", ['{"trials": 3}', '{"trials": 3}\n{"trials": 4}\n', '{"op_code":0,"study_na']
)
def test_a_file_of_something_else_is_left_alone(tmp_path: Path, content: str) -> None:
    other = tmp_path / "other.json"
    other.write_text(content)
    with pytest.raises(UnusableResults, match=r"other\.json: expected a storage of stowage tune"):
        Search(replace(OPTIONS, storage=other))
    assert other.read_text() == content


def test_the_setting_that_matters_is_the_most_important(search: Search) -> None:
    (found,) = search.importances().values()
    assert max(found, key=lambda name: found[name]) == "Packer.weight"


def test_few_trials_have_no_importances() -> None:
    assert searched(replace(OPTIONS, num_trials=BATCH)).importances() == {}


def test_several_objectives_have_a_score_each() -> None:
    options = replace(OPTIONS, objectives=["packing", "balance"], num_trials=BATCH)
    search = searched(options)
    first, *_ = search.trials()
    assert first.scores is not None
    assert first.scores.values == (56.5, 16.0)
    assert search.importances() == {}
