"""An eviction that the API server refuses uses up no disruption of a budget."""

from __future__ import annotations

from stowage.api.events import PendingPodGone
from stowage.api.instructions import EvictPod
from tests.stories.preemption_driver import PreemptionDriver
from tests.stories.test_preemption import DB, RESPECTFUL, _db_budget
from tests.support.builders import HOSTNAME
from tests.support.engines import of_type


def test_the_disruption_of_a_refused_eviction_is_left_for_another_preemptor() -> None:
    driver = PreemptionDriver(profile=RESPECTFUL)
    driver.add_nodes("n0", "n1")
    for name, node in (("a", "n0"), ("b", "n1")):
        driver.show_running(name, node, cpu="2", labels=DB)
    driver.handle(_db_budget(1))
    driver.show_pending("p", cpu="2", node_selector={HOSTNAME: "n0"})
    (eviction,) = of_type(EvictPod, driver.schedule_next())
    driver.finish_eviction(eviction, error="forbidden")
    driver.handle(PendingPodGone("default", "p", "uid-p"))
    driver.show_pending("q", cpu="2", node_selector={HOSTNAME: "n1"})
    assert [each.victim.name for each in of_type(EvictPod, driver.schedule_next())] == ["b"]
