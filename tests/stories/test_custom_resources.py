"""Objects of kinds that plugins name: they move the pods that the plugin rejected."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from stowage.api.events import CustomObjectGone, CustomObjectSeen, CustomResourceGone
from stowage.api.instructions import BindPod, PatchPodStatus
from stowage.framework.authoring import (
    SUCCESS,
    ActionType,
    ClusterEvent,
    CycleState,
    EventRegistration,
    PluginTraits,
    PodInfo,
    PreFilterResult,
    QueueingHint,
    Snapshot,
    unresolvable,
)
from tests.stories.plugin_driver import PluginDriver
from tests.support.engines import of_type
from tests.support.plugins.opening_hours import HARBOURS, OpeningHours


def _seen(name: str, *, is_open: bool, version: int) -> CustomObjectSeen:
    metadata = {
        "namespace": "default",
        "name": name,
        "uid": f"uid-{name}",
        "resourceVersion": str(version),
    }
    found: dict[str, Any] = {"metadata": metadata, "spec": {"open": is_open}}
    return CustomObjectSeen(HARBOURS, found)


@pytest.fixture
def plugin() -> OpeningHours:
    return OpeningHours()


@pytest.fixture
def driver(plugin: OpeningHours) -> PluginDriver:
    """An engine with a pod that waits for the harbour ``north``, which is closed."""
    driver = PluginDriver(plugin)
    driver.add_nodes("n")
    driver.handle(_seen("north", is_open=False, version=1))
    driver.create_pods("p", labels={"harbour": "north"})
    (patch,) = of_type(PatchPodStatus, driver.schedule())
    assert "harbour default/north is closed" in patch.message
    return driver


def _bound(driver: PluginDriver) -> list[str]:
    driver.advance(60)
    return [each.pod.name for each in of_type(BindPod, driver.schedule())]


def test_an_update_that_the_hint_asks_for_moves_the_pod(
    driver: PluginDriver, plugin: OpeningHours
) -> None:
    driver.handle(_seen("south", is_open=True, version=2))
    assert _bound(driver) == []
    driver.handle(_seen("north", is_open=True, version=3))
    assert plugin.hinted == [(None, {"open": True}), ({"open": False}, {"open": True})]
    assert _bound(driver) == ["p"]


def test_a_list_that_repeats_an_object_runs_no_hint(
    driver: PluginDriver, plugin: OpeningHours
) -> None:
    driver.handle(_seen("north", is_open=False, version=1))
    assert plugin.hinted == []


def test_an_event_that_the_plugin_did_not_register_runs_no_hint(
    driver: PluginDriver, plugin: OpeningHours
) -> None:
    driver.handle(CustomObjectGone(HARBOURS, "default", "north"))
    assert plugin.hinted == []
    driver.handle(_seen("north", is_open=True, version=4))
    assert plugin.hinted == [(None, {"open": True})]


def test_objects_of_a_resource_that_is_no_longer_served_are_gone(driver: PluginDriver) -> None:
    driver.handle(_seen("north", is_open=True, version=2))
    driver.handle(CustomResourceGone(HARBOURS))
    assert _bound(driver) == []


def test_the_engine_names_the_resources_to_watch(driver: PluginDriver) -> None:
    assert driver.engine.custom_resources() == {HARBOURS}
    assert PluginDriver().engine.custom_resources() == frozenset()


def test_the_end_of_a_resource_is_the_deletion_of_each_of_its_objects() -> None:
    driver, waits = _waiting()
    waits.ended = True
    driver.handle(CustomResourceGone(HARBOURS))
    assert waits.deleted == ["north"]
    assert _bound(driver) == ["p"]


class WaitsForTheEnd:
    """Rejects pods until an object is deleted."""

    name = "WaitsForTheEnd"
    traits = PluginTraits()

    def __init__(self) -> None:
        self.ended = False
        self.deleted: list[str] = []

    def pre_filter(self, state: CycleState, pod: PodInfo, snapshot: Snapshot) -> PreFilterResult:
        return PreFilterResult(SUCCESS if self.ended else unresolvable("not yet"))

    def events_to_register(self) -> Sequence[EventRegistration]:
        event = ClusterEvent(HARBOURS, ActionType.DELETE)
        return (EventRegistration(event, self.after_deletion),)

    def after_deletion(self, _pod: PodInfo, old: Any, new: Any) -> QueueingHint:
        assert new is None
        self.deleted.append(old["metadata"]["name"])
        return QueueingHint.QUEUE


def _waiting() -> tuple[PluginDriver, WaitsForTheEnd]:
    """A driver with a pod that waits for the deletion of the object ``north``, and its plugin."""
    waits = WaitsForTheEnd()
    driver = PluginDriver(waits)
    driver.add_nodes("n")
    driver.handle(_seen("north", is_open=False, version=1))
    driver.create_pods("p")
    assert of_type(BindPod, driver.schedule()) == []
    return driver, waits


def test_the_deletion_of_an_object_moves_the_pods_that_wait_for_it_but_only_once() -> None:
    driver, waits = _waiting()
    driver.handle(CustomObjectGone(HARBOURS, "default", "unknown"))
    assert waits.deleted == []
    for _ in range(2):
        driver.handle(CustomObjectGone(HARBOURS, "default", "north"))
    assert waits.deleted == ["north"]
