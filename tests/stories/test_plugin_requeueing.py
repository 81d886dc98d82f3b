"""When a pod that a plugin rejected or failed is tried again, and whom its failure helps."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from stowage.api.cluster_events import ActionType, ClusterEvent, EventResource, QueueingHint
from stowage.api.events import (
    AssignedPodSeen,
    NodeSeen,
    PreBindFinished,
    WaitingPodAllowed,
    WaitingPodRejected,
)
from stowage.api.instructions import BindPod
from stowage.api.objects.node import Taint
from stowage.api.status import SUCCESS, WAIT, Code, Status, unschedulable
from stowage.framework import EventRegistration
from tests.stories.plugin_driver import PluginDriver, full
from tests.support.builders import make_node, make_pod
from tests.support.engines import configurable_engine
from tests.support.models.engine_driver import EngineDriver, reference
from tests.support.plugins.scripted_plugin import ScriptedPlugin

NODE_ADD = ClusterEvent(EventResource.NODE, ActionType.ADD)
NODE_LABEL = ClusterEvent(EventResource.NODE, ActionType.UPDATE_NODE_LABEL)
NODE_TAINT = ClusterEvent(EventResource.NODE, ActionType.UPDATE_NODE_TAINT)
POD_UPDATE = ClusterEvent(EventResource.POD, ActionType.UPDATE)


class CountingHints(ScriptedPlugin):
    """Lets every pod wait at Permit; notes for whom its hint about a new label is asked."""

    def __init__(self) -> None:
        super().__init__("CountingHints", {"permit": (WAIT, 60.0)})
        self.asked: list[str] = []

    def events_to_register(self) -> list[EventRegistration]:
        return [EventRegistration(NODE_LABEL, self.hint)]

    def hint(self, pod: Any, old: Any, new: Any) -> QueueingHint:
        del old, new
        self.asked.append(pod.name)
        return QueueingHint.QUEUE


@pytest.mark.parametrize(("changes", "queue"), [(True, "backoff"), (False, "unschedulable")])
def test_an_event_while_a_pod_waits_at_permit_counts_once_it_is_rejected(
    changes: bool, queue: str
) -> None:
    plugin = CountingHints()
    driver = PluginDriver(plugin)
    driver.add_nodes("n")
    driver.create_pods("p")
    driver.schedule()
    if changes:
        driver.handle(NodeSeen(make_node("n", labels={"a": "b"})))
    driver.create_pods("q")
    driver.schedule()
    driver.handle(WaitingPodRejected("uid-p", "CountingHints", "no"))
    driver.handle(WaitingPodAllowed("uid-q", "CountingHints"))
    assert driver.take(BindPod) == [BindPod(reference("q"), "n")]
    assert (plugin.asked, driver.queue_of("p")) == (["p"] if changes else [], queue)


@pytest.mark.parametrize("point", ["reserve", "permit"])
def test_a_pod_that_reserve_or_permit_rejected_waits_for_an_event_that_they_registered(
    point: str,
) -> None:
    answers = iter([unschedulable("no"), SUCCESS, SUCCESS])

    def answer(*_args: Any) -> Status | tuple[Status, float]:
        status = next(answers)
        return status if point == "reserve" else (status, 0.0)

    driver = PluginDriver(ScriptedPlugin(answers={point: answer}, registered=(NODE_ADD,)))
    driver.add_nodes("n")
    driver.create_pods("p")
    driver.schedule()
    driver.create_pods("another")
    driver.schedule()
    driver.handle(AssignedPodSeen(make_pod("running", node="n")))
    assert driver.queue_of("p") == "unschedulable"
    driver.add_nodes("m")
    assert driver.queue_of("p") == "backoff"
    driver.schedule()
    assert [each.pod.name for each in driver.take(BindPod)] == ["another", "p"]


@pytest.mark.parametrize(
    ("labels", "taints", "queue"),
    [({"a": "b"}, 1, "unschedulable"), ({}, 0, "backoff"), ({"a": "b"}, 0, "backoff")],
)
def test_an_update_of_several_fields_helps_if_one_of_them_is_registered(
    labels: dict[str, str], taints: int, queue: str
) -> None:
    tainted = [Taint("reserved", "yes", "NoSchedule")]
    plugin = full()
    plugin.registered = (NODE_TAINT,)
    driver = PluginDriver(plugin)
    driver.add_nodes("n", taints=tainted)
    driver.create_pods("p")
    driver.schedule()
    driver.handle(NodeSeen(make_node("n", labels=labels, taints=tainted[:taints])))
    assert driver.queue_of("p") == queue


@pytest.mark.parametrize(
    ("registered", "queue"), [((), "unschedulable"), ((POD_UPDATE,), "active")]
)
def test_an_update_opens_a_gate_of_a_plugin_that_registered_updates(
    registered: tuple[ClusterEvent, ...], queue: str
) -> None:
    def is_open(pod: Any) -> Status:
        return SUCCESS if "open" in pod.labels else unschedulable("closed")

    driver = PluginDriver(ScriptedPlugin(answers={"pre_enqueue": is_open}, registered=registered))
    driver.create_pods("p")
    assert driver.queue_of("p") == "unschedulable"
    driver.create_pods("p", labels={"open": ""})
    assert driver.queue_of("p") == queue


def test_a_pod_that_pre_bind_fails_gives_its_room_to_a_pod_of_another_profile() -> None:
    fails = ScriptedPlugin("Fails", {"pre_bind_pre_flight": SUCCESS})
    profiles: list[dict[str, Any]] = [
        {"schedulerName": "a", "plugins": {"multiPoint": {"enabled": [{"name": "Fails"}]}}},
        {"schedulerName": "b"},
    ]
    driver = EngineDriver(partial(configurable_engine, *profiles, plugins=[fails]))
    driver.add_nodes("n", cpu="1")
    driver.create_pods("p", cpu="1", scheduler_name="a")
    driver.schedule()
    driver.create_pods("q", cpu="1", scheduler_name="b")
    driver.schedule()
    assert driver.queue_of("q") == "unschedulable"
    driver.handle(PreBindFinished("uid-p", 1, Code.ERROR, ("the disk failed",), "Fails"))
    driver.now = 20.0
    driver.schedule(1)
    assert driver.take(BindPod) == [BindPod(reference("q"), "n")]
