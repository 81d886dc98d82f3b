"""Victims on their way to a node: at Permit, at PreBind, and while they are bound."""

from __future__ import annotations

from typing import Any

import pytest

from stowage.api.events import BindFailed, BindSucceeded, PreBindFinished
from stowage.api.instructions import (
    BindPod,
    EmitEvent,
    EvictPod,
    PatchPodStatus,
    PreemptionFinished,
    RunPreBind,
    StopPreBind,
)
from stowage.api.status import SUCCESS, Code, Status
from stowage.framework import PluginTraits
from tests.stories.preemption.driver import LOW, PreemptionDriver, names
from tests.support.engines import of_type


def test_a_pod_that_is_being_bound_is_evicted_through_the_api_server(
    driver: PreemptionDriver,
) -> None:
    driver.add_nodes("n0")
    driver.show_pending("a", cpu="2", priority=LOW)
    (bind,) = of_type(BindPod, driver.schedule_next())
    driver.show_pending("p")
    assert names(of_type(EvictPod, driver.schedule_next())) == ["a"]
    driver.handle(BindSucceeded(bind.pod.uid, "n0"))


class HoldsBeforeBinding:
    """Pods named waits wait at Permit; pods named prepares have PreBind work."""

    name = "HoldsBeforeBinding"
    traits = PluginTraits()

    def permit(self, state: object, pod: Any, node_name: str) -> tuple[Status, float]:
        del state, node_name
        waits = pod.name.startswith("waits")
        return (Status(Code.WAIT), 600.0) if waits else (SUCCESS, 0.0)

    def pre_bind_pre_flight(self, state: object, pod: Any, node_name: str) -> Status:
        del state, node_name
        return SUCCESS if pod.name.startswith("prepares") else Status(Code.SKIP)

    async def pre_bind(self, state: object, pod: Any, node_name: str) -> Status:
        del state, pod, node_name
        return SUCCESS


@pytest.mark.parametrize(
    ("name", "reason", "message"),
    [
        ("waits", "Unschedulable", "0/1 nodes are available: 1 preempted."),
        (
            "prepares",
            "SchedulerError",
            'running PreBind plugin "HoldsBeforeBinding": preempted by DefaultPreemption',
        ),
    ],
)
def test_a_victim_without_a_binding_is_requeued_instead_of_evicted(
    name: str, reason: str, message: str
) -> None:
    driver = PreemptionDriver(plugins=[HoldsBeforeBinding()])
    driver.add_nodes("n0")
    victim = driver.show_pending(name, cpu="2", priority=LOW)
    first = driver.schedule_next()
    assert of_type(BindPod, first) == []
    driver.show_pending("p")
    answer = driver.schedule_next()
    assert of_type(EvictPod, answer) == []
    assert len(of_type(StopPreBind, answer)) == (name == "prepares")
    assert of_type(PreemptionFinished, answer)
    written = {
        event.reason: event for event in of_type(EmitEvent, answer) if event.pod.name == name
    }
    assert set(written) == {"Preempted", "FailedScheduling"}
    assert written["FailedScheduling"].note == message
    assert [
        (patch.reason, patch.message)
        for patch in of_type(PatchPodStatus, answer)
        if patch.pod.name == name
    ] == [(reason, message)]
    if of_type(RunPreBind, first):
        assert driver.handle(PreBindFinished(victim.metadata.uid, 1, Code.SUCCESS)) == []
    binds = [bind for _ in range(2) for bind in of_type(BindPod, driver.schedule_next(after_s=20))]
    assert [(bind.pod.name, bind.node_name) for bind in binds] == [("p", "n0")]
    assert (
        driver.engine.pending_counts()["unschedulable"] + driver.engine.pending_counts()["backoff"]
        == 1
    )


def _preemptor_of_last(driver: PreemptionDriver) -> EvictPod:
    """A preemptor that NodePorts rejects; its last victim is ``last``, which has no host port."""
    driver.show_running("with the port", "n0", cpu="1", host_ports=[80], priority=LOW + 1)
    driver.show_pending("p", cpu="2", host_ports=[80])
    answer = driver.schedule_next()
    assert "free ports" in of_type(PatchPodStatus, answer)[0].message
    (first,) = of_type(EvictPod, answer)
    assert first.victim.name == "with the port"
    driver.remove(first.victim.name)
    return first


def _bound_after(driver: PreemptionDriver) -> list[str]:
    return [each.pod.name for each in of_type(BindPod, driver.schedule_next(after_s=20))]


def test_the_failed_binding_of_the_last_victim_requeues_the_preemptor_after_any_rejection(
    driver: PreemptionDriver,
) -> None:
    driver.add_nodes("n0")
    victim = driver.show_pending("binds", cpu="1", priority=LOW)
    assert of_type(BindPod, driver.schedule_next())
    (last,) = of_type(EvictPod, driver.finish_eviction(_preemptor_of_last(driver)))
    assert last.victim.name == "binds"
    driver.finish_eviction(last)
    assert _bound_after(driver) == []
    driver.handle(BindFailed(victim.metadata.uid, "n0", "refused"))
    assert _bound_after(driver) == ["p"]


def test_the_last_victim_that_waited_at_permit_requeues_the_preemptor_after_any_rejection() -> None:
    driver = PreemptionDriver(plugins=[HoldsBeforeBinding()])
    driver.add_nodes("n0")
    driver.show_pending("waits", cpu="1", priority=LOW)
    assert of_type(BindPod, driver.schedule_next()) == []
    driver.finish_eviction(_preemptor_of_last(driver))
    assert _bound_after(driver) == ["p"]
