from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from stowage.api.cluster_events import ActionType, ClusterEvent, EventResource, QueueingHint
from stowage.api.status import SUCCESS, Code, Status, unresolvable
from stowage.framework import EventRegistration, PluginTraits
from stowage.state import ClusterCache, PodInfo, make_pod_info
from tests.support.builders import make_pod
from tests.support.plugins.small_plugins import NO_TRAITS, Rates, Refuses, framework_of

NODE_ADD = ClusterEvent(EventResource.NODE, ActionType.ADD)
NODE_LABEL = ClusterEvent(EventResource.NODE, ActionType.UPDATE_NODE_LABEL)
NODE_TAINT = ClusterEvent(EventResource.NODE, ActionType.UPDATE_NODE_TAINT)


@dataclass
class Gate:
    """A PreEnqueue plugin with a fixed answer and registrations."""

    name: str
    status: Status = SUCCESS
    registrations: Sequence[EventRegistration] = field(default_factory=tuple)
    traits: PluginTraits = NO_TRAITS

    def pre_enqueue(self, pod: PodInfo) -> Status:
        if self.status.code is Code.WAIT:
            raise RuntimeError("stuck")
        return self.status

    def events_to_register(self) -> Sequence[EventRegistration]:
        return self.registrations


@pytest.fixture
def pod() -> PodInfo:
    return make_pod_info(make_pod("p", priority=7), ClusterCache().classes)


def test_the_first_pre_enqueue_rejection_is_named(pod: PodInfo) -> None:
    framework = framework_of(Gate("A"), Gate("B", unresolvable("shut")), Gate("C"))
    status = framework.run_pre_enqueue(pod)
    assert (status.plugin, status.message) == ("B", "shut")
    assert framework_of(Gate("A")).run_pre_enqueue(pod).is_success


def test_a_pre_enqueue_plugin_that_raises_gates_the_pod(pod: PodInfo) -> None:
    status = framework_of(Gate("A", Status(Code.WAIT))).run_pre_enqueue(pod)
    assert (status.code, status.message) == (Code.ERROR, 'running PreEnqueue plugin "A": stuck')


PER_CLASS = PluginTraits(pre_enqueue_per_class=True)


def test_a_pre_enqueue_plugin_per_class_runs_once_per_class(pod: PodInfo) -> None:
    by_class = framework_of(Gate("A", unresolvable("shut"), traits=PER_CLASS))
    assert not by_class.gating.may_differ_in_class(pod)
    assert by_class.gating.run_again(pod).is_success
    mixed = framework_of(
        Gate("A", unresolvable("shut"), traits=PER_CLASS), Gate("B", unresolvable("no"))
    )
    assert mixed.gating.may_differ_in_class(pod)
    assert mixed.gating.run_again(pod).plugin == "B"


def test_the_sort_key_is_that_of_the_queue_sort_plugin(pod: PodInfo) -> None:
    assert framework_of().sort_key(pod, 3.5) == (-7, 3.5)


def test_a_rejecting_plugin_without_registrations_gets_every_event() -> None:
    framework = framework_of(Refuses("Filter", ()), Rates("Score", {}))
    (registration,) = framework.events_by_plugin["Filter"]
    assert registration.event.matches(NODE_LABEL)
    assert "Score" not in framework.events_by_plugin
    assert "DefaultBinder" not in framework.events_by_plugin


def test_a_plugin_that_registers_added_nodes_is_registered_for_taints_without_a_hint() -> None:
    added = EventRegistration(NODE_ADD, _skips)
    framework = framework_of(Gate("A", registrations=(added,)))
    assert framework.events_by_plugin["A"] == (added, EventRegistration(NODE_TAINT))


def test_a_plugin_that_registers_taints_keeps_its_hint() -> None:
    both = (EventRegistration(NODE_ADD, _skips), EventRegistration(NODE_TAINT, _skips))
    assert framework_of(Gate("A", registrations=both)).events_by_plugin["A"] == both


def test_a_plugin_with_empty_registrations_gets_no_event() -> None:
    assert framework_of(Gate("A", registrations=())).events_by_plugin["A"] == ()


def _skips(pod: PodInfo, old: Any, new: Any) -> QueueingHint:
    return QueueingHint.SKIP
