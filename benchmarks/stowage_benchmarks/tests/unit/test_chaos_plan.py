"""The plan of faults is drawn from a seed."""

from __future__ import annotations

from collections import Counter

import msgspec
import pytest

from simcluster.faults.faults import FaultRule
from stowage_benchmarks.chaos import plan as chaos_plan
from stowage_benchmarks.chaos.plan import (
    API_FAULT,
    KILL_IN_PEACE,
    REQUESTS,
    RETIRE_IN_PEACE,
    draw_plan,
)

LEASE_S = 4.0


def test_the_same_seed_draws_the_same_plan_and_another_seed_another() -> None:
    plans = [draw_plan(60.0, seed, LEASE_S) for seed in (1, 1, 2)]
    assert plans[0] == plans[1]
    assert len({plan.digest for plan in plans}) == 2


def test_a_short_plan_has_every_kind_of_step() -> None:
    kinds = Counter(step.kind for step in draw_plan(20.0, 1, LEASE_S).steps)
    constants = [
        value for name, value in vars(chaos_plan).items() if name[0].isupper() and name.isupper()
    ]
    named = {value for value in constants if isinstance(value, str)}
    assert named - {chaos_plan.LIST, chaos_plan.WATCH} <= set(kinds)
    assert kinds[API_FAULT] >= 5


def test_a_long_plan_has_every_fault_of_every_kind_of_request() -> None:
    steps = draw_plan(600.0, 1, LEASE_S).steps
    drawn = {step.rule["name"] for step in steps if step.rule is not None}
    assert drawn == {
        f"{kind}: {fault}" for kind, (_, faults) in REQUESTS.items() for fault in faults
    }


@pytest.mark.parametrize("seed", range(5))
def test_all_faults_end_within_the_duration(seed: int) -> None:
    plan = draw_plan(30.0, seed, LEASE_S)
    assert all(0 <= step.at_s <= step.at_s + step.seconds <= 30.01 for step in plan.steps)
    assert list(plan.steps) == sorted(plan.steps, key=lambda step: step.at_s)


def test_at_the_end_leaders_are_killed_without_other_faults() -> None:
    plan = draw_plan(600.0, 1, LEASE_S)
    assert [step.kind for step in plan.in_peace].count(KILL_IN_PEACE) == 2
    assert {step.kind for step in plan.in_peace} == {KILL_IN_PEACE, RETIRE_IN_PEACE}
    assert plan.in_storm + plan.in_peace == plan.steps


def test_the_server_accepts_every_fault_rule() -> None:
    for step in draw_plan(600.0, 1, LEASE_S).steps:
        if step.rule is not None:
            rule = msgspec.convert(step.rule, FaultRule)
            assert rule.lasts_s > 0
            assert 0 < rule.rate < 1
