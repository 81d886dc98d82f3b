"""Numbers of replicas during a rollout."""

from typing import Any

import pytest

from simcluster.controllers.workloads.rollout import SetSize, plan_rollout, scaled_value


def rolling(replicas: int, surge: int | str = "25%", unavailable: int | str = "25%") -> Any:
    bounds = {"maxSurge": surge, "maxUnavailable": unavailable}
    return {
        "replicas": replicas,
        "strategy": {"type": "RollingUpdate", "rollingUpdate": bounds},
    }


def test_the_first_rollout_creates_all_replicas() -> None:
    assert plan_rollout(rolling(3), SetSize(0, 0), []) == (3, [])


def test_a_rollout_stays_within_the_surge_and_keeps_old_pods_available() -> None:
    plan = plan_rollout(rolling(4, surge=1, unavailable=0), SetSize(0, 0), [SetSize(4, 4)])
    assert plan == (1, [4])
    later = plan_rollout(rolling(4, surge=1, unavailable=0), SetSize(1, 1), [SetSize(4, 4)])
    assert later == (1, [3])


def test_max_unavailable_old_pods_are_deleted_at_once() -> None:
    plan = plan_rollout(rolling(4, surge=0, unavailable=2), SetSize(0, 0), [SetSize(4, 4)])
    assert plan == (0, [2])


def test_unavailable_old_pods_are_deleted_first() -> None:
    plan = plan_rollout(
        rolling(4, surge=1, unavailable=1), SetSize(1, 1), [SetSize(3, 1), SetSize(1, 1)]
    )
    assert plan.older == [1, 1]


def test_scaling_down_shrinks_the_current_set() -> None:
    assert plan_rollout(rolling(1), SetSize(3, 3), []) == (1, [])


def test_recreate_waits_until_old_pods_are_deleted() -> None:
    spec = {"replicas": 2, "strategy": {"type": "Recreate"}}
    assert plan_rollout(spec, SetSize(0, 0), [SetSize(2, 2)]) == (0, [0])
    assert plan_rollout(spec, SetSize(0, 0), [SetSize(0, 0)]) == (2, [0])


@pytest.mark.parametrize("replicas", [1, 3, 7])
def test_every_rollout_ends(replicas: int) -> None:
    spec, current, old = rolling(replicas), SetSize(0, 0), SetSize(replicas, replicas)
    for _ in range(4 * replicas + 2):
        plan = plan_rollout(spec, current, [old])
        available = min(current.available, plan.current) + min(old.available, plan.older[0])
        assert available >= replicas - scaled_value("25%", replicas, round_up=False)
        assert plan.current + plan.older[0] <= replicas + scaled_value(
            "25%", replicas, round_up=True
        )
        current, old = SetSize(plan.current, plan.current), SetSize(*2 * (plan.older[0],))
    assert (current.replicas, old.replicas) == (replicas, 0)


def test_percentages_are_rounded_as_requested() -> None:
    assert scaled_value("25%", 7, round_up=True) == 2
    assert scaled_value("25%", 7, round_up=False) == 1
    assert scaled_value(3, 7, round_up=True) == 3
