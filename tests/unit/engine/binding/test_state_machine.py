"""Each phase of the binding cycle takes the events that can happen in it and ignores all others."""

from __future__ import annotations

import pytest

from stowage.api.events import NodeSeen, PendingPodSeen
from stowage.engine import Engine
from stowage.engine.binding.state_machine import TRANSITIONS, BindingEvent, advance_binding
from stowage.engine.state.bindings import BindingPhase
from tests.support.builders import make_node, make_pod
from tests.support.engines import default_engine


@pytest.fixture
def engine() -> Engine:
    """An engine with a pod whose Binding has been sent."""
    engine = default_engine()
    engine.handle([NodeSeen(make_node("n", cpu="4")), PendingPodSeen(make_pod("p"))], 0.0)
    engine.schedule(0.0, 1)
    return engine


def test_every_phase_and_every_event_is_in_the_table() -> None:
    assert set(TRANSITIONS) == set(BindingPhase)
    assert {event for row in TRANSITIONS.values() for event in row} == set(BindingEvent)


@pytest.mark.parametrize("phase", BindingPhase)
def test_a_pod_can_be_preempted_until_its_binding_is_sent(phase: BindingPhase) -> None:
    within_a_call = {BindingPhase.RESERVING, BindingPhase.PERMITTING, BindingPhase.PRE_FLIGHT}
    want = phase is not BindingPhase.BINDING and phase not in within_a_call
    assert (BindingEvent.PREEMPTED in TRANSITIONS[phase]) is want


@pytest.mark.parametrize(
    "event", [event for event in BindingEvent if event not in TRANSITIONS[BindingPhase.BINDING]]
)
def test_an_event_of_another_phase_has_no_effect(engine: Engine, event: BindingEvent) -> None:
    before = engine.dump()
    assert not advance_binding(engine.state, "uid-p", event, 1.0)
    assert engine.dump() == before
    engine.validate()


def test_an_event_for_a_pod_that_is_not_being_bound_is_ignored(engine: Engine) -> None:
    assert not advance_binding(engine.state, "uid-q", BindingEvent.BIND_SUCCEEDED, 1.0)
