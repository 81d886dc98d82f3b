"""A sweep keeps what has ended, whatever happens, and takes it up again."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from stowage.experiments.experiment import Outcome
from stowage.experiments.pool import PoolOptions
from stowage.experiments.results_file import UnusableResults
from stowage.experiments.sweep import INTERRUPTED, Sweep, SweepOptions, run_sweep
from tests.unit.experiments.experiments import Raising, Tiny, make_result

HERE = PoolOptions(workers=1)


def sweep(
    experiments: list[Any],
    results: Path | None = None,
    on_result: Callable[[Outcome], None] = lambda _outcome: None,
) -> Sweep:
    return run_sweep(experiments, SweepOptions(HERE, results), on_result)


def bound(ended: Sweep) -> list[float]:
    return [each.metrics["bound"] for each in ended.results]


def test_every_experiment_gives_its_result_in_the_given_order() -> None:
    assert bound(sweep([Tiny(3), Tiny(1), Tiny(2)])) == [30, 10, 20]


def test_an_experiment_that_raises_ends_alone_with_its_reason() -> None:
    ended = sweep([Tiny(1), Raising(2), Tiny(3)])
    assert bound(ended) == [10, 30]
    (failure,) = ended.failures
    assert failure.key == "t/p/2"
    assert (failure.failure or "").startswith("ZeroDivisionError: in the plugin (")
    assert "experiments.py:" in (failure.failure or "")
    assert ended.ended_early is None


def test_a_number_that_is_not_finite_is_a_failure_that_names_it() -> None:
    class Infinite(Tiny, frozen=True):
        def run(self) -> Any:
            return make_result(bound=float("inf"))

    (failure,) = sweep([Infinite(1)]).failures
    assert failure.failure == "metric bound is inf"


def test_two_experiments_of_one_name_are_refused() -> None:
    with pytest.raises(ValueError, match="two experiments are named t/p/1"):
        sweep([Tiny(1), Tiny(1)])


def test_finished_experiments_are_not_run_again(tmp_path: Path) -> None:
    runs, results = tmp_path / "runs", tmp_path / "results.jsonl"
    first = sweep([Tiny(1, runs=runs)], results)
    second = sweep([Tiny(1, runs=runs), Tiny(2, runs=runs)], results)
    assert runs.read_text().split() == ["1", "2"]
    assert (first.num_kept, second.num_kept) == (0, 1)
    assert second.outcomes == sweep([Tiny(1), Tiny(2)]).outcomes


def test_a_changed_input_is_computed_again_and_counted(tmp_path: Path) -> None:
    results, runs = tmp_path / "results.jsonl", tmp_path / "runs"
    sweep([Tiny(1), Tiny(2)], results)
    again = sweep([Tiny(1, content="other", runs=runs), Tiny(2, runs=runs)], results)
    assert (again.num_outdated, again.num_kept) == (1, 1)
    assert runs.read_text().split() == ["1"]
    assert sweep([Tiny(1, content="other")], results).num_kept == 1


def test_a_failed_experiment_is_tried_again(tmp_path: Path) -> None:
    results = tmp_path / "results.jsonl"
    assert sweep([Raising(1)], results).failures
    assert bound(sweep([Tiny(1)], results)) == [10]


def test_ctrl_c_keeps_what_has_ended(tmp_path: Path) -> None:
    results = tmp_path / "results.jsonl"

    def interrupt(outcome: Outcome) -> None:
        if outcome.key == "t/p/2":
            raise KeyboardInterrupt

    ended = sweep([Tiny(1), Tiny(2), Tiny(3)], results, interrupt)
    assert (ended.ended_early, ended.num_missing, bound(ended)) == (INTERRUPTED, 1, [10, 20])
    assert sweep([Tiny(1), Tiny(2), Tiny(3)], results).num_kept == 2


def test_a_full_disk_ends_the_sweep_and_keeps_what_has_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    results = tmp_path / "results.jsonl"
    write = os.pwrite
    num_writes = 0

    def pwrite(descriptor: int, content: Any, position: int) -> int:
        nonlocal num_writes
        num_writes += 1
        if num_writes > 3:  # the head, the first result, and a part of the second
            raise OSError(errno.ENOSPC, "No space left on device")
        return write(descriptor, content[:20] if num_writes == 3 else content, position)

    monkeypatch.setattr("stowage.experiments.results_file.os.pwrite", pwrite)
    ended = sweep([Tiny(1), Tiny(2)], results)
    monkeypatch.undo()
    assert ended.ended_early == f"{results}: No space left on device"
    assert (bound(ended), ended.num_missing) == ([10], 1)
    assert sweep([Tiny(1), Tiny(2)], results).num_kept == 1


def test_a_line_that_was_cut_is_computed_again(tmp_path: Path) -> None:
    results = tmp_path / "results.jsonl"
    sweep([Tiny(1), Tiny(2)], results)
    results.write_bytes(results.read_bytes()[:-9])
    again = sweep([Tiny(1), Tiny(2)], results)
    assert (again.num_kept, bound(again)) == (1, [10, 20])
    assert len(results.read_bytes().splitlines()) == 3


def test_a_file_whose_first_line_was_cut_is_begun_again(tmp_path: Path) -> None:
    results = tmp_path / "results.jsonl"
    results.write_text('{"format":"stowage re')
    assert (sweep([Tiny(1)], results).num_kept, sweep([Tiny(1)], results).num_kept) == (0, 1)


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ("seed,nodes\n1,2\n", r":1: expected a file of results"),
        ('{"kind": "List", "items": []}', r":1: expected a file of results"),
        ('{"format":"stowage results 1"}\n{"key":1}\n', r":2: expected a result; .*key"),
    ],
)
def test_a_file_of_something_else_is_left_alone(
    tmp_path: Path, content: str, complaint: str
) -> None:
    results = tmp_path / "other"
    results.write_text(content)
    with pytest.raises(UnusableResults, match=complaint):
        sweep([Tiny(1)], results)
    assert results.read_text() == content


def test_two_sweeps_do_not_write_to_one_file(tmp_path: Path) -> None:
    results = tmp_path / "results.jsonl"

    def start_another(_outcome: Outcome) -> None:
        sweep([Tiny(2)], results)

    with pytest.raises(UnusableResults, match="another sweep writes to this file"):
        sweep([Tiny(1)], results, start_another)
