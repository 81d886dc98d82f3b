"""Which of several victims is evicted, and where its preemptor is tried first."""

from __future__ import annotations

import pytest

from stowage.api.instructions import AttemptResult, EvictPod
from tests.stories.preemption_driver import HIGHER, PreemptionDriver, names
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
