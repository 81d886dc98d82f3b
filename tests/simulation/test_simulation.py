"""The scheduler keeps its invariants in simulated clusters."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter

import pytest

from tests.simulation.extenders import BINDER, GUARD, PICKY, RATER
from tests.simulation.fault_rates import EXTENDER_FAULTS, FAULTS
from tests.simulation.plan import Emphasis
from tests.simulation.run import simulate

NUM_SEEDS = 30
EXTENDED_SEED = 20036

#: Bugs of the past: the seed and the emphasis that showed them.
REGRESSIONS = {
    "a lost watch request had the timeout of a watch event": (3, Emphasis()),
    "a lost watch request had the timeout of a watch event on a new leader": (27, Emphasis()),
    "a standby checked the lease too rarely": (33, Emphasis()),
    "a watch event that arrived out of order was dropped": (8, Emphasis({"reordered": 0.3})),
    "a late answer renewed an expired lease, and no pod was scheduled": (29, Emphasis()),
    "a node event that arrived out of order was dropped": (10, Emphasis({"reordered": 0.3})),
    "after a second preemption the first victim waited for the preemptor": (2271, Emphasis()),
    "after a second preemption a victim's end did not requeue the preemptor": (2509, Emphasis()),
    "the end of a nomination did not requeue pods with anti-affinity to it": (2373, Emphasis()),
    "two pods nominated to one node blocked each other": (2931, Emphasis()),
    "a new node did not requeue a pod with an extender-managed resource": (3989, Emphasis()),
}


@pytest.mark.parametrize("seed", range(NUM_SEEDS))
def test_random_faults_violate_no_invariant(seed: int) -> None:
    outcome = simulate(seed)
    assert not outcome.violations
    assert outcome.num_changes > 0


@pytest.mark.parametrize("bug", REGRESSIONS)
def test_seed_of_a_fixed_bug_has_no_violation(bug: str) -> None:
    seed, emphasis = REGRESSIONS[bug]
    assert not simulate(seed, emphasis).violations


def test_two_runs_of_a_seed_are_equal() -> None:
    assert simulate(3) == simulate(3)


def test_runs_of_a_seed_are_equal_in_every_process() -> None:
    program = f"from tests.simulation.run import simulate; print(simulate({EXTENDED_SEED}).trace)"
    traces = [
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            capture_output=True,
            check=True,
            text=True,
        ).stdout
        for hash_seed in ("1", "2")
    ]
    assert traces[0] == traces[1] != "()\n"


def test_extender_faults_violate_no_invariant() -> None:
    faults = dict.fromkeys(EXTENDER_FAULTS, 0.08)
    kinds = (PICKY, RATER, GUARD, BINDER)
    often = frozenset(["create_burst", "delete_many"])
    outcomes = [simulate(seed, Emphasis(faults, often, kinds)) for seed in range(4)]
    assert not [each.violations for each in outcomes if each.violations]
    happened = sum((outcome.faults for outcome in outcomes), Counter())
    assert not [fault for fault in EXTENDER_FAULTS if not happened[fault]]


def test_seeds_differ_and_every_kind_of_fault_happens() -> None:
    outcomes = [simulate(seed) for seed in range(8)]
    assert len({outcome.trace for outcome in outcomes}) == len(outcomes)
    assert sum(outcome.num_bound for outcome in outcomes) > 50
    happened = sum((outcome.faults for outcome in outcomes), Counter())
    assert not [fault for fault in (*FAULTS, "watch gone", "kill_leader") if not happened[fault]]
