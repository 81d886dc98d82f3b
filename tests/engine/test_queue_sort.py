"""A QueueSort plugin of somebody's own that fails: no pod vanishes, and the others go on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from scheduler.api.events import NodeSeen, PendingPodGone, PendingPodSeen
from scheduler.api.instructions import BindPod, EmitEvent, PatchPodStatus, ReportProblem
from scheduler.engine import Engine
from scheduler.framework import plugin_factory
from scheduler.plugins import in_tree_registry
from scheduler.state import PodInfo
from tests.support.builders import make_node, make_pod
from tests.support.engines import default_engine, of_type

PROFILE: dict[str, Any] = {
    "schedulerName": "default-scheduler",
    "plugins": {"queueSort": {"enabled": [{"name": "Sorter"}], "disabled": [{"name": "*"}]}},
}


class Sorter:
    """Sorts by what it is told; by name where it is told nothing."""

    name = "Sorter"

    def __init__(self) -> None:
        self.keys: dict[str, Callable[[], tuple[Any, ...]]] = {}

    def sort_key(self, pod: PodInfo, queued_at: float) -> tuple[Any, ...]:
        return self.keys.get(pod.name, lambda: (pod.name,))()


def broken() -> tuple[Any, ...]:
    raise ValueError("no such tenant")


@pytest.fixture
def sorter() -> Sorter:
    return Sorter()


@pytest.fixture
def engine(sorter: Sorter) -> Engine:
    registry = in_tree_registry().merged_with(plugin_factory(lambda: sorter, name="Sorter"))
    engine = default_engine(profile=PROFILE, registry=registry)
    engine.handle([NodeSeen(make_node("n", cpu="8"))], 0.0)
    return engine


def pending(name: str, cpu: str = "1") -> PendingPodSeen:
    return PendingPodSeen(make_pod(name, uid=f"uid-{name}", cpu=cpu))


def bound(engine: Engine, now: float) -> list[str]:
    engine.validate()
    names = [each.pod.name for each in of_type(BindPod, engine.schedule(now, 10))]
    engine.validate()
    return names


def test_a_pod_whose_sort_key_raises_is_told_so_and_sorted_anew_after_a_backoff(
    engine: Engine, sorter: Sorter
) -> None:
    sorter.keys["bad"] = broken
    said = engine.handle([pending("bad"), pending("good")], 0.0)
    why = "sorting the scheduling queue: ValueError('no such tenant')"
    (event,) = of_type(EmitEvent, said)
    assert (event.pod.name, event.reason, event.note) == ("bad", "FailedScheduling", why)
    (patch,) = of_type(PatchPodStatus, said)
    assert (patch.reason, patch.message) == ("SchedulerError", why)
    assert [each.subject for each in of_type(ReportProblem, said)] == ["Pod default/bad"]
    assert bound(engine, 0.0) == ["good"]
    assert engine.pending_counts()["backoff"] == 1
    assert engine.next_deadline() is not None
    # Still broken: another error, and a longer backoff.
    assert of_type(EmitEvent, engine.handle([], 2.0))
    assert of_type(EmitEvent, engine.handle([], 3.0)) == []
    del sorter.keys["bad"]
    engine.handle([], 10.0)
    assert bound(engine, 10.0) == ["bad"]


def test_a_sort_key_of_another_type_is_an_error_of_its_pod(engine: Engine, sorter: Sorter) -> None:
    sorter.keys["odd"] = lambda: (7,)
    said = engine.handle([pending("a"), pending("b"), pending("odd"), pending("c")], 0.0)
    (event,) = of_type(EmitEvent, said)
    assert event.pod.name == "odd"
    assert "cannot be compared" in event.note
    assert bound(engine, 0.0) == ["a", "b", "c"]
    # Nobody is left to be compared with.
    engine.handle([], 2.0)
    assert bound(engine, 2.0) == ["odd"]


def test_a_sort_key_that_becomes_odd_by_an_update_costs_the_pod_its_place_only(
    engine: Engine, sorter: Sorter
) -> None:
    engine.handle([pending("a"), pending("b"), pending("c")], 0.0)
    sorter.keys["b"] = broken
    changed = make_pod("b", uid="uid-b", cpu="1", labels={"tenant": "gone"})
    said = engine.handle([PendingPodSeen(changed)], 0.0)
    assert [each.pod.name for each in of_type(EmitEvent, said)] == ["b"]
    assert bound(engine, 0.0) == ["a", "c"]
    engine.handle([PendingPodGone("default", "b", "uid-b")], 0.5)
    assert engine.pending_counts()["backoff"] == 0
    engine.validate()


def test_pods_woken_together_go_on_although_one_of_them_cannot_be_sorted(
    engine: Engine, sorter: Sorter
) -> None:
    engine.handle([pending(name, cpu="100") for name in "abc"], 0.0)
    assert bound(engine, 0.0) == []
    assert engine.pending_counts()["unschedulable"] == 3
    sorter.keys["b"] = broken
    said = engine.handle([NodeSeen(make_node("big", cpu="400"))], 60.0)
    assert [each.pod.name for each in of_type(EmitEvent, said)] == ["b"]
    assert bound(engine, 60.0) == ["a", "c"]
    assert engine.unschedulable_counts() == {}


def test_keys_that_no_two_pods_can_be_compared_by_are_tried_one_after_the_other(
    engine: Engine, sorter: Sorter
) -> None:
    for name in "abc":
        sorter.keys[name] = lambda: (complex(1, len(sorter.keys)),)
    sorter.keys["b"] = lambda: (complex(2, 0),)
    sorter.keys["c"] = lambda: (complex(3, 0),)
    engine.handle([pending(name) for name in "abc"], 0.0)
    found = bound(engine, 0.0)
    for now in range(1, 40):
        engine.handle([], float(now))
        found += bound(engine, float(now))
    assert sorted(found) == ["a", "b", "c"]
