"""The state machine of the binding cycle.

    RESERVING -> PERMITTING -> PRE_FLIGHT --+--(a Permit plugin returned Wait)--> WAITING_ON_PERMIT
    '-- one call of Engine.schedule ------' |                                           |
                                            +--> next step <--------- ALLOWED ----------+

    next step, the first that applies:
      a PreBind coroutine is left      PRE_BINDING --- PRE_BIND_FINISHED ---> next step
      a PreBind of volumes or claims   WRITING --- WRITTEN ---> WAITING_FOR_OBJECTS
      is left                          WAITING_FOR_OBJECTS --- OBJECT_CHANGED ---> next step,
                                                when volumes are bound and devices are ready
      no PreBind plugin is left        BINDING --- BIND_SUCCEEDED ---> bound

    back to the queue:
      from every phase but BINDING     a step fails; REJECTED; WAIT_TIMED_OUT; PREEMPTED
                                       TERMINATING: the pod's deletion has begun
                                       NOT_PENDING: another client deleted or bound the pod
      from BINDING                     BIND_FAILED only: once the Binding is sent, the answer of
                                       the API server decides

`TRANSITIONS` is the same as data. An event that it does not list for the phase is out of date, like
an answer to an instruction of an earlier cycle, and is ignored.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum, auto
from typing import Any, TypeAlias

from stowage.api.events import (
    BindFailed,
    BindSucceeded,
    ClaimsWritten,
    PreBindFinished,
    VolumesWritten,
)
from stowage.api.instructions import EmitEvent, PodBound, StopPreBind
from stowage.api.interruptible import Interruptible
from stowage.api.status import Code, Status, error, unschedulable
from stowage.engine.binding.failure import (
    emit_instructions,
    fail_binding_cycle,
    observe_permit_wait,
)
from stowage.engine.binding.steps import (
    run_next_pre_bind,
    run_post_bind,
    run_pre_bind_pre_flight,
    run_step,
)
from stowage.engine.released_nominations import release_nomination
from stowage.engine.state.binding_durations import BindingDurations
from stowage.engine.state.bindings import BindingCycle, BindingPhase, LastSeen
from stowage.engine.state.engine_state import EngineState
from stowage.framework import PluginFailed
from stowage.framework.profile.profile import PREEMPTION_PLUGIN


class BindingEvent(Enum):
    """What happens to a pod that is being bound."""

    ALLOWED = auto()
    REJECTED = auto()
    PRE_BIND_FINISHED = auto()
    WRITTEN = auto()
    OBJECT_CHANGED = auto()
    WAIT_TIMED_OUT = auto()
    BIND_SUCCEEDED = auto()
    BIND_FAILED = auto()
    NOT_PENDING = auto()
    PREEMPTED = auto()
    TERMINATING = auto()


#: Takes (state, cycle, detail of the event, now).
Transition: TypeAlias = Callable[[EngineState, BindingCycle, Any, float], None]


def binding_cycle(state: EngineState, cycle: BindingCycle, now: float) -> Interruptible[None]:
    """Start the binding cycle of a pod that is reserved and permitted; ``bindingCycle`` of v1.36.

    A pod that waits, for Permit or for PreBind, is nominated to its node in its status, unless the
    gate ``NominatedNodeNameForExpectation`` is off.
    """
    if cycle.left_node:
        release_nomination(state, cycle.info, cycle.left_node, now)
    activate_pods(state, cycle, now)
    if cycle.cycle_state.group_to_allow is not None:
        yield from _allow_group(state, *cycle.cycle_state.group_to_allow, now)
    if not run_step(state, cycle, run_pre_bind_pre_flight, now):
        return
    waits = cycle.permit_timeouts or cycle.pre_binds
    if waits and state.gates.enabled("NominatedNodeNameForExpectation"):
        nomination = state.statuses.nominate(cycle.reference, cycle.node_name)
        if nomination is not None:
            state.outbox.emit(nomination)
    if cycle.permit_timeouts:
        cycle.phase = BindingPhase.WAITING_ON_PERMIT
        state.bindings.permit_waits.add(cycle.info.uid, cycle.permit_timeouts, now)
    else:
        _pre_bind(state, cycle, now)


def advance_binding(
    state: EngineState, uid: str, event: BindingEvent, now: float, detail: Any = None
) -> bool:
    """Apply an event to a pod's binding cycle.

    Returns:
        False if the pod is not being bound or its phase ignores the event.
    """
    cycle = state.bindings.get(uid)
    transition = None if cycle is None else TRANSITIONS[cycle.phase].get(event)
    if cycle is None or transition is None:
        return False
    transition(state, cycle, detail, now)
    return True


def allow_waiting_pod(state: EngineState, uid: str, plugin: str, now: float) -> None:
    """A Permit plugin allows a pod; when all have, the pod goes on."""
    if state.bindings.permit_waits.allow(uid, plugin):
        advance_binding(state, uid, BindingEvent.ALLOWED, now)


def _allow_group(
    state: EngineState, group_key: str, plugin: str, now: float
) -> Interruptible[None]:
    """Allow the pods of a group that wait at Permit, on behalf of a plugin."""
    for uid in list(state.bindings.permit_waits.uids()):
        waiting = state.bindings.get(uid)
        if waiting is not None and waiting.info.group_key == group_key:
            allow_waiting_pod(state, uid, plugin, now)
            yield


def activate_pods(state: EngineState, cycle: BindingCycle, now: float) -> None:
    """Activate the pods that plugins named in this cycle (``PodsToActivate``)."""
    if cycle.cycle_state.pods_to_activate:
        state.queue.activate(cycle.cycle_state.take_pods_to_activate(), now)


def _allow(state: EngineState, cycle: BindingCycle, _detail: Any, now: float) -> None:
    """All Permit plugins have allowed the pod."""
    since = state.bindings.permit_waits.end(cycle.info.uid)
    observe_permit_wait(state, since, Code.SUCCESS, now)
    _pre_bind(state, cycle, now)


def _pre_bind(state: EngineState, cycle: BindingCycle, now: float) -> None:
    """Start PreBind. The pod leaves the in-flight pods: no plugin can reject it any more."""
    state.queue.done(cycle.info.uid)
    timings = cycle.cycle_state.timings
    if timings is not None:
        cycle.durations = BindingDurations(timings, cycle.framework.scheduler_name)
    run_step(state, cycle, run_next_pre_bind, now)


def _pre_bind_finished(
    state: EngineState, cycle: BindingCycle, event: PreBindFinished, now: float
) -> None:
    """The shell has run the PreBind coroutines."""
    _finish_pre_bind(state, cycle, Status(event.code, event.reasons, event.plugin), now)


def _written(
    state: EngineState, cycle: BindingCycle, event: VolumesWritten | ClaimsWritten, now: float
) -> None:
    """The shell has written volumes or claims: wait until they have taken effect."""
    staged_pre_bind = cycle.staged_pre_bind
    if staged_pre_bind is None:
        return
    if isinstance(event, VolumesWritten):
        cycle.written = frozenset((*event.volumes, *event.claims))
    # What follows ends a failed cycle as one whose writes have ended.
    cycle.phase = BindingPhase.WAITING_FOR_OBJECTS
    try:
        staged_pre_bind.written(event)
    except PluginFailed as failure:
        fail_binding_cycle(state, cycle, failure.status, now)
        return
    state.bindings.object_waits.start(cycle.info.uid, now + staged_pre_bind.timeout_s)
    _check_objects(state, cycle, None, now)


def _check_objects(state: EngineState, cycle: BindingCycle, _detail: Any, now: float) -> None:
    """Go on if the writes have taken effect, fail if they cannot any more, else wait."""
    if cycle.staged_pre_bind is None:
        return
    waits, uid = state.bindings.object_waits, cycle.info.uid
    progress = cycle.staged_pre_bind.progress(state.cache.snapshot())
    emit_instructions(state, cycle.cycle_state)
    if progress.status.code is Code.WAIT:
        waits.set_awaited(uid, progress.awaited)
        if progress.within_s is not None:
            waits.shorten(uid, now + progress.within_s)
        return
    waits.end(uid)
    if progress.status.is_success and cycle.claims_number:
        state.cache.give_up_allocations(cycle.allocated_claims, cycle.info.uid)
    _finish_pre_bind(state, cycle, progress.status, now)


def _wait_timed_out(state: EngineState, cycle: BindingCycle, _detail: Any, now: float) -> None:
    if cycle.staged_pre_bind is not None:
        late = cycle.staged_pre_bind.timed_out(state.cache.snapshot())
        fail_binding_cycle(state, cycle, late, now)


def _finish_pre_bind(state: EngineState, cycle: BindingCycle, status: Status, now: float) -> None:
    if status.is_success:
        if cycle.durations is not None:
            cycle.durations.end_plugin(status.code)
        run_step(state, cycle, run_next_pre_bind, now)
    else:
        fail_binding_cycle(state, cycle, status, now)


def _bind_succeeded(
    state: EngineState, cycle: BindingCycle, _event: BindSucceeded, now: float
) -> None:
    """The API server has bound the pod; the cache keeps it assumed until the watch shows it."""
    queued, info = cycle.queued, cycle.info
    if cycle.durations is not None:
        cycle.durations.end_plugin(Code.SUCCESS)
    state.bindings.remove(info.uid)
    state.statuses.forget(info.uid)
    if state.cache.is_assumed(info.uid):
        state.bindings.unconfirmed.add(cycle.reference, now)
    state.outbox.emit(
        EmitEvent(
            pod=cycle.reference,
            event_type="Normal",
            reason="Scheduled",
            action="Binding",
            note=f"Successfully assigned {info.key} to {cycle.node_name}",
            scheduler_name=info.scheduler_name,
            resource_version=info.resource_version,
            decision=cycle.decision,
        )
    )
    first = queued.initial_attempt_at
    since_first = 0.0 if first is None else now - first
    state.outbox.emit(
        PodBound(
            cycle.reference,
            cycle.node_name,
            info.scheduler_name,
            queued.attempts,
            since_first,
            queued.was_flushed,
        )
    )
    run_post_bind(state, cycle)
    activate_pods(state, cycle, now)


def _bind_failed(state: EngineState, cycle: BindingCycle, event: BindFailed, now: float) -> None:
    """The API server has not bound the pod to the node."""
    text = event.message
    if not event.by_extender:
        text = f'running Bind plugin "{cycle.bind_plugin}": {text}'
    fail_binding_cycle(state, cycle, error(text), now)


def _reject(state: EngineState, cycle: BindingCycle, status: Status, now: float) -> None:
    """A Permit plugin rejects the pod, or its timeout has passed."""
    fail_binding_cycle(state, cycle, status, now)


def _leave(state: EngineState, cycle: BindingCycle, _detail: Any, now: float) -> None:
    """The pod is not pending before its Binding was sent: another client bound or deleted it."""
    cycle.see(LastSeen.NOT_PENDING)
    _stop_pre_bind(state, cycle)
    fail_binding_cycle(state, cycle, unschedulable("pod was deleted or bound elsewhere"), now)


def _leave_while_binding(
    _state: EngineState, cycle: BindingCycle, _detail: Any, _now: float
) -> None:
    """The pod is not pending after its Binding was sent, which is how success looks like."""
    cycle.see(LastSeen.NOT_PENDING)


def _preempt(state: EngineState, cycle: BindingCycle, _detail: Any, now: float) -> None:
    """A preemptor takes the pod's place.

    No plugin's event would help the pod, so it is retried after its backoff. In kube-scheduler one
    that waits at Permit waits for an event of the preemption plugin. A PreBind ends with the error
    of a cancelled plugin, whatever the plugin does.
    """
    status = unschedulable("preempted")
    if cycle.phase is not BindingPhase.WAITING_ON_PERMIT:
        plugin = cycle.pre_bind_plugin
        text = f'running PreBind plugin "{plugin}": preempted by {PREEMPTION_PLUGIN}'
        status = error(text, plugin=plugin)
    _stop_pre_bind(state, cycle)
    fail_binding_cycle(state, cycle, status, now, is_preempted=True)


def _terminate(state: EngineState, cycle: BindingCycle, _detail: Any, now: float) -> None:
    """The pod is being deleted: its Binding would be refused, so its place is free for others.

    ``handleAssumedPodDeletion`` of v1.36.
    """
    if cycle.phase is BindingPhase.WAITING_ON_PERMIT:
        fail_binding_cycle(state, cycle, unschedulable("removed"), now)
        return
    _stop_pre_bind(state, cycle)
    fail_binding_cycle(state, cycle, error("the pod is being deleted"), now)


def _stop_pre_bind(state: EngineState, cycle: BindingCycle) -> None:
    if cycle.phase is not BindingPhase.WAITING_ON_PERMIT:
        state.outbox.emit(StopPreBind(cycle.reference))


_UNTIL_BIND: Mapping[BindingEvent, Transition] = {
    BindingEvent.NOT_PENDING: _leave,
    BindingEvent.PREEMPTED: _preempt,
    BindingEvent.TERMINATING: _terminate,
}

#: What each phase does on each event. The handler sets the next phase or ends the cycle.
TRANSITIONS: Mapping[BindingPhase, Mapping[BindingEvent, Transition]] = {
    BindingPhase.RESERVING: {},
    BindingPhase.PERMITTING: {},
    BindingPhase.PRE_FLIGHT: {},
    BindingPhase.WAITING_ON_PERMIT: {
        BindingEvent.ALLOWED: _allow,
        BindingEvent.REJECTED: _reject,
        **_UNTIL_BIND,
    },
    BindingPhase.PRE_BINDING: {
        BindingEvent.PRE_BIND_FINISHED: _pre_bind_finished,
        **_UNTIL_BIND,
    },
    BindingPhase.WRITING: {
        BindingEvent.WRITTEN: _written,
        **_UNTIL_BIND,
    },
    BindingPhase.WAITING_FOR_OBJECTS: {
        BindingEvent.OBJECT_CHANGED: _check_objects,
        BindingEvent.WAIT_TIMED_OUT: _wait_timed_out,
        **_UNTIL_BIND,
    },
    BindingPhase.BINDING: {
        BindingEvent.BIND_SUCCEEDED: _bind_succeeded,
        BindingEvent.BIND_FAILED: _bind_failed,
        BindingEvent.NOT_PENDING: _leave_while_binding,
    },
}
