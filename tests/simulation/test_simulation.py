"""Seeds that were lived through without a violation, and planted faults that are found."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from scheduler.operator.binder import Binder, _failed
from scheduler.operator.leader_election import LeaderElector
from scheduler.operator.reflector import Reflector
from scheduler.queue.scheduling_queue import SchedulingQueue
from tests.simulation.plan import Emphasis
from tests.simulation.run import simulate

NUM_SEEDS = 30
MAX_SEEDS_TO_A_FAULT = 120


@pytest.mark.parametrize("seed", range(NUM_SEEDS))
def test_whatever_happens_no_promise_is_broken(seed: int) -> None:
    outcome = simulate(seed)
    assert not outcome.violations
    assert outcome.num_changes > 0


def test_a_seed_is_lived_through_again_step_by_step() -> None:
    assert simulate(3) == simulate(3)


def test_seeds_differ_and_much_goes_wrong_in_them() -> None:
    outcomes = [simulate(seed) for seed in range(8)]
    assert len({outcome.trace for outcome in outcomes}) == len(outcomes)
    assert sum(outcome.num_bound for outcome in outcomes) > 50
    assert sum(outcome.faults.total() for outcome in outcomes) > 100


async def _take_a_lost_answer_for_a_failure(_self: Any, instruction: Any, error: Any) -> Any:
    return _failed(instruction, str(error))


def _none(*_arguments: Any, **_options: Any) -> list[Any]:
    return []


def _yes(_self: Any) -> bool:
    return True


class Planted(NamedTuple):
    """A fault in the scheduler, what brings it out, and what is found then."""

    owner: type
    attribute: str
    replacement: Callable[..., Any]
    emphasis: Emphasis
    finding: str


PLANTED = {
    "a lost answer is taken for a failure": Planted(
        Binder,
        "_settle",
        _take_a_lost_answer_for_a_failure,
        Emphasis({"answer_lost": 0.3, "stalled": 0.3}, frozenset(["create_burst"])),
        "overcommits",
    ),
    "a replica writes without the lease": Planted(
        LeaderElector,
        "may_write",
        _yes,
        Emphasis(often=frozenset(["stop", "create_burst", "delete_many"])),
        "let a Binding out",
    ),
    "a list does not tell what vanished": Planted(
        Reflector, "_events_of_vanished", _none, Emphasis(), "which is not there"
    ),
    "an old list is believed": Planted(
        Reflector,
        "_check_age",
        _none,
        Emphasis({"stale": 0.6}, frozenset(["restart_server", "create_burst"])),
        "overcommits",
    ),
    "a pod that found no node is dropped": Planted(
        SchedulingQueue,
        "add_unschedulable",
        lambda self, queued, *_arguments, **_options: self.done(queued.uid),
        Emphasis(),
        "pending",
    ),
}


@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_fault_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    fault = PLANTED[name]
    monkeypatch.setattr(fault.owner, fault.attribute, fault.replacement)
    for seed in range(MAX_SEEDS_TO_A_FAULT):
        violations = simulate(seed, fault.emphasis).violations
        if any(fault.finding in violation for violation in violations):
            return
    pytest.fail(f"{MAX_SEEDS_TO_A_FAULT} seeds did not show it")
