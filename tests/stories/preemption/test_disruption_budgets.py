"""Preemption and disruption budgets: which pods they protect, and what evictions use up of them."""

from __future__ import annotations

from typing import Any

import pytest

from stowage.api.events import DisruptionBudgetGone, PendingPodGone
from stowage.api.instructions import EvictPod, PatchPodStatus
from stowage.framework.authoring import (
    ActionType,
    ClusterEvent,
    CycleState,
    EventRegistration,
    EventResource,
    PodInfo,
    PreFilterResult,
    QueueingHint,
    Snapshot,
    unschedulable,
)
from tests.stories.preemption.driver import LOW, PreemptionDriver, names
from tests.support.builders import HOSTNAME
from tests.support.disruption_budgets import DB, RESPECTFUL, db_budget
from tests.support.engines import of_type


def _respecting(*names: str) -> PreemptionDriver:
    """A profile that respects budgets; pods with the label `DB` fill the nodes n0, n1, ..."""
    driver = PreemptionDriver(profile=RESPECTFUL)
    for row, name in enumerate(names):
        driver.add_nodes(f"n{row}")
        driver.show_running(name, f"n{row}", cpu="2", labels=DB)
    return driver


def test_pods_that_a_disruption_budget_protects_are_evicted_only_without_alternatives() -> None:
    driver = PreemptionDriver()
    driver.add_nodes("n0", "n1")
    driver.show_running("protected", "n0", cpu="2", labels=DB, priority=LOW)
    driver.show_running("unprotected", "n1", cpu="2", labels={"app": "web"}, priority=50)
    driver.handle(db_budget(0))
    driver.show_pending("p")
    assert names(of_type(EvictPod, driver.schedule_next())) == ["unprotected"]


@pytest.mark.parametrize(("disrupted", "want"), [("db-0", "db"), ("db-7", "web")])
def test_a_pod_that_a_budget_lists_as_disrupted_uses_up_none_of_it(
    disrupted: str, want: str
) -> None:
    driver = PreemptionDriver()
    driver.add_nodes("n0", "n1")
    for name in ("db-0", "db-1"):
        driver.show_running(name, "n0", labels=DB, priority=LOW)
    driver.show_running("web", "n1", cpu="2", priority=50)
    driver.handle(db_budget(1, disrupted=disrupted))
    driver.show_pending("p", cpu="2")
    (first,) = names(of_type(EvictPod, driver.schedule_next()))
    assert first.partition("-")[0] == want


def test_no_pod_is_evicted_against_a_respected_budget_until_the_budget_allows_it() -> None:
    driver = _respecting("protected")
    driver.handle(db_budget(0))
    driver.show_pending("p")
    answer = driver.schedule_next()
    assert of_type(EvictPod, answer) == []
    (patch,) = of_type(PatchPodStatus, answer)
    assert patch.message.endswith(
        "preemption: 0/1 nodes are available: 1 Preemption would violate a PodDisruptionBudget."
    )
    assert driver.schedule_next(after_s=60) == []
    driver.handle(db_budget(1))
    assert names(of_type(EvictPod, driver.schedule_next(after_s=20))) == ["protected"]
    driver.check_replay()


def test_a_pod_that_a_respected_budget_lists_as_disrupted_may_be_evicted() -> None:
    driver = _respecting("disrupted", "protected")
    driver.handle(db_budget(0, disrupted="disrupted"))
    driver.show_pending("p")
    assert names(of_type(EvictPod, driver.schedule_next())) == ["disrupted"]


def test_a_deleted_budget_protects_no_pod() -> None:
    driver = _respecting("protected")
    driver.handle(db_budget(0))
    driver.show_pending("p")
    assert of_type(EvictPod, driver.schedule_next()) == []
    driver.handle(DisruptionBudgetGone("default", "db"))
    assert names(of_type(EvictPod, driver.schedule_next(after_s=20))) == ["protected"]


def test_two_preemptors_do_not_use_the_same_allowed_disruption() -> None:
    driver = _respecting("a", "b")
    driver.handle(db_budget(1))
    driver.show_pending("p", cpu="2")
    (eviction,) = of_type(EvictPod, driver.schedule_next())
    driver.show_pending("q", cpu="2")
    assert of_type(EvictPod, driver.schedule_next()) == []
    # The list after a gap of the watch repeats the budget as it was.
    driver.handle(db_budget(1))
    assert of_type(EvictPod, driver.schedule_next(after_s=20)) == []
    driver.finish_eviction(eviction, error="forbidden")
    answer = driver.schedule_next(after_s=20) + driver.schedule_next(after_s=20)
    assert len(of_type(EvictPod, answer)) == 1


def test_an_update_of_the_budget_counts_the_evictions_before_it() -> None:
    driver = _respecting("a", "b")
    driver.handle(db_budget(1))
    driver.show_pending("p", cpu="2")
    assert len(of_type(EvictPod, driver.schedule_next())) == 1
    driver.show_pending("q", cpu="2")
    driver.handle(db_budget(1, version="2"))
    assert len(of_type(EvictPod, driver.schedule_next())) == 1


def test_the_disruption_of_a_refused_eviction_is_left_for_another_preemptor() -> None:
    driver = _respecting("a", "b")
    driver.handle(db_budget(1))
    driver.show_pending("p", cpu="2", node_selector={HOSTNAME: "n0"})
    (eviction,) = of_type(EvictPod, driver.schedule_next())
    driver.finish_eviction(eviction, error="forbidden")
    driver.handle(PendingPodGone("default", "p", "uid-p"))
    driver.show_pending("q", cpu="2", node_selector={HOSTNAME: "n1"})
    assert names(of_type(EvictPod, driver.schedule_next())) == ["b"]


class WantsBudget:
    """Rejects every pod, until the budget ``db`` allows a disruption."""

    name = "WantsBudget"

    def pre_filter(self, state: CycleState, pod: PodInfo, snapshot: Snapshot) -> PreFilterResult:
        return PreFilterResult(unschedulable("no budget"))

    def events_to_register(self) -> list[EventRegistration]:
        changed = ClusterEvent(EventResource.POD_DISRUPTION_BUDGET, ActionType.UPDATE)
        return [EventRegistration(changed, self.after_budget_change)]

    def after_budget_change(self, pod: PodInfo, old: object, new: Any) -> QueueingHint:
        return QueueingHint.when(new.status.disruptions_allowed > 0)


def test_the_hint_of_a_plugin_sees_the_budget_that_changed() -> None:
    driver = PreemptionDriver(plugins=[WantsBudget()])
    driver.add_nodes("n0")
    driver.show_pending("p")
    driver.schedule_next()
    for allowed, place in ((0, "unschedulable"), (1, "backoff")):
        driver.handle(db_budget(allowed, version=str(allowed)))
        assert driver.queue_of("p") == place
