"""A preemptor waits while its victims terminate, and is tried again when they are gone."""

from __future__ import annotations

from stowage.api.instructions import (
    BindPod,
    EvictPod,
    PatchPodStatus,
    PreemptionAttempted,
    PreemptionFinished,
)
from tests.stories.preemption.driver import AWAY_FROM_WEB, HIGHER, LOW, PreemptionDriver
from tests.support.engines import of_type


def test_no_other_pod_is_evicted_while_victims_terminate(driver: PreemptionDriver) -> None:
    driver.add_nodes("n0", "n1")
    for name, node in (("a", "n0"), ("b", "n0"), ("c", "n1"), ("d", "n1")):
        driver.show_running(name, node)
    driver.show_pending("p", cpu="2")
    (first,) = of_type(EvictPod, driver.schedule_next())
    (last,) = of_type(EvictPod, driver.finish_eviction(first))
    node = of_type(PreemptionFinished, driver.finish_eviction(last))[0].node_name
    driver.show_nomination("p", node)
    driver.show_terminating(first.victim.name)
    driver.show_terminating(last.victim.name)
    driver.remove(first.victim.name)
    answer = driver.schedule_next(after_s=20)
    assert of_type(EvictPod, answer) == []
    (patch,) = of_type(PatchPodStatus, answer)
    assert patch.nominated_node_name is None
    assert patch.message.endswith(
        "preemption: not eligible due to a terminating pod on the nominated node."
    )
    driver.remove(last.victim.name)
    (bind,) = of_type(BindPod, driver.schedule_next(after_s=20))
    assert bind.node_name == node


def test_a_preemptor_is_retried_once_its_terminating_victim_is_gone(
    driver: PreemptionDriver,
) -> None:
    driver.add_nodes("n0", cpu="4")
    driver.show_running("guard", "n0", priority=HIGHER, affinity=AWAY_FROM_WEB)
    driver.show_running("v", "n0")
    driver.show_terminating("v")
    driver.show_pending("p", labels={"app": "web"}, nominated_node="n0")
    (patch,) = of_type(PatchPodStatus, driver.schedule_next())
    assert patch.message.endswith("a terminating pod on the nominated node.")
    driver.remove("v")
    assert of_type(PreemptionAttempted, driver.schedule_next(after_s=20))


def test_the_deletion_of_the_last_victim_requeues_the_preemptor_after_any_rejection(
    driver: PreemptionDriver,
) -> None:
    driver.add_nodes("n0")
    driver.show_running("with the port", "n0", cpu="1", host_ports=[80], priority=LOW + 1)
    driver.show_running("large", "n0", cpu="1")
    driver.show_pending("p", cpu="2", host_ports=[80])
    answer = driver.schedule_next()
    assert "free ports" in of_type(PatchPodStatus, answer)[0].message
    (first,) = of_type(EvictPod, answer)
    driver.remove(first.victim.name)
    (last,) = of_type(EvictPod, driver.finish_eviction(first))
    assert last.victim.name == "large"
    driver.show_terminating("large")
    driver.finish_eviction(last)
    driver.remove("large")
    (bind,) = of_type(BindPod, driver.schedule_next(after_s=20))
    assert bind.pod.name == "p"
