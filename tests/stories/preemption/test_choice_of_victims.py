"""Which of several victims is evicted, if any, and where its preemptor is tried first."""

from __future__ import annotations

import pytest

from stowage.api.instructions import AttemptResult, EvictPod, PatchPodStatus
from tests.stories.preemption.driver import HIGHER, PreemptionDriver, names
from tests.support.engines import of_type


def test_a_nomination_that_the_watch_has_not_shown_yet_is_tried_before_other_nodes() -> None:
    driver = PreemptionDriver()
    driver.add_nodes("n0", "n1")
    driver.show_running("higher", "n0", cpu="2", priority=HIGHER)
    driver.show_running("victim", "n1", cpu="2")
    driver.show_pending("p")
    (eviction,) = of_type(EvictPod, driver.schedule_next())
    driver.finish_eviction(eviction)
    driver.remove("higher")
    driver.remove("victim")
    (attempt,) = of_type(AttemptResult, driver.schedule_next(after_s=10.0))
    assert (attempt.node_name, attempt.evaluated_nodes) == ("n1", 1)


@pytest.mark.parametrize("later", ["n0", "n1"])
def test_of_equal_victims_the_one_that_has_run_for_the_shortest_time_is_evicted(later: str) -> None:
    driver = PreemptionDriver()
    driver.add_nodes("n0", "n1")
    for node in sorted(("n0", "n1"), key=later.__eq__):
        driver.show_running(f"on-{node}", node, cpu="2")
    driver.show_pending("p")
    assert names(of_type(EvictPod, driver.schedule_next())) == [f"on-{later}"]


@pytest.mark.parametrize(("num_nodes", "evicted"), [(9, []), (10, ["on-n0"])])
def test_no_pod_is_evicted_where_the_percentage_of_the_nodes_is_less_than_one(
    num_nodes: int, evicted: list[str]
) -> None:
    arguments = {"minCandidateNodesPercentage": 10, "minCandidateNodesAbsolute": 0}
    settings = {"name": "DefaultPreemption", "args": arguments}
    driver = PreemptionDriver(
        profile={"schedulerName": "default-scheduler", "pluginConfig": [settings]}
    )
    *others, last = (f"n{number}" for number in range(num_nodes))
    driver.add_nodes(*others, last)
    driver.show_running("stays", last, priority=HIGHER)
    driver.show_running("too-small", last)
    for node in others:
        driver.show_running(f"on-{node}", node, cpu="2")
    driver.show_pending("p", cpu="2")
    answer = driver.schedule_next()
    assert names(of_type(EvictPod, answer)) == evicted
    (patch,) = of_type(PatchPodStatus, answer)
    in_vain = (
        "preemption: 0/9 nodes are available: "
        "1 Insufficient cpu, 8 Preemption is not helpful for scheduling."
    )
    assert (in_vain in patch.message) == (not evicted)
