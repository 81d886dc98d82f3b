"""Preemption where a node is judged as it would be without its victims."""

from __future__ import annotations

from stowage.api.instructions import EvictPod
from stowage.api.objects.pod import TopologySpreadConstraint
from tests.stories.preemption_driver import HIGHER, PreemptionDriver
from tests.support.builders import label_selector


def test_nodes_without_all_topology_keys_are_no_domains_in_a_dry_run() -> None:
    """The node ``b`` has a zone and no rack, so its empty zone makes no skew."""
    driver = PreemptionDriver()
    driver.add_nodes("a", cpu="3", labels={"zone": "z1", "rack": "r1"})
    driver.add_nodes("b", cpu="3", labels={"zone": "z2"})
    for name in ("web-0", "web-1"):
        driver.show_running(name, "a", priority=HIGHER, labels={"app": "web"})
    driver.show_running("low", "a")
    selector = label_selector({"app": "web"})
    constraints = tuple(
        TopologySpreadConstraint(1, key, "DoNotSchedule", label_selector=selector)
        for key in ("zone", "rack")
    )
    driver.show_pending("p", labels={"app": "web"}, topology_spread_constraints=constraints)
    driver.schedule_next()
    assert [each.victim.name for each in driver.take(EvictPod)] == ["low"]
