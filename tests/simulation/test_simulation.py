"""The scheduler keeps its invariants in simulated clusters."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import replace

import pytest

from stowage.operator import state_validator
from stowage.operator.state_validator import StateValidator
from tests.simulation.extenders import BINDER, GUARD, PICKY, RATER
from tests.simulation.fault_rates import EXTENDER_FAULTS, FAULTS
from tests.simulation.plan import MANY_EVENTS, Emphasis
from tests.simulation.run import simulate

NUM_SEEDS = 30
NUM_DEVICE_SEEDS = 10
NUM_GANG_SEEDS = 8
EXTENDED_SEED = 20036


def _long(emphasis: Emphasis) -> Emphasis:
    """The emphasis of the lives that found the bugs of the past: all lives were long."""
    return replace(emphasis, num_events=MANY_EVENTS)


_LONG = _long(Emphasis())
_REORDERED = _long(Emphasis({"reordered": 0.3}))

#: Bugs of the past: the seed and the emphasis that showed them.
REGRESSIONS = {
    "a lost watch request had the timeout of a watch event": (3, _LONG),
    "a lost watch request had the timeout of a watch event on a new leader": (27, _LONG),
    "a standby checked the lease too rarely": (33, _LONG),
    "a watch event that arrived out of order was dropped": (8, _REORDERED),
    "a late answer renewed an expired lease, and no pod was scheduled": (29, _LONG),
    "a node event that arrived out of order was dropped": (10, _REORDERED),
    "after a second preemption the first victim waited for the preemptor": (2271, _LONG),
    "after a second preemption a victim's end did not requeue the preemptor": (2509, _LONG),
    "the end of a nomination did not requeue pods with anti-affinity to it": (2373, _LONG),
    "two pods nominated to one node blocked each other": (2931, _LONG),
    "a new node did not requeue a pod with an extender-managed resource": (3989, _LONG),
}


_DEVICES = Emphasis(has_devices=True)
#: The same with devices.
DEVICE_REGRESSIONS = {
    "a claim left behind by a killed leader kept its pod waiting": 112,
    "a pod was bound while the reservation of its claim was being given back": 136,
}


_GANGS = Emphasis(has_gangs=True)
#: The same with pod groups.
GANG_REGRESSIONS = {
    "members of a group that was deleted kept the room that evictions had made for them": 69,
}


_GANGS_WITH_DEVICES = Emphasis(has_devices=True, has_gangs=True)
#: The same with pod groups whose members share claims.
GANG_DEVICE_REGRESSIONS = {
    "a new leader gave a device away that the one before had given": 3062,
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


@pytest.mark.parametrize("seed", range(NUM_DEVICE_SEEDS))
def test_random_faults_with_devices_violate_no_invariant(seed: int) -> None:
    assert not simulate(seed, _DEVICES).violations


def test_claims_are_taken_back_and_their_writes_meet_faults() -> None:
    happened = sum((simulate(seed, _DEVICES).faults for seed in range(3)), Counter())
    assert happened["claim deallocated"] > 0
    assert happened["hook_next_claim_write"] > 0


@pytest.mark.parametrize("bug", DEVICE_REGRESSIONS)
def test_seed_of_a_fixed_bug_with_devices_has_no_violation(bug: str) -> None:
    assert not simulate(DEVICE_REGRESSIONS[bug], _long(_DEVICES)).violations


@pytest.mark.parametrize("seed", range(NUM_GANG_SEEDS))
def test_random_faults_with_pod_groups_violate_no_invariant(seed: int) -> None:
    outcome = simulate(seed, _GANGS)
    assert not outcome.violations
    assert outcome.faults["create_gang"] > 0
    assert outcome.num_bound > 0


@pytest.mark.parametrize("bug", GANG_REGRESSIONS)
def test_seed_of_a_fixed_bug_with_pod_groups_has_no_violation(bug: str) -> None:
    assert not simulate(GANG_REGRESSIONS[bug], _long(_GANGS)).violations


@pytest.mark.parametrize("bug", GANG_DEVICE_REGRESSIONS)
def test_seed_of_a_fixed_bug_with_shared_claims_has_no_violation(bug: str) -> None:
    assert not simulate(GANG_DEVICE_REGRESSIONS[bug], _long(_GANGS_WITH_DEVICES)).violations


def test_a_standby_finds_its_state_consistent(monkeypatch: pytest.MonkeyPatch) -> None:
    validators: set[StateValidator] = set()
    usual = StateValidator.validate

    async def validate(validator: StateValidator, goes_on: Callable[[], bool]) -> None:
        validators.add(validator)
        await usual(validator, goes_on)

    monkeypatch.setattr(StateValidator, "validate", validate)
    monkeypatch.setattr(state_validator, "STANDBY_INTERVAL_S", 5.0)
    for seed in range(4):
        assert not simulate(seed).violations
    results = sum((each.result_counts() for each in validators), Counter[str]())
    assert set(results) == {"consistent"}


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
    outcomes = [simulate(seed) for seed in range(14)]
    assert len({outcome.trace for outcome in outcomes}) == len(outcomes)
    assert sum(outcome.num_bound for outcome in outcomes) > 50
    happened = sum((outcome.faults for outcome in outcomes), Counter())
    assert not [fault for fault in (*FAULTS, "watch gone", "kill_leader") if not happened[fault]]
