"""A nomination keeps room for its pod until it is cleared, which requeues other pods."""

from __future__ import annotations

import pytest

from stowage.api.events import PendingPodGone
from stowage.api.instructions import BindPod, ClearNomination, EvictPod, PatchPodStatus
from tests.stories.preemption.driver import (
    AWAY_FROM_WEB,
    HIGHER,
    LOW,
    PreemptionDriver,
    preempt_two,
)
from tests.support.engines import of_type


@pytest.mark.parametrize("is_deleted", [True, False])
def test_a_pod_with_anti_affinity_to_a_nominated_pod_is_retried_when_the_nomination_ends(
    driver: PreemptionDriver, *, is_deleted: bool
) -> None:
    driver.add_nodes("n0")
    driver.show_running("v", "n0", cpu="2")
    driver.show_terminating("v")
    driver.show_pending("q", labels={"app": "web"}, cpu="2", priority=HIGHER, nominated_node="n0")
    driver.show_pending("p", cpu="0", affinity=AWAY_FROM_WEB)
    assert of_type(BindPod, [*driver.schedule_next(), *driver.schedule_next()]) == []
    assert driver.queue_of("p") == "unschedulable"
    if is_deleted:
        driver.handle(PendingPodGone("default", "q", "uid-q"))
    else:
        driver.show_nomination("q", "")
    assert driver.queue_of("p") == "backoff"


def test_a_preemptor_of_higher_priority_clears_the_nomination_of_a_lower_one(
    driver: PreemptionDriver,
) -> None:
    driver.add_nodes("n0")
    driver.show_running("a", "n0")
    driver.show_running("b", "n0")
    driver.show_pending("p", cpu="1")
    assert len(of_type(EvictPod, driver.schedule_next())) == 1
    driver.show_nomination("p", "n0")
    driver.show_pending("q", cpu="2", priority=HIGHER)
    answer = driver.schedule_next()
    assert [each.pod.name for each in of_type(ClearNomination, answer)] == ["p"]
    assert len(of_type(EvictPod, answer)) == 1


def test_the_nomination_is_cleared_if_preemption_does_not_help(
    driver: PreemptionDriver,
) -> None:
    driver.add_nodes("n0")
    driver.show_running("a", "n0", cpu="2", priority=HIGHER)
    pod = driver.show_pending("p")
    driver.show_nomination(pod.metadata.name, "n0")
    (patch,) = of_type(PatchPodStatus, driver.schedule_next())
    assert patch.nominated_node_name == ""
    assert patch.message == (
        "0/1 nodes are available: 1 Insufficient cpu. no new claims to deallocate, "
        "preemption: 0/1 nodes are available: 1 No preemption victims found for incoming pod."
    )


def test_a_nomination_is_cleared_even_if_no_watch_event_has_shown_it(
    driver: PreemptionDriver,
) -> None:
    driver.add_nodes("n0")
    driver.show_running("a", "n0")
    driver.show_running("b", "n0")
    driver.show_pending("p")
    (eviction,) = of_type(EvictPod, driver.schedule_next())
    driver.remove(eviction.victim.name)
    driver.finish_eviction(eviction)
    for name in ("c", "d"):
        driver.show_running(name, "n0", cpu="2", priority=HIGHER)
    driver.remove("a" if eviction.victim.name == "b" else "b")
    (patch,) = of_type(PatchPodStatus, driver.schedule_next(after_s=20))
    assert patch.nominated_node_name == ""


def nominate_unseen(driver: PreemptionDriver) -> None:
    """Let `p` evict `a`; `q` finds no room because of its nomination, which no event shows."""
    driver.add_nodes("n0")
    driver.show_running("a", "n0")
    driver.show_running("b", "n0")
    driver.show_pending("p", labels={"app": "web"})
    (eviction,) = of_type(EvictPod, driver.schedule_next())
    driver.remove(eviction.victim.name)
    driver.finish_eviction(eviction)
    driver.show_pending("q", priority=LOW)
    assert of_type(BindPod, driver.schedule_next()) == []
    assert driver.queue_of("q") == "unschedulable"


def test_clearing_a_nomination_that_no_event_has_shown_requeues_pods(
    driver: PreemptionDriver,
) -> None:
    nominate_unseen(driver)
    driver.show_running("c", "n0", cpu="0", priority=HIGHER, affinity=AWAY_FROM_WEB)
    (patch,) = of_type(PatchPodStatus, driver.schedule_next(after_s=20))
    assert (patch.pod.name, patch.nominated_node_name) == ("p", "")
    (bind,) = of_type(BindPod, driver.schedule_next(after_s=20))
    assert (bind.pod.name, bind.node_name) == ("q", "n0")
    assert driver.queue_of("p") == "unschedulable"


def test_a_nomination_that_no_event_has_shown_lasts_while_a_victim_terminates(
    driver: PreemptionDriver,
) -> None:
    first = preempt_two(driver)
    (last,) = of_type(EvictPod, driver.finish_eviction(first))
    driver.finish_eviction(last)
    for victim in (first.victim.name, last.victim.name):
        driver.show_terminating(victim)
    driver.remove(first.victim.name)
    (patch,) = of_type(PatchPodStatus, driver.schedule_next(after_s=20))
    assert patch.message.endswith("not eligible due to a terminating pod on the nominated node.")
    driver.show_pending("q", priority=LOW)
    assert of_type(BindPod, driver.schedule_next()) == []
    driver.remove(last.victim.name)
    (bind,) = of_type(BindPod, driver.schedule_next(after_s=20))
    assert bind.pod.name == "p"


def test_a_nomination_that_another_preemptor_took_away_is_written_when_it_is_made_again(
    driver: PreemptionDriver,
) -> None:
    driver.add_nodes("n0")
    for name in ("a", "b"):
        driver.show_running(name, "n0")
    driver.show_pending("p")
    (first,) = of_type(EvictPod, driver.schedule_next())
    driver.finish_eviction(first)
    driver.show_pending("x", cpu="2", priority=HIGHER)
    (cleared,) = of_type(ClearNomination, driver.schedule_next())
    assert cleared.pod.name == "p"
    for name in ("a", "b"):
        driver.remove(name)
    driver.handle(PendingPodGone("default", "x", "uid-x"))
    driver.show_running("c", "n0", cpu="2")
    (patch,) = of_type(PatchPodStatus, driver.schedule_next(after_s=20))
    assert (patch.pod.name, patch.nominated_node_name) == ("p", "n0")


def test_deleting_a_pod_whose_nomination_no_event_has_shown_requeues_pods(
    driver: PreemptionDriver,
) -> None:
    nominate_unseen(driver)
    driver.handle(PendingPodGone("default", "p", "uid-p"))
    (bind,) = of_type(BindPod, driver.schedule_next(after_s=20))
    assert (bind.pod.name, bind.node_name) == ("q", "n0")
