"""Evicting the victims of a preemption.

    node chosen --> victims but the last --(all answered)--> last victim --(answered)--> finished
                            |                                      |                        |
                            +------(an eviction failed)------------+--> failed: retried     |
                                                                                            |
                                     gate opens <--(the watch shows the last victim leave)--+

A victim that is still being bound goes back to the queue at once. The others are deleted through
the API server. The preemptor is gated until the watch shows its last victim leave. The end of an
earlier victim, or of another preemptor's victim, would bring it back too early; it would then
preempt more pods, because the algorithm does not know about the evictions in progress.

upstream: ``Executor.prepareCandidateAsync`` of pkg/scheduler/framework/preemption (v1.36). There
are two differences. The last victim is spared if the preemptor is gone by then. An answer of the
API server does not open the gate as long as the watch shows the last victim running.
"""

from __future__ import annotations

from collections.abc import Iterator

from stowage.api.events import EvictionFinished
from stowage.api.instructions import (
    EmitEvent,
    EvictPod,
    PodReference,
    PreemptionAttempted,
    PreemptionFinished,
)
from stowage.engine.binding.state_machine import BindingEvent, advance_binding
from stowage.engine.preemption.gate import is_preempting
from stowage.engine.state.engine_state import EngineState
from stowage.engine.state.preemptions import OngoingPreemption
from stowage.framework import Candidate, Preemption
from stowage.queue.queued_pod import QueueState
from stowage.state.pods.pod_info import PodInfo


def start_preemption(state: EngineState, info: PodInfo, preemption: Preemption, now: float) -> None:
    """Carry out what a PostFilter plugin decided; the preemptor is still in flight."""
    chosen = preemption.chosen
    if chosen is None:
        state.outbox.emit(PreemptionAttempted(info.reference))
        if preemption.awaited:
            state.preemptions.retry_after(preemption.awaited, info.uid)
        return
    victims = [victim for victim in chosen.victims if not victim.terminating]
    num_victims = len(chosen.victims) if victims else 0
    state.outbox.emit(PreemptionAttempted(info.reference, chosen.node_name, num_victims))
    if victims:
        _evict_victims(state, info, chosen, victims, now)


def eviction_finished(state: EngineState, event: EvictionFinished, now: float) -> None:
    """A victim is being deleted, or its eviction failed."""
    preemption = state.preemptions.get(event.preemptor_uid)
    if preemption is None or event.victim.uid not in preemption.unanswered:
        return
    preemption.unanswered.discard(event.victim.uid)
    if event.error:
        preemption.failed = True
        text = f"not evicted for {preemption.preemptor.key}: {event.error}"
        state.outbox.report(f"Pod {event.victim.key}", text)
        for uid in {event.victim.uid, preemption.last_victim.uid}:
            _forget_eviction(state, uid)
    elif event.was_deleted:
        _emit_preempted_event(state, preemption, event.victim)
    _evict_last_victim(state, preemption, now)


def preemption_inconsistencies(state: EngineState) -> Iterator[str]:
    """Inconsistencies; none if all is well."""
    yield from state.preemptions.inconsistencies()
    for preemption in state.preemptions:
        if not preemption.unanswered and not _waits_for_watch(state, preemption):
            yield f"preemption for {preemption.preemptor.key} waits for nothing"
        if preemption.preemptor.uid in state.bindings and not preemption.is_evicting_last:
            yield f"preemptor {preemption.preemptor.key} is being bound before its last victim goes"
    for queued in state.queue.contents()[QueueState.UNSCHEDULABLE]:
        framework = state.frameworks[queued.scheduler_name]
        is_released = queued.uid in state.preemptions.released
        if framework.gating.released(queued.gating_plugin) is None or is_released:
            continue
        if not is_preempting(state, queued.uid):
            yield f"preemptor {queued.info.key} is gated and waits for no eviction"


