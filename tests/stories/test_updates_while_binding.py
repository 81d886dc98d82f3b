"""A pod that changes while it is being bound keeps its latest version, or leaves its place."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from stowage.api.events import BindFailed, BindSucceeded, PendingPodSeen, WaitingPodAllowed
from stowage.api.instructions import BindPod, EmitEvent, PatchPodStatus, StopPreBind
from stowage.api.status import SUCCESS, WAIT
from tests.stories.plugin_driver import SCHEDULER, PluginDriver, driver_with_refused_pod
from tests.support.builders import make_pod
from tests.support.models.engine_driver import EngineDriver
from tests.support.plugins.scripted_plugin import ScriptedPlugin


def test_a_pod_whose_binding_fails_is_queued_as_it_was_last_seen() -> None:
    driver = EngineDriver()
    driver.add_nodes("n")
    driver.create_pods("p")
    driver.schedule()
    driver.handle(PendingPodSeen(make_pod("p", labels={"app": "web"})))
    driver.handle(BindFailed("uid-p", "n", "refused"))
    queued = driver.engine.state.queue.latest("uid-p")
    assert queued is not None
    assert queued.labels == {"app": "web"}
    driver.check_replay()


def test_the_condition_of_a_failed_binding_names_the_generation_that_was_tried() -> None:
    driver = EngineDriver()
    driver.add_nodes("n")
    pod = make_pod("p", resource_version="1")
    for generation in (1, 2):
        metadata = replace(pod.metadata, generation=generation, resource_version=str(generation))
        driver.handle(PendingPodSeen(replace(pod, metadata=metadata)))
        driver.schedule()
    driver.handle(BindFailed("uid-p", "n", "refused"))
    (patch,) = driver.take(PatchPodStatus)
    assert patch.observed_generation == 1
    driver.check_replay()


def bound_later(**answers: Any) -> PluginDriver:
    """A driver with `p` on its way to a node, and `q`, which waits for the end of a pod."""
    driver = driver_with_refused_pod(ScriptedPlugin("Slow", answers, only="p"))
    driver.take(PatchPodStatus)
    driver.take(EmitEvent)
    driver.advance(20.0)
    return driver


def begin_deletion(driver: PluginDriver) -> None:
    driver.handle(PendingPodSeen(make_pod("p", terminating=True, scheduler_name=SCHEDULER)))


def test_a_pod_whose_deletion_begins_while_it_waits_at_permit_leaves_its_place_at_once() -> None:
    driver = bound_later(permit=(WAIT, 600))
    begin_deletion(driver)
    (patch,) = driver.take(PatchPodStatus)
    assert patch.message == "0/1 nodes are available: 1 removed."
    assert driver.engine.cache_counts()["assumed_pods"] == 0
    assert driver.queue_of("p") == "unschedulable"
    assert driver.queue_of("q") == "active"
    driver.handle(WaitingPodAllowed("uid-p", "Slow"))
    assert driver.take(BindPod) == []


def test_a_pod_whose_deletion_begins_during_pre_bind_leaves_its_place_at_once() -> None:
    driver = bound_later(pre_bind_pre_flight=SUCCESS)
    begin_deletion(driver)
    assert [each.pod.name for each in driver.take(StopPreBind)] == ["p"]
    assert driver.engine.cache_counts()["assumed_pods"] == 0
    assert driver.queue_of("q") == "active"
    assert driver.queue_of("p") == "backoff"
    driver.take(EmitEvent)
    driver.advance(20.0)
    driver.schedule()
    notes = [each.note for each in driver.take(EmitEvent) if each.pod.name == "p"]
    assert notes == ["skip schedule deleting pod: default/p"]


@pytest.mark.parametrize("times", [1, 2])
def test_a_binding_that_was_sent_decides_about_a_pod_whose_deletion_begins(times: int) -> None:
    driver = bound_later()
    for _ in range(times):
        begin_deletion(driver)
    assert driver.engine.cache_counts()["assumed_pods"] == 1
    assert driver.queue_of("q") == "unschedulable"
    driver.handle(BindFailed("uid-p", "n", "pod p is being deleted"))
    assert driver.engine.cache_counts()["assumed_pods"] == 0
    assert driver.queue_of("q") == "active"


def driver_with_resized_pod(cpu: str, **fields: Any) -> EngineDriver:
    """A driver with a node of 4 CPUs and `p`, which wants other ones since it is being bound."""
    driver = EngineDriver()
    driver.add_nodes("n", cpu="4")
    driver.create_pods("p", cpu="1", resource_version="1")
    driver.schedule()
    assert [each.pod.name for each in driver.take(BindPod)] == ["p"]
    driver.handle(PendingPodSeen(make_pod("p", cpu=cpu, **{"resource_version": "2", **fields})))
    return driver


def bound_pods(driver: EngineDriver) -> list[str]:
    """Schedule all pods; the names of those that are bound then."""
    driver.schedule()
    return [each.pod.name for each in driver.take(BindPod)]


def test_a_pod_that_grows_while_it_is_being_bound_counts_as_it_is_now() -> None:
    driver = driver_with_resized_pod("2")
    driver.create_pods("q", cpu="3")
    assert bound_pods(driver) == []
    driver.create_pods("r", cpu="2")
    assert bound_pods(driver) == ["r"]
    driver.check_replay()


def test_a_pod_that_shrinks_while_it_is_being_bound_gives_its_room_to_a_pod_that_waits() -> None:
    driver = driver_with_resized_pod("3")
    driver.create_pods("q", cpu="2")
    assert bound_pods(driver) == []
    smaller = make_pod("p", cpu="2", resource_version="3")
    driver.handle(PendingPodSeen(smaller))
    driver.advance(20.0)
    assert bound_pods(driver) == ["q"]


def test_a_pod_that_has_grown_counts_as_it_is_after_its_binding_too() -> None:
    """The watch of pending pods may show it only then."""
    driver = EngineDriver()
    driver.add_nodes("n", cpu="4")
    driver.create_pods("p", cpu="1", resource_version="1")
    driver.schedule()
    driver.take(BindPod)
    driver.handle(BindSucceeded("uid-p", "n"))
    driver.handle(PendingPodSeen(make_pod("p", cpu="2", resource_version="2")))
    driver.create_pods("q", cpu="3")
    assert bound_pods(driver) == []


def test_an_older_version_of_a_pod_that_is_being_bound_does_not_count() -> None:
    driver = driver_with_resized_pod("4", resource_version="0")
    driver.create_pods("q", cpu="3")
    assert bound_pods(driver) == ["q"]


def test_a_pod_that_grows_and_is_not_bound_gives_all_its_room_back() -> None:
    driver = driver_with_resized_pod("3")
    driver.handle(BindFailed("uid-p", "n", "refused"))
    driver.create_pods("q", cpu="4")
    assert bound_pods(driver) == ["q"]