def _evict_victims(
    state: EngineState, info: PodInfo, chosen: Candidate, victims: list[PodInfo], now: float
) -> None:
    """Evict all victims but the last, and the last at once if it is the only one."""
    preemption = OngoingPreemption(
        info.reference, info.scheduler_name, chosen.node_name, now, victims[-1]
    )
    state.preemptions.start(preemption)
    _clear_lower_nominations(state, info, chosen.node_name)
    for victim in victims:
        if victim.uid not in state.bindings:
            state.cache.note_eviction(victim)
    for victim in victims[:-1]:
        _evict(state, preemption, victim, now)
    _evict_last_victim(state, preemption, now)


def _evict_last_victim(state: EngineState, preemption: OngoingPreemption, now: float) -> None:
    """Evict the last victim when the other evictions are answered; then finish."""
    if preemption.unanswered:
        return
    if not preemption.is_evicting_last and not preemption.failed:
        state.preemptions.start_last_eviction(preemption)
        if state.queue.get(preemption.preemptor.uid) is not None:
            _evict(state, preemption, preemption.last_victim, now)
        else:
            _forget_eviction(state, preemption.last_victim.uid)
    if not preemption.unanswered:
        _finish(state, preemption, now)


def _evict(state: EngineState, preemption: OngoingPreemption, victim: PodInfo, now: float) -> None:
    known = state.cache.get_pod(victim.uid)
    if known is None or known.terminating:
        return
    if advance_binding(state, victim.uid, BindingEvent.PREEMPTED, now):
        _emit_preempted_event(state, preemption, victim.reference)
        return
    preemption.unanswered.add(victim.uid)
    state.outbox.emit(
        EvictPod(
            victim.reference, preemption.preemptor, preemption.scheduler_name, known.generation
        )
    )


def _forget_eviction(state: EngineState, uid: str) -> None:
    """A victim stays: it uses up no disruption of its budgets."""
    victim = state.cache.get_pod(uid)
    if victim is not None:
        state.cache.forget_eviction(victim)


def _finish(state: EngineState, preemption: OngoingPreemption, now: float) -> None:
    """All evictions are answered: end the preemption, unless the watch still shows the victim."""
    uid = preemption.preemptor.uid
    state.outbox.emit(
        PreemptionFinished(
            preemption.preemptor,
            preemption.node_name,
            preemption.failed,
            now - preemption.started_at,
        )
    )
    # If the preemptor is gone, its last victim was spared and the preemption ends here.
    preemption.is_answered = not preemption.failed and state.queue.get(uid) is not None
    if _waits_for_watch(state, preemption):
        return
    state.preemptions.end(preemption)
    queued = state.queue.get(uid)
    # The event of the last victim's end may have found the gate closed; no other event follows.
    missed_event = queued is not None and queued.is_gated
    if missed_event:
        state.preemptions.release(uid)
    victim_is_gone = state.cache.get_pod(preemption.last_victim.uid) is None
    if preemption.failed or (missed_event and victim_is_gone):
        state.queue.activate((uid,), now)


def _waits_for_watch(state: EngineState, preemption: OngoingPreemption) -> bool:
    """Whether all is answered and the watch has not shown the last victim leave."""
    last_victim = state.cache.get_pod(preemption.last_victim.uid)
    return preemption.is_answered and last_victim is not None and not last_victim.terminating


def _clear_lower_nominations(state: EngineState, info: PodInfo, node_name: str) -> None:
    """Clear the nominations of pods of lower priority to the node; they may not fit any more."""
    for other in state.queue.nominator.pods_on(node_name):
        if other.priority < info.priority:
            state.queue.nominator.remove(other.uid)
            state.outbox.emit(state.statuses.clear_nomination(other.reference))


def _emit_preempted_event(
    state: EngineState, preemption: OngoingPreemption, victim: PodReference
) -> None:
    preemptor = preemption.preemptor
    known = state.cache.get_pod(victim.uid) or state.queue.latest(victim.uid)
    waiting = state.queue.latest(preemptor.uid)
    state.outbox.emit(
        EmitEvent(
            pod=victim,
            event_type="Normal",
            reason="Preempted",
            action="Preempting",
            note=f"Preempted by pod {preemptor.uid} on node {preemption.node_name}",
            scheduler_name=preemption.scheduler_name,
            related=preemptor,
            resource_version="" if known is None else known.resource_version,
            related_resource_version="" if waiting is None else waiting.resource_version,
        )
    )
